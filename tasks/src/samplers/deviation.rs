//! Groups whose returns hardly differ are left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;

/// Options of [`Deviation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeviationOptions {
    /// The share of the running mean that a group's deviation has to reach, 0 to 1. Default 0.5.
    pub share: f64,
    /// The share of the newest mean in the running one, above 0, at most 1. Default 0.1.
    pub average: f64,
}

impl Default for DeviationOptions {
    fn default() -> Self {
        Self { share: 0.5, average: 0.1 }
    }
}

impl NamedOptions for DeviationOptions {
    fn problems(&self) -> Vec<String> {
        let Self { share, average } = *self;
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&share) {
            problems.push(format!("share is {share}, must be 0 to 1"));
        }
        if !(average > 0.0 && average <= 1.0) {
            problems.push(format!("average is {average}, must be above 0 and at most 1"));
        }
        problems
    }
}

/// The standard-deviation filter of RLPR (arXiv 2506.18254, section 3.3; reconstructed from a summary; assumed: the share): for rewards that are never quite equal, such as likelihoods, a group is trained where the deviation of its returns is at least a
/// share of the running mean of all groups' deviations; the first iteration's own mean begins it. No others are played in place of those that are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    options: DeviationOptions,
    state: State,
    wanted: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// The running mean; absent before the first iteration.
    mean: Option<f64>,
}

impl Deviation {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &DeviationOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "deviation", options.problems())?;
        let state = State { next: first, mean: None };
        Ok(Self { options: options.clone(), state, wanted: 0 })
    }
}

/// The standard deviation of returns over their number; 0 where there are fewer than two.
fn deviation(returns: &[f64]) -> f64 {
    let count = returns.len().max(1) as f64;
    let mean = returns.iter().sum::<f64>() / count;
    (returns.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt()
}

impl TaskSampler for Deviation {
    fn name(&self) -> &'static str {
        "deviation"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        let first = self.state.next;
        self.state.next += std::mem::take(&mut self.wanted) as u64;
        (first..self.state.next).map(Draw::from).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        let found: Vec<f64> = outcomes.iter().map(|outcome| deviation(&outcome.returns)).collect();
        let finite: Vec<f64> = found.iter().copied().filter(|it| it.is_finite()).collect();
        if !finite.is_empty() {
            let now = finite.iter().sum::<f64>() / finite.len() as f64;
            let share = self.options.average;
            let mean = self.state.mean.map_or(now, |mean| (1.0 - share) * mean + share * now);
            self.state.mean = Some(mean);
        }
        let least = self.options.share * self.state.mean.unwrap_or(0.0);
        found.into_iter().map(|found| found > 0.0 && found >= least).collect()
    }

    fn next_place(&self) -> u64 {
        self.state.next
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("deviation", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, wanted};
    use super::*;

    #[test]
    fn groups_of_little_deviation_are_left_out_by_a_threshold_that_follows_training() {
        let mut sampler = Deviation::new(&DeviationOptions::default(), 0).unwrap();
        let of = |apart: f64| Outcome { returns: vec![0.5 - apart, 0.5 + apart], successes: 0 };
        let mut observe = |deviations: [f64; 3]| {
            sampler.begin(&wanted(3));
            assert_eq!(sampler.draw(&Line::of(9)).len(), 3);
            let kept = sampler.observe(&deviations.map(of));
            assert!(sampler.draw(&Line::of(9)).is_empty());
            (kept, sampler.state.mean.unwrap())
        };
        let (kept, mean) = observe([0.3, 0.02, 0.1]);
        assert_eq!(kept, [true, false, true]);
        assert!((mean - 0.14).abs() < 1e-12);
        let (kept, mean) = observe([0.06, 0.06, 0.0]);
        assert!((mean - (0.9 * 0.14 + 0.1 * 0.04)).abs() < 1e-12);
        assert_eq!(kept, [false, false, false], "below half of {mean}");
        for _ in 0..40 {
            observe([0.06, 0.06, 0.0]);
        }
        assert_eq!(observe([0.06, 0.06, 0.0]).0, [true, true, false]);
    }
}
