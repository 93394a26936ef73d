//! GDPO: every part of the reward is normalised by itself before they are added.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::error::refuse;
use super::grpo::epsilon_problem;
use super::inheritance::shares;
use super::moments::Moments;
use super::whiten::whiten;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// How the sums of normalised parts are normalised over the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchNormalization {
    /// To mean 0 and deviation 1 over all sampled tokens, as verl does: long trajectories weigh more.
    #[default]
    Tokens,
    /// To mean 0 and deviation 1 over trajectories, by `(x - mean) / (std + 1e-4)`, as TRL does.
    Trajectories,
    /// Not at all.
    None,
}

/// Added to the deviation over trajectories, as TRL does.
const TRL_EPSILON: f64 = 1e-4;

/// Options of [`Gdpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GdpoConfig {
    /// Weights of parts of the reward by their names; of those that are not named 1. Default empty.
    pub weights: BTreeMap<String, f64>,
    /// Whether a part is divided by its unbiased standard deviation in the group. Default `mean_std_norm`: yes.
    pub normalization: Normalization,
    /// What happens to the sums. Default `tokens`.
    pub batch: BatchNormalization,
    /// What the only trajectory of a group gets. Default `zero`; verl's rule is `raw`.
    pub singleton: Singleton,
    /// Added to the standard deviation of a part; above 0. Default 1e-6; TRL's is 1e-4.
    pub epsilon: f64,
}

impl Default for GdpoConfig {
    fn default() -> Self {
        Self {
            weights: BTreeMap::new(),
            normalization: Normalization::MeanStdNorm,
            batch: BatchNormalization::Tokens,
            singleton: Singleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for GdpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = epsilon_problem(self.epsilon).into_iter().collect();
        for (name, weight) in self.weights.iter().filter(|(_, weight)| !weight.is_finite()) {
            problems.push(format!("weights.{name} is {weight}, must be finite"));
        }
        problems
    }
}

/// Group reward-decoupled normalisation (GDPO, arXiv 2601.05242).
///
/// Each named part of the reward is summed over an episode and compared within the group as GRPO compares returns; the weighted sum of
/// what comes of the parts is then normalised over the batch. So combinations of parts whose sums are equal are told apart.
/// A part that a trajectory does not name counts as 0 in it; one that is not finite is missing there, and a trajectory of which all
/// parts are missing gets 0.
#[derive(Debug, Clone, Default)]
pub struct Gdpo {
    config: GdpoConfig,
}

impl Gdpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GdpoConfig) -> Result<Self, CreditError> {
        refuse("gdpo", config.problems())?;
        Ok(Self { config })
    }

    /// The weighted sum of every trajectory's normalised parts; not a number where all are missing.
    fn sums(&self, group: &GroupView<'_>, names: &BTreeSet<&str>) -> Vec<f64> {
        let GdpoConfig { weights, normalization, singleton, epsilon, .. } = &self.config;
        let mut sums = vec![f64::NAN; group.num_trajectories()];
        for name in names {
            let part = |it: super::TrajectoryView<'_, '_>| it.episode.parts.get(*name).copied();
            let values: Vec<f64> =
                group.trajectories().map(|it| part(it).unwrap_or_default()).collect();
            let moments = Moments::of(values.iter().copied());
            let weight = weights.get(*name).copied().unwrap_or(1.0);
            for (sum, value) in sums.iter_mut().zip(values).filter(|(_, value)| value.is_finite()) {
                let advantage = moments.advantage(value, *normalization, *singleton, *epsilon);
                *sum = if sum.is_nan() { 0.0 } else { *sum } + weight * advantage;
            }
        }
        sums
    }
}

impl AdvantageEstimator for Gdpo {
    fn name(&self) -> &'static str {
        "gdpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let parts = |group: &GroupView<'_>| -> Vec<String> {
            group.trajectories().flat_map(|it| it.episode.parts.keys().cloned()).collect()
        };
        let names: BTreeSet<String> = batch.groups().iter().flat_map(parts).collect();
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut sums: Vec<f64> =
            batch.groups().iter().flat_map(|group| self.sums(group, &names)).collect();
        match self.config.batch {
            BatchNormalization::Tokens => {
                let shares = shares(batch, true, |_| true)?;
                let mut tokens: Vec<Vec<f64>> = sums
                    .iter()
                    .zip(&shares)
                    .map(|(sum, shares)| vec![*sum; shares.len()])
                    .collect();
                whiten(tokens.iter_mut().flatten().zip(shares.into_iter().flatten()));
                let advantages = PerTurnOrToken::Tokens(tokens);
                return Ok(Credit { advantages, weights: None, returns: None });
            }
            BatchNormalization::Trajectories => {
                let moments = Moments::of(sums.iter().copied());
                sums.iter_mut().for_each(|sum| {
                    let (norm, alone) = (Normalization::MeanStdNorm, Singleton::Zero);
                    *sum = moments.advantage(*sum, norm, alone, TRL_EPSILON);
                });
            }
            BatchNormalization::None => {
                sums.iter_mut().filter(|sum| sum.is_nan()).for_each(|sum| *sum = 0.0);
            }
        }
        Ok(batch.credit_by_trajectory(sums))
    }
}

