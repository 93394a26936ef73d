//! REINFORCE++: returns, normalised over the whole batch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::discounting::{discount_problem, returns_to_go};
use super::error::refuse;
use super::inheritance::shares;
use super::moments::Moments;
use super::token_rewards::{is_told, token_rewards};
use super::whiten::whiten;
use super::{AdvantageEstimator, BatchView, CreditError, Normalization, Singleton, TrajectoryView};

/// What returns are compared with before they are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// With nothing: every token takes what was earned from it on.
    #[default]
    None,
    /// With the mean of the group: every token takes its episode's return, less that.
    Group,
}

/// Options of [`ReinforcePp`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReinforcePpConfig {
    /// What returns are compared with. Default `none`.
    pub baseline: Baseline,
    /// Discount per sampled token, 0 to 1, for baseline `none` alone. Default absent: 1 there.
    pub discount: Option<f64>,
    /// What the only episode of a group gets before normalisation, for baseline `group` alone. Default absent:
    /// `zero` there; verl's rule is `raw`.
    pub singleton: Option<Singleton>,
}

impl NamedOptions for ReinforcePpConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = self.discount.and_then(discount_problem).into_iter().collect();
        if self.discount.is_some() && self.baseline == Baseline::Group {
            problems.push("discount has no effect with baseline `group`".to_owned());
        }
        if self.singleton.is_some() && self.baseline == Baseline::None {
            problems.push("singleton has no effect without baseline `group`".to_owned());
        }
        problems
    }
}

/// Advantages of tokens, normalised over all tokens of the batch (REINFORCE++, arXiv 2501.03262).
///
/// With baseline `none`, `G_k = r_k + discount * G_{k+1}` over the sampled tokens of an episode, a turn's reward standing
/// at its last token, and `A = (G - mean G) / std G` over the batch. With baseline `group` (the paper's variant with
/// baseline), every token of episode `i` begins with `R_i - mean R` over its group instead. Forced tokens count in mean and
/// deviation, long episodes by their tokens, and tokens that forks have in common once.
///
/// Deviations: the divergence from a reference model is no part of the reward here, it is the objective's; and a group
/// of one gets 0 before normalisation unless the options say otherwise. An episode with a reward that is not finite counts in nothing and gets 0. `returns` are those of baseline `none`, not
/// normalised; with baseline `group` there are none.
#[derive(Debug, Clone, Default)]
pub struct ReinforcePp {
    config: ReinforcePpConfig,
}

impl ReinforcePp {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: ReinforcePpConfig) -> Result<Self, CreditError> {
        refuse("reinforce_pp", config.problems())?;
        Ok(Self { config })
    }

    /// What was earned from every token on.
    fn token_returns(&self, trajectory: TrajectoryView<'_, '_>) -> Vec<f64> {
        let discount = self.config.discount.unwrap_or(1.0);
        let mut returns = token_rewards(trajectory.steps);
        returns_to_go(&mut returns, discount);
        returns
    }

    /// Every token's episode's return, less the mean of its group.
    fn compared(&self, batch: &BatchView<'_>) -> Vec<Vec<f64>> {
        let singleton = self.config.singleton.unwrap_or_default();
        let mut compared = Vec::new();
        for group in batch.groups() {
            let returns = group.returns();
            let moments = Moments::of(returns.iter().copied());
            for (trajectory, value) in group.trajectories().zip(returns) {
                // Nothing is divided, so that epsilon does not matter.
                let difference = moments.advantage(value, Normalization::MeanNorm, singleton, 1.0);
                compared.push(vec![difference; trajectory.num_tokens()]);
            }
        }
        compared
    }
}

