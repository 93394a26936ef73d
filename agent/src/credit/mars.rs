//! MARS: rewards of turns are normalised player by player.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::discounting::{discount_problem, returns_to_go};
use super::error::refuse;
use super::moments::Moments;
use super::token_rewards::token_rewards;
use super::whiten::Whitening;
use super::{AdvantageEstimator, BatchView, CreditError, StepView};

/// What becomes of the rewards of a player's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnNormalization {
    /// Their mean is subtracted.
    #[default]
    Mean,
    /// And they are divided by their deviation; all become 0 where that is 1e-6 at the most.
    MeanStd,
    /// And held between -1 and 3.
    AsymClip,
}

/// What becomes of the distinct advantages of a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DistinctNormalization {
    /// Their mean is subtracted.
    Mean,
    /// And they are divided by their deviation.
    MeanStd,
}

/// Added to deviations, and the least of them that counts.
const EPSILON: f64 = 1e-6;

/// Options of [`Mars`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MarsConfig {
    /// How rewards of turns are normalised over all turns of a player. Default `mean`.
    pub normalization: TurnNormalization,
    /// Discount per sampled token, 0 to 1. Default 1.
    pub discount: f64,
    /// How the distinct advantages of a player, each counted once, are normalised. Default absent: not at all.
    pub advantages: Option<DistinctNormalization>,
}

impl Default for MarsConfig {
    fn default() -> Self {
        Self { normalization: TurnNormalization::Mean, discount: 1.0, advantages: None }
    }
}

impl NamedOptions for MarsConfig {
    fn problems(&self) -> Vec<String> {
        discount_problem(self.discount).into_iter().collect()
    }
}

/// Turn-level advantages of several players (MARS, arXiv 2510.15414, and its code `roll/utils/functionals.py`).
///
/// The reward of every turn is compared with those of all turns of the same seat in the batch, whatever the task; a token's advantage is
/// what is still to come of these, `A_k = r_k + discount * A_{k + 1}` over sampled tokens, a turn's reward standing at its last. With
/// `advantages`, the set of a seat's distinct values, not their multiset, gets mean 0.
#[derive(Debug, Clone, Default)]
pub struct Mars {
    config: MarsConfig,
}

impl Mars {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: MarsConfig) -> Result<Self, CreditError> {
        refuse("mars", config.problems())?;
        Ok(Self { config })
    }

    fn normalized(&self, reward: f64, stats: Whitening) -> f64 {
        let deviation = stats.variance.sqrt();
        let centered = if stats.all_equal { 0.0 } else { reward - stats.mean };
        let divided = || if deviation > EPSILON { centered / (deviation + EPSILON) } else { 0.0 };
        match self.config.normalization {
            _ if !reward.is_finite() => 0.0,
            TurnNormalization::Mean => centered,
            TurnNormalization::MeanStd => divided(),
            TurnNormalization::AsymClip => divided().clamp(-1.0, 3.0),
        }
    }
}

impl AdvantageEstimator for Mars {
    fn name(&self) -> &'static str {
        "mars"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let mut rewards: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for trajectory in batch.trajectories() {
            let of_seat = rewards.entry(trajectory.episode.seat.index()).or_default();
            of_seat.extend(trajectory.steps.iter().map(|step| step.reward));
        }
        let stats: BTreeMap<usize, Whitening> = rewards
            .into_iter()
            .map(|(seat, rewards)| (seat, Whitening::of(rewards.iter().map(|it| (*it, 1.0)))))
            .collect();
        let mut advantages = Vec::new();
        for trajectory in batch.trajectories() {
            let stats = stats[&trajectory.episode.seat.index()];
            let normalized = trajectory.steps.iter().map(|step| StepView {
                reward: self.normalized(step.reward, stats),
                ..step.clone()
            });
            let mut tokens = token_rewards(&normalized.collect::<Vec<_>>());
            returns_to_go(&mut tokens, self.config.discount);
            advantages.push(tokens);
        }
        if let Some(normalization) = self.config.advantages {
            let seats: Vec<usize> =
                batch.trajectories().map(|trajectory| trajectory.episode.seat.index()).collect();
            normalize_distinct(&mut advantages, &seats, normalization);
        }
        let advantages = PerTurnOrToken::Tokens(advantages);
        Ok(Credit { advantages, weights: None, returns: None })
    }
}

