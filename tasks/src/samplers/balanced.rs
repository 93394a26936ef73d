//! Groups of tasks that are neither too easy nor too hard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::refill::Refill;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted};
use crate::SamplerError;

/// Options of [`Balanced`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BalancedOptions {
    /// The least share of a group's episodes that has to succeed, 0 to 1. Default 0.25.
    pub low: f64,
    /// The greatest, `low` to 1. Default 0.75.
    pub high: f64,
    /// How often an iteration plays tasks at the most, the first time among them; at least 1. Default 10.
    pub max_rounds: u32,
}

impl Default for BalancedOptions {
    fn default() -> Self {
        Self { low: 0.25, high: 0.75, max_rounds: 10 }
    }
}

impl NamedOptions for BalancedOptions {
    fn problems(&self) -> Vec<String> {
        let Self { low, high, max_rounds } = *self;
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&low) {
            problems.push(format!("low is {low}, must be 0 to 1"));
        }
        if !(low..=1.0).contains(&high) {
            problems.push(format!("high is {high}, must be low, which is {low}, to 1"));
        }
        if max_rounds == 0 {
            problems.push("max_rounds is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// Online difficulty filtering in a band (arXiv 2504.03380; reconstructed from its abstract): groups of which too few or too many episodes succeeded are
/// dropped, and other tasks are played in their place, until the iteration has as many groups as it wants.
///
/// The divergence that a group can teach is bounded by the variance `p (1 - p)` of its outcomes, which is greatest in the middle. Fewer groups are trained only where
/// `max_rounds` rounds did not give enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Balanced {
    options: BalancedOptions,
    refill: Refill,
}

impl Balanced {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &BalancedOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "balanced", options.problems())?;
        let refill = Refill::new(options.max_rounds, first);
        Ok(Self { options: options.clone(), refill })
    }
}

impl TaskSampler for Balanced {
    fn name(&self) -> &'static str {
        "balanced"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.refill.begin(wanted);
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        self.refill.draw()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        let band = self.options.low..=self.options.high;
        let is_within =
            |outcome: &Outcome| outcome.success_rate().is_some_and(|rate| band.contains(&rate));
        let kept: Vec<bool> = outcomes.iter().map(is_within).collect();
        self.refill.note(&kept);
        kept
    }

    fn next_place(&self) -> u64 {
        self.refill.next_place()
    }

    fn state(&self) -> Value {
        self.refill.state()
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.refill.load("balanced", state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, places, wanted};
    use super::*;

    #[test]
    fn groups_outside_the_band_are_replaced_until_the_batch_is_full() {
        let mut balanced = Balanced::new(&BalancedOptions::default(), 5).unwrap();
        let order = Line::of(100);
        balanced.begin(&wanted(3));
        assert_eq!(places(&balanced.draw(&order)), [5, 6, 7]);
        let kept = balanced.observe(&[of_four(0), of_four(1), of_four(4)]);
        assert_eq!(kept, [false, true, false]);
        assert_eq!(places(&balanced.draw(&order)), [8, 9]);
        assert_eq!(balanced.observe(&[of_four(3), of_four(2)]), [true, true]);
        assert!(balanced.draw(&order).is_empty(), "three of three");
        assert!(!balanced.observe(&[Outcome::default()])[0]);
        let problems = BalancedOptions { low: 0.8, high: 0.2, max_rounds: 0 }.problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
