//! Bins of difficulty, drawn and given rollouts by what they cost.

use std::collections::BTreeMap;

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::order::candidates;
use super::registry::AXIS;
use super::{Draw, KnownTask, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;
use crate::curricula::{ClassWeights, ClassWeightsConfig, RolloutArms, ScoreOf, apportion};

/// How rollouts are given to the bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// Every task gets the group size.
    Even,
    /// By a bandit over numbers of rollouts for each bin, as in the code ([`RolloutArms`]).
    #[default]
    Arms,
    /// In proportion to `sqrt(p (1 - p))` of what is known of each task, at least 2.
    Variance,
}

/// Options of [`Gdro`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GdroOptions {
    /// Bins of success rates; at least 2. Default 4.
    pub bins: usize,
    /// How far behind a bin's edge a rate has to be before its task changes bins, 0 to below 0.5. Default 0.03.
    pub hysteresis: f64,
    /// How many times as many tasks as an iteration wants are looked at; at least 1. Default 4.
    pub pool: usize,
    /// How strongly losses count in the weights of bins; 0 or more. Default 0.65.
    pub learning_rate: f64,
    /// The share of the weight that is spread evenly, 0 to 1. Default 0.15.
    pub exploration: f64,
    /// The share of the newest loss in a bin's score, above 0, at most 1. Default 0.1.
    pub average: f64,
    /// How rollouts are given to the bins. Default `arms`.
    pub allocation: Allocation,
    /// Numbers of rollouts that `arms` chooses from, relative to the group size; positive. Default half, one, and one and a half of it.
    pub arms: Vec<f64>,
    /// How fast the price of rollouts follows what was played beyond the group size; 0 or more. Default 0.05.
    pub price_rate: f64,
}

impl Default for GdroOptions {
    fn default() -> Self {
        Self {
            bins: 4,
            hysteresis: 0.03,
            pool: 4,
            learning_rate: 0.65,
            exploration: 0.15,
            average: 0.1,
            allocation: Allocation::default(),
            arms: vec![0.5, 1.0, 1.5],
            price_rate: 0.05,
        }
    }
}

impl NamedOptions for GdroOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.bins < 2 {
            problems.push(format!("bins is {}, must be at least 2", self.bins));
        }
        if !(0.0..0.5).contains(&self.hysteresis) {
            problems.push(format!("hysteresis is {}, must be 0 to below 0.5", self.hysteresis));
        }
        if self.pool == 0 {
            problems.push("pool is 0, must be at least 1".to_owned());
        }
        for (name, value) in
            [("learning_rate", self.learning_rate), ("price_rate", self.price_rate)]
        {
            if !(value.is_finite() && value >= 0.0) {
                problems.push(format!("{name} is {value}, must be 0 or more"));
            }
        }
        if !(0.0..=1.0).contains(&self.exploration) {
            problems.push(format!("exploration is {}, must be 0 to 1", self.exploration));
        }
        if !(self.average > 0.0 && self.average <= 1.0) {
            problems.push(format!("average is {}, must be above 0 and at most 1", self.average));
        }
        if self.arms.is_empty() || !self.arms.iter().all(|it| it.is_finite() && *it > 0.0) {
            problems.push(format!("arms are {:?}, must be one or more numbers above 0", self.arms));
        }
        problems
    }
}

