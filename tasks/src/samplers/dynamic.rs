//! Groups without a signal are replaced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::refill::Refill;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted};
use crate::SamplerError;

/// Options of [`Dynamic`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DynamicOptions {
    /// How often an iteration plays tasks at the most, the first time among them; at least 1. With fewer groups
    /// than wanted behind that, it trains those that it has. Default 10, as in DAPO's recipe.
    pub max_rounds: u32,
}

impl Default for DynamicOptions {
    fn default() -> Self {
        Self { max_rounds: 10 }
    }
}

impl NamedOptions for DynamicOptions {
    fn problems(&self) -> Vec<String> {
        let is_none = self.max_rounds == 0;
        is_none.then(|| "max_rounds is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Dynamic sampling of DAPO (arXiv 2503.14476, section 3.2, equation 11): groups whose episodes all earned the same are
/// dropped, and other tasks are played in their place, until the iteration has as many groups as it wants.
///
/// What is dropped takes no part in the update, nor in what its loss is divided by. Two deviations from DAPO's code: later
/// rounds play as many tasks as groups are missing, where there whole batches are played and cut; and behind the last
/// round fewer groups are trained, where there the run breaks off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dynamic {
    refill: Refill,
}

impl Dynamic {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &DynamicOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "dynamic", options.problems())?;
        Ok(Self { refill: Refill::new(options.max_rounds, first) })
    }
}

impl TaskSampler for Dynamic {
    fn name(&self) -> &'static str {
        "dynamic"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.refill.begin(wanted);
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        self.refill.draw()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        let kept: Vec<bool> = outcomes.iter().map(Outcome::has_signal).collect();
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
        self.refill.load("dynamic", state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, places, wanted};
    use super::*;
    use crate::test_vectors::{all_cases, floats};

    fn outcome(returns: &[f64]) -> Outcome {
        Outcome { returns: returns.to_vec(), successes: 0 }
    }

    #[test]
    fn what_is_kept_equals_the_reference() {
        for case in all_cases("dapo_dynamic_sampling") {
            let prompts = case["inputs"]["metric_per_prompt"].as_object().unwrap();
            let outcomes: Vec<Outcome> =
                prompts.values().map(|metrics| outcome(&floats(metrics))).collect();
            let mut dynamic = Dynamic::new(&DynamicOptions::default(), 0).unwrap();
            dynamic.begin(&wanted(outcomes.len()));
            let kept = dynamic.observe(&outcomes);
            let kept = prompts.keys().zip(kept).filter(|(_, kept)| *kept).map(|(name, _)| name);
            let mut kept: Vec<&str> = kept.map(String::as_str).collect();
            kept.sort_unstable();
            let mut expected: Vec<&str> = case["outputs"]["kept"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .collect();
            expected.sort_unstable();
            assert_eq!(kept, expected);
        }
        assert!(!outcome(&[]).has_signal());
    }

    #[test]
    fn what_is_dropped_is_replaced_by_tasks_that_come_next() {
        let mut dynamic = Dynamic::new(&DynamicOptions { max_rounds: 3 }, 5).unwrap();
        dynamic.begin(&wanted(3));
        assert_eq!(places(&dynamic.draw(&Line::of(100))), [5, 6, 7]);
        let (same, mixed) = (outcome(&[1.0, 1.0]), outcome(&[1.0, 0.0]));
        assert_eq!(
            dynamic.observe(&[same.clone(), mixed.clone(), same.clone()]),
            [false, true, false]
        );
        assert_eq!(places(&dynamic.draw(&Line::of(100))), [8, 9]);
        dynamic.observe(&[same.clone(), same.clone()]);
        assert_eq!(places(&dynamic.draw(&Line::of(100))), [10, 11]);
        dynamic.observe(&[same, mixed]);
        assert!(dynamic.draw(&Line::of(100)).is_empty(), "the rounds are over");
        assert_eq!(dynamic.next_place(), 12);
        dynamic.begin(&wanted(1));
        assert_eq!(
            places(&dynamic.draw(&Line::of(100))),
            [12],
            "no task is met twice before all are"
        );
    }

    #[test]
    fn an_iteration_that_has_its_groups_draws_no_more() {
        let mut dynamic = Dynamic::new(&DynamicOptions::default(), 0).unwrap();
        dynamic.begin(&wanted(2));
        dynamic.draw(&Line::of(100));
        dynamic.observe(&[outcome(&[1.0, 0.0]), outcome(&[0.0, 1.0])]);
        assert!(dynamic.draw(&Line::of(100)).is_empty());
    }
}
