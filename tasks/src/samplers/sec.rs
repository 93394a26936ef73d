//! Categories of tasks by how much is learned from them.

use std::collections::BTreeMap;

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::categories::Categories;
use super::registry::AXIS;
use super::{Draw, Learned, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;
use crate::curricula::SecBandit;

/// Options of [`Sec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecOptions {
    /// How much of a category's value is that of the last iteration, 0 to 1. Default 0.5.
    pub rate: f64,
    /// Temperature of the draws between categories, above 0. Default 0.4.
    pub temperature: f64,
}

impl Default for SecOptions {
    fn default() -> Self {
        Self { rate: 0.5, temperature: 0.4 }
    }
}

impl NamedOptions for SecOptions {
    fn problems(&self) -> Vec<String> {
        let Self { rate, temperature } = *self;
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&rate) {
            problems.push(format!("rate is {rate}, must be 0 to 1"));
        }
        if !(temperature.is_finite() && temperature > 0.0) {
            problems.push(format!("temperature is {temperature}, must be above 0"));
        }
        problems
    }
}

/// A self-evolving curriculum (SEC, arXiv 2505.14970): a bandit over the strata of tasks, whose values follow the mean absolute advantage of what was played of them by temporal
/// differences, as [`SecBandit`] has it; of a category that was drawn the next task is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Sec {
    options: SecOptions,
    state: State,
    wanted: Option<Wanted>,
    /// The category of every place that was drawn in this iteration.
    drawn: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    categories: Categories,
    values: Vec<f64>,
}

impl Sec {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &SecOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "sec", options.problems())?;
        let state = State { categories: Categories::new(first), values: Vec::new() };
        Ok(Self { options: options.clone(), state, wanted: None, drawn: BTreeMap::new() })
    }

    fn bandit(&self) -> SecBandit {
        let SecOptions { rate, temperature } = self.options;
        SecBandit::with_values(self.state.values.clone(), rate, temperature)
    }

    /// The probability with which each category is drawn, in the order of their names.
    pub fn probabilities(&self) -> Vec<f64> {
        self.bandit().probabilities()
    }
}

/// Draws categories in proportion to their probabilities, and takes the next task of each; of one that has none left, that of the most probable that has.
pub(super) fn draw_by_category(
    categories: &mut Categories,
    probabilities: &[f64],
    order: &dyn TaskOrder,
    wanted: &Wanted,
) -> BTreeMap<u64, usize> {
    let mut drawn = BTreeMap::new();
    let Ok(odds) = WeightedIndex::new(probabilities) else { return drawn };
    let mut likeliest: Vec<usize> = (0..probabilities.len()).collect();
    likeliest.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]).then(a.cmp(b)));
    let mut rng = wanted.seed.rng();
    for _ in 0..wanted.groups {
        let first = odds.sample(&mut rng);
        let tried = std::iter::once(first).chain(likeliest.iter().copied());
        for category in tried {
            if let Some(place) = categories.take(category, order) {
                drawn.insert(place, category);
                break;
            }
        }
    }
    drawn
}

impl TaskSampler for Sec {
    fn name(&self) -> &'static str {
        "sec"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        if !self.state.categories.meet(order) {
            return (0..wanted.groups as u64).map(Draw::from).collect();
        }
        self.state.values.resize(self.state.categories.len(), 0.0);
        let odds = self.probabilities();
        self.drawn = draw_by_category(&mut self.state.categories, &odds, order, &wanted);
        self.drawn.keys().map(|place| Draw::from(*place)).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        vec![true; outcomes.len()]
    }

    fn learned(&mut self, learned: &[Learned]) {
        let of_category = |it: &Learned| Some((*self.drawn.get(&it.place)?, it.advantage));
        let played: Vec<(usize, f64)> = learned.iter().filter_map(of_category).collect();
        let mut bandit = self.bandit();
        bandit.update(&played);
        self.state.values = bandit.values().to_vec();
        self.drawn.clear();
    }

    fn next_place(&self) -> u64 {
        self.state.categories.behind()
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("sec", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, wanted};
    use super::*;

    #[test]
    fn the_category_of_the_greatest_advantages_gains_probability_by_temporal_differences() {
        let mut sec = Sec::new(&SecOptions::default(), 0).unwrap();
        let order = Line { tasks: 60, strata: &["a", "b"] };
        let mut values = [0.0, 0.0];
        for iteration in 0..12 {
            let mut wanted = wanted(6);
            wanted.seed = wanted.seed.derive("iteration", iteration);
            sec.begin(&wanted);
            let drawn = sec.draw(&order);
            assert_eq!(drawn.len(), 6);
            let outcomes = vec![of_four(2); 6];
            assert_eq!(sec.observe(&outcomes), [true; 6]);
            let advantage = |place: u64| if place % 2 == 1 { 0.9 } else { 0.1 };
            let learned: Vec<Learned> = drawn
                .iter()
                .map(|it| Learned { place: it.place, advantage: advantage(it.place) })
                .collect();
            sec.learned(&learned);
            for (category, value) in values.iter_mut().enumerate() {
                let is_played = drawn.iter().any(|it| it.place % 2 == category as u64);
                let target = if is_played { advantage(category as u64) } else { 0.0 };
                *value += 0.5 * (target - *value);
            }
            let near = |a: &f64, b: &f64| (a - b).abs() < 1e-12;
            assert!(sec.state.values.iter().zip(&values).all(|(a, b)| near(a, b)));
        }
        let odds = sec.probabilities();
        assert!(odds[1] > 0.75, "{odds:?}");
    }

    #[test]
    fn tasks_of_a_category_come_once_an_epoch() {
        let mut sec = Sec::new(&SecOptions::default(), 0).unwrap();
        let order = Line { tasks: 8, strata: &["a", "b"] };
        let mut met = Vec::new();
        for _ in 0..2 {
            sec.begin(&wanted(4));
            met.extend(sec.draw(&order).iter().map(|it| it.place));
        }
        let before = met.len();
        met.sort_unstable();
        met.dedup();
        assert_eq!(met.len(), before);
        assert!(sec.next_place() > 4);
        let mut empty = Sec::new(&SecOptions::default(), 0).unwrap();
        empty.begin(&wanted(2));
        assert_eq!(empty.draw(&Line::of(0)).len(), 2, "whoever plays them tells what is wrong");
    }
}
