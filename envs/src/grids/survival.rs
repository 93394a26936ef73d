//! A world to survive in.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;
use spar_grids::survival::{
    Achievement, Action, COURSE, Item, Stepped, World, describe, draw, next_action,
};
use spar_tasks::Task;

use super::world_environment::{Acted, GridWorld};
use super::{WorldEnvironment, parameters, refused};
use crate::EnvironmentError;
use crate::environment::{CHANCE_TAG, SCORED_TAG};

/// The length of an episode of Crafter.
const MAX_LENGTH: u32 = 10_000;
/// How many turns are planned at once, so that no plan takes long.
const PLANNED: usize = 64;

/// Crafter in words: one of its achievements, or as many as can be had in a life.
///
/// Parameters: `seed`; `size` (rows and columns, 16 to 128, default 64); `length` (steps of an episode, 1 to 10,000, which is the default);
/// `goal`, an achievement by its name, or `goals`, several that take turns by seed; without, the game is played for all of
/// them, and `enough` of them (1 to 22, the default) end it; `health` (default false): whether a point of health earns or costs 0.1;
/// `sleep`: whether going to sleep is a turn for each `step` of it or goes `through` until the player wakes (default); `map`: `none` (default)
/// or `view`, what is in sight as letters; `given`: what the player has to begin with, by item.
///
/// For a goal, reaching it earns 1 and ends the episode. In the game each achievement earns 1, as a part of its name.
#[derive(Clone)]
pub(crate) struct Survival {
    world: World,
    rules: Arc<Rules>,
    /// What has happened since the last turn and is told.
    told: String,
}

/// What stays as it is during an episode.
struct Rules {
    goal: Option<Achievement>,
    length: u32,
    enough: u32,
    is_health_paid: bool,
    sleep: Sleep,
    map: Map,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default = "default_size")]
    size: usize,
    #[serde(default = "max_length")]
    length: u32,
    goal: Option<Achievement>,
    #[serde(default)]
    goals: Vec<Achievement>,
    #[serde(default = "all")]
    enough: u32,
    #[serde(default)]
    health: bool,
    #[serde(default)]
    sleep: Sleep,
    #[serde(default)]
    map: Map,
    #[serde(default)]
    given: BTreeMap<Item, u8>,
}

/// How long a turn in sleep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sleep {
    #[default]
    Through,
    Step,
}

/// What is drawn below the sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Map {
    #[default]
    None,
    View,
}

fn default_size() -> usize {
    64
}

fn max_length() -> u32 {
    MAX_LENGTH
}

fn all() -> u32 {
    Achievement::ALL.len() as u32
}

impl Survival {
    /// Makes the world of a task.
    pub(crate) fn open(task: &Task) -> Result<WorldEnvironment<Self>, EnvironmentError> {
        let given: Parameters = parameters(task, Self::NAME)?;
        let refuse = |detail: String| refused(task, Self::NAME, detail);
        let bounded = |name: &str, found: u32, most: u32| match (1..=most).contains(&found) {
            true => Ok(found),
            false => Err(refuse(format!("`{name}` is {found}, allowed are 1 to {most}"))),
        };
        if given.goal.is_some() && !given.goals.is_empty() {
            return Err(refuse("give either `goal` or `goals`".to_owned()));
        }
        if let Some(item) = given.given.keys().find(|item| item.is_vital()) {
            return Err(refuse(format!("`{}` cannot be given", item.words())));
        }
        let mut world =
            World::new(given.seed, given.size).map_err(|error| refuse(error.to_string()))?;
        for (item, count) in &given.given {
            world.player_mut().give(*item, *count);
        }
        let rules = Rules {
            goal: goal(&given),
            length: bounded("length", given.length, MAX_LENGTH)?,
            enough: bounded("enough", given.enough, all())?,
            is_health_paid: given.health,
            sleep: given.sleep,
            map: given.map,
        };
        Ok(WorldEnvironment::new(Self { world, rules: Arc::new(rules), told: String::new() }))
    }

    /// What a task asks for.
    pub(crate) fn stratum(task: &Task) -> Option<String> {
        let given: Parameters = parameters(task, Self::NAME).ok()?;
        Some(goal(&given).map_or("game", Achievement::name).to_owned())
    }

