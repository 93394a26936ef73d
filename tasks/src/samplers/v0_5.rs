//! Few rollouts, and more where they contradict what was expected.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;

/// Options of [`Sparse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SparseOptions {
    /// Rollouts that a task gets at the most, at least 1; with no more than the group size nobody gets further ones. Default 16.
    pub most: usize,
    /// How many standard deviations off the rollouts have to be from what was expected, above 0. Default 1.96.
    pub z: f64,
    /// How many rollouts of one half the history of a category begins with, above 0. Default 2.
    pub prior: f64,
    /// What a category's history counts in the next iteration, above 0, at most 1. Default 0.9.
    pub keep: f64,
}

impl Default for SparseOptions {
    fn default() -> Self {
        Self { most: 16, z: 1.96, prior: 2.0, keep: 0.9 }
    }
}

impl NamedOptions for SparseOptions {
    fn problems(&self) -> Vec<String> {
        let Self { most, z, prior, keep } = *self;
        let mut problems = Vec::new();
        if most == 0 {
            problems.push("most is 0, must be at least 1".to_owned());
        }
        for (name, value) in [("z", z), ("prior", prior)] {
            if !(value.is_finite() && value > 0.0) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        if !(keep > 0.0 && keep <= 1.0) {
            problems.push(format!("keep is {keep}, must be above 0 and at most 1"));
        }
        problems
    }
}

/// Sparse rollouts (V_0.5, arXiv 2603.10848): every task gets as many rollouts as groups have, and as many more, up to `most`, as long as those that it has contradict the success that was expected of it before:
///
/// ```text
/// |successes / n - p| > z sqrt(p (1 - p) / n),    p = (s + prior / 2) / (N + prior)
/// ```
///
/// with the `s` successes in `N` rollouts of the task's stratum so far, of which each iteration forgets a little.
///
/// Reconstructed from the abstract. Deviation: what is expected before rollouts is told by the stratum's history and not by a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    options: SparseOptions,
    state: State,
    wanted: Option<Wanted>,
    /// Rollouts that a task gets at a time.
    group_size: usize,
    /// The tasks of this iteration.
    tasks: Vec<Played>,
    /// What was drawn last, by its number among these.
    drawn: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct State {
    next: u64,
    /// Rollouts and successes by stratum.
    history: BTreeMap<String, [f64; 2]>,
}

#[derive(Debug, Clone, PartialEq)]
struct Played {
    place: u64,
    stratum: String,
    expected: f64,
    rollouts: usize,
    successes: usize,
}

impl Sparse {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &SparseOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "v0_5", options.problems())?;
        let state = State { next: first, ..State::default() };
        let (wanted, group_size, tasks, drawn) = (None, 1, Vec::new(), Vec::new());
        Ok(Self { options: options.clone(), state, wanted, group_size, tasks, drawn })
    }

    /// How probably a task of this stratum is solved, before anybody has tried it: between 0 and 1, and neither.
    pub fn p_success(&self, stratum: &str) -> f64 {
        let [rollouts, successes] = self.state.history.get(stratum).copied().unwrap_or_default();
        let prior = self.options.prior;
        (successes + prior / 2.0) / (rollouts + prior)
    }

    /// Whether what was seen of a task contradicts what was expected.
    fn is_rejected(&self, task: &Played) -> bool {
        let count = task.rollouts as f64;
        let deviation = (task.expected * (1.0 - task.expected) / count).sqrt();
        let off = (task.successes as f64 / count - task.expected).abs();
        task.rollouts > 0 && off > self.options.z * deviation
    }

    /// Tells the history what came of an iteration.
    fn close(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        self.state.history.values_mut().flatten().for_each(|it| *it *= self.options.keep);
        for task in std::mem::take(&mut self.tasks) {
            let [rollouts, successes] = self.state.history.entry(task.stratum).or_default();
            *rollouts += task.rollouts as f64;
            *successes += task.successes as f64;
        }
    }
}

