//! The words of the games of words: spar's own list, from four to ten letters.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Sorted by length, then by letters.
static WORDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| include_str!("../words/english.txt").lines().collect());

/// All words: of four to ten lower-case letters, shorter ones first, then by the alphabet.
///
/// [Wordle](crate#games) and Hangman draw secrets from it as Python's `random.choice` would from the list of those that
/// are as long as the game's settings say, in this order.
pub fn all_words() -> &'static [&'static str] {
    &WORDS
}

/// The words of these lengths, in their order.
pub(crate) fn words_within(lengths: RangeInclusive<usize>) -> Vec<&'static str> {
    WORDS.iter().copied().filter(|word| lengths.contains(&word.len())).collect()
}

/// Whether a word is on the list.
pub(crate) fn is_known_word(word: &str) -> bool {
    WORDS.binary_search_by(|known| (known.len(), *known).cmp(&(word.len(), word))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_and_there_are_some_of_every_length() {
        assert!(WORDS.is_sorted_by(|one, two| (one.len(), *one) < (two.len(), *two)));
        assert!(WORDS.iter().all(|word| word.bytes().all(|letter| letter.is_ascii_lowercase())));
        for length in 4..=10 {
            assert!(words_within(length..=length).len() >= 30, "{length}");
        }
        assert!(is_known_word("apple") && !is_known_word("appel") && !is_known_word(""));
    }
}
