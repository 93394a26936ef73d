//! Polychromic objectives: sets of trajectories are worth what they earn, times how different they are.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, TrajectoryView};

/// Options of [`Polychromic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolychromicConfig {
    /// Trajectories of a set, at least 2; groups have to be larger, or all of their sets are one. Default 2.
    pub set: usize,
}

impl Default for PolychromicConfig {
    fn default() -> Self {
        Self { set: 2 }
    }
}

impl NamedOptions for PolychromicConfig {
    fn problems(&self) -> Vec<String> {
        let is_wrong = self.set < 2;
        is_wrong.then(|| format!("set is {}, must be at least 2", self.set)).into_iter().collect()
    }
}

/// The set objective of polychromic policy optimisation (arXiv 2509.25424): a set of `n` trajectories from one state is worth
///
/// ```text
/// f(S) = mean_{j in S} R_j * (distinct trajectories in S) / n
/// A_i = E[f(S) | i in S] - mean_k E[f(S) | k in S]
/// ```
///
/// over all sets of `n` of the group, each as likely: the expectation is computed, and no sets are drawn. So a trajectory that is like no other is worth more than one of many that earn the same, as long as its set earns anything. Two are the same where
/// they did the same in the same situations. Groups of no more than `n`, and returns that are not finite, get 0.
///
/// Reconstructed from the abstract: there sets are drawn, from vines at states of an episode (the strategy `continuations`); assumed: the share of distinct trajectories as the diversity, which is multiplied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Polychromic {
    config: PolychromicConfig,
}

/// What a trajectory did, in words.
fn key(trajectory: TrajectoryView<'_, '_>) -> String {
    let mut key = String::new();
    for step in trajectory.steps {
        for part in [step.state, &step.action] {
            key.push_str(part);
            key.push('\u{1f}');
        }
    }
    key
}

/// How probably a set of `drawn` of `all` meets none of `count` of these.
fn missed(all: usize, drawn: usize, count: usize) -> f64 {
    if drawn + count > all {
        return 0.0;
    }
    (0..count).map(|t| (all - drawn - t) as f64 / (all - t) as f64).product()
}

/// What a set with each of these trajectories is expected to be worth, by their classes and returns: sets have `size`, fewer than there are trajectories.
fn expected(classes: &[usize], returns: &[f64], size: usize) -> Vec<f64> {
    let all = classes.len();
    let num_classes = classes.iter().max().map_or(0, |most| most + 1);
    let (mut counts, mut sums) = (vec![0; num_classes], vec![0.0; num_classes]);
    for (class, value) in classes.iter().zip(returns) {
        counts[*class] += 1;
        sums[*class] += value;
    }
    // How probably a class is met by a set that has one, or two, of others.
    let met = |others: usize| -> Vec<f64> {
        counts.iter().map(|count| 1.0 - missed(all - others, size - others, *count)).collect()
    };
    let (beside_one, beside_two) = (met(1), met(2));
    let (all_one, all_two) = (beside_one.iter().sum::<f64>(), beside_two.iter().sum::<f64>());
    let together = (size - 1) as f64 / (all - 1) as f64;
    let square = (size * size) as f64;
    let worth = |(class, value): (&usize, &f64)| {
        // Its own return, in as many classes as are met.
        let own = value * (1.0 + all_one - beside_one[*class]);
        // Those of its class, which add no class, and of others, which add theirs.
        let same = (sums[*class] - value) * (1.0 + all_two - beside_two[*class]);
        let others = (0..num_classes)
            .filter(|other| other != class)
            .map(|other| sums[other] * (2.0 + all_two - beside_two[*class] - beside_two[other]));
        (own + together * (same + others.sum::<f64>())) / square
    };
    classes.iter().zip(returns).map(worth).collect()
}

