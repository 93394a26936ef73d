//! Tasks of whose outcome least is known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::order::candidates;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;
use crate::curricula::BetaPosterior;

/// Options of [`Vade`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VadeOptions {
    /// How many times as many tasks as an iteration wants are looked at; at least 1. Default 4.
    pub pool: usize,
    /// Successes of the prior of every task; above 0. Default 1.
    pub prior_successes: f64,
    /// Failures of it; above 0. Default 1.
    pub prior_failures: f64,
    /// What was known of a task counts so much less when it is played again, 0 to 1. Default 0.9.
    pub decay: f64,
    /// And so much less in every iteration in which it is not, 0 to 1; 1 is MoPPS. Default 0.99.
    pub rest_decay: f64,
}

impl Default for VadeOptions {
    fn default() -> Self {
        Self { pool: 4, prior_successes: 1.0, prior_failures: 1.0, decay: 0.9, rest_decay: 0.99 }
    }
}

impl NamedOptions for VadeOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.pool == 0 {
            problems.push("pool is 0, must be at least 1".to_owned());
        }
        let priors =
            [("prior_successes", self.prior_successes), ("prior_failures", self.prior_failures)];
        for (name, value) in priors {
            if !(value.is_finite() && value > 0.0) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        for (name, value) in [("decay", self.decay), ("rest_decay", self.rest_decay)] {
            if !(0.0..=1.0).contains(&value) {
                problems.push(format!("{name} is {value}, must be 0 to 1"));
            }
        }
        problems
    }
}

/// Thompson sampling of success rates (VADE, reconstructed from its abstract; with `rest_decay = 1` its relative MoPPS, arXiv 2507.04632, whose posterior is equal to its code's).
///
/// Of `pool` times as many tasks as are wanted, in their shuffled order, a success rate `p` is drawn from each one's [`BetaPosterior`], and those of the greatest `p (1 - p)` are
/// played, which are the nearest to one half. Nothing is played for the choice alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Vade {
    options: VadeOptions,
    state: State,
    wanted: Option<Wanted>,
    /// The tasks that were drawn last.
    drawn: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    /// Iterations that were drawn for.
    iterations: u64,
    /// Of each task that was played its successes and failures, and the iteration in which it was last.
    known: BTreeMap<usize, (f64, f64, u64)>,
}

impl Vade {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &VadeOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "vade", options.problems())?;
        let state = State { next: first, iterations: 0, known: BTreeMap::new() };
        Ok(Self { options: options.clone(), state, wanted: None, drawn: Vec::new() })
    }

    /// What is known of a task now.
    pub fn posterior(&self, task: usize) -> BetaPosterior {
        let VadeOptions { prior_successes, prior_failures, rest_decay, .. } = self.options;
        let mut posterior = BetaPosterior::new(prior_successes, prior_failures);
        if let Some((alpha, beta, last)) = self.state.known.get(&task) {
            let rests = self.state.iterations.saturating_sub(last + 1);
            let left = rest_decay.powf(rests as f64);
            posterior.alpha = prior_successes + (alpha - prior_successes) * left;
            posterior.beta = prior_failures + (beta - prior_failures) * left;
        }
        posterior
    }
}

