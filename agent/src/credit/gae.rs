//! GAE: advantages over what a value head expected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signal, Signals};

use super::error::refuse;
use super::inheritance::shares;
use super::token_rewards::{is_told, token_rewards};
use super::whiten::whiten;
use super::{AdvantageEstimator, BatchView, CreditError, StepView, TrajectoryView};

/// What counts as a step in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GaeLevel {
    /// A sampled token, as in PPO on language models.
    #[default]
    Token,
    /// A turn: its tokens share one advantage, over the value before its first token.
    Turn,
    /// Turns first, then the tokens within each turn.
    BiLevel,
}

/// Options of [`Gae`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GaeConfig {
    /// Discount per step in time, 0 to 1; per token within a turn where the level is `bi_level`. Default 1.
    pub discount: f64,
    /// How far what is expected later is trusted less than what was earned, 0 to 1: 0 trusts the next value, 1 the
    /// rewards alone. Default 1.
    pub lambda: f64,
    /// What counts as a step in time. Default `token`.
    pub level: GaeLevel,
    /// Discount per turn, 0 to 1, for level `bi_level` alone. Default absent: 0.95 there.
    pub turn_discount: Option<f64>,
    /// Whether advantages get mean 0 and deviation 1 over the tokens of the batch, or over its turns where the level
    /// is `turn`. Default true.
    pub normalize: bool,
    /// Whether an episode that a budget cut off had more to come: as much as the last value that is known. Default
    /// false: nothing more, as in verl.
    pub bootstrap: bool,
}

impl Default for GaeConfig {
    fn default() -> Self {
        Self {
            discount: 1.0,
            lambda: 1.0,
            level: GaeLevel::Token,
            turn_discount: None,
            normalize: true,
            bootstrap: false,
        }
    }
}

impl NamedOptions for GaeConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let given = [
            ("discount", Some(self.discount)),
            ("lambda", Some(self.lambda)),
            ("turn_discount", self.turn_discount),
        ];
        for (name, value) in given {
            if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
                problems.push(format!("{name} is {value}, must be 0 to 1"));
            }
        }
        if self.turn_discount.is_some() && self.level != GaeLevel::BiLevel {
            problems.push("turn_discount has no effect: set level `bi_level`".to_owned());
        }
        problems
    }
}

/// Generalised advantage estimation (arXiv 1506.02438, equation 16) over a value head's expectations.
///
/// ```text
/// delta_t = r_t + discount * V_{t+1} - V_t
/// A_t = delta_t + discount * lambda * A_{t+1},    return_t = A_t + V_t
/// ```
///
/// At level `token`, time runs over the sampled tokens of an episode: what was observed between them takes none, and
/// a turn's reward stands at its last token (verl's `compute_gae_advantage_return`). At level `turn` it runs over
/// turns, `V` being the value before a turn's first token, and a turn's return is that of each of its tokens. At level
/// `bi_level` (RAGEN, `compute_bi_level_gae_advantage_return`) the formula runs over turns with `turn_discount` and the
/// values before their last tokens, and then within each turn over its tokens, with the turn's return as the reward
/// of the last one and nothing behind it.
///
/// The value behind the last step is 0, or with `bootstrap` the last value that is known where the episode was cut off.
/// Advantages are whitened over the batch, forced tokens among them, and what forks have in common once; returns never
/// are. An episode with a reward that is not finite gets 0, and what was expected of it as its return. Deviations: RAGEN takes for a
/// turn's end every token with a reward other than 0, here it is the turn's last token; and a turn without tokens has
/// no value, so that its reward goes to the turn before it and its own advantage is 0.
#[derive(Debug, Clone, Default)]
pub struct Gae {
    config: GaeConfig,
}

