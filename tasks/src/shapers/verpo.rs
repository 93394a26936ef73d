//! Tests that few of a group pass weigh more.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::test_results::tests_of;
use crate::ShaperError;

const NAME: &str = "verpo";
/// The part of the reward that tests make.
const PART: &str = "tests";

/// Options of [`Verpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerpoOptions {
    /// The share of the reward that tests make, one by one; the rest is the outcome's. Above 0, at most 1. Default 0.5.
    pub dense: f64,
    /// The parts of rewards that are the outcome, which count `1 - dense`. Default `resolved`, `passed` and `success`.
    pub outcome: Vec<String>,
}

impl Default for VerpoOptions {
    fn default() -> Self {
        Self { dense: 0.5, outcome: ["resolved", "passed", "success"].map(str::to_owned).into() }
    }
}

impl NamedOptions for VerpoOptions {
    fn problems(&self) -> Vec<String> {
        let dense = self.dense;
        let is_wrong = !(dense > 0.0 && dense <= 1.0);
        let problem = format!("dense is {dense}, must be above 0 and at most 1");
        is_wrong.then_some(problem).into_iter().collect()
    }
}

/// Tests that few episodes of a group pass weigh more than those that many do (VeRPO, as its abstract has it; the formula of the
/// weights is reconstructed).
///
/// With `p_j` the part of the group's judged episodes that pass test `j`, the weights are `w_j = (1 - p_j) / sum_k (1 - p_k)`,
/// or equal where all pass all of them. An episode earns `(1 - dense)` times its outcome and, as part `tests` of its last turn,
/// `dense * sum_j w_j pass_j`: from 0 to 1 together, and 1 if and only if all tests pass. Episodes that no tests judged stay as
/// they are; without a group an episode is one by itself.
#[derive(Debug, Clone)]
pub struct Verpo {
    options: VerpoOptions,
}

impl Verpo {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &VerpoOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, NAME, options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Verpo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let mut alone = [rewards.to_vec()];
        self.shape_group(&[trajectory], &mut alone);
        rewards.clone_from_slice(&alone[0]);
    }

    fn shape_group(&self, group: &[&Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        let judged: Vec<_> = group.iter().map(|trajectory| tests_of(trajectory)).collect();
        let weights = weights(judged.iter().flatten());
        if weights.is_empty() {
            return;
        }
        let VerpoOptions { dense, outcome } = &self.options;
        for (passed, rewards) in judged.iter().zip(rewards) {
            let (Some(passed), Some(last)) = (passed, rewards.last_mut()) else { continue };
            let is_outcome = |part: &&mut RewardPart| outcome.contains(&part.name);
            last.iter_mut().filter(is_outcome).for_each(|part| part.value *= 1.0 - dense);
            let earned = weights.iter().filter(|(name, _)| passed.get(**name) == Some(&true));
            let value = dense * earned.map(|(_, weight)| weight).sum::<f64>();
            last.push(RewardPart { name: PART.to_owned(), value });
        }
    }
}

/// The weights of tests by their names, which come to 1; empty where there are none.
fn weights<'a>(
    judged: impl Iterator<Item = &'a BTreeMap<String, bool>> + Clone,
) -> BTreeMap<&'a str, f64> {
    let (mut passes, mut episodes) = (BTreeMap::<&str, usize>::new(), 0usize);
    for tests in judged {
        episodes += 1;
        for (name, passed) in tests {
            *passes.entry(name).or_default() += usize::from(*passed);
        }
    }
    // Whole numbers: equal groups in another order weigh the same to the bit.
    let missed: usize = passes.values().map(|passes| episodes - passes).sum();
    let count = passes.len();
    let weight = |passes: usize| match missed {
        0 => 1.0 / count as f64,
        _ => (episodes - passes) as f64 / missed as f64,
    };
    passes.into_iter().map(|(name, passes)| (name, weight(passes))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::test_results::judged;
    use super::super::tests::episode;
    use super::*;

    fn played(outcome: &str, success: &[&str], failure: &[&str]) -> Trajectory {
        let earned: &[(&str, f64)] =
            if outcome == "resolved" { &[("resolved", 1.0)] } else { &[("invalid_action", -0.25)] };
        let verdict = Some(judged(outcome, success, failure));
        Trajectory { verdict, ..episode(&[&[], earned]) }
    }

    fn returns(group: &[Trajectory]) -> Vec<f64> {
        let shapers = RewardShapers::open(&[super::super::ShaperConfig::new(NAME)]).unwrap();
        let sum = |turns: Vec<Vec<RewardPart>>| turns.iter().flatten().map(|it| it.value).sum();
        shapers.shape_group(&group.iter().collect::<Vec<_>>()).into_iter().map(sum).collect()
    }

    #[test]
    fn a_test_that_few_pass_weighs_more() {
        // `a` is passed by three of four, `b` by one: weights 1/4 and 3/4.
        let group = [
            played("resolved", &["a", "b"], &[]),
            played("partial", &["a"], &["b"]),
            played("partial", &["a"], &["b"]),
            played("failed", &[], &["a", "b"]),
        ];
        assert_eq!(returns(&group), [1.0, 0.125 - 0.25, 0.125 - 0.25, -0.25]);
    }

    #[test]
    fn what_no_tests_judged_neither_counts_nor_changes() {
        let lost = played("infrastructure", &[], &[]);
        let group = [played("resolved", &["a"], &[]), lost, episode(&[&[("success", 1.0)]])];
        assert_eq!(returns(&group), [1.0, -0.25, 1.0]);
        assert_eq!(returns(&[episode(&[]), episode(&[&[("success", 1.0)]])]), [0.0, 1.0]);
        // All fail, or one plays by itself.
        assert_eq!(returns(&[played("failed", &[], &["a"])]), [-0.25]);
        assert_eq!(returns(&[played("partial", &["a"], &["b"])]), [-0.25]);
    }

    #[test]
    fn rewards_are_from_0_to_1_and_1_only_for_all_tests() {
        let names = ["a", "b", "c"];
        // All groups of three that there are: a bit for each test of each episode.
        for bits in 0u32..512 {
            let passes = |episode: usize, test: usize| bits >> (3 * episode + test) & 1 == 1;
            let is_whole = |episode: usize| (0..3).all(|test| passes(episode, test));
            let group: Vec<_> = (0..3)
                .map(|episode| {
                    let of = |wanted: bool| -> Vec<&str> {
                        let tests = (0..3).filter(|test| passes(episode, *test) == wanted);
                        tests.map(|test| names[test]).collect()
                    };
                    let outcome = if is_whole(episode) { "resolved" } else { "partial" };
                    let earned: &[(&str, f64)] =
                        if is_whole(episode) { &[("resolved", 1.0)] } else { &[] };
                    let verdict = Some(judged(outcome, &of(true), &of(false)));
                    Trajectory { verdict, ..episode_of(earned) }
                })
                .collect();
            for (episode, reward) in returns(&group).into_iter().enumerate() {
                assert!((0.0..=1.0 + 1e-12).contains(&reward), "{bits}: {reward}");
                assert_eq!(is_whole(episode), reward > 1.0 - 1e-9, "{bits}: {reward}");
            }
        }
    }

    /// An episode of one turn that earns these parts.
    fn episode_of(earned: &[(&str, f64)]) -> Trajectory {
        episode(&[earned])
    }
}
