//! GRPO and Dr.GRPO: every step takes the advantage of its whole trajectory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// Options of [`Grpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrpoConfig {
    /// Whether to divide by the group's standard deviation: `mean_std_norm` is GRPO, `mean_norm`
    /// Dr.GRPO. Default `mean_std_norm`.
    pub normalization: Normalization,
    /// What a group of one trajectory gets. Default `zero`; verl's rule is `raw`.
    pub singleton: Singleton,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for GrpoConfig {
    fn default() -> Self {
        Self {
            normalization: Normalization::MeanStdNorm,
            singleton: Singleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for GrpoConfig {
    fn problems(&self) -> Vec<String> {
        epsilon_problem(self.epsilon).into_iter().collect()
    }
}

/// Group-relative advantages of whole trajectories.
///
/// `A_i = (R_i - mean R) / (std R + epsilon)` with the unbiased standard deviation, the same for
/// every step of trajectory `i` (DeepSeekMath, arXiv 2402.03300; without the division Dr.GRPO,
/// arXiv 2503.20783). A group of equal returns gets zeros. Deviation: singletons get 0 unless
/// the options say otherwise.
#[derive(Debug, Clone, Default)]
pub struct Grpo {
    config: GrpoConfig,
}

impl Grpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GrpoConfig) -> Result<Self, CreditError> {
        refuse("grpo", config.problems())?;
        Ok(Self { config })
    }

    /// One advantage per trajectory.
    pub(super) fn trajectory_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let returns = group.returns();
        let moments = Moments::of(returns.iter().copied());
        let GrpoConfig { normalization, singleton, epsilon } = self.config;
        returns
            .into_iter()
            .map(|value| moments.advantage(value, normalization, singleton, epsilon))
            .collect()
    }

    /// One advantage per step of a group.
    pub(super) fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        self.trajectory_advantages(group)
            .into_iter()
            .zip(group.trajectories())
            .map(|(advantage, trajectory)| vec![advantage; trajectory.steps.len()])
            .collect()
    }
}

impl AdvantageEstimator for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_advantages(group)))
    }
}

pub(super) fn epsilon_problem(epsilon: f64) -> Option<String> {
    let good = epsilon.is_finite() && epsilon > 0.0;
    (!good).then(|| format!("epsilon is {epsilon}, must be above 0"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::test_vectors::{cases, floats, returns_view};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_grpo", |case, near| {
            let rewards: Vec<f64> = case.inputs["token_level_rewards"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| floats(row).iter().sum())
                .collect();
            let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for (row, index) in case.inputs["index"].as_array().unwrap().iter().enumerate() {
                groups.entry(index.as_u64().unwrap()).or_default().push(row);
            }
            let normalization = match case.params["norm_adv_by_std_in_grpo"].as_bool().unwrap() {
                true => Normalization::MeanStdNorm,
                false => Normalization::MeanNorm,
            };
            let epsilon = case.params["epsilon"].as_f64().unwrap();
            let config = GrpoConfig { normalization, singleton: Singleton::Raw, epsilon };
            let grpo = Grpo::new(config).unwrap();
            for rows in groups.values() {
                let view = returns_view(rows.iter().map(|&row| rewards[row]));
                for (&row, advantages) in rows.iter().zip(grpo.step_advantages(&view)) {
                    let mask = floats(&case.inputs["response_mask"][row]);
                    let expected = floats(&case.outputs["advantages"][row]);
                    for (mask, expected) in mask.iter().zip(expected) {
                        near(advantages[0] * mask, expected);
                    }
                }
            }
        });
    }

    #[test]
    fn singletons_follow_the_option() {
        let view = returns_view([2.0]);
        assert_eq!(Grpo::default().step_advantages(&view), [[0.0]]);
        let raw = GrpoConfig {
            singleton: Singleton::Raw,
            normalization: Normalization::MeanNorm,
            ..GrpoConfig::default()
        };
        assert_eq!(Grpo::new(raw).unwrap().step_advantages(&view), [[2.0]]);
        assert!(Grpo::default().step_advantages(&GroupView::default()).is_empty());
    }

    proptest! {
        #[test]
        fn equal_returns_give_zeros(value in -1e3..1e3, size in 1_usize..20) {
            let view = returns_view(std::iter::repeat_n(value, size));
            prop_assert!(Grpo::default().step_advantages(&view).iter().flatten().all(|a| *a == 0.0));
        }

        #[test]
        fn advantages_sum_to_zero_and_do_not_depend_on_order(
            returns in prop::collection::vec(-10.0..10.0, 1..20),
        ) {
            let forward = Grpo::default().step_advantages(&returns_view(returns.iter().copied()));
            let mut backward = Grpo::default().step_advantages(&returns_view(returns.iter().rev().copied()));
            backward.reverse();
            let sum: f64 = forward.iter().flatten().sum();
            prop_assert!(sum.abs() < 1e-6);
            for (a, b) in forward.iter().flatten().zip(backward.iter().flatten()) {
                prop_assert!((a - b).abs() < 1e-6);
            }
        }
    }
}