impl Gae {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GaeConfig) -> Result<Self, CreditError> {
        refuse("gae", config.problems())?;
        Ok(Self { config })
    }

    /// The advantages of a trajectory with one value per token: per turn at level `turn`, else per token.
    fn advantages(&self, trajectory: TrajectoryView<'_, '_>, values: &[f64]) -> Vec<f64> {
        let GaeConfig { discount, lambda, .. } = self.config;
        let is_cut_off = !trajectory.episode.is_terminated;
        let last = if self.config.bootstrap && is_cut_off { values.last() } else { None };
        let behind = last.copied().unwrap_or(0.0);
        let rewards = token_rewards(trajectory.steps);
        let counts = trajectory.steps.iter().map(|step| step.num_tokens);
        match self.config.level {
            GaeLevel::Token => gae(&rewards, values, behind, discount, lambda),
            GaeLevel::Turn => {
                let turns = spans(counts.clone());
                let earned: Vec<f64> = turns.iter().map(|&(_, end)| rewards[end - 1]).collect();
                let expected: Vec<f64> = turns.iter().map(|&(start, _)| values[start]).collect();
                let mut found = gae(&earned, &expected, behind, discount, lambda).into_iter();
                let mut of_turn = |count| if count == 0 { None } else { found.next() };
                counts.map(|count| of_turn(count).unwrap_or(0.0)).collect()
            }
            GaeLevel::BiLevel => {
                let turns = spans(counts);
                let earned: Vec<f64> = turns.iter().map(|&(_, end)| rewards[end - 1]).collect();
                let expected: Vec<f64> = turns.iter().map(|&(_, end)| values[end - 1]).collect();
                let turn_discount = self.config.turn_discount.unwrap_or(0.95);
                let over_turns = gae(&earned, &expected, behind, turn_discount, lambda);
                let mut advantages = Vec::with_capacity(values.len());
                for (index, (start, end)) in turns.into_iter().enumerate() {
                    let mut rewards = vec![0.0; end - start];
                    rewards[end - start - 1] = over_turns[index] + expected[index];
                    advantages.extend(gae(&rewards, &values[start..end], 0.0, discount, lambda));
                }
                advantages
            }
        }
    }
}

impl AdvantageEstimator for Gae {
    fn name(&self) -> &'static str {
        "gae"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::Values]
    }

    fn gives_returns(&self) -> bool {
        true
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let values = batch.stream(signals, Signal::Values)?;
        let mut advantages = Vec::with_capacity(values.len());
        let mut returns = Vec::with_capacity(values.len());
        for (trajectory, values) in batch.trajectories().zip(values) {
            let found = self.advantages(trajectory, values);
            let mut first = 0;
            let expected = match self.config.level {
                // A turn without tokens has no value; its advantage is 0, and so is its return.
                GaeLevel::Turn => trajectory
                    .steps
                    .iter()
                    .map(|step| {
                        let value = if step.num_tokens == 0 { 0.0 } else { values[first] };
                        first += step.num_tokens;
                        value
                    })
                    .collect(),
                GaeLevel::Token | GaeLevel::BiLevel => values.clone(),
            };
            // Of what is not known nothing is learned: neither better nor worse than was expected.
            let is_told = is_told(trajectory.steps);
            let found = if is_told { found } else { vec![0.0; found.len()] };
            returns.push(found.iter().zip(expected).map(|(a, v)| a + v).collect());
            advantages.push(match is_told || !self.config.normalize {
                true => found,
                // It counts in no mean, and is 0 in the end.
                false => vec![f64::NAN; found.len()],
            });
        }
        if self.config.normalize {
            let per_token = self.config.level != GaeLevel::Turn;
            let shares = shares(batch, per_token, |_| true)?;
            let all = advantages.iter_mut().flatten().zip(shares.into_iter().flatten());
            let steps = batch.trajectories().flat_map(|trajectory| trajectory.steps);
            let has_tokens = |(_, step): &(_, &StepView<'_>)| step.num_tokens > 0;
            match per_token {
                true => whiten(all),
                false => whiten(all.zip(steps).filter(has_tokens).map(|(value, _)| value)),
            }
        }
        let out = |values| match self.config.level {
            GaeLevel::Turn => PerTurnOrToken::Turns(values),
            GaeLevel::Token | GaeLevel::BiLevel => PerTurnOrToken::Tokens(values),
        };
        Ok(Credit { advantages: out(advantages), weights: None, returns: Some(out(returns)) })
    }
}