#[cfg(test)]
mod tests {
    use super::super::EpisodeView;
    use super::super::test_vectors::{by_group, cases, check_tokens, floats, masked_rows, step_of};
    use super::*;

    fn group(
        parts: impl IntoIterator<Item = (BTreeMap<String, f64>, usize)>,
    ) -> GroupView<'static> {
        let mut view = GroupView::default();
        for (index, (parts, tokens)) in parts.into_iter().enumerate() {
            let reward = parts.values().sum();
            let episode = EpisodeView { parts, ..EpisodeView::new(index as u64) };
            view.push_episode(episode, [step_of(reward, tokens)]);
        }
        view
    }

    #[test]
    fn advantages_equal_verl() {
        cases("adv_gdpo", |case, near| {
            let names: Vec<String> =
                serde_json::from_value(case.inputs["reward_order"].clone()).unwrap();
            let rewards: Vec<Vec<f64>> =
                names.iter().map(|name| floats(&case.inputs["rewards"][name])).collect();
            let weights = match &case.params["weights"] {
                serde_json::Value::Null => BTreeMap::new(),
                weights => names.iter().cloned().zip(floats(weights)).collect(),
            };
            let mask = &case.inputs["response_mask"];
            let tokens: Vec<usize> = masked_rows(mask, mask).iter().map(Vec::len).collect();
            let parts = |row: usize| -> BTreeMap<String, f64> {
                names.iter().cloned().zip(rewards.iter().map(|part| part[row])).collect()
            };
            let groups = by_group(&case.inputs["index"]);
            let view = |rows: &Vec<usize>| group(rows.iter().map(|&row| (parts(row), tokens[row])));
            let batch: BatchView<'_> = groups.iter().map(view).collect();
            let config = GdpoConfig {
                weights,
                normalization: match case.params["norm_adv_by_std_in_grpo"].as_bool().unwrap() {
                    true => Normalization::MeanStdNorm,
                    false => Normalization::MeanNorm,
                },
                singleton: Singleton::Raw,
                epsilon: case.params["epsilon"].as_f64().unwrap(),
                ..GdpoConfig::default()
            };
            let credit = Gdpo::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap();
            let of_row = groups.concat();
            check_tokens(case, near, "advantages", (&batch, &of_row), credit.advantages);
        });
    }

    #[test]
    fn sums_of_trl_are_normalised_over_trajectories() {
        cases("adv_trl_grpo", |case, near| {
            if case.params["aggregation"] != "normalize_then_sum" {
                return;
            }
            let rewards = super::super::test_vectors::rows(&case.inputs["rewards_per_func"]);
            let weights = floats(&case.params["reward_weights"]);
            let size = case.params["num_generations"].as_u64().unwrap() as usize;
            let names = |row: &Vec<f64>| -> BTreeMap<String, f64> {
                row.iter().enumerate().map(|(index, value)| (index.to_string(), *value)).collect()
            };
            let view = |rows: &[Vec<f64>]| group(rows.iter().map(|row| (names(row), 1)));
            let batch: BatchView<'_> = rewards.chunks(size).map(view).collect();
            let config = GdpoConfig {
                weights: names(&weights),
                batch: BatchNormalization::Trajectories,
                epsilon: case.params["eps"].as_f64().unwrap(),
                ..GdpoConfig::default()
            };
            let credit = Gdpo::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap();
            for (index, expected) in floats(&case.outputs["advantages"]).into_iter().enumerate() {
                near(credit.advantages.at(index, 0, index), expected);
            }
        });
    }

    #[test]
    fn parts_with_equal_sums_are_told_apart() {
        let of = |a: f64, b: f64| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        let rewards = [of(1.0, 0.0), of(0.0, 1.0), of(0.0, 0.0), of(0.0, 0.0), of(1.0, 0.0)];
        let batch = BatchView::from(group(rewards.map(|parts| (parts, 1))));
        let credit = Gdpo::default().estimate(&batch, &Signals::default()).unwrap();
        let at = |index| credit.advantages.at(index, 0, 0);
        assert_eq!(at(0), at(4));
        assert!((at(0) - at(1)).abs() > 0.1 && at(2) < at(0).min(at(1)));
    }
}
