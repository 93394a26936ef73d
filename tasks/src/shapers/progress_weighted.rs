//! Objectives that are learned count less, those that waver more.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::registry::AXIS;
use super::shaped::sums;
use super::{RewardShaper, ShapedGroup};
use crate::ShaperError;

/// Options of [`ProgressWeighted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgressWeightedOptions {
    /// The parts that are objectives, at least 2. Default `success` and `format`.
    pub objectives: Vec<String>,
    /// What each is worth at the best; above 0. Default 1.
    pub best: f64,
    /// The share of the newest mean in the running ones, above 0, at most 1. Default 0.2.
    pub average: f64,
    /// What instability counts beside what is left to learn; 0 or more. Default 1.
    pub instability: f64,
    /// How evenly weights are spread, above 0. Default 0.5.
    pub temperature: f64,
}

impl Default for ProgressWeightedOptions {
    fn default() -> Self {
        Self {
            objectives: vec!["success".to_owned(), "format".to_owned()],
            best: 1.0,
            average: 0.2,
            instability: 1.0,
            temperature: 0.5,
        }
    }
}

impl NamedOptions for ProgressWeightedOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.objectives.len() < 2 {
            problems.push("objectives are fewer than 2".to_owned());
        }
        for (name, value) in [("best", self.best), ("temperature", self.temperature)] {
            if !(value.is_finite() && value > 0.0) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        if !(self.average > 0.0 && self.average <= 1.0) {
            problems.push(format!("average is {}, must be above 0 and at most 1", self.average));
        }
        if !(self.instability.is_finite() && self.instability >= 0.0) {
            problems.push(format!("instability is {}, must be 0 or more", self.instability));
        }
        problems
    }
}

/// Weights of objectives that follow how they converge (RECAP, reconstructed from its abstract; assumed: all of the formula).
///
/// Of each objective there are running means of what an episode earned in it, `m`, and of how far an iteration's mean was from that, `v`. Its weight among `K` is `K softmax((1 - m / best + instability v / best) / temperature)`, so that weights add up to `K`: what is saturated falls, what lags
/// behind or wavers rises. Weights are those behind the last iteration; before the first one all are 1. Other parts are left alone. The metric `weight/NAME` tells each.
#[derive(Debug, Clone)]
pub struct ProgressWeighted {
    options: ProgressWeightedOptions,
    /// The running means of objectives that were seen.
    seen: BTreeMap<String, (f64, f64)>,
}

impl ProgressWeighted {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &ProgressWeightedOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "progress_weighted", options.problems())?;
        Ok(Self { options: options.clone(), seen: BTreeMap::new() })
    }

    /// The weight of each objective, in their order.
    pub fn weights(&self) -> Vec<f64> {
        let ProgressWeightedOptions { objectives, best, instability, temperature, .. } =
            &self.options;
        if self.seen.is_empty() {
            return vec![1.0; objectives.len()];
        }
        let score = |name: &String| {
            let (mean, wavers) = self.seen.get(name).copied().unwrap_or((0.0, 0.0));
            (1.0 - mean / best + instability * wavers / best) / temperature
        };
        let scores: Vec<f64> = objectives.iter().map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = shares.iter().sum();
        shares.into_iter().map(|share| share / sum * objectives.len() as f64).collect()
    }
}

impl RewardShaper for ProgressWeighted {
    fn name(&self) -> &'static str {
        "progress_weighted"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let weights = self.weights();
        for part in rewards.iter_mut().flatten() {
            if let Some(place) = self.options.objectives.iter().position(|it| *it == part.name) {
                part.value *= weights[place];
            }
        }
    }

    fn adapt(&mut self, groups: &[ShapedGroup<'_>]) {
        let played: Vec<BTreeMap<&str, f64>> =
            groups.iter().flat_map(|group| group.rewards).map(|it| sums(it)).collect();
        if played.is_empty() {
            return;
        }
        let share = self.options.average;
        for name in &self.options.objectives {
            let sum: f64 = played.iter().filter_map(|it| it.get(name.as_str())).sum();
            let now = sum / played.len() as f64;
            if now.is_finite() {
                let (mean, wavers) = self.seen.entry(name.clone()).or_insert((now, 0.0));
                *wavers += share * ((now - *mean).abs() - *wavers);
                *mean += share * (now - *mean);
            }
        }
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let names = self.options.objectives.iter().map(|name| format!("weight/{name}"));
        names.zip(self.weights()).collect()
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.seen).expect("means are plain data")
    }

    fn load(&mut self, state: &Value) -> Result<(), ShaperError> {
        self.seen = Deserialize::deserialize(state)
            .map_err(|_| ShaperError::State { name: "progress_weighted" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn saturated_objectives_fall_and_wavering_or_lagging_ones_rise() {
        let options = ProgressWeightedOptions {
            objectives: ["done", "lags", "wavers", "steady"].map(str::to_owned).into(),
            ..ProgressWeightedOptions::default()
        };
        let mut weighted = ProgressWeighted::new(&options).unwrap();
        assert_eq!(weighted.weights(), [1.0; 4]);
        for iteration in 0..40 {
            let wavers = if iteration % 2 == 0 { 0.9 } else { 0.1 };
            let played = episode(&[
                &[("done", 1.0), ("lags", 0.1)],
                &[("wavers", wavers), ("steady", 0.5), ("other", 7.0)],
            ]);
            let rewards: Vec<Vec<RewardPart>> =
                played.turns.iter().map(|turn| turn.step.rewards.clone()).collect();
            weighted.adapt(&[ShapedGroup { trajectories: &[&played], rewards: &[rewards] }]);
        }
        let weights = weighted.weights();
        let [done, lags, wavers, steady] = weights[..] else { panic!("{weights:?}") };
        assert!(done < steady && steady < lags && steady < wavers, "{weights:?}");
        assert!(done < 1.0 && lags > 1.0 && (weights.iter().sum::<f64>() - 4.0).abs() < 1e-12);

        let state = weighted.state();
        let played = episode(&[&[("done", 1.0), ("other", 7.0)]]);
        let rewards = RewardShapers::new(vec![Box::new(weighted)]).rewards(&played);
        assert!((rewards[0] - (7.0 + done)).abs() < 1e-12);
        let mut again = ProgressWeighted::new(&options).unwrap();
        again.load(&state).unwrap();
        assert_eq!(again.weights(), weights);
        assert!(again.load(&serde_json::json!(3)).is_err());
    }
}
