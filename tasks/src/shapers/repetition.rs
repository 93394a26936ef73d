//! What says the same over and over costs something.

use std::collections::HashSet;
use std::hash::Hash;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory, Turn};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::add_at_end;
use crate::ShaperError;

/// Options of [`Repetition`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepetitionOptions {
    /// How many tokens in a row are compared; at least 1. Default 8.
    pub ngram: usize,
    /// The share of repeated rows that costs nothing, 0 to below 1. Default 0.
    pub free: f64,
    /// What it costs where all are repeated; above 0. Default 1.
    pub penalty: f64,
}

impl Default for RepetitionOptions {
    fn default() -> Self {
        Self { ngram: 8, free: 0.0, penalty: 1.0 }
    }
}

impl NamedOptions for RepetitionOptions {
    fn problems(&self) -> Vec<String> {
        let Self { ngram, free, penalty } = *self;
        let mut problems = Vec::new();
        if ngram == 0 {
            problems.push("ngram is 0, must be at least 1".to_owned());
        }
        if !(0.0..1.0).contains(&free) {
            problems.push(format!("free is {free}, must be 0 to below 1"));
        }
        if !(penalty.is_finite() && penalty > 0.0) {
            problems.push(format!("penalty is {penalty}, must be above 0"));
        }
        problems
    }
}

/// A penalty of repetition within an answer (CAMPO of MiroMind-M1, arXiv 2507.14683; reconstructed from its abstract).
///
/// `-penalty max(0, s - free) / (1 - free)` is added to the last turn as part `repetition`, `s = 1 - distinct / all` over the rows of `ngram` tokens in each turn, all turns together: what one turn says again of another
/// counts as nothing. Of policies that show no tokens, words are compared.
#[derive(Debug, Clone)]
pub struct Repetition {
    options: RepetitionOptions,
}

impl Repetition {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &RepetitionOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "repetition", options.problems())?;
        Ok(Self { options: options.clone() })
    }

    /// How many rows a turn has, and how many distinct ones.
    fn rows(&self, turn: &Turn) -> (usize, usize) {
        match &turn.sampled.ids[..] {
            [] => count(&turn.text.split_whitespace().collect::<Vec<_>>(), self.options.ngram),
            ids => count(ids, self.options.ngram),
        }
    }
}

/// All rows of a length, and the distinct ones, told apart by a rolling hash so that time does not grow with the length.
fn count<T: Hash>(tokens: &[T], ngram: usize) -> (usize, usize) {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let Some(all) = (tokens.len() + 1).checked_sub(ngram).filter(|all| *all > 0) else {
        return (0, 0);
    };
    let hashes: Vec<u64> = tokens.iter().map(hash).collect();
    let first = (0..ngram.saturating_sub(1)).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let mut rolling = 0_u64;
    let mut met = HashSet::with_capacity(all);
    for (place, hash) in hashes.iter().enumerate() {
        if place >= ngram {
            rolling = rolling.wrapping_sub(hashes[place - ngram].wrapping_mul(first));
        }
        rolling = rolling.wrapping_mul(BASE).wrapping_add(*hash);
        if place + 1 >= ngram {
            met.insert(rolling);
        }
    }
    (all, met.len())
}

/// A hash that is the same in every process.
fn hash<T: Hash>(token: &T) -> u64 {
    struct Fnv(u64);
    impl std::hash::Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    token.hash(&mut hasher);
    std::hash::Hasher::finish(&hasher)
}

impl RewardShaper for Repetition {
    fn name(&self) -> &'static str {
        "repetition"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let RepetitionOptions { free, penalty, .. } = self.options;
        let rows = trajectory.turns.iter().map(|turn| self.rows(turn));
        let (all, distinct) = rows.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        if all > 0 {
            let share = 1.0 - distinct as f64 / all as f64;
            let beyond = (share - free).max(0.0) / (1.0 - free);
            add_at_end(trajectory, rewards, "repetition", -penalty * beyond);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn repeated_rows_of_tokens_cost_their_share() {
        let options = RepetitionOptions { ngram: 2, free: 0.0, penalty: 2.0 };
        let shapers = |options: &RepetitionOptions| {
            RewardShapers::new(vec![Box::new(Repetition::new(options).unwrap())])
        };
        let mut played = episode(&[&[], &[("success", 1.0)]]);
        played.turns[0].text = "go on go on go on".to_owned();
        // go on, on go, go on, on go, go on.
        assert_eq!(shapers(&options).rewards(&played), [0.0, 1.0 - 2.0 * 0.6]);
        played.turns[1].text = "go on".to_owned();
        assert_eq!(shapers(&options).rewards(&played), [0.0, 1.0 - 2.0 * 0.5], "turns are apart");
        played.turns[0].sampled.ids = vec![1, 2, 3, 4];
        played.turns[1].sampled.ids = vec![1, 2, 3];
        assert_eq!(shapers(&options).rewards(&played), [0.0, 1.0]);
        let free = RepetitionOptions { free: 0.5, ..options };
        played.turns[0].sampled.ids = vec![7; 1_000];
        let rewards = shapers(&free).rewards(&played);
        assert!(rewards[1] < -0.97 && rewards[1] > -1.0, "{rewards:?}");
        assert_eq!(shapers(&RepetitionOptions::default()).rewards(&episode(&[])), [0.0; 0]);
        assert_eq!(RepetitionOptions { ngram: 0, free: 1.0, penalty: 0.0 }.problems().len(), 3);
    }
}
