//! Mazes and heists.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use spar_grids::maze::{Maze as Level, Moved, Settings, Way, generate};
use spar_tasks::Task;

use super::world_environment::{Acted, GridWorld};
use super::{WorldEnvironment, parameters, refused};
use crate::EnvironmentError;

/// A maze, or with doors a heist: keys are taken and doors opened by going there.
///
/// Parameters: `size` (odd, 5 to 31, default 9), `doors` (0 to 4, default 0), `loops` (0 to 0.5, default 0), `sight` (rows and columns
/// that are seen around the player, 1 to 15; absent: all) and `seed`. Reaching the goal earns 1. A move into a wall or a locked door
/// can be made and changes nothing.
#[derive(Clone)]
pub(crate) struct Maze {
    level: Level,
    sight: Option<usize>,
    doors: usize,
    told: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(default = "nine")]
    size: usize,
    #[serde(default)]
    doors: usize,
    #[serde(default)]
    loops: f64,
    sight: Option<usize>,
    seed: u64,
}

fn nine() -> usize {
    9
}

static ACTIONS: LazyLock<Arc<[Arc<str>]>> =
    LazyLock::new(|| Way::ALL.iter().map(|way| way.word().into()).collect());

impl Maze {
    /// Makes the maze of a task.
    pub(crate) fn open(task: &Task) -> Result<WorldEnvironment<Self>, EnvironmentError> {
        let Parameters { size, doors, loops, sight, seed } = parameters(task, Self::NAME)?;
        let refuse = |detail: String| refused(task, Self::NAME, detail);
        if let Some(sight) = sight.filter(|sight| !(1..=15).contains(sight)) {
            return Err(refuse(format!("`sight` is {sight}, allowed are 1 to 15")));
        }
        let level = generate(&Settings { size, doors, loops }, seed)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(WorldEnvironment::new(Self { level, sight, doors, told: "" }))
    }
}

impl GridWorld for Maze {
    const NAME: &'static str = "maze";
    const IS_OPEN: bool = false;
    const TELLS_GOAL: bool = false;

    fn tags(&self) -> Vec<String> {
        vec![format!("size {}, doors {}", self.level.size(), self.doors)]
    }

    fn instruction(&self) -> Arc<str> {
        match self.doors {
            0 => "find the way from P to the goal G".into(),
            _ => "take the keys, open the doors and find the way from P to the goal G".into(),
        }
    }

    fn text(&self) -> String {
        let mut text = self.level.draw(self.sight);
        let keys: Vec<&str> = self.level.keys().collect();
        if !keys.is_empty() {
            text.extend(["\nYou have the ", &keys.join(" and the "), " key."]);
        }
        if !self.told.is_empty() {
            text.push('\n');
            text.push_str(self.told);
        }
        text
    }

    fn actions(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&ACTIONS)
    }

    fn act(&mut self, words: &str) -> Option<Acted> {
        let moved = self.level.step(Way::from_word(words)?);
        let success = moved == Moved::Goal;
        self.told = match moved {
            Moved::Wall => "There is a wall.",
            Moved::Locked => "The door is locked.",
            Moved::There => "",
            Moved::Goal => "You have reached the goal.",
        };
        let mut acted = Acted { is_over: success, success, ..Acted::default() };
        acted.earn("success", f64::from(u8::from(success)));
        Some(acted)
    }

    fn plan(&self) -> Option<Vec<Arc<str>>> {
        Some(self.level.plan()?.into_iter().map(|way| way.word().into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::{Environment, test_task};

    #[tokio::test]
    async fn what_happened_is_told() {
        let task = test_task("maze", json!({ "seed": 1, "size": 9, "doors": 2, "sight": 1 }));
        let mut env = Maze::open(&task).unwrap();
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert_eq!((first.text.lines().count(), first.text.len()), (3, 11));
        let told = loop {
            let action = env.oracle_action().unwrap();
            let step = env.step(&action).await.unwrap();
            if step.terminated {
                assert_eq!(step.reward(), 1.0);
                break step.observation.text;
            }
        };
        assert!(told.ends_with("You have reached the goal."), "{told}");
        assert!(told.contains("You have the red and the green key."), "{told}");
    }

    #[test]
    fn wrong_parameters_are_told() {
        for (parameters, part) in [
            (json!({ "seed": 1, "size": 8 }), "odd numbers"),
            (json!({ "seed": 1, "sight": 0 }), "1 to 15"),
            (json!({ "seed": 1, "door": 2 }), "`doors`"),
        ] {
            let error = Maze::open(&test_task("maze", parameters)).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
