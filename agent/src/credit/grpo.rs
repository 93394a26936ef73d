//! GRPO and Dr.GRPO: every step takes the advantage of its whole trajectory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// What a group of one trajectory gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrpoSingleton {
    /// 0.
    #[default]
    Zero,
    /// Its return, compared with mean 0 and deviation 1, as verl does.
    Raw,
    /// That where all groups of the batch have one trajectory, otherwise 0, as DARS does.
    RawIfAll,
}

/// Whose standard deviation differences are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviationOf {
    /// The group's.
    #[default]
    Group,
    /// That of all returns of the batch, as TRL's `scale_rewards = "batch"` has it (arXiv 2508.08221).
    Batch,
    /// That of all differences to the means of their groups in the batch, as ScaleRL has it (arXiv 2510.13786).
    Advantages,
}

/// Options of [`Grpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrpoConfig {
    /// Whether to divide by the standard deviation: `mean_std_norm` is GRPO, `mean_norm`
    /// Dr.GRPO. Default `mean_std_norm`.
    pub normalization: Normalization,
    /// Whose standard deviation that is, for `mean_std_norm` alone. Default absent: `group`.
    pub deviation: Option<DeviationOf>,
    /// What a group of one trajectory gets. Default `zero`; verl's rule is `raw`.
    pub singleton: GrpoSingleton,
    /// Added to the standard deviation; above 0. Default 1e-6; TRL's is 1e-4.
    pub epsilon: f64,
}

impl Default for GrpoConfig {
    fn default() -> Self {
        Self {
            normalization: Normalization::MeanStdNorm,
            deviation: None,
            singleton: GrpoSingleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for GrpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = epsilon_problem(self.epsilon).into_iter().collect();
        if self.deviation.is_some() && self.normalization == Normalization::MeanNorm {
            problems.push("deviation has no effect: set normalization `mean_std_norm`".to_owned());
        }
        problems
    }
}

/// Group-relative advantages of whole trajectories.
///
/// `A_i = (R_i - mean R) / (std R + epsilon)` with the unbiased standard deviation, the same for
/// every step of trajectory `i` (DeepSeekMath, arXiv 2402.03300; without the division Dr.GRPO,
/// arXiv 2503.20783). A group of equal returns gets zeros. Deviation: singletons get 0 unless
/// the options say otherwise. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct Grpo {
    config: GrpoConfig,
}

/// What GRPO takes of a whole batch before it looks at its groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfBatch {
    singleton: Singleton,
    deviation: Option<f64>,
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

    pub(super) fn of_batch(&self, batch: &BatchView<'_>) -> OfBatch {
        let all_alone = || batch.groups().iter().all(|group| group.num_trajectories() == 1);
        let is_raw = match self.config.singleton {
            GrpoSingleton::Zero => false,
            GrpoSingleton::Raw => true,
            GrpoSingleton::RawIfAll => all_alone(),
        };
        let groups = || batch.groups().iter().map(GroupView::returns);
        let deviation = match self.config.deviation {
            None | Some(DeviationOf::Group) => None,
            Some(DeviationOf::Batch) => Some(Moments::of(groups().flatten()).deviation(1)),
            Some(DeviationOf::Advantages) => {
                let differences = groups().flat_map(|returns| {
                    let moments = Moments::of(returns.iter().copied());
                    let finite = returns.into_iter().filter(|value| value.is_finite());
                    finite.map(move |value| moments.difference(value))
                });
                Some(Moments::of(differences).deviation(1))
            }
        };
        OfBatch { singleton: if is_raw { Singleton::Raw } else { Singleton::Zero }, deviation }
    }

    /// One advantage per trajectory.
    pub(super) fn trajectory_advantages(&self, group: &GroupView<'_>, batch: OfBatch) -> Vec<f64> {
        let returns = group.returns();
        let moments = Moments::of(returns.iter().copied());
        let GrpoConfig { normalization, epsilon, .. } = self.config;
        let advantage = |value: f64| match batch.deviation {
            _ if !value.is_finite() => 0.0,
            Some(deviation) if moments.count() > 1 => {
                moments.difference(value) / (deviation + epsilon)
            }
            _ => moments.advantage(value, normalization, batch.singleton, epsilon),
        };
        returns.into_iter().map(advantage).collect()
    }

    /// One advantage per step of a group.
    #[cfg(test)]
    pub(super) fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let of_batch = self.of_batch(&BatchView::from(group.clone()));
        self.trajectory_advantages(group, of_batch)
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
        let of_batch = self.of_batch(batch);
        let groups = batch.groups().iter();
        let advantages = groups.flat_map(|group| self.trajectory_advantages(group, of_batch));
        Ok(batch.credit_by_trajectory(advantages))
    }
}

