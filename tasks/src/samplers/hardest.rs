//! The hardest tasks of a set, over and over.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::order::candidates;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;

/// Options of [`Hardest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HardestOptions {
    /// Tasks to begin with; at least 1, and no more than the split has are taken. Default 1024.
    pub tasks: usize,
    /// The share of them that is kept behind each epoch, above 0, at most 1. Default 0.5.
    pub keep: f64,
    /// How many are kept at the least; at least 1. Default 32.
    pub least: usize,
}

impl Default for HardestOptions {
    fn default() -> Self {
        Self { tasks: 1024, keep: 0.5, least: 32 }
    }
}

impl NamedOptions for HardestOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("tasks", self.tasks), ("least", self.least)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(self.keep > 0.0 && self.keep <= 1.0) {
            problems.push(format!("keep is {}, must be above 0 and at most 1", self.keep));
        }
        problems
    }
}

/// The hard-focus curriculum of DRIVE (arXiv 2511.06307, its second stage; reconstructed from its abstract): a set of tasks is played epoch after epoch, and behind each the hardest share of
/// it stays, by the success rate that was measured in that epoch. Equally hard ones stay in their order.
///
/// How many rollouts each task gets is the stage's `group_size`: eight in a first stage with `uniform`, many in a second one with this.
#[derive(Debug, Clone, PartialEq)]
pub struct Hardest {
    options: HardestOptions,
    state: State,
    wanted: usize,
    drawn: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// The places that are left, in their order; empty before the first draw.
    places: Vec<u64>,
    /// How many of them were played in this epoch.
    played: usize,
    /// Episodes and successes of this epoch, by place.
    rates: BTreeMap<u64, (u64, u64)>,
}

impl Hardest {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &HardestOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "hardest", options.problems())?;
        let state = State { next: first, places: Vec::new(), played: 0, rates: BTreeMap::new() };
        Ok(Self { options: options.clone(), state, wanted: 0, drawn: Vec::new() })
    }

    /// Begins the next epoch with the hardest of those that there are.
    fn narrow(&mut self) {
        let State { places, rates, played, .. } = &mut self.state;
        // One that nobody could play is as hard as it can be.
        let rate = |place: &u64| match rates.get(place) {
            Some((episodes, successes)) if *episodes > 0 => *successes as f64 / *episodes as f64,
            _ => 0.0,
        };
        let kept = (places.len() as f64 * self.options.keep).ceil() as usize;
        let kept = kept.max(self.options.least).min(places.len());
        places.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.cmp(b)));
        places.truncate(kept);
        places.sort_unstable();
        rates.clear();
        *played = 0;
    }
}

impl TaskSampler for Hardest {
    fn name(&self) -> &'static str {
        "hardest"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let wanted = std::mem::take(&mut self.wanted);
        if wanted == 0 {
            return Vec::new();
        }
        if self.state.places.is_empty() {
            let found = candidates(order, &mut self.state.next, self.options.tasks);
            self.state.places = found.into_iter().map(|task| task.place).collect();
        }
        if self.state.played == self.state.places.len() {
            self.narrow();
        }
        // An epoch ends with what is left of it, so that no task is in a group twice.
        let end = (self.state.played + wanted).min(self.state.places.len());
        self.drawn = self.state.places[self.state.played..end].to_vec();
        self.state.played = end;
        self.drawn.iter().map(|place| Draw::from(*place)).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        for (place, outcome) in self.drawn.iter().zip(outcomes) {
            let (episodes, successes) = self.state.rates.entry(*place).or_default();
            *episodes += outcome.returns.len() as u64;
            *successes += outcome.successes as u64;
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
        self.state = read("hardest", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, places, wanted};
    use super::*;

    #[test]
    fn behind_every_epoch_the_hardest_share_stays() {
        let options = HardestOptions { tasks: 8, keep: 0.5, least: 3 };
        let mut hardest = Hardest::new(&options, 2).unwrap();
        let order = Line::of(20);
        let play = |hardest: &mut Hardest, count: usize| {
            hardest.begin(&wanted(count));
            let drawn = places(&hardest.draw(&order));
            // The later a task comes, the harder it is.
            let outcomes: Vec<Outcome> = drawn
                .iter()
                .map(|place| of_four(4_usize.saturating_sub(*place as usize / 2)))
                .collect();
            hardest.observe(&outcomes);
            assert!(hardest.draw(&order).is_empty());
            drawn
        };
        assert_eq!(play(&mut hardest, 5), [2, 3, 4, 5, 6]);
        assert_eq!(play(&mut hardest, 5), [7, 8, 9], "the rest of the epoch");
        assert_eq!(play(&mut hardest, 5), [6, 7, 8, 9]);
        assert_eq!(play(&mut hardest, 5), [6, 8, 9], "no fewer than three");
        assert_eq!(play(&mut hardest, 2), [6, 8]);
        assert_eq!(hardest.next_place(), 10);
    }
}