    /// A step, and what it earns.
    fn step(&mut self, action: Action, acted: &mut Acted) -> Stepped {
        let stepped = self.world.step(action);
        for achievement in stepped.unlocked.iter() {
            let _ = write!(self.told, "\nFor the first time: {}.", achievement.words());
            if self.rules.goal.is_none() {
                acted.earn(achievement.name(), 1.0);
            }
        }
        if self.rules.is_health_paid {
            acted.earn("health", f64::from(stepped.health) / 10.0);
        }
        let achievements = self.world.player().achievements();
        acted.success = match self.rules.goal {
            Some(goal) => achievements.has(goal),
            None => achievements.len() >= self.rules.enough,
        };
        if acted.success && self.rules.goal.is_some() {
            acted.earn("success", 1.0);
        }
        if stepped.is_dead {
            self.told.push_str("\nYou have died.");
        }
        acted.is_over =
            acted.success || stepped.is_dead || self.world.num_steps() >= self.rules.length;
        stepped
    }
}

fn goal(given: &Parameters) -> Option<Achievement> {
    let by_seed = given.seed % given.goals.len().max(1) as u64;
    given.goal.or_else(|| given.goals.get(by_seed as usize).copied())
}

impl GridWorld for Survival {
    const NAME: &'static str = "survival";
    const IS_OPEN: bool = false;
    const TELLS_GOAL: bool = true;

    fn tags(&self) -> Vec<String> {
        let goal = self.rules.goal.map_or("game", Achievement::name);
        // Worlds need not have everything, and what creatures do is drawn.
        let mut tags = vec![goal.to_owned(), CHANCE_TAG.to_owned()];
        if self.rules.goal.is_none() || self.rules.is_health_paid {
            tags.push(SCORED_TAG.to_owned());
        }
        tags
    }

    fn instruction(&self) -> Arc<str> {
        match self.rules.goal {
            Some(goal) => goal.words().into(),
            None => "survive and achieve as much as you can".into(),
        }
    }

    fn text(&self) -> String {
        let mut text = describe(&self.world);
        if self.rules.map == Map::View {
            text.extend(["\n", &draw(&self.world)]);
        }
        text.push_str(&self.told);
        text
    }

    fn actions(&self) -> Arc<[Arc<str>]> {
        let has_effect = |action: &Action| self.world.has_effect(*action);
        let mut words: Vec<Arc<str>> =
            Action::ALL.iter().filter(|it| has_effect(it)).map(|it| it.words().into()).collect();
        words.sort();
        words.into()
    }

    fn act(&mut self, words: &str) -> Option<Acted> {
        let action = Action::from_words(words)?;
        self.told.clear();
        let mut acted = Acted::default();
        let was_asleep = self.world.player().is_asleep();
        let mut health = f64::from(self.step(action, &mut acted).health);
        let begin = self.world.num_steps();
        while self.rules.sleep == Sleep::Through
            && self.world.player().is_asleep()
            && !acted.is_over
        {
            health += f64::from(self.step(Action::Noop, &mut acted).health);
        }
        let slept = self.world.num_steps() - begin;
        if slept > 0 || was_asleep {
            let _ = write!(self.told, "\nYou have slept for {} steps.", slept.max(1));
        }
        if self.rules.is_health_paid {
            // One part for all that was slept through.
            acted.rewards.retain(|part| part.name != "health");
            acted.earn("health", health / 10.0);
        }
        Some(acted)
    }