impl AdvantageEstimator for ReinforcePp {
    fn name(&self) -> &'static str {
        "reinforce_pp"
    }

    fn gives_returns(&self) -> bool {
        self.config.baseline == Baseline::None
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let (mut advantages, returns) = match self.config.baseline {
            Baseline::None => {
                let returns: Vec<Vec<f64>> =
                    batch.trajectories().map(|trajectory| self.token_returns(trajectory)).collect();
                (returns.clone(), Some(PerTurnOrToken::Tokens(returns)))
            }
            Baseline::Group => (self.compared(batch), None),
        };
        // Of what is not known nothing is learned: it counts in no mean, and is 0 in the end.
        for (trajectory, values) in batch.trajectories().zip(&mut advantages) {
            if !is_told(trajectory.steps) {
                values.fill(f64::NAN);
            }
        }
        let shares = shares(batch, true, |_| true)?;
        whiten(advantages.iter_mut().flatten().zip(shares.into_iter().flatten()));
        Ok(Credit { advantages: PerTurnOrToken::Tokens(advantages), weights: None, returns })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spar_core::Lineage;

    use super::super::test_vectors::{cases, masked_rows, step_of};
    use super::super::{EpisodeView, GroupView};
    use super::*;

    fn estimate(config: ReinforcePpConfig, batch: &BatchView<'_>) -> Credit {
        ReinforcePp::new(config).unwrap().estimate(batch, &Signals::default()).unwrap()
    }

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_reinforce_pp", |case, near| {
            let mask = &case.inputs["response_mask"];
            let mut group = GroupView::default();
            for rewards in masked_rows(&case.inputs["token_level_rewards"], mask) {
                group.push(rewards.into_iter().map(|reward| step_of(reward, 1)));
            }
            let discount = Some(case.params["gamma"].as_f64().unwrap());
            let config = ReinforcePpConfig { discount, ..ReinforcePpConfig::default() };
            let credit = estimate(config, &group.into());
            let returns = credit.returns.unwrap();
            for (found, name) in [(&credit.advantages, "advantages"), (&returns, "returns")] {
                for (i, row) in masked_rows(&case.outputs[name], mask).iter().enumerate() {
                    row.iter().enumerate().for_each(|(t, value)| near(found.at(i, t, t), *value));
                }
            }
        });
    }

    #[test]
    fn advantages_over_a_baseline_equal_the_reference() {
        cases("adv_reinforce_pp_baseline", |case, near| {
            let mask = &case.inputs["response_mask"];
            let rewards = masked_rows(&case.inputs["token_level_rewards"], mask);
            let expected = masked_rows(&case.outputs["advantages"], mask);
            let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for (row, index) in case.inputs["index"].as_array().unwrap().iter().enumerate() {
                groups.entry(index.as_u64().unwrap()).or_default().push(row);
            }
            let view = |rows: &Vec<usize>| {
                let mut group = GroupView::default();
                for &row in rows {
                    group.push(rewards[row].iter().map(|&reward| step_of(reward, 1)));
                }
                group
            };
            let config = ReinforcePpConfig {
                baseline: Baseline::Group,
                singleton: Some(Singleton::Raw),
                ..ReinforcePpConfig::default()
            };
            let credit = estimate(config, &groups.values().map(view).collect());
            assert_eq!(credit.returns, None);
            for (i, &row) in groups.values().flatten().enumerate() {
                for (t, value) in expected[row].iter().enumerate() {
                    near(credit.advantages.at(i, t, t), *value);
                }
            }
        });
    }

    #[test]
    fn long_episodes_weigh_more_in_the_mean() {
        let mut group = GroupView::default();
        group.push([step_of(0.0, 2), step_of(1.0, 1)]);
        group.push([step_of(0.0, 1)]);
        let credit = estimate(ReinforcePpConfig::default(), &group.into());
        let PerTurnOrToken::Tokens(advantages) = credit.advantages else { unreachable!() };
        assert!((advantages[0].iter().sum::<f64>() + advantages[1][0]).abs() < 1e-6);
        assert!((advantages[0][0] - 0.5).abs() < 1e-6 && (advantages[1][0] + 1.5).abs() < 1e-6);
    }

    #[test]
    fn tokens_that_forks_have_in_common_count_once() {
        let plain = {
            let mut group = GroupView::default();
            group.push([step_of(1.0, 3)]);
            group.push([step_of(0.0, 3)]);
            estimate(ReinforcePpConfig::default(), &group.into())
        };
        // The same six tokens, three of which stand in four trajectories.
        let mut group = GroupView::default();
        group.push([step_of(1.0, 3)]);
        group.push_episode(EpisodeView::new(7), [step_of(0.0, 3)]);
        for episode in 8..11 {
            let lineage = Lineage { parent: Some(7), fork_turn: 1, ..Lineage::default() };
            group.push_episode(
                EpisodeView { lineage, ..EpisodeView::new(episode) },
                [step_of(0.0, 3)],
            );
        }
        let tree = estimate(ReinforcePpConfig::default(), &group.into());
        for (trajectory, same) in [(0, 0), (1, 1), (4, 1)] {
            let (found, wanted) =
                (tree.advantages.at(trajectory, 0, 1), plain.advantages.at(same, 0, 1));
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
    }

    #[test]
    fn options_that_would_be_ignored_are_refused() {
        let error = |config: &str| {
            let config = serde_json::from_str(config).unwrap();
            ReinforcePp::new(config).unwrap_err().to_string()
        };
        assert!(error(r#"{ "discount": 1.5 }"#).contains("discount is 1.5"));
        assert!(error(r#"{ "singleton": "raw" }"#).contains("singleton has no effect"));
        let both = error(r#"{ "baseline": "group", "discount": 0.5 }"#);
        assert!(both.contains("discount has no effect"), "{both}");
    }
}