/// Group distributionally robust sampling (GDRO, arXiv 2601.19280, and its code): tasks are put into bins by how often any of their rollouts succeeded so far; bins are drawn by exponentiated weights over their
/// losses ([`ClassWeights`]), and each gets rollouts as [`Allocation`] says, so many in all as if every group had its size, or as near to that as arms allow.
///
/// Deviations: the loss of an episode is 1 less its success, where the code has that of the policy gradient, which is about 0 on policy; and weights draw tasks, as the paper says, where the code multiplies losses.
#[derive(Debug, Clone, PartialEq)]
pub struct Gdro {
    options: GdroOptions,
    state: State,
    wanted: Option<Wanted>,
    /// Task, bin and rollouts of what was drawn last.
    drawn: Vec<(usize, String, usize)>,
    group_size: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// Of each task how often it was played, and solved by any rollout, its episodes, those that succeeded, and its bin.
    tasks: BTreeMap<usize, Played>,
    weights: ClassWeights,
    arms: Option<RolloutArms>,
    /// The price of rollouts.
    price: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Played {
    times: u64,
    solved: u64,
    episodes: u64,
    successes: u64,
    bin: usize,
}

impl Gdro {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &GdroOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "gdro", options.problems())?;
        let weights = ClassWeights::new(ClassWeightsConfig {
            learning_rate: options.learning_rate,
            exploration: options.exploration,
            score: ScoreOf::Average(options.average),
            ..ClassWeightsConfig::default()
        });
        let state = State { next: first, tasks: BTreeMap::new(), weights, arms: None, price: 0.0 };
        let (options, drawn) = (options.clone(), Vec::new());
        Ok(Self { options, state, wanted: None, drawn, group_size: 0 })
    }

    /// The name of the bin of a task.
    fn bin(&self, task: usize) -> String {
        let bin = self.state.tasks.get(&task).map_or(0, |played| played.bin);
        format!("bin_{bin}")
    }

    /// The bin of a task that was played, which changes only well behind an edge.
    fn rebin(&self, played: &Played) -> usize {
        let (bins, rate) = (self.options.bins, played.solved as f64 / played.times as f64);
        let raw = ((rate * bins as f64).floor() as usize).min(bins - 1);
        let edge = |bin: usize| bin as f64 / bins as f64;
        let is_beyond = match raw.cmp(&played.bin) {
            std::cmp::Ordering::Greater => rate >= edge(played.bin + 1) + self.options.hysteresis,
            std::cmp::Ordering::Less => rate <= edge(played.bin) - self.options.hysteresis,
            std::cmp::Ordering::Equal => true,
        };
        // The first time a task is played there is no bin to stay in.
        if is_beyond || played.times == 1 { raw } else { played.bin }
    }

    /// Tasks for every group that is wanted: bins by weight, in each the tasks that come first.
    fn choose(&self, looked: Vec<KnownTask>, wanted: &Wanted) -> Vec<KnownTask> {
        let mut by_bin: BTreeMap<String, Vec<KnownTask>> = BTreeMap::new();
        for task in looked {
            by_bin.entry(self.bin(task.index)).or_default().push(task);
        }
        by_bin.values_mut().for_each(|tasks| tasks.reverse());
        let mut rng = wanted.seed.rng();
        let mut chosen = Vec::with_capacity(wanted.groups);
        while chosen.len() < wanted.groups {
            by_bin.retain(|_, tasks| !tasks.is_empty());
            let names: Vec<&str> = by_bin.keys().map(String::as_str).collect();
            let Ok(odds) = WeightedIndex::new(self.state.weights.weights(&names)) else { break };
            let name = names[odds.sample(&mut rng)].to_owned();
            chosen.extend(by_bin.get_mut(&name).and_then(Vec::pop));
        }
        chosen.sort_by_key(|task| task.place);
        chosen
    }

    /// How many rollouts each of these tasks gets.
    fn allot(&mut self, chosen: &[KnownTask], wanted: &Wanted) -> Vec<usize> {
        let (size, budget) = (wanted.group_size, wanted.group_size * chosen.len());
        match self.options.allocation {
            Allocation::Even => vec![size; chosen.len()],
            Allocation::Variance => {
                let share = |task: &KnownTask| {
                    let played = self.state.tasks.get(&task.index).copied().unwrap_or_default();
                    // With one success and one failure more, so that nobody is sure of anything.
                    let rate = (played.successes as f64 + 1.0) / (played.episodes as f64 + 2.0);
                    (rate * (1.0 - rate)).sqrt()
                };
                apportion(&chosen.iter().map(share).collect::<Vec<_>>(), budget, 2.min(size))
            }
            Allocation::Arms => {
                let mut counts: BTreeMap<String, usize> = BTreeMap::new();
                chosen
                    .iter()
                    .for_each(|task| *counts.entry(self.bin(task.index)).or_default() += 1);
                let GdroOptions { arms, learning_rate, exploration, .. } = &self.options;
                let number = |arm: &f64| ((arm * size as f64).round() as usize).max(1);
                let numbers: Vec<usize> = arms.iter().map(number).collect();
                let fresh = || RolloutArms::new(numbers, *learning_rate, *exploration);
                let arms = self.state.arms.get_or_insert_with(fresh);
                let classes: Vec<(&str, usize)> =
                    counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
                let choice = arms.choose(&classes, budget);
                let of_bin: BTreeMap<&str, Option<usize>> =
                    classes.iter().map(|(name, _)| *name).zip(choice.rollouts).collect();
                let rollouts = |task: &KnownTask| of_bin[self.bin(task.index).as_str()];
                chosen.iter().map(|task| rollouts(task).unwrap_or(size)).collect()
            }
        }
    }
}