pub(super) fn epsilon_problem(epsilon: f64) -> Option<String> {
    let good = epsilon.is_finite() && epsilon > 0.0;
    (!good).then(|| format!("epsilon is {epsilon}, must be above 0"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::{Rows, cases, check_rows, floats, returns_view, rows};
    use super::*;

    #[test]
    fn advantages_equal_verl_and_dars() {
        for (name, by_std, singleton) in [
            ("adv_grpo", "norm_adv_by_std_in_grpo", GrpoSingleton::Raw),
            ("adv_grpo_vectorized", "norm_adv_by_std_in_grpo", GrpoSingleton::Raw),
            ("adv_dars_grpo", "use_std", GrpoSingleton::RawIfAll),
        ] {
            cases(name, |case, near| {
                let normalization = match case.params[by_std].as_bool().unwrap() {
                    true => Normalization::MeanStdNorm,
                    false => Normalization::MeanNorm,
                };
                // Those that take none have verl's.
                let epsilon = case.params["epsilon"].as_f64().unwrap_or(1e-6);
                let config = GrpoConfig { normalization, singleton, epsilon, deviation: None };
                let grpo = Grpo::new(config).unwrap();
                // Means and deviations of that one are of 32 bits, whatever the file says.
                let roughly = |found: f64, expected: f64| {
                    assert!(
                        (found - expected).abs() <= 2e-6 * (1.0 + expected.abs()),
                        "{found} {expected}"
                    );
                };
                let is_rough = name == "adv_grpo_vectorized";
                check_rows(case, if is_rough { &roughly } else { near }, &grpo, Rows::Whole);
            });
        }
    }

    #[test]
    fn advantages_equal_trl() {
        cases("adv_trl_grpo", |case, near| {
            // The other way of adding is GDPO's.
            if case.params["aggregation"] != "sum_then_normalize" {
                return;
            }
            let weights = floats(&case.params["reward_weights"]);
            let sum = |row: Vec<f64>| {
                let told = row.iter().zip(&weights).filter(|(value, _)| value.is_finite());
                let sum = told.map(|(value, weight)| value * weight).reduce(|a, b| a + b);
                sum.unwrap_or(f64::NAN)
            };
            let returns: Vec<f64> =
                rows(&case.inputs["rewards_per_func"]).into_iter().map(sum).collect();
            let size = case.params["num_generations"].as_u64().unwrap() as usize;
            let batch: BatchView<'_> =
                returns.chunks(size).map(|group| returns_view(group.iter().copied())).collect();
            let (normalization, deviation) = match case.params["scale_rewards"].as_str().unwrap() {
                "none" => (Normalization::MeanNorm, None),
                "batch" => (Normalization::MeanStdNorm, Some(DeviationOf::Batch)),
                _ => (Normalization::MeanStdNorm, Some(DeviationOf::Group)),
            };
            let epsilon = case.params["eps"].as_f64().unwrap();
            let singleton = GrpoSingleton::Zero;
            let config = GrpoConfig { normalization, deviation, singleton, epsilon };
            let credit = Grpo::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap();
            for (index, expected) in floats(&case.outputs["advantages"]).into_iter().enumerate() {
                near(credit.advantages.at(index, 0, index), expected);
            }
        });
    }

    #[test]
    fn the_deviation_may_be_that_of_all_differences() {
        // Differences are -0.5, 0.5, -2, 0, 2, 0: squares of 8.5 over five.
        let of_group = |returns: &[f64]| returns_view(returns.iter().copied());
        let batch: BatchView<'_> =
            [&[0.0, 1.0][..], &[4.0, 6.0, 8.0], &[9.0]].into_iter().map(of_group).collect();
        let config = GrpoConfig {
            deviation: Some(DeviationOf::Advantages),
            epsilon: 1e-12,
            ..GrpoConfig::default()
        };
        let credit = Grpo::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap();
        let scale = (8.5_f64 / 5.0).sqrt();
        for (index, difference) in [-0.5, 0.5, -2.0, 0.0, 2.0, 0.0].into_iter().enumerate() {
            let found = credit.advantages.at(index, 0, 0);
            assert!((found - difference / scale).abs() < 1e-9, "{index}: {found}");
        }
    }

    #[test]
    fn singletons_follow_the_option() {
        let view = returns_view([2.0]);
        assert_eq!(Grpo::default().step_advantages(&view), [[0.0]]);
        let raw = GrpoConfig {
            singleton: GrpoSingleton::Raw,
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
