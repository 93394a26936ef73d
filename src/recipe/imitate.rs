//! Imitation of demonstrations, or of conversations in files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_agent::{DemonstrationConfig, Guide, RollIn};
use spar_core::registry::NamedOptions;
use spar_trainer::TrainerConfig;

use super::{ChatsConfig, Recipe, RollInConfig};

/// Imitation of demonstrations, or of conversations in files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImitateConfig {
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
    /// Conversations in files, which are imitated in place of demonstrations; nothing is played then, and what is
    /// said above of tasks, demonstrators and their tokens has no effect. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chats: Option<ChatsConfig>,
    /// How rows become updates; `minibatches` follows from `batch_tokens` and stays at 1.
    pub trainer: TrainerConfig,
}

impl Default for ImitateConfig {
    fn default() -> Self {
        Self {
            iterations: 40,
            tasks: 128,
            batch_tokens: 2048,
            demonstrator: Guide::default(),
            imitate_unsolved: false,
            roll_in: RollInConfig::default(),
            weights: DemonstrationConfig::default(),
            chats: None,
            trainer: TrainerConfig::default(),
        }
    }
}

impl NamedOptions for ImitateConfig {}

impl ImitateConfig {
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

    /// All that is wrong with these settings in a recipe.
    pub(crate) fn problems(&self, recipe: &Recipe) -> Vec<String> {
        let mut problems = recipe.trainer_problems(&self.trainer);
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        if let Err(error) = self.weights.validate() {
            within("weights", vec![error.to_string()]);
        }
        within("roll_in", self.roll_in.problems());
        if self.trainer.minibatches != 1 {
            let problem = "`minibatches` has no effect: it follows from `batch_tokens`".to_owned();
            within("trainer", vec![problem]);
        }
        if let Some(chats) = &self.chats {
            within("chats", chats.problems());
            within("chats", self.without_effect());
        }
        for (name, value) in [("tasks", self.tasks), ("batch_tokens", self.batch_tokens)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        problems
    }

    /// Settings of demonstrations, where there are none.
    fn without_effect(&self) -> Vec<String> {
        let default = Self::default();
        let set = [
            ("tasks", self.tasks != default.tasks),
            ("demonstrator", self.demonstrator != default.demonstrator),
            ("imitate_unsolved", self.imitate_unsolved != default.imitate_unsolved),
            ("roll_in", self.roll_in != default.roll_in),
            ("weights", self.weights != default.weights),
        ];
        let tell = |name| format!("`{name}` has no effect beside files: nothing is demonstrated");
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| tell(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_task_is_demonstrated_twice_where_roll_in_has_more_of_them() {
        let mut warm = ImitateConfig { iterations: 10, tasks: 4, ..ImitateConfig::default() };
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
