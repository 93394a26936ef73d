//! Categories of tasks by upper confidence bounds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::categories::Categories;
use super::registry::AXIS;
use super::sec::draw_by_category;
use super::{Draw, Learned, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;
use crate::curricula::UcbBandit;

/// Options of [`Dump`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DumpOptions {
    /// Groups of a category whose advantages count in its mean, the last ones; at least 1. Default 32.
    pub window: usize,
    /// What it counts that a category was seldom played; 0 or more. Default 1.
    pub exploration: f64,
    /// Temperature of the draws between categories, above 0. Default 0.5.
    pub temperature: f64,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self { window: 32, exploration: 1.0, temperature: 0.5 }
    }
}

impl NamedOptions for DumpOptions {
    fn problems(&self) -> Vec<String> {
        let Self { window, exploration, temperature } = *self;
        let mut problems = Vec::new();
        if window == 0 {
            problems.push("window is 0, must be at least 1".to_owned());
        }
        if !(exploration.is_finite() && exploration >= 0.0) {
            problems.push(format!("exploration is {exploration}, must be 0 or more"));
        }
        if !(temperature.is_finite() && temperature > 0.0) {
            problems.push(format!("temperature is {temperature}, must be above 0"));
        }
        problems
    }
}

/// A curriculum over distributions (DUMP, arXiv 2504.09710): a [`UcbBandit`] over the strata of tasks; of a category that was drawn the next task is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Dump {
    options: DumpOptions,
    state: State,
    wanted: Option<Wanted>,
    /// The category of every place that was drawn in this iteration.
    drawn: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    categories: Categories,
    /// Absent before the first draw.
    bandit: Option<UcbBandit>,
}

impl Dump {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &DumpOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "dump", options.problems())?;
        let state = State { categories: Categories::new(first), bandit: None };
        Ok(Self { options: options.clone(), state, wanted: None, drawn: BTreeMap::new() })
    }
}

impl TaskSampler for Dump {
    fn name(&self) -> &'static str {
        "dump"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        if !self.state.categories.meet(order) {
            return (0..wanted.groups as u64).map(Draw::from).collect();
        }
        let DumpOptions { window, exploration, temperature } = self.options;
        let categories = &mut self.state.categories;
        let fresh = || UcbBandit::new(categories.len(), window, exploration, temperature);
        let bandit = self.state.bandit.get_or_insert_with(fresh);
        self.drawn = draw_by_category(categories, &bandit.probabilities(), order, &wanted);
        self.drawn.keys().map(|place| Draw::from(*place)).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        vec![true; outcomes.len()]
    }

    fn learned(&mut self, learned: &[Learned]) {
        let of_category = |it: &Learned| Some((*self.drawn.get(&it.place)?, it.advantage));
        let played: Vec<(usize, f64)> = learned.iter().filter_map(of_category).collect();
        if let Some(bandit) = &mut self.state.bandit {
            bandit.update(&played);
        }
        self.drawn.clear();
    }

    fn next_place(&self) -> u64 {
        self.state.categories.behind()
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("dump", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, wanted};
    use super::*;

    #[test]
    fn categories_that_were_never_played_are_explored_and_then_those_that_teach() {
        let options = DumpOptions { temperature: 0.05, ..DumpOptions::default() };
        let mut dump = Dump::new(&options, 0).unwrap();
        let order = Line { tasks: 400, strata: &["a", "b", "c", "d"] };
        let mut counts = [0_usize; 4];
        let mut early = [0_usize; 4];
        for iteration in 0..60 {
            let mut wanted = wanted(4);
            wanted.seed = wanted.seed.derive("iteration", iteration);
            dump.begin(&wanted);
            let drawn = dump.draw(&order);
            dump.observe(&vec![of_four(1); drawn.len()]);
            let learned = |it: &Draw| {
                let category = (it.place % 4) as usize;
                counts[category] += 1;
                Learned { place: it.place, advantage: if category == 2 { 0.9 } else { 0.0 } }
            };
            let learned: Vec<Learned> = drawn.iter().map(learned).collect();
            dump.learned(&learned);
            if iteration == 5 {
                early = counts;
            }
        }
        assert!(early.iter().all(|count| *count > 0), "{early:?}");
        let others = counts[0] + counts[1] + counts[3];
        assert!(counts[2] > others, "{counts:?}");
        assert!(dump.state.bandit.as_ref().unwrap().len() == 4);
    }
}
