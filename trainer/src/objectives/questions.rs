//! Right and wrong answers to one question.

use super::{PolicyBatch, PolicyTokens};

/// The answers to one question among the samples of an update, by their indices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Question {
    /// Those with a positive advantage.
    pub(super) right: Vec<usize>,
    /// Those with a negative one.
    pub(super) wrong: Vec<usize>,
}

impl Question {
    /// The questions of an update: samples with the same prompt answer the same one. Where rewards are 0 and 1, and credit
    /// compares answers to a question with each other, an answer is right where its advantage is positive and wrong where
    /// it is negative, and where all are right, or all wrong, there is neither.
    pub(super) fn all(batch: &PolicyBatch<'_>) -> Vec<Self> {
        let mut questions = Vec::new();
        for members in batch.by_group() {
            let mut question = Self::default();
            for index in members {
                match batch.samples[index].mean_advantage() {
                    advantage if advantage > 0.0 => question.right.push(index),
                    advantage if advantage < 0.0 => question.wrong.push(index),
                    _ => {}
                }
            }
            questions.push(question);
        }
        questions
    }

    /// Whether there is something to be told apart.
    pub(super) fn has_both(&self) -> bool {
        !self.right.is_empty() && !self.wrong.is_empty()
    }
}

/// The tokens of all samples of an update: what a loss that is a mean over something else multiplies its parts by, since
/// it is divided by that.
pub(super) fn num_tokens(samples: &[PolicyTokens]) -> f64 {
    samples.iter().map(PolicyTokens::len).sum::<usize>() as f64
}
