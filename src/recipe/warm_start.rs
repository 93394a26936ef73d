//! Imitation of demonstrations.

use serde::{Deserialize, Serialize};
use spar_agent::{DemonstrationConfig, Guide, RollIn};
use spar_trainer::TrainerConfig;

use super::RollInConfig;

/// Imitation of demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WarmStartConfig {
    /// Iterations, each on demonstrations of its own; 0 leaves the stage out. Default 40.
    pub iterations: u64,
    /// Tasks that are demonstrated per iteration. Default 128.
    pub tasks: usize,
    /// Tokens per update, roughly. Default 2048.
    pub batch_tokens: usize,
    /// Who demonstrates. Default `expert`.
    pub demonstrator: Guide,
    /// Whether demonstrations that did not solve their task are imitated as well. Default false.
    pub imitate_unsolved: bool,
    /// Whether the policy plays first in some episodes, so that the demonstrator goes on from where it led.
    pub roll_in: RollInConfig,
    /// What tokens weigh.
    pub weights: DemonstrationConfig,
    /// How rows become updates; `minibatches` follows from `batch_tokens` and stays at 1.
    pub trainer: TrainerConfig,
}

impl Default for WarmStartConfig {
    fn default() -> Self {
        Self {
            iterations: 40,
            tasks: 128,
            batch_tokens: 2048,
            demonstrator: Guide::default(),
            imitate_unsolved: false,
            roll_in: RollInConfig::default(),
            weights: DemonstrationConfig::default(),
            trainer: TrainerConfig::default(),
        }
    }
}

impl WarmStartConfig {
    /// The demonstrated tasks that come before an iteration of the stage and in it, as `(first, count)`.
    pub fn tasks_of(&self, iteration: u64) -> (u64, usize) {
        let tasks = self.tasks as u64;
        let is_led = |iteration: u64| self.roll_in_of(iteration).is_some();
        let Some(more) = self.roll_in.tasks.filter(|_| is_led(iteration)) else {
            return (iteration * tasks, self.tasks);
        };
        let alone = (0..iteration).find(|earlier| is_led(*earlier)).unwrap_or(iteration);
        (alone * tasks + (iteration - alone) * more as u64, more)
    }

    /// How the policy leads in an iteration of the stage; absent where the demonstrator plays alone.
    pub fn roll_in_of(&self, iteration: u64) -> Option<RollIn> {
        self.roll_in.at(iteration as f64 / self.iterations as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_task_is_demonstrated_twice_where_roll_in_has_more_of_them() {
        let mut warm = WarmStartConfig { iterations: 10, tasks: 4, ..WarmStartConfig::default() };
        assert_eq!((warm.tasks_of(3), warm.tasks_of(10)), ((12, 4), (40, 4)));
        warm.roll_in = RollInConfig { share: 0.5, after: 0.55, tasks: Some(7), ..warm.roll_in };
        let mut next = 0;
        for iteration in 0..10 {
            let (first, count) = warm.tasks_of(iteration);
            assert_eq!((first, count), (next, if iteration < 6 { 4 } else { 7 }));
            next += count as u64;
        }
        assert_eq!(warm.tasks_of(10).0, next);
        warm.roll_in.share = 0.0;
        assert_eq!(warm.tasks_of(10), (40, 4));
        warm.iterations = 0;
        assert_eq!(warm.tasks_of(0).0, 0);
    }
}
