//! Rollouts where they tell most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted};
use crate::SamplerError;
use crate::curricula::uncertainty_reduction;

/// Options of [`Xrpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct XrpoOptions {
    /// Rollouts that every task gets first; at least 2. With as many as the group size or more there is nothing left to allot. Default 4.
    pub first: usize,
    /// Rounds in which the others are allotted; at least 1. Default 2.
    pub rounds: u32,
    /// What it counts that a task has few rollouts, 0 or more. Default 0.1.
    pub exploration: f64,
}

impl Default for XrpoOptions {
    fn default() -> Self {
        Self { first: 4, rounds: 2, exploration: 0.1 }
    }
}

impl NamedOptions for XrpoOptions {
    fn problems(&self) -> Vec<String> {
        let Self { first, rounds, exploration } = *self;
        let mut problems = Vec::new();
        if first < 2 {
            problems.push(format!("first is {first}, must be at least 2"));
        }
        if rounds == 0 {
            problems.push("rounds is 0, must be at least 1".to_owned());
        }
        if !(exploration.is_finite() && exploration >= 0.0) {
            problems.push(format!("exploration is {exploration}, must be 0 or more"));
        }
        problems
    }
}

/// The rollout allocator of XRPO (arXiv 2510.06672; reconstructed from its abstract and a summary): every task gets `first` rollouts, and the others, as many in all as if every
/// group had its size, go round by round, one after the other, to the task of the greatest [`uncertainty_reduction`].
#[derive(Debug, Clone, PartialEq)]
pub struct Xrpo {
    options: XrpoOptions,
    next: u64,
    wanted: Option<Wanted>,
    /// The places of this iteration, with the returns that are known.
    places: Vec<(u64, Vec<f64>)>,
    /// What was drawn last, by its number among the places.
    drawn: Vec<usize>,
    /// Rollouts that are still to be allotted, and in how many rounds.
    left: (usize, u32),
}

impl Xrpo {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &XrpoOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "xrpo", options.problems())?;
        let (places, drawn) = (Vec::new(), Vec::new());
        Ok(Self {
            options: options.clone(),
            next: first,
            wanted: None,
            places,
            drawn,
            left: (0, 0),
        })
    }

    /// How many of the next `count` rollouts each task gets.
    fn allot(&self, count: usize) -> Vec<usize> {
        let mut more = vec![0; self.places.len()];
        let all: usize = self.places.iter().map(|(_, returns)| returns.len()).sum();
        for given in 0..count {
            let gain = |place: usize| {
                let returns = &self.places[place].1;
                // What is allotted already is expected to go as what was seen.
                let mut expected = returns.clone();
                expected.extend(returns.iter().cycle().take(more[place]));
                uncertainty_reduction(&expected, all + given, self.options.exploration)
            };
            let gains: Vec<f64> = (0..more.len()).map(gain).collect();
            let best = (0..more.len()).reduce(|a, b| if gains[b] > gains[a] { b } else { a });
            if let Some(best) = best {
                more[best] += 1;
            }
        }
        more
    }
}

impl TaskSampler for Xrpo {
    fn name(&self) -> &'static str {
        "xrpo"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
        self.places.clear();
        self.drawn.clear();
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        if let Some(wanted) = self.wanted.take() {
            let places = self.next..self.next + wanted.groups as u64;
            self.next = places.end;
            self.places = places.map(|place| (place, Vec::new())).collect();
            self.drawn = (0..wanted.groups).collect();
            let first = self.options.first.min(wanted.group_size);
            self.left = (wanted.groups * (wanted.group_size - first), self.options.rounds);
            let draw = |(place, _): &(u64, Vec<f64>)| Draw::with_rollouts(*place, first);
            return self.places.iter().map(draw).collect();
        }
        let (left, rounds) = self.left;
        if left == 0 || rounds == 0 {
            return Vec::new();
        }
        let count = left.div_ceil(rounds as usize);
        self.left = (left - count, rounds - 1);
        let more = self.allot(count);
        self.drawn = (0..more.len()).filter(|place| more[*place] > 0).collect();
        self.drawn
            .iter()
            .map(|place| Draw::with_rollouts(self.places[*place].0, more[*place]))
            .collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        for (place, outcome) in self.drawn.iter().zip(outcomes) {
            self.places[*place].1.extend(&outcome.returns);
        }
        vec![true; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.next
    }

    fn state(&self) -> Value {
        self.next.into()
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.next = state.as_u64().ok_or(SamplerError::State { name: "xrpo" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of, places, wanted};
    use super::*;

    #[test]
    fn what_is_left_of_the_budget_goes_to_tasks_whose_returns_differ() {
        let options = XrpoOptions { first: 2, exploration: 0.0, ..XrpoOptions::default() };
        let mut xrpo = Xrpo::new(&options, 0).unwrap();
        let order = Line::of(100);
        xrpo.begin(&wanted(3));
        let mut played = [0; 3];
        let mut count = |draws: &[Draw]| {
            draws.iter().for_each(|it| played[it.place as usize] += it.rollouts.unwrap());
        };
        let first = xrpo.draw(&order);
        count(&first);
        assert_eq!(places(&first), [0, 1, 2]);
        xrpo.observe(&[of(1, 2), of(2, 2), of(0, 2)]);
        let second = xrpo.draw(&order);
        count(&second);
        assert_eq!(second, [Draw::with_rollouts(0, 3)], "the only one that is uncertain");
        xrpo.observe(&[of(1, 3)]);
        let third = xrpo.draw(&order);
        count(&third);
        xrpo.observe(&vec![of(0, 1); third.len()]);
        assert!(xrpo.draw(&order).is_empty());
        assert_eq!(played.iter().sum::<usize>(), 12, "three groups of four in all");
        xrpo.begin(&wanted(1));
        assert_eq!(places(&xrpo.draw(&order)), [3]);
    }
}
