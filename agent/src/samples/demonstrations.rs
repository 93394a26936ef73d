//! The samples of demonstrations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::{Sample, Trajectory};

use super::cut::{Segment, carries_weight, cut};
use crate::{ConfigError, SamplesError};

/// How demonstrations weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DemonstrationConfig {
    /// Cross-entropy weight of observation tokens; 0 or more. Default 0.1.
    pub observation_weight: f32,
    /// Cross-entropy weight of action tokens that were the only ones allowed; 0 or more.
    /// Default 0.
    pub forced_weight: f32,
}

impl Default for DemonstrationConfig {
    fn default() -> Self {
        Self { observation_weight: 0.1, forced_weight: 0.0 }
    }
}

impl DemonstrationConfig {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let weights = [
            ("observation_weight", self.observation_weight),
            ("forced_weight", self.forced_weight),
        ];
        let bad = |weight: f32| !(weight.is_finite() && weight >= 0.0);
        let tell = |(name, weight)| format!("{name} is {weight}, must be 0 or more");
        ConfigError::refuse(weights.into_iter().filter(|(_, w)| bad(*w)).map(tell).collect())
    }
}

/// The samples of a demonstration for the cross-entropy term.
///
/// Turns join samples as in [`cut_samples`](crate::cut_samples). Action tokens weigh 1, observation tokens and
/// forced tokens as `config` says. Where a new sample begins, what it repeats from the one before weighs
/// nothing. Nor do turns that a policy [led](crate::RollIn) to the demonstration with: where
/// nobody took over from it, there is no sample, nor where a secret [stood](Trajectory::redacted) in it.
///
/// # Errors
///
/// [`SamplesError`] when the trajectory contradicts itself.
pub fn demonstration_samples(
    trajectory: &Trajectory,
    config: &DemonstrationConfig,
) -> Result<Vec<Sample>, SamplesError> {
    if trajectory.redacted {
        return Ok(Vec::new());
    }
    // What a guided episode is recorded under is the demonstrator's name.
    let leads = |turn: usize| {
        trajectory.lineage.guided && trajectory.turns[turn].author != trajectory.policy
    };
    let mut samples = cut(trajectory, |segment| match segment {
        Segment::Prompt { turn } | Segment::Sampled { turn, .. } if leads(turn) => 0.0,
        Segment::Prompt { .. } => config.observation_weight,
        Segment::Sampled { is_forced: true, .. } => config.forced_weight,
        Segment::Sampled { is_forced: false, .. } => 1.0,
    })?;
    samples.retain(carries_weight);
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::super::test_trajectories::{sampled, trajectory, turn};
    use super::*;

    #[test]
    fn actions_weigh_more_than_what_was_observed() {
        let turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[&[10, 12], &[11]])),
            turn(4, &[3], sampled(&[13], &[])),
            turn(2, &[4], sampled(&[14], &[])),
        ];
        let samples =
            demonstration_samples(&trajectory(turns), &DemonstrationConfig::default()).unwrap();
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.1, 1.0, 0.0, 0.1, 1.0]);
        assert_eq!(samples[1].cross_entropy_weights, [0.0, 0.0, 0.1, 1.0]);
        assert!(samples.iter().all(|sample| sample.policy_weights.iter().all(|w| *w == 0.0)));
    }

    #[test]
    fn weights_below_0_are_refused() {
        let config = DemonstrationConfig { observation_weight: -1.0, ..Default::default() };
        assert!(config.validate().is_err());
    }

    #[test]
    fn what_a_policy_led_with_is_not_imitated() {
        let mut turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[])),
            turn(4, &[3], sampled(&[12], &[])),
            turn(6, &[4], sampled(&[13], &[])),
        ];
        turns[0].author = "local".to_owned();
        turns[1].author = "expert".to_owned();
        turns[2].author = "expert".to_owned();
        let mut led = Trajectory { policy: "expert".to_owned(), ..trajectory(turns) };
        led.lineage.guided = true;
        let config = DemonstrationConfig::default();
        let samples = demonstration_samples(&led, &config).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].tokens, [1, 2, 10, 11, 3, 12, 4, 13]);
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.0, 0.0, 0.0, 0.1, 1.0, 0.1, 1.0]);
        let redacted = Trajectory { redacted: true, ..led.clone() };
        assert!(demonstration_samples(&redacted, &config).unwrap().is_empty());
        led.turns.truncate(1);
        assert!(demonstration_samples(&led, &config).unwrap().is_empty());
    }
}
