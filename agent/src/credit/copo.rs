//! COPO: a group whose outcomes are all alike still learns, from how it stands in the batch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// Options of [`Copo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopoConfig {
    /// How steeply the two parts change places about `middle`, above 0. Default 10.
    pub steepness: f64,
    /// The entropy of outcomes, in nats, at which both weigh the same; at least 0. Default 0.3.
    pub middle: f64,
    /// Options of both parts. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for CopoConfig {
    fn default() -> Self {
        Self { steepness: 10.0, middle: 0.3, base: GrpoConfig::default() }
    }
}

impl NamedOptions for CopoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.base.problems();
        if !(self.steepness.is_finite() && self.steepness > 0.0) {
            problems.push(format!("steepness is {}, must be above 0", self.steepness));
        }
        if !(self.middle.is_finite() && self.middle >= 0.0) {
            problems.push(format!("middle is {}, must be at least 0", self.middle));
        }
        problems
    }
}

/// Consistency-aware policy optimisation (COPO, arXiv 2508.04138), reconstructed from its abstract.
///
/// `A_i = w A_local + (1 - w) A_global`, `w = sigmoid(steepness (H - middle))`, `H` being the entropy of the distinct returns of the group. `A_local` is
/// GRPO's; `A_global` compares the group's mean return with those of all groups of the batch, and is the same for its trajectories. A group without
/// any variance, whose local part is 0, so still has a gradient. Assumed: both forms, the sigmoid and its defaults.
#[derive(Debug, Clone)]
pub struct Copo {
    config: CopoConfig,
    base: Grpo,
}

impl Copo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: CopoConfig) -> Result<Self, CreditError> {
        refuse("copo", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }
}

/// The entropy of how often each return comes, in nats.
fn entropy(mut returns: Vec<f64>) -> f64 {
    let count = returns.len() as f64;
    returns.sort_unstable_by(f64::total_cmp);
    let of = |equal: &[f64]| {
        let share = equal.len() as f64 / count;
        -share * share.ln()
    };
    returns.chunk_by(|one, two| one == two).map(of).sum()
}

impl AdvantageEstimator for Copo {
    fn name(&self) -> &'static str {
        "copo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let of_batch = self.base.of_batch(batch);
        let finite = |group: &GroupView<'_>| -> Vec<f64> {
            group.returns().into_iter().filter(|value| value.is_finite()).collect()
        };
        let mean = |returns: &Vec<f64>| returns.iter().sum::<f64>() / returns.len() as f64;
        let returns: Vec<Vec<f64>> = batch.groups().iter().map(finite).collect();
        let means: Vec<f64> = returns.iter().map(mean).collect();
        let over_groups = Moments::of(means.iter().copied());
        let mut advantages = Vec::new();
        for ((group, returns), mean) in batch.groups().iter().zip(returns).zip(means) {
            let outcome = entropy(returns) - self.config.middle;
            let weight = 1.0 / (1.0 + (-self.config.steepness * outcome).exp());
            let global = match mean.is_finite() {
                true => {
                    let scale = over_groups.deviation(1) + self.config.base.epsilon;
                    over_groups.difference(mean) / scale
                }
                false => 0.0,
            };
            let local = self.base.trajectory_advantages(group, of_batch);
            let is_told = group.returns().into_iter().map(f64::is_finite);
            let blend = |(local, is_told): (f64, bool)| match is_told {
                true => weight * local + (1.0 - weight) * global,
                false => 0.0,
            };
            advantages.extend(local.into_iter().zip(is_told).map(blend));
        }
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::returns_view;
    use super::*;

    #[test]
    fn a_group_of_equal_outcomes_has_a_gradient() {
        let groups = [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]];
        let batch: BatchView<'_> = groups.into_iter().map(returns_view).collect();
        let copo = Copo::new(CopoConfig::default()).unwrap();
        let found = copo.estimate(&batch, &Signals::default()).unwrap().advantages;
        let at = |index| found.at(index, 0, 0);
        assert!(at(0) > 0.5 && at(0) == at(1) && at(2) < -0.5);
        // Where outcomes differ, they are compared with each other.
        assert!(at(4) > 0.5 && at(5) < -0.5);
        let alike: BatchView<'_> = [[1.0, 1.0], [1.0, 1.0]].into_iter().map(returns_view).collect();
        let found = copo.estimate(&alike, &Signals::default()).unwrap().advantages;
        assert_eq!(found.at(0, 0, 0), 0.0);
    }
}