impl TaskSampler for Vade {
    fn name(&self) -> &'static str {
        "vade"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        self.state.iterations += 1;
        let count = wanted.groups.saturating_mul(self.options.pool);
        let looked = candidates(order, &mut self.state.next, count);
        let mut rng = wanted.seed.rng();
        let mut scored: Vec<(f64, u64, usize)> = Vec::with_capacity(looked.len());
        for task in &looked {
            let rate = self.posterior(task.index).draw(&mut rng);
            scored.push((rate * (1.0 - rate), task.place, task.index));
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.truncate(wanted.groups);
        scored.sort_by_key(|(_, place, _)| *place);
        self.drawn = scored.iter().map(|(_, _, task)| *task).collect();
        scored.into_iter().map(|(_, place, _)| place.into()).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        let now = self.state.iterations;
        for (task, outcome) in std::mem::take(&mut self.drawn).into_iter().zip(outcomes) {
            if let Some(rate) = outcome.success_rate() {
                let mut posterior = self.posterior(task);
                posterior.update(rate, outcome.returns.len() as f64, self.options.decay);
                self.state.known.insert(task, (posterior.alpha, posterior.beta, now));
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
        self.state = read("vade", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use spar_core::Seed;

    use super::super::test_order::{Line, of, of_four, wanted};
    use super::*;

    #[test]
    fn what_is_known_decays_by_two_scales() {
        let mut vade = Vade::new(&VadeOptions { pool: 1, ..VadeOptions::default() }, 0).unwrap();
        let order = Line::of(2);
        let play = |vade: &mut Vade, groups: usize, successes: &[usize]| {
            vade.begin(&wanted(groups));
            vade.draw(&order);
            let outcomes: Vec<Outcome> = successes.iter().map(|it| of_four(*it)).collect();
            vade.observe(&outcomes);
        };
        play(&mut vade, 2, &[4, 1]);
        let known = |vade: &Vade, task| (vade.posterior(task).alpha, vade.posterior(task).beta);
        assert_eq!(known(&vade, 0), (5.0, 1.0));
        assert_eq!(known(&vade, 1), (2.0, 4.0));
        play(&mut vade, 1, &[0]);
        let near = |found: (f64, f64), expected: (f64, f64)| {
            let far = (found.0 - expected.0).abs() + (found.1 - expected.1).abs();
            assert!(far < 1e-12, "{found:?} {expected:?}");
        };
        // 5 * 0.9 + 1 * 0.1 + 0, and 1 * 0.9 + 0.1 + 4.
        near(known(&vade, 0), (4.6, 5.0));
        near(known(&vade, 1), (2.0, 4.0));
        play(&mut vade, 1, &[2]);
        // In the next iteration the first one has rested for one.
        vade.begin(&wanted(1));
        vade.draw(&order);
        near(known(&vade, 0), (1.0 + 3.6 * 0.99, 1.0 + 4.0 * 0.99));
    }

    /// The mean `p (1 - p)` of the tasks that were played in the last iterations of a simulation, in which rates turn around at half time.
    fn simulated(pool: usize, iterations: u64) -> Vec<f64> {
        let mut vade = Vade::new(&VadeOptions { pool, ..VadeOptions::default() }, 0).unwrap();
        let order = Line::of(64);
        let mut rng = Seed::from_u64(1).rng();
        let mut told = Vec::new();
        for iteration in 0..iterations {
            vade.begin(&Wanted::new(8, 8, Seed::from_u64(iteration)));
            let drawn = vade.draw(&order);
            assert_eq!(drawn.len(), 8);
            let mut sum = 0.0;
            let outcomes: Vec<Outcome> = drawn
                .iter()
                .map(|draw| {
                    // A quarter of the tasks is in the middle; which one changes.
                    let is_middle = (draw.place + u64::from(iteration >= iterations / 2)) % 4 == 0;
                    let rate = if is_middle { 0.5 } else { 0.03 };
                    sum += rate * (1.0 - rate);
                    of((0..8).filter(|_| rng.random::<f64>() < rate).count(), 8)
                })
                .collect();
            told.push(sum / 8.0);
            vade.observe(&outcomes);
        }
        told
    }

    #[test]
    fn tasks_near_one_half_are_preferred_and_a_drift_is_followed() {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (chosen, all) = (simulated(4, 240), simulated(1, 240));
        let evenly = mean(&all[40..120]);
        assert!(mean(&chosen[60..120]) > 1.8 * evenly, "{} {evenly}", mean(&chosen[60..120]));
        let behind = mean(&chosen[120..128]);
        let recovered = mean(&chosen[200..240]);
        assert!(recovered > 1.8 * evenly && recovered > behind, "{behind} {recovered} {evenly}");
    }
}