/// The advantages of a row of steps in time, `behind` being the value behind the last one.
fn gae(rewards: &[f64], values: &[f64], behind: f64, discount: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; rewards.len()];
    let (mut next_value, mut next_advantage) = (behind, 0.0);
    for t in (0..rewards.len()).rev() {
        let delta = rewards[t] + discount * next_value - values[t];
        next_advantage = delta + discount * lambda * next_advantage;
        next_value = values[t];
        advantages[t] = next_advantage;
    }
    advantages
}

/// Where the turns that have tokens begin and end among them.
fn spans(counts: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut end = 0;
    counts
        .filter(|count| *count > 0)
        .map(|count| {
            let start = end;
            end += count;
            (start, end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::{cases, masked_rows, number, rows, step_of};
    use super::super::{EpisodeView, GroupView};
    use super::*;

    fn estimate(config: GaeConfig, group: GroupView<'_>, values: Vec<Vec<f64>>) -> Credit {
        let batch = BatchView::from(group);
        let mut signals = Signals::default();
        signals.insert(Signal::Values, values);
        let credit = Gae::new(config).unwrap().estimate(&batch, &signals).unwrap();
        credit.check(&batch.num_tokens()).unwrap();
        credit
    }

    #[test]
    fn tokens_equal_the_reference() {
        cases("adv_gae", |case, near| {
            let mask = &case.inputs["response_mask"];
            let mut group = GroupView::default();
            for rewards in masked_rows(&case.inputs["token_level_rewards"], mask) {
                group.push(rewards.into_iter().map(|reward| step_of(reward, 1)));
            }
            let config = GaeConfig {
                discount: number(&case.params, "gamma"),
                lambda: number(&case.params, "lam"),
                ..GaeConfig::default()
            };
            let credit = estimate(config, group, masked_rows(&case.inputs["values"], mask));
            let returns = credit.returns.unwrap();
            for (found, name) in [(&credit.advantages, "advantages"), (&returns, "returns")] {
                for (i, row) in masked_rows(&case.outputs[name], mask).iter().enumerate() {
                    row.iter().enumerate().for_each(|(t, value)| near(found.at(i, t, t), *value));
                }
            }
        });
    }

    #[test]
    fn two_levels_equal_the_reference() {
        cases("adv_bi_level_gae", |case, near| {
            let mask = &case.inputs["response_mask"];
            let mut group = GroupView::default();
            for rewards in masked_rows(&case.inputs["token_level_rewards"], mask) {
                // All turns of these cases earn something.
                let turns = rewards.split_inclusive(|reward| *reward != 0.0);
                group.push(turns.map(|turn| step_of(turn[turn.len() - 1], turn.len())));
            }
            let config = GaeConfig {
                discount: number(&case.params, "gamma"),
                lambda: number(&case.params, "lam"),
                turn_discount: Some(number(&case.params, "high_level_gamma")),
                level: GaeLevel::BiLevel,
                ..GaeConfig::default()
            };
            let credit = estimate(config, group, masked_rows(&case.inputs["values"], mask));
            let returns = credit.returns.unwrap();
            for (found, name) in [(&credit.advantages, "advantages"), (&returns, "returns")] {
                for (i, row) in masked_rows(&case.outputs[name], mask).iter().enumerate() {
                    row.iter().enumerate().for_each(|(t, value)| near(found.at(i, 0, t), *value));
                }
            }
        });
    }

    /// MARS sums what is still to come of normalised rewards: GAE without values. Its discount is per token, so
    /// that turns give the same where there is none. The other parts of MARS, by players, are not GAE's.
    #[test]
    fn without_values_it_is_the_return_of_mars() {
        cases("adv_mars_turn_level", |case, near| {
            let discount = number(&case.params, "gamma");
            let expected = rows(&case.outputs["reinforce_advantages"]);
            let values: Vec<Vec<f64>> = expected.iter().map(|row| vec![0.0; row.len()]).collect();
            let ends = rows(&case.inputs["turn_end_positions"]);
            let levels = [Some(GaeLevel::Token), (discount == 1.0).then_some(GaeLevel::Turn)];
            for level in levels.into_iter().flatten() {
                let mut group = GroupView::default();
                for (rewards, ends) in rows(&case.outputs["normalized_rewards"]).iter().zip(&ends) {
                    let mut steps = Vec::new();
                    let mut start = 0;
                    for t in 0..ends.len() {
                        if ends[t] != 0.0 || t + 1 == ends.len() {
                            steps.push(step_of(rewards[t], t + 1 - start));
                            start = t + 1;
                        }
                    }
                    group.push(steps);
                }
                let batch = BatchView::from(group.clone());
                let config =
                    GaeConfig { discount, level, normalize: false, ..GaeConfig::default() };
                let credit = estimate(config, group, values.clone());
                let found = credit.advantages.into_tokens(&batch.num_tokens());
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    near(*found, *expected);
                }
            }
        });
    }

    #[test]
    fn turns_are_compared_with_the_value_before_them() {
        let mut group = GroupView::default();
        group.push([step_of(1.0, 2), step_of(4.0, 0), step_of(2.0, 1)]);
        let config = GaeConfig {
            discount: 0.5,
            lambda: 0.5,
            level: GaeLevel::Turn,
            normalize: false,
            ..GaeConfig::default()
        };
        let credit = estimate(config, group, vec![vec![3.0, 9.0, 1.0]]);
        // 2 - 1 = 1, and 1 + 4 + 0.5 * 1 - 3 + 0.25 * 1 = 2.75.
        assert_eq!(credit.advantages, PerTurnOrToken::Turns(vec![vec![2.75, 0.0, 1.0]]));
        assert_eq!(credit.returns, Some(PerTurnOrToken::Turns(vec![vec![5.75, 0.0, 2.0]])));
    }

    #[test]
    fn only_what_was_cut_off_is_bootstrapped() {
        for (level, bootstrap, is_terminated, expected) in [
            (GaeLevel::Token, true, false, [2.0, 1.0]),
            (GaeLevel::Token, true, true, [-2.0, -3.0]),
            (GaeLevel::Token, false, false, [-2.0, -3.0]),
            (GaeLevel::Turn, true, false, [2.0, 1.0]),
            (GaeLevel::BiLevel, true, false, [2.0, 1.0]),
        ] {
            let mut group = GroupView::default();
            let episode = EpisodeView { is_terminated, ..EpisodeView::new(0) };
            group.push_episode(episode, [step_of(0.0, 1), step_of(1.0, 1)]);
            let config = GaeConfig {
                bootstrap,
                level,
                turn_discount: (level == GaeLevel::BiLevel).then_some(1.0),
                normalize: false,
                ..GaeConfig::default()
            };
            let credit = estimate(config, group, vec![vec![3.0, 4.0]]);
            assert_eq!([credit.advantages.at(0, 0, 0), credit.advantages.at(0, 1, 1)], expected);
        }
    }

    #[test]
    fn options_that_would_be_ignored_are_refused() {
        let config = GaeConfig { turn_discount: Some(0.5), ..GaeConfig::default() };
        let error = Gae::new(config).unwrap_err().to_string();
        assert!(error.contains("turn_discount has no effect"), "{error}");
        let error = Gae::new(GaeConfig { lambda: 1.5, ..GaeConfig::default() }).unwrap_err();
        assert!(error.to_string().contains("lambda is 1.5"));
    }

    proptest! {
        #[test]
        fn an_advantage_is_the_discounted_sum_of_errors(
            steps in prop::collection::vec((-1.0..1.0, -1.0..1.0), 0..12),
            discount in 0.0..1.0,
            lambda in 0.0..1.0,
            behind in -1.0..1.0,
        ) {
            let (rewards, values): (Vec<f64>, Vec<f64>) = steps.into_iter().unzip();
            let discount: f64 = discount;
            let next = |t: usize| values.get(t + 1).copied().unwrap_or(behind);
            let error = |t: usize| rewards[t] + discount * next(t) - values[t];
            let found = gae(&rewards, &values, behind, discount, lambda);
            for (t, found) in found.into_iter().enumerate() {
                let sum: f64 = (t..rewards.len())
                    .map(|later| (discount * lambda).powi((later - t) as i32) * error(later))
                    .sum();
                prop_assert!((found - sum).abs() < 1e-9);
            }
        }
    }
}
