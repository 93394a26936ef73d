//! ADHint: who was helped is compared with those that were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::error::refuse;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// Options of [`ByHint`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ByHintConfig {
    /// What trajectories weigh that were helped, 0 to 1. Default 0.5.
    pub hinted_weight: f64,
    /// Options of the advantages. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for ByHintConfig {
    fn default() -> Self {
        Self { hinted_weight: 0.5, base: GrpoConfig::default() }
    }
}

impl NamedOptions for ByHintConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.base.problems();
        if !(0.0..=1.0).contains(&self.hinted_weight) {
            problems.push(format!("hinted_weight is {}, must be 0 to 1", self.hinted_weight));
        }
        problems
    }
}

/// Advantages of trajectories among those of their group that were helped as they were (ADHint, reconstructed from its abstract; assumed: a constant weight of those that were).
///
/// A trajectory was helped where it was played again for another one, whose turns it took over none of, as the strategies `hints` and `retry` do. Those that were, and those that were not, have a mean and a deviation of their own, `A_i = (R_i - mean) / std` among each; helped ones weigh `hinted_weight` in the
/// loss. What was said to help is never trained: it was not sampled.
#[derive(Debug, Clone)]
pub struct ByHint {
    config: ByHintConfig,
    base: Grpo,
}

impl ByHint {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: ByHintConfig) -> Result<Self, CreditError> {
        refuse("by_hint", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }
}

impl AdvantageEstimator for ByHint {
    fn name(&self) -> &'static str {
        "by_hint"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let of_batch = self.base.of_batch(batch);
        let (mut advantages, mut weights) = (Vec::new(), Vec::new());
        for group in batch.groups() {
            let is_hinted: Vec<bool> = group
                .trajectories()
                .map(|it| it.episode.lineage.parent.is_some() && it.episode.lineage.fork_turn == 0)
                .collect();
            let mut own = vec![0.0; is_hinted.len()];
            for side in [false, true] {
                let places: Vec<usize> =
                    (0..own.len()).filter(|place| is_hinted[*place] == side).collect();
                let mut part = GroupView::default();
                for (place, trajectory) in group.trajectories().enumerate() {
                    if is_hinted[place] == side {
                        let steps = trajectory.steps.iter().cloned();
                        part.push_episode(trajectory.episode.clone(), steps);
                    }
                }
                let found = self.base.trajectory_advantages(&part, of_batch);
                places.iter().zip(found).for_each(|(place, found)| own[*place] = found);
            }
            for ((trajectory, advantage), hinted) in group.trajectories().zip(own).zip(is_hinted) {
                let weight = if hinted { self.config.hinted_weight } else { 1.0 };
                advantages.push(vec![advantage; trajectory.steps.len()]);
                weights.push(vec![weight; trajectory.steps.len()]);
            }
        }
        let is_even = weights.iter().flatten().all(|weight| *weight == 1.0);
        let weights = (!is_even).then_some(PerTurnOrToken::Turns(weights));
        Ok(Credit { weights, ..Credit::of_turns(advantages) })
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Lineage;

    use super::super::EpisodeView;
    use super::super::test_vectors::step_of;
    use super::*;

    #[test]
    fn either_side_has_its_own_statistics_and_helped_ones_weigh_less() {
        let mut group = GroupView::default();
        let helped = [false, false, true, true, true];
        for (number, (hinted, reward)) in
            helped.into_iter().zip([0.0, 1.0, 5.0, 5.0, 8.0]).enumerate()
        {
            let parent = hinted.then_some(0);
            let lineage = Lineage { parent, ..Lineage::default() };
            let episode = EpisodeView { lineage, ..EpisodeView::new(number as u64) };
            group.push_episode(episode, [step_of(reward, 2)]);
        }
        let batch = BatchView::from(group);
        let by_hint = ByHint::new(ByHintConfig::default()).unwrap();
        let found = by_hint.estimate(&batch, &Signals::default()).unwrap();
        let at = |index| found.advantages.at(index, 0, 0);
        assert!((at(0) + at(1)).abs() < 1e-9 && at(1) > 0.5);
        assert!((at(2) + at(3) + at(4)).abs() < 1e-9 && at(4) > 1.0 && at(2) < 0.0);
        let weights = found.weights.unwrap();
        assert_eq!([weights.at(1, 0, 0), weights.at(4, 0, 0)], [1.0, 0.5]);
    }
}