/// Normalises values by the distinct ones of their seat.
fn normalize_distinct(
    values: &mut [Vec<f64>],
    seats: &[usize],
    normalization: DistinctNormalization,
) {
    let mut by_seat: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (values, seat) in values.iter().zip(seats) {
        by_seat.entry(*seat).or_default().extend(values);
    }
    let moments = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        Moments::of(values)
    };
    let by_seat: BTreeMap<usize, Moments> =
        by_seat.into_iter().map(|(seat, values)| (seat, moments(values))).collect();
    for (values, seat) in values.iter_mut().zip(seats) {
        let moments = &by_seat[seat];
        for value in values {
            let difference = moments.difference(*value);
            *value = match normalization {
                DistinctNormalization::Mean => difference,
                DistinctNormalization::MeanStd => difference / (moments.deviation(1) + EPSILON),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seat;

    use super::super::test_vectors::{cases, number, rows, step_of, strings};
    use super::super::{EpisodeView, GroupView};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_mars_turn_level", |case, near| {
            let ends = rows(&case.inputs["turn_end_positions"]);
            let rewards = rows(&case.inputs["token_level_rewards"]);
            let names = strings(&case.inputs["group_ids"]);
            let mut batch = BatchView::default();
            for (row, name) in names.iter().enumerate() {
                // Whoever is named neither 0 nor 1 is player 0.
                let seat = u32::from(name.ends_with("_p1"));
                let mut steps = Vec::new();
                let mut start = 0;
                for (t, end) in ends[row].iter().enumerate() {
                    if *end != 0.0 {
                        steps.push(step_of(rewards[row][t], t + 1 - start));
                        start = t + 1;
                    }
                }
                let episode = EpisodeView { seat: Seat(seat), ..EpisodeView::new(row as u64) };
                let mut group = GroupView::default();
                group.push_episode(episode, steps);
                batch.push(group);
            }
            let mars = Mars::new(MarsConfig {
                normalization: serde_json::from_value(case.params["method"].clone()).unwrap(),
                discount: number(&case.params, "gamma"),
                advantages: None,
            })
            .unwrap();
            let credit = mars.estimate(&batch, &Signals::default()).unwrap();
            let PerTurnOrToken::Tokens(mut found) = credit.advantages else { unreachable!() };
            // Tokens behind the last turn, which here are none that were sampled, are worth nothing there.
            found.iter_mut().zip(&ends).for_each(|(found, row)| found.resize(row.len(), 0.0));
            let norm: Option<DistinctNormalization> =
                serde_json::from_value(case.params["advantage_norm"].clone()).unwrap();
            let mut output = "reinforce_advantages";
            if let Some(norm) = norm {
                let seats: Vec<usize> =
                    batch.trajectories().map(|it| it.episode.seat.index()).collect();
                normalize_distinct(&mut found, &seats, norm);
                output = "advantage_norm";
            }
            for (found, expected) in
                found.iter().flatten().zip(rows(&case.outputs[output]).concat())
            {
                near(*found, expected);
            }
        });
    }

    #[test]
    fn seats_are_compared_with_themselves() {
        let mut group = GroupView::default();
        for (seat, rewards) in [(0, [1.0, 2.0]), (1, [11.0, 12.0])] {
            let episode = EpisodeView { seat: Seat(seat), ..EpisodeView::new(0) };
            group.push_episode(episode, rewards.map(|reward| step_of(reward, 1)));
        }
        let credit = Mars::default().estimate(&group.into(), &Signals::default()).unwrap();
        assert!((credit.advantages.at(0, 1, 1) - 0.5).abs() < 1e-6);
        assert!((credit.advantages.at(1, 1, 1) - 0.5).abs() < 1e-6);
    }
}