impl TaskSampler for Sparse {
    fn name(&self) -> &'static str {
        "v0_5"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
        self.group_size = wanted.group_size.max(1);
        self.tasks.clear();
        self.drawn.clear();
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let (first, most) = (self.group_size, self.options.most);
        if let Some(wanted) = self.wanted.take() {
            let places = self.state.next..self.state.next + wanted.groups as u64;
            self.state.next = places.end;
            let played = |place: u64| {
                let known = order.look(place, 1).pop();
                let stratum = known.and_then(|it| it.stratum).unwrap_or_default();
                let expected = self.p_success(&stratum);
                Played { place, stratum, expected, rollouts: 0, successes: 0 }
            };
            self.tasks = places.map(played).collect();
            self.drawn = (0..self.tasks.len()).collect();
        } else {
            let is_open = |it: &usize| {
                let task = &self.tasks[*it];
                task.rollouts < most && self.is_rejected(task)
            };
            self.drawn = self.drawn.iter().copied().filter(is_open).collect();
        }
        if self.drawn.is_empty() {
            self.close();
        }
        let draw = |it: &usize| {
            let task = &self.tasks[*it];
            Draw::with_rollouts(task.place, first.min(most - task.rollouts))
        };
        self.drawn.iter().map(draw).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        for (place, outcome) in self.drawn.iter().zip(outcomes) {
            self.tasks[*place].rollouts += outcome.returns.len();
            self.tasks[*place].successes += outcome.successes;
        }
        // Who got none is not asked again.
        let has_some = |(_, outcome): &(&usize, &Outcome)| !outcome.returns.is_empty();
        let drawn = self.drawn.iter().zip(outcomes).filter(has_some).map(|(it, _)| *it);
        self.drawn = drawn.collect();
        vec![true; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.state.next
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        let state: State = read("v0_5", state)?;
        let is_count = |it: &f64| it.is_finite() && *it >= 0.0;
        if !state.history.values().flatten().all(is_count) {
            return Err(SamplerError::State { name: "v0_5" });
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of, places, wanted};
    use super::*;

    #[test]
    fn further_rollouts_are_for_those_that_contradict_what_was_expected() {
        let options = SparseOptions { most: 10, ..SparseOptions::default() };
        let mut sampler = Sparse::new(&options, 0).unwrap();
        let order = Line::of(100);
        sampler.begin(&wanted(3));
        let first = sampler.draw(&order);
        assert_eq!(places(&first), [0, 1, 2]);
        assert!(first.iter().all(|it| it.rollouts == Some(4)));
        assert_eq!(sampler.tasks[0].expected, 0.5, "nothing is known yet");
        // Two of four is what was expected, three may be, four are not.
        sampler.observe(&[of(2, 4), of(4, 4), of(3, 4)]);
        assert_eq!(sampler.draw(&order), [Draw::with_rollouts(1, 4)]);
        sampler.observe(&[of(4, 4)]);
        assert_eq!(sampler.draw(&order), [Draw::with_rollouts(1, 2)], "ten are the most");
        sampler.observe(&[of(2, 2)]);
        assert!(sampler.draw(&order).is_empty());
        // The next tasks are expected to go as these did.
        let expected = (2.0 + 10.0 + 3.0 + 1.0) / (18.0 + 2.0);
        let mut other = Sparse::new(&options, 0).unwrap();
        other.load(&sampler.state()).unwrap();
        for sampler in [&mut sampler, &mut other] {
            sampler.begin(&wanted(1));
            assert_eq!(places(&sampler.draw(&order)), [3]);
            assert!((sampler.tasks[0].expected - expected).abs() < 1e-12);
            sampler.observe(&[of(0, 4)]);
            assert_eq!(sampler.draw(&order).len(), 1, "now it is failures that contradict");
        }
    }

    #[test]
    fn options_are_checked() {
        let wrong = SparseOptions { most: 0, z: 0.0, prior: f64::NAN, keep: 2.0 };
        assert_eq!(wrong.problems().len(), 4);
        assert!(Sparse::new(&wrong, 0).is_err());
        let mut sampler = Sparse::new(&SparseOptions::default(), 0).unwrap();
        assert!(sampler.load(&Value::Null).is_err());
    }
}
