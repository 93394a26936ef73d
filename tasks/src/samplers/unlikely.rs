//! Tasks that the policy hardly solved to begin with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::order::candidates;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;

/// Options of [`Unlikely`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UnlikelyOptions {
    /// Tasks that are measured before anything is trained; at least 1, and no more than the split has are taken. Default 1024.
    pub tasks: usize,
    /// Episodes of each; at least 1, absent: as many as a group has. Default absent.
    pub rollouts: Option<usize>,
    /// The success rate below which a task is trained, above 0, at most 1. Default 0.5.
    pub below: f64,
    /// Whether tasks that were not solved at all are left out, of which a policy learns nothing. Default false.
    pub drop_unsolved: bool,
}

impl Default for UnlikelyOptions {
    fn default() -> Self {
        Self { tasks: 1024, rollouts: None, below: 0.5, drop_unsolved: false }
    }
}

impl NamedOptions for UnlikelyOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.tasks == 0 {
            problems.push("tasks is 0, must be at least 1".to_owned());
        }
        if self.rollouts == Some(0) {
            problems.push("rollouts is 0, must be at least 1 or absent".to_owned());
        }
        if !(self.below > 0.0 && self.below <= 1.0) {
            problems.push(format!("below is {}, must be above 0 and at most 1", self.below));
        }
        problems
    }
}

/// Curation of problems that the base policy is unlikely to solve (arXiv 2510.02230; reconstructed from its abstract): in the first iteration tasks are played with the weights that the stage begins with, and not trained; from
/// then on those are trained whose success rate was below a bound, over and over in their order. Where none was, the least solved ones are.
#[derive(Debug, Clone, PartialEq)]
pub struct Unlikely {
    options: UnlikelyOptions,
    state: State,
    wanted: usize,
    is_measuring: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// The places that are trained; empty before they were measured.
    places: Vec<u64>,
    /// How many of them were drawn since then, over all epochs.
    drawn: u64,
}

impl Unlikely {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &UnlikelyOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "unlikely", options.problems())?;
        let state = State { next: first, places: Vec::new(), drawn: 0 };
        Ok(Self { options: options.clone(), state, wanted: 0, is_measuring: false })
    }

    /// The places that are trained; empty before they were measured.
    pub fn places(&self) -> &[u64] {
        &self.state.places
    }
}

impl TaskSampler for Unlikely {
    fn name(&self) -> &'static str {
        "unlikely"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        if self.wanted == 0 {
            return Vec::new();
        }
        if self.state.places.is_empty() {
            let found = candidates(order, &mut self.state.next, self.options.tasks);
            self.state.places = found.iter().map(|task| task.place).collect();
            self.is_measuring = true;
            let draw = |place: &u64| Draw { place: *place, rollouts: self.options.rollouts };
            return self.state.places.iter().map(draw).collect();
        }
        let count = std::mem::take(&mut self.wanted).min(self.state.places.len());
        let first = self.state.drawn;
        self.state.drawn += count as u64;
        let place =
            |number: u64| self.state.places[(number % self.state.places.len() as u64) as usize];
        (first..self.state.drawn).map(|number| place(number).into()).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        if !std::mem::take(&mut self.is_measuring) {
            return vec![true; outcomes.len()];
        }
        let UnlikelyOptions { below, drop_unsolved, .. } = self.options;
        let rates: Vec<f64> =
            outcomes.iter().map(|it| it.success_rate().unwrap_or(f64::NAN)).collect();
        let is_unlikely = |rate: f64| rate < below && (rate > 0.0 || !drop_unsolved);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let has_any = rates.iter().any(|rate| is_unlikely(*rate));
        let is_kept = |rate: f64| if has_any { is_unlikely(rate) } else { rate <= least };
        let mut rates = rates.iter();
        // There is always one, unless nobody could play any: then all are tried anew.
        self.state.places.retain(|_| rates.next().is_some_and(|rate| is_kept(*rate)));
        vec![false; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.state.next
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("unlikely", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, places, wanted};
    use super::*;

    #[test]
    fn tasks_below_the_bound_are_trained_and_measuring_trains_nothing() {
        let options = UnlikelyOptions { tasks: 5, rollouts: Some(4), ..UnlikelyOptions::default() };
        let mut unlikely = Unlikely::new(&options, 10).unwrap();
        let order = Line::of(100);
        unlikely.begin(&wanted(2));
        let measured = unlikely.draw(&order);
        assert_eq!(places(&measured), [10, 11, 12, 13, 14]);
        assert!(measured.iter().all(|draw| draw.rollouts == Some(4)));
        let outcomes = [of_four(0), of_four(4), of_four(1), of_four(2), of_four(1)];
        assert_eq!(unlikely.observe(&outcomes), [false; 5]);
        assert_eq!(unlikely.places(), [10, 12, 14]);
        assert_eq!(places(&unlikely.draw(&order)), [10, 12]);
        assert_eq!(unlikely.observe(&outcomes[..2]), [true; 2]);
        assert!(unlikely.draw(&order).is_empty());
        unlikely.begin(&wanted(2));
        assert_eq!(places(&unlikely.draw(&order)), [14, 10]);
    }

    #[test]
    fn where_none_is_below_it_the_least_solved_are() {
        let options =
            UnlikelyOptions { tasks: 3, drop_unsolved: true, ..UnlikelyOptions::default() };
        let mut unlikely = Unlikely::new(&options, 0).unwrap();
        unlikely.begin(&wanted(1));
        unlikely.draw(&Line::of(9));
        unlikely.observe(&[of_four(4), of_four(3), of_four(3)]);
        assert_eq!(unlikely.places(), [1, 2]);
    }
}
