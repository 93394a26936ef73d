//! Rewards of one size, whatever the task pays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::registry::AXIS;
use super::{RewardShaper, ShapedGroup};
use crate::ShaperError;

/// Options of [`Normalized`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NormalizedOptions {
    /// How far from 0 a return may be behind it; above 0, absent: however far. Default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

impl Default for NormalizedOptions {
    fn default() -> Self {
        Self { clip: Some(5.0) }
    }
}

impl NamedOptions for NormalizedOptions {
    fn problems(&self) -> Vec<String> {
        let wrong = self.clip.filter(|clip| !(clip.is_finite() && *clip > 0.0));
        wrong.map(|clip| format!("clip is {clip}, must be above 0 or absent")).into_iter().collect()
    }
}

/// Reward normalisation and clipping of PPO-max (arXiv 2307.04964, section 5.3.1): an episode's return becomes `clip((R - mean) / std, -clip, clip)` by the mean and the deviation of all returns of earlier iterations, told in one part, `normalized`, of the last turn.
///
/// In the first iteration, and as long as all returns were equal, they are only clipped. Other parts are taken away.
#[derive(Debug, Clone)]
pub struct Normalized {
    options: NormalizedOptions,
    state: State,
}

/// Returns so far: how many, their mean, and the sum of squares of their differences from it (Welford 1962).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct State {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Normalized {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &NormalizedOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "normalized", options.problems())?;
        Ok(Self { options: options.clone(), state: State::default() })
    }

    fn normal(&self, value: f64) -> f64 {
        let State { count, mean, squares } = self.state;
        let deviation = if count > 0.0 { (squares / count).sqrt() } else { 0.0 };
        let value = if deviation > 0.0 { (value - mean) / deviation } else { value };
        self.options.clip.map_or(value, |clip| value.clamp(-clip, clip))
    }
}

fn sum(rewards: &[Vec<RewardPart>]) -> f64 {
    rewards.iter().flatten().fold(0.0, |sum, part| sum + part.value)
}

impl RewardShaper for Normalized {
    fn name(&self) -> &'static str {
        "normalized"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let value = self.normal(sum(rewards));
        rewards.iter_mut().for_each(Vec::clear);
        super::shaped::add_at_end(trajectory, rewards, "normalized", value);
    }

    fn adapt(&mut self, groups: &[ShapedGroup<'_>]) {
        let returns = groups.iter().flat_map(|group| group.rewards).map(|it| sum(it));
        for value in returns.filter(|value| value.is_finite()) {
            self.state.count += 1.0;
            let apart = value - self.state.mean;
            self.state.mean += apart / self.state.count;
            self.state.squares += apart * (value - self.state.mean);
        }
    }

    fn state(&self) -> Value {
        serde_json::to_value(self.state).expect("sums are plain data")
    }

    fn load(&mut self, state: &Value) -> Result<(), ShaperError> {
        self.state = Deserialize::deserialize(state)
            .map_err(|_| ShaperError::State { name: "normalized" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn returns_are_of_one_size_behind_the_first_iteration_and_clipped() {
        let options = NormalizedOptions { clip: Some(1.5) };
        let shaper = || -> Box<dyn RewardShaper> { Box::new(Normalized::new(&options).unwrap()) };
        let mut shapers = RewardShapers::new(vec![shaper()]);
        let played = |reward: f64| episode(&[&[("a", reward / 2.0)], &[("b", reward / 2.0)]]);
        let value = |shapers: &RewardShapers, reward: f64| shapers.rewards(&played(reward))[1];
        assert_eq!([value(&shapers, 1.0), value(&shapers, 100.0)], [1.0, 1.5]);
        let episodes: Vec<Trajectory> = [0.0, 10.0, 20.0, 10.0].map(played).into();
        shapers.adapt(&[episodes.iter().collect()]);
        let deviation = 50.0_f64.sqrt();
        assert!((value(&shapers, 17.0) - 7.0 / deviation).abs() < 1e-12);
        assert_eq!([value(&shapers, 10.0), value(&shapers, -99.0)], [0.0, -1.5]);
        let mut again = RewardShapers::new(vec![shaper()]);
        again.load(&shapers.state()).unwrap();
        assert_eq!(value(&again, 17.0), value(&shapers, 17.0));
        assert!(NormalizedOptions { clip: Some(0.0) }.problems().len() == 1);
    }
}
