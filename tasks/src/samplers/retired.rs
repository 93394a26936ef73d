//! Tasks that were mostly solved are never played again.

use std::collections::{BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;

/// Options of [`Retired`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetiredOptions {
    /// The success rate of a group from which on its task is played no more; above 0, at most 1. Default 0.9.
    pub solved: f64,
}

impl Default for RetiredOptions {
    fn default() -> Self {
        Self { solved: 0.9 }
    }
}

impl NamedOptions for RetiredOptions {
    fn problems(&self) -> Vec<String> {
        let is_within = self.solved > 0.0 && self.solved <= 1.0;
        let problem = || format!("solved is {}, must be above 0 and at most 1", self.solved);
        (!is_within).then(problem).into_iter().collect()
    }
}

/// The no-positive-resampling of ScaleRL (arXiv 2510.13786, section 3.2): a task of whose group a share of `solved` succeeded once is played no
/// more, whatever epochs follow; the others come in their shuffled order.
///
/// Where no task of the split is left, all are played again. Groups that tell nothing are trained like others here: that is for a filter to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Retired {
    options: RetiredOptions,
    state: State,
    wanted: usize,
    /// The numbers of the tasks that were drawn last.
    drawn: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// The numbers of the tasks that are played no more.
    retired: BTreeSet<usize>,
}

impl Retired {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &RetiredOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "retired", options.problems())?;
        let state = State { next: first, retired: BTreeSet::new() };
        Ok(Self { options: options.clone(), state, wanted: 0, drawn: Vec::new() })
    }

    /// How many tasks are played no more.
    pub fn num_retired(&self) -> usize {
        self.state.retired.len()
    }
}

impl TaskSampler for Retired {
    fn name(&self) -> &'static str {
        "retired"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let wanted = std::mem::take(&mut self.wanted);
        self.drawn.clear();
        if wanted == 0 || order.is_empty() {
            return Vec::new();
        }
        if self.state.retired.len() >= order.len() {
            self.state.retired.clear();
        }
        let left = order.len() - self.state.retired.len();
        let mut met = HashSet::new();
        let mut draws = Vec::new();
        // Every task stands once in an epoch, so that two epochs hold all that are left from any place on.
        let mut looks = 2 * order.len();
        while draws.len() < wanted.min(left) && looks > 0 {
            let looked = order.look(self.state.next, (wanted - draws.len()).min(looks));
            if looked.is_empty() {
                break;
            }
            looks -= looked.len();
            self.state.next += looked.len() as u64;
            for task in looked {
                if !self.state.retired.contains(&task.index) && met.insert(task.index) {
                    draws.push(Draw::from(task.place));
                    self.drawn.push(task.index);
                }
            }
        }
        draws
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        for (index, outcome) in self.drawn.iter().zip(outcomes) {
            if outcome.success_rate().is_some_and(|rate| rate >= self.options.solved) {
                self.state.retired.insert(*index);
            }
        }
        vec![true; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.state.next
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("retired", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of, of_four, places, wanted};
    use super::*;

    fn play(sampler: &mut Retired, order: &Line, groups: usize, outcomes: &[Outcome]) -> Vec<u64> {
        sampler.begin(&wanted(groups));
        let drawn = places(&sampler.draw(order));
        assert_eq!(sampler.observe(&outcomes[..drawn.len()]), vec![true; drawn.len()]);
        assert!(sampler.draw(order).is_empty());
        drawn
    }

    #[test]
    fn what_was_mostly_solved_once_never_comes_back() {
        let order = Line::of(4);
        let mut sampler = Retired::new(&RetiredOptions::default(), 0).unwrap();
        // The first is solved by all, the second by nine of ten, the third by less, and nobody could play the fourth.
        let outcomes = [of_four(4), of(9, 10), of(8, 10), Outcome::default()];
        assert_eq!(play(&mut sampler, &order, 4, &outcomes), [0, 1, 2, 3]);
        assert_eq!(sampler.num_retired(), 2);
        let failed = [of_four(0), of_four(0)];
        assert_eq!(play(&mut sampler, &order, 1, &failed), [6]);
        assert_eq!(play(&mut sampler, &order, 3, &failed), [7, 10], "two are left");
        let state = sampler.state();
        let mut resumed = Retired::new(&RetiredOptions::default(), 0).unwrap();
        resumed.load(&state).unwrap();
        assert_eq!(resumed.num_retired(), 2);
        assert_eq!(play(&mut resumed, &order, 2, &[of_four(4), of_four(4)]).len(), 2);
        assert_eq!(resumed.num_retired(), 4);
        assert_eq!(
            play(&mut resumed, &order, 4, &[of_four(0), of_four(0), of_four(0), of_four(0)]).len(),
            4
        );
        assert_eq!(resumed.num_retired(), 0, "all are played again");
    }

    #[test]
    fn shares_are_shares_and_nothing_comes_of_nothing() {
        for solved in [0.0, 1.1, f64::NAN] {
            assert!(Retired::new(&RetiredOptions { solved }, 0).is_err(), "{solved}");
        }
        let mut sampler = Retired::new(&RetiredOptions::default(), 5).unwrap();
        sampler.begin(&wanted(3));
        assert!(sampler.draw(&Line::of(0)).is_empty());
        assert_eq!(sampler.next_place(), 5);
    }
}