impl Polychromic {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: PolychromicConfig) -> Result<Self, CreditError> {
        refuse("polychromic", config.problems())?;
        Ok(Self { config })
    }

    fn trajectory_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let returns = group.returns();
        let mut advantages = vec![0.0; returns.len()];
        let finite: Vec<usize> = (0..returns.len()).filter(|it| returns[*it].is_finite()).collect();
        if finite.len() <= self.config.set {
            return advantages;
        }
        let mut known: HashMap<String, usize> = HashMap::new();
        let classes: Vec<usize> = group
            .trajectories()
            .enumerate()
            .filter(|(place, _)| returns[*place].is_finite())
            .map(|(_, trajectory)| {
                let next = known.len();
                *known.entry(key(trajectory)).or_insert(next)
            })
            .collect();
        let earned: Vec<f64> = finite.iter().map(|place| returns[*place]).collect();
        let worth = expected(&classes, &earned, self.config.set);
        let mean = worth.iter().sum::<f64>() / worth.len() as f64;
        let is_alike = classes.iter().all(|class| *class == classes[0])
            && earned.iter().all(|value| *value == earned[0]);
        if !is_alike {
            finite.iter().zip(worth).for_each(|(place, value)| advantages[*place] = value - mean);
        }
        advantages
    }
}

impl AdvantageEstimator for Polychromic {
    fn name(&self) -> &'static str {
        "polychromic"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let advantages = batch.groups().iter().flat_map(|group| self.trajectory_advantages(group));
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::step_of;
    use super::*;

    /// The same by looking at every set.
    fn by_sets(classes: &[usize], returns: &[f64], size: usize) -> Vec<f64> {
        let (mut sums, mut counts) = (vec![0.0; classes.len()], vec![0.0; classes.len()]);
        for chosen in 0_u32..1 << classes.len() {
            let set: Vec<usize> = (0..classes.len()).filter(|it| chosen >> it & 1 == 1).collect();
            if set.len() != size {
                continue;
            }
            let mut distinct: Vec<usize> = set.iter().map(|it| classes[*it]).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let mean = set.iter().map(|it| returns[*it]).sum::<f64>() / size as f64;
            let worth = mean * distinct.len() as f64 / size as f64;
            set.iter().for_each(|it| {
                sums[*it] += worth;
                counts[*it] += 1.0;
            });
        }
        sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
    }

    proptest! {
        #[test]
        fn what_is_expected_is_the_mean_over_all_sets(
            members in prop::collection::vec((0_usize..4, -1.0..1.0_f64), 3..9),
            size in 2_usize..8,
        ) {
            prop_assume!(size < members.len());
            let (classes, returns): (Vec<usize>, Vec<f64>) = members.into_iter().unzip();
            let found = expected(&classes, &returns, size);
            for (found, wanted) in found.iter().zip(by_sets(&classes, &returns, size)) {
                prop_assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn of_equal_returns_the_rare_one_is_worth_more() {
        let mut group = GroupView::default();
        let step = |action: &'static str, value| super::super::StepView {
            action: action.into(),
            ..step_of(value, 1)
        };
        for (action, value) in [("a", 1.0), ("a", 1.0), ("a", 1.0), ("b", 1.0)] {
            group.push([step(action, value)]);
        }
        let estimate = |group: &GroupView<'static>| {
            let polychromic = Polychromic::new(PolychromicConfig::default()).unwrap();
            polychromic.trajectory_advantages(group)
        };
        let found = estimate(&group);
        assert!(found[3] > 0.0 && found[0] < 0.0 && found[0] == found[1], "{found:?}");
        assert!(found.iter().sum::<f64>().abs() < 1e-12);
        // Where nothing is earned it is worth nothing to be different.
        let mut failed = GroupView::default();
        for action in ["a", "a", "b"] {
            failed.push([step(action, 0.0)]);
        }
        assert_eq!(estimate(&failed), [0.0; 3]);
        assert!(Polychromic::new(PolychromicConfig { set: 1 }).is_err());
    }
}
