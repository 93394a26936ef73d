//! Features of turns, for learned functions that are not the policy.
//!
//! A turn has two rows of them: how things stand before its first sampled token, and how they stand behind its last one.
//! They stay as they are while the policy learns: states are those of a frozen model, and words are counted as they are.

mod hashed_tokens;
mod hidden_states;
mod registry;

use std::fmt::Debug;
use std::ops::Range;

use spar_core::Sample;

use crate::{FixedModel, TrainerError};

pub use hashed_tokens::{HashedTokens, HashedTokensOptions};
pub use hidden_states::HiddenStateFeatures;
pub use registry::{
    OpenTurnFeatures, TurnFeaturesConfig, TurnFeaturesRow, open_turn_features,
    turn_features_registry,
};

/// Says how things stand around the turns of samples.
pub trait TurnFeatures: Debug + Send + Sync {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// Whether it reads a frozen model. Default false.
    fn needs_model(&self) -> bool {
        false
    }

    /// Numbers in a row, with a model whose final states have `hidden_size` numbers where it reads one.
    fn width(&self, hidden_size: usize) -> usize;

    /// The rows of every turn of each sample, in their order; `turns` tells which tokens are sampled in which turn.
    /// They depend on their sample alone, to the bit, on any number of threads.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Model`] when the model is needed and there is none, or cannot be run on a sample.
    fn of(
        &self,
        samples: &[&Sample],
        model: Option<&FrozenModel<'_>>,
    ) -> Result<Vec<Vec<TurnRows>>, TrainerError>;
}

/// A model whose weights stay as they are.
#[derive(Clone, Copy)]
pub struct FrozenModel<'a> {
    /// The model.
    pub model: &'a dyn FixedModel,
    /// Numbers of a final state.
    pub hidden_size: usize,
    /// Tokens that are read at a time, what samples begin with counting once.
    pub micro_batch_tokens: usize,
}

/// The features of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRows {
    /// The turn of its trajectory, from 0.
    pub turn: u32,
    /// How things stand before its first sampled token.
    pub start: Vec<f32>,
    /// How they stand behind its last one.
    pub end: Vec<f32>,
}

/// Where a turn stands in a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TurnPlace {
    turn: u32,
    /// What was observed between the answer before it, or the sample's beginning, and its own.
    observed: Range<usize>,
    /// What was sampled.
    sampled: Range<usize>,
}

/// The turns of a sample that were sampled in it.
fn turn_places(sample: &Sample) -> Vec<TurnPlace> {
    let mut places: Vec<TurnPlace> = Vec::new();
    for (t, &turn) in sample.turns.iter().enumerate().filter(|(_, turn)| **turn != Sample::OBSERVED)
    {
        match places.last_mut() {
            Some(last) if last.turn == turn => last.sampled.end = t + 1,
            last => {
                let behind = last.map_or(0, |last| last.sampled.end);
                places.push(TurnPlace { turn, observed: behind..t, sampled: t..t + 1 });
            }
        }
    }
    places
}

#[cfg(test)]
pub(crate) mod tests {
    use spar_core::PolicyVersion;

    use super::*;

    /// A sample of tokens, each observed or sampled in a turn.
    pub(crate) fn sample(tokens: &[(u32, Option<u32>)]) -> Sample {
        let mut sample = Sample::default();
        for (token, turn) in tokens {
            sample.push(*token, 0.0, 0.0, 0.0, 0.0, PolicyVersion(0), &[]);
            sample.turns.push(turn.unwrap_or(Sample::OBSERVED));
        }
        sample
    }

    #[test]
    fn turns_are_found_with_what_was_observed_before_them() {
        let sample = sample(&[
            (1, None),
            (2, None),
            (3, Some(4)),
            (4, Some(4)),
            (5, Some(5)),
            (6, None),
            (7, Some(6)),
            (8, None),
        ]);
        let place = |turn, observed, sampled| TurnPlace { turn, observed, sampled };
        let expected = [place(4, 0..2, 2..4), place(5, 4..4, 4..5), place(6, 5..6, 6..7)];
        assert_eq!(turn_places(&sample), expected);
        assert!(turn_places(&self::sample(&[(1, None)])).is_empty());
    }
}