impl TaskSampler for Gdro {
    fn name(&self) -> &'static str {
        "gdro"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
        self.group_size = wanted.group_size;
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        let count = wanted.groups.saturating_mul(self.options.pool);
        let looked = candidates(order, &mut self.state.next, count);
        let chosen = self.choose(looked, &wanted);
        let rollouts = self.allot(&chosen, &wanted);
        let drawn = chosen.iter().zip(&rollouts);
        self.drawn =
            drawn.map(|(task, rollouts)| (task.index, self.bin(task.index), *rollouts)).collect();
        let draw = |(task, rollouts): (KnownTask, usize)| Draw::with_rollouts(task.place, rollouts);
        chosen.into_iter().zip(rollouts).map(draw).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        let drawn = std::mem::take(&mut self.drawn);
        let loss = |outcome: &Outcome| outcome.success_rate().map_or(f64::NAN, |rate| 1.0 - rate);
        let losses = drawn.iter().zip(outcomes);
        let losses: Vec<(&str, f64)> =
            losses.map(|((_, bin, _), outcome)| (bin.as_str(), loss(outcome))).collect();
        self.state.weights.update(losses.iter().copied());
        let mean = self.group_size as f64;
        if let Some(arms) = &mut self.state.arms {
            let mut bins: BTreeMap<&str, (usize, f64, f64)> = BTreeMap::new();
            for ((_, bin, rollouts), (_, loss)) in drawn.iter().zip(&losses) {
                if loss.is_finite() {
                    let (number, sum, count) = bins.entry(bin).or_default();
                    (*number, *sum, *count) = (*rollouts, *sum + loss, *count + 1.0);
                }
            }
            for (bin, (rollouts, sum, count)) in bins {
                arms.update(bin, rollouts, sum / count, mean, self.state.price);
            }
            let played: usize = drawn.iter().map(|(_, _, rollouts)| rollouts).sum();
            if !drawn.is_empty() {
                let beyond = played as f64 / drawn.len() as f64 - mean;
                self.state.price += self.options.price_rate * beyond;
            }
        }
        for ((task, _, _), outcome) in drawn.iter().zip(outcomes) {
            let mut played = self.state.tasks.get(task).copied().unwrap_or_default();
            if outcome.returns.is_empty() {
                continue;
            }
            played.times += 1;
            played.solved += u64::from(outcome.successes > 0);
            played.episodes += outcome.returns.len() as u64;
            played.successes += outcome.successes as u64;
            played.bin = self.rebin(&played);
            self.state.tasks.insert(*task, played);
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
        self.state = read("gdro", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of, places};
    use super::*;
    use spar_core::Seed;

    fn play(gdro: &mut Gdro, order: &Line, iteration: u64) -> Vec<Draw> {
        gdro.begin(&Wanted::new(8, 8, Seed::from_u64(iteration)));
        let drawn = gdro.draw(order);
        // Tasks of odd numbers are never solved, the others by half of the episodes.
        let outcomes: Vec<Outcome> = drawn
            .iter()
            .map(|draw| {
                let episodes = draw.rollouts.unwrap();
                of(if draw.place % 2 == 1 { 0 } else { episodes / 2 }, episodes)
            })
            .collect();
        assert_eq!(gdro.observe(&outcomes), [true; 8]);
        assert!(gdro.draw(order).is_empty());
        drawn
    }

    #[test]
    fn rollouts_have_the_budget_and_are_given_by_the_root_of_the_variance() {
        let allocation = Allocation::Variance;
        let options = GdroOptions { allocation, pool: 1, ..GdroOptions::default() };
        let mut gdro = Gdro::new(&options, 0).unwrap();
        let order = Line::of(8);
        for iteration in 0..6 {
            let drawn = play(&mut gdro, &order, iteration);
            assert_eq!(drawn.iter().map(|it| it.rollouts.unwrap()).sum::<usize>(), 64);
        }
        let drawn = play(&mut gdro, &order, 7);
        let rollouts =
            |place: u64| drawn.iter().find(|it| it.place % 8 == place).unwrap().rollouts.unwrap();
        assert!(rollouts(0) > 2 * rollouts(1), "{drawn:?}");
    }

    #[test]
    fn the_harder_bin_is_drawn_more_and_arms_keep_near_to_the_budget() {
        let options =
            GdroOptions { learning_rate: 4.0, exploration: 0.0, ..GdroOptions::default() };
        let mut gdro = Gdro::new(&options, 0).unwrap();
        let order = Line::of(64);
        let (mut hard, mut played) = (0, 0);
        for iteration in 0..30 {
            let drawn = play(&mut gdro, &order, iteration);
            let rollouts: usize = drawn.iter().map(|it| it.rollouts.unwrap()).sum();
            assert!(rollouts.abs_diff(64) <= 4 * 8, "{rollouts}");
            if iteration >= 10 {
                hard += places(&drawn).iter().filter(|place| *place % 2 == 1).count();
                played += rollouts;
            }
        }
        assert!(hard > 20 * 8 * 6 / 10, "{hard} of {}", 20 * 8);
        assert!((played as f64 / 20.0 - 64.0).abs() < 6.5, "{played}");
        // Bins follow what was measured, and stay near an edge.
        let bin =
            |times, solved, bin| gdro.rebin(&Played { times, solved, bin, ..Played::default() });
        assert_eq!((bin(1, 1, 0), bin(4, 2, 1), bin(50, 26, 1), bin(50, 27, 1)), (3, 1, 1, 2));
    }
}
