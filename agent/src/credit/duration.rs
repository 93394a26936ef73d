//! Steps weigh as long as they take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// Options of [`Duration`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationConfig {
    /// The most that a trajectory weighs, above 0. Default 10.
    pub max_weight: f64,
    /// Options of the advantages that are weighed. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for DurationConfig {
    fn default() -> Self {
        Self { max_weight: 10.0, base: GrpoConfig::default() }
    }
}

impl NamedOptions for DurationConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.base.problems();
        if !(self.max_weight.is_finite() && self.max_weight > 0.0) {
            problems.push(format!("max_weight is {}, must be above 0", self.max_weight));
        }
        problems
    }
}

/// Duration-aware weights (arXiv 2509.01684), reconstructed from its abstract.
///
/// What takes long is finished less often in a given time, so that a policy learns to be quick where slow is better. A trajectory weighs
/// `dt_i / mean dt` over the batch, at most `max_weight`, with GRPO's advantage. Assumed: that weights are of whole trajectories, by wall time, and the
/// bound. Where no trajectory took any time, all weigh 1.
#[derive(Debug, Clone)]
pub struct Duration {
    config: DurationConfig,
    base: Grpo,
}

impl Duration {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: DurationConfig) -> Result<Self, CreditError> {
        refuse("duration", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }
}

impl AdvantageEstimator for Duration {
    fn name(&self) -> &'static str {
        "duration"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let of_batch = self.base.of_batch(batch);
        let of_group = |group: &GroupView<'_>| self.base.trajectory_advantages(group, of_batch);
        let advantages: Vec<f64> = batch.groups().iter().flat_map(of_group).collect();
        let seconds: Vec<f64> =
            batch.trajectories().map(|it| it.episode.duration.as_secs_f64()).collect();
        let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let weight = |seconds: f64| match mean > 0.0 {
            true => (seconds / mean).min(self.config.max_weight),
            false => 1.0,
        };
        let weights = batch.credit_by_trajectory(seconds.into_iter().map(weight)).advantages;
        Ok(Credit { weights: Some(weights), ..batch.credit_by_trajectory(advantages) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::EpisodeView;
    use super::super::test_vectors::step_of;
    use super::*;

    #[test]
    fn what_takes_long_weighs_more() {
        let mut group = GroupView::default();
        for (reward, seconds) in [(1.0, 3), (0.0, 1), (0.0, 2)] {
            let duration = std::time::Duration::from_secs(seconds);
            let episode = EpisodeView { duration, ..EpisodeView::new(seconds) };
            group.push_episode(episode, [step_of(reward, 1)]);
        }
        let estimator =
            Duration::new(DurationConfig { max_weight: 1.2, ..DurationConfig::default() });
        let credit = estimator.unwrap().estimate(&group.into(), &Signals::default()).unwrap();
        let weights = credit.weights.unwrap();
        assert_eq!([0, 1, 2].map(|index| weights.at(index, 0, 0)), [1.2, 0.5, 1.0]);
    }
}
