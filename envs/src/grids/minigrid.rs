//! Levels of MiniGrid and BabyAI.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use spar_grids::minigrid::{Action, Episode, Level, describe, draw_view, draw_world, plan};
use spar_tasks::Task;

use super::world_environment::{Acted, GridWorld};
use super::{WorldEnvironment, parameters, refused};
use crate::EnvironmentError;
use crate::environment::SCORED_TAG;

/// A level of MiniGrid or BabyAI, in the sentences of BabyAI-Text.
///
/// Parameters: `level`, the name of a registered level, or `levels`, several that take turns by seed; `seed`, as given to the
/// package's `reset`; `map`, what is drawn below the sentences: `none` (default), `view` (what is seen) or `grid` (all of it). A
/// level's own number of steps ends the episode. The reward is the package's: `1 - 0.9 * steps / max_steps` for success.
#[derive(Clone)]
pub(crate) struct MiniGrid {
    episode: Episode,
    map: Map,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    level: Option<String>,
    #[serde(default)]
    levels: Vec<String>,
    seed: u64,
    #[serde(default)]
    map: Map,
}

/// What is drawn below the sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Map {
    #[default]
    None,
    View,
    Grid,
}

/// Sorted, as what is admissible has to be.
static ACTIONS: LazyLock<[Arc<[Arc<str>]>; 2]> = LazyLock::new(|| {
    [false, true].map(|with_done| {
        let of = |action: &Action| with_done || *action != Action::Done;
        let mut words: Vec<Arc<str>> =
            Action::ALL.iter().filter(|it| of(it)).map(|it| it.words().into()).collect();
        words.sort();
        words.into()
    })
});

impl MiniGrid {
    /// Makes the level of a task.
    pub(crate) fn open(task: &Task) -> Result<WorldEnvironment<Self>, EnvironmentError> {
        let Parameters { level, levels, seed, map } = parameters(task, Self::NAME)?;
        let refuse = |detail: String| refused(task, Self::NAME, detail);
        let name = match (&level, &levels[..]) {
            (Some(name), []) => name,
            (None, [_, ..]) => &levels[(seed % levels.len() as u64) as usize],
            _ => return Err(refuse("give either `level` or `levels`, which is not empty".into())),
        };
        let level = Level::find(name).ok_or_else(|| {
            let known: Vec<&str> = Level::all().iter().map(|level| level.name).collect();
            refuse(format!("there is no level `{name}`, there are {}", known.join(", ")))
        })?;
        let (episode, _) = Episode::new(level, seed).map_err(|error| refuse(error.to_string()))?;
        Ok(WorldEnvironment::new(Self { episode, map }))
    }

    /// The level that a task names.
    pub(crate) fn level(task: &Task) -> Option<String> {
        let Parameters { level, levels, seed, .. } = parameters(task, Self::NAME).ok()?;
        level.or_else(|| levels.get((seed % levels.len().max(1) as u64) as usize).cloned())
    }
}

impl GridWorld for MiniGrid {
    const NAME: &'static str = "minigrid";
    const IS_OPEN: bool = false;
    const TELLS_GOAL: bool = true;

    fn tags(&self) -> Vec<String> {
        vec![self.episode.level().name.to_owned(), SCORED_TAG.to_owned()]
    }

    fn instruction(&self) -> Arc<str> {
        Arc::clone(self.episode.mission())
    }

    fn text(&self) -> String {
        let mut text = describe(&self.episode).join(". ");
        if text.is_empty() {
            text.push_str("You see nothing");
        }
        text.push('.');
        match self.map {
            Map::None => {}
            Map::View => text.extend(["\n", &draw_view(&self.episode.view())]),
            Map::Grid => text.extend(["\n", &draw_world(&self.episode)]),
        }
        text
    }

    fn actions(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&ACTIONS[usize::from(self.episode.level().ends_when_said())])
    }

    fn act(&mut self, words: &str) -> Option<Acted> {
        let action = Action::from_words(words)?;
        if action == Action::Done && !self.episode.level().ends_when_said() {
            return None;
        }
        let outcomes = self.episode.step(action);
        let mut acted = Acted {
            is_over: outcomes.terminated || outcomes.truncated,
            success: outcomes.reward > 0.0,
            ..Acted::default()
        };
        let name = if outcomes.reward < 0.0 { "collision" } else { "success" };
        acted.earn(name, outcomes.reward);
        Some(acted)
    }

    fn plan(&self) -> Option<Vec<Arc<str>>> {
        Some(plan(&self.episode)?.into_iter().map(|action| action.words().into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::{Environment, test_task};

    fn opened(parameters: serde_json::Value) -> WorldEnvironment<MiniGrid> {
        MiniGrid::open(&test_task(MiniGrid::NAME, parameters)).unwrap()
    }

    #[tokio::test]
    async fn the_reward_is_the_packages() {
        let mut env = opened(json!({ "level": "MiniGrid-Empty-5x5-v0", "seed": 0 }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert_eq!(first.instruction.as_deref(), Some("get to the green goal square"));
        let mut steps = 0;
        loop {
            let action = env.oracle_action().unwrap();
            steps += 1;
            let step = env.step(&action).await.unwrap();
            if step.terminated {
                assert!(step.success);
                assert_eq!(step.reward(), 1.0 - 0.9 * (f64::from(steps) / 100.0));
                break;
            }
        }
        assert_eq!(steps, 5);
        assert!(env.step(&"drop".into()).await.is_err());
    }

    #[tokio::test]
    async fn sentences_are_those_of_babyai_text() {
        let mut env =
            opened(json!({ "level": "BabyAI-GoToRedBallNoDists-v0", "seed": 0, "map": "grid" }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.contains("step"), "{}", first.text);
        assert_eq!(first.admissible.as_ref().unwrap().len(), 6);
        let step = env.step(&"done".into()).await.unwrap();
        assert!(!step.valid && step.observation.text == "Nothing happens.");
        let mut other = opened(json!({ "levels": ["MiniGrid-GoToDoor-5x5-v0"], "seed": 3 }));
        assert_eq!(other.reset(Seed::from_u64(1)).await.unwrap().admissible.unwrap().len(), 7);
    }

    #[test]
    fn what_is_no_level_is_told() {
        let told = |parameters| match MiniGrid::open(&test_task(MiniGrid::NAME, parameters)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let unknown = told(json!({ "level": "BabyAI-Nowhere-v0", "seed": 1 }));
        assert!(unknown.contains("BabyAI-GoToLocal-v0"), "{unknown}");
        assert!(told(json!({ "seed": 1 })).contains("`levels`"));
        assert!(told(json!({ "level": "MiniGrid-Empty-5x5-v0", "seed": -1 })).contains("-1"));
        let map = told(json!({ "level": "MiniGrid-Empty-5x5-v0", "seed": 1, "map": "all" }));
        assert!(map.contains("`view`"), "{map}");
    }
}