    fn plan(&self) -> Option<Vec<Arc<str>>> {
        let wanted = match &self.rules.goal {
            Some(goal) => std::slice::from_ref(goal),
            None => &COURSE[..],
        };
        let (mut ahead, mut actions) = (self.clone(), Vec::new());
        while actions.len() < PLANNED {
            let words = next_action(&ahead.world, wanted).words();
            actions.push(words.into());
            if ahead.act(words)?.is_over {
                break;
            }
        }
        Some(actions)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::{Environment, test_task};

    fn opened(parameters: serde_json::Value) -> WorldEnvironment<Survival> {
        Survival::open(&test_task(Survival::NAME, parameters)).unwrap()
    }

    #[tokio::test]
    async fn a_goal_earns_one_and_ends_the_episode() {
        let mut env = opened(json!({ "seed": 1, "goals": ["collect_wood", "place_table"] }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert_eq!(first.instruction.as_deref(), Some("place a table"));
        assert!(
            first.text.starts_with("Your goal is to place a table.\nYou see "),
            "{}",
            first.text
        );
        let mut reward = 0.0;
        let last = loop {
            let action = env.oracle_action().unwrap();
            let step = env.step(&action).await.unwrap();
            reward += step.reward();
            if step.terminated {
                break step;
            }
        };
        assert!(last.success && reward == 1.0, "{reward}");
        let told = last.observation.text;
        assert!(told.ends_with("For the first time: place a table."), "{told}");
        assert!(env.step(&"noop".into()).await.is_err());
    }

    #[tokio::test]
    async fn in_the_game_each_achievement_is_a_part_of_the_reward() {
        let given = json!({ "wood": 9, "stone": 1 });
        let mut env = opened(json!({ "seed": 1, "enough": 3, "given": given, "health": true }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.contains("You have 9 wood, 1 stone."), "{}", first.text);
        let mut earned = Vec::new();
        for words in ["place table", "make wood pickaxe", "make stone sword"] {
            let listed = env.step(&"noop".into()).await.unwrap().observation.admissible.unwrap();
            assert!(listed.iter().any(|it| **it == *words), "{words}: {listed:?}");
            let step = env.step(&words.into()).await.unwrap();
            earned.extend(step.rewards.into_iter().map(|part| (part.name, part.value)));
            assert_eq!(step.terminated, words == "make stone sword");
        }
        let expected = ["place_table", "make_wood_pickaxe", "make_stone_sword"];
        assert_eq!(earned, expected.map(|name| (name.to_owned(), 1.0)));
    }

    #[tokio::test]
    async fn sleep_is_one_turn_or_many() {
        let mut turns = Vec::new();
        for sleep in ["through", "step"] {
            let mut env = opened(json!({ "seed": 4, "goal": "wake_up", "sleep": sleep }));
            env.reset(Seed::from_u64(1)).await.unwrap();
            let mut count = 0;
            loop {
                let action = env.oracle_action().unwrap();
                let step = env.step(&action).await.unwrap();
                count += 1;
                let slept = step.observation.text.contains("You have slept for ");
                assert!(sleep == "step" || slept == (*action.said() == *"sleep"));
                if step.terminated {
                    assert!(step.success);
                    break;
                }
            }
            turns.push(count);
        }
        assert!(turns[0] + 8 < turns[1], "{turns:?}");
    }

    #[tokio::test]
    async fn what_is_no_action_costs_no_time_and_what_has_no_effect_does() {
        let mut env = opened(json!({ "seed": 1, "length": 2, "map": "view" }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.contains('P'), "{}", first.text);
        for _ in 0..4 {
            let step = env.step(&"dance".into()).await.unwrap();
            assert!(!step.valid && !step.terminated);
        }
        let listed = first.admissible.unwrap();
        assert!(listed.iter().all(|it| **it != *"make iron sword"), "{listed:?}");
        for is_last in [false, true] {
            let step = env.step(&"make iron sword".into()).await.unwrap();
            assert!(step.valid && step.terminated == is_last && step.reward() == 0.0);
        }
    }

    #[test]
    fn wrong_parameters_are_told() {
        for (parameters, part) in [
            (json!({ "seed": 1, "size": 8 }), "16 to 128"),
            (json!({ "seed": 1, "length": 0 }), "1 to 10000"),
            (json!({ "seed": 1, "length": 20_000 }), "1 to 10000"),
            (json!({ "seed": 1, "enough": 23 }), "1 to 22"),
            (json!({ "seed": 1, "goal": "win" }), "collect_wood"),
            (json!({ "seed": 1, "goal": "wake_up", "goals": ["wake_up"] }), "either"),
            (json!({ "seed": 1, "given": { "health": 1 } }), "`health`"),
            (json!({ "seed": 1, "given": { "gold": 1 } }), "`gold`"),
        ] {
            let error = Survival::open(&test_task("survival", parameters)).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
