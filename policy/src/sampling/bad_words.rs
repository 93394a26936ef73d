//! Token sequences that must not come about.

use std::sync::Arc;

use crate::GenerateError;

/// Token sequences that must not come about.
///
/// The last token of a sequence is left out wherever the tokens before it, prompt and answer
/// together, end with the rest of the sequence (as Hugging Face's `NoBadWordsLogitsProcessor`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BadWords(Arc<[Box<[u32]>]>);

impl BadWords {
    /// The sequences.
    pub fn new(sequences: Vec<Vec<u32>>) -> Self {
        Self(sequences.into_iter().map(Vec::into_boxed_slice).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tokens that would complete a sequence behind `before` followed by `answer`.
    pub fn banned<'a>(
        &'a self,
        before: &'a [u32],
        answer: &'a [u32],
    ) -> impl Iterator<Item = u32> + 'a {
        let ends_with = move |tokens: &[u32]| {
            let mut seen = answer.iter().rev().chain(before.iter().rev());
            tokens.iter().rev().all(|token| seen.next() == Some(token))
        };
        self.0.iter().filter_map(move |sequence| {
            let (last, first) = sequence.split_last()?;
            ends_with(first).then_some(*last)
        })
    }

    pub(super) fn validate(&self, vocabulary: usize) -> Result<(), GenerateError> {
        let refuse = |found: String, allowed: String| {
            Err(GenerateError::Option { option: "bad_words", found, allowed })
        };
        for sequence in self.0.iter() {
            if sequence.is_empty() {
                return refuse("an empty word".to_owned(), "words with tokens".to_owned());
            }
            if let Some(token) = sequence.iter().find(|token| **token as usize >= vocabulary) {
                return refuse(format!("token {token}"), format!("tokens below {vocabulary}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_banned_at_its_last_token() {
        let words = BadWords::new(vec![vec![5], vec![1, 2, 3], vec![9, 9]]);
        let banned =
            |before: &[u32], answer: &[u32]| words.banned(before, answer).collect::<Vec<_>>();
        assert_eq!(banned(&[], &[]), [5]);
        assert_eq!(banned(&[1], &[2]), [5, 3]);
        assert_eq!(banned(&[1, 2, 4], &[]), [5]);
        assert_eq!(banned(&[7], &[9]), [5, 9]);
    }
}
