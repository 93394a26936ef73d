//! Quests in a house of rooms, doors, keys and chests, in words.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step};
use spar_quests::{Command, Game, GoalWords, Play, Setting};
use spar_tasks::Task;

use crate::{Environment, EnvironmentError};

const NAME: &str = "text-world";

/// What subgoals weigh together, where they are paid.
const SUBGOALS: f64 = 0.5;

/// A quest in a house, in the manner of TextWorld.
///
/// Parameters: `seed`; `rooms` (1 to 30, default 4); `objects` (1 to 60, default 8; what the quest does not need are distractors); `quest_length` (commands of the shortest
/// solution, 1 to 40, default 5); `goal`, what the player is told: `brief` (default) or `detailed`; `rewards`: `sparse` (default) or `subgoals`.
///
/// A solved quest gives 1. With sparse rewards that is the part `success`; with subgoals, half of it is paid in equal parts `subgoal`, each when a step of the
/// solution is true for the first time, and `success` is the rest. A quest whose thing was eaten is lost, and over.
#[derive(Debug, Clone)]
pub struct TextWorld {
    shared: Arc<Shared>,
    play: Option<Play>,
}

#[derive(Debug)]
struct Shared {
    game: Arc<Game>,
    rewards: Rewards,
    instruction: Arc<str>,
    tags: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rewards {
    #[default]
    Sparse,
    Subgoals,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    rooms: Option<usize>,
    objects: Option<usize>,
    quest_length: Option<usize>,
    #[serde(default)]
    goal: GoalWords,
    #[serde(default)]
    rewards: Rewards,
}

impl TextWorld {
    /// Makes the house of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or no such quest can be made.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let usual = Setting::default();
        let setting = Setting {
            rooms: given.rooms.unwrap_or(usual.rooms),
            objects: given.objects.unwrap_or(usual.objects),
            quest_length: given.quest_length.unwrap_or(usual.quest_length),
            goal: given.goal,
        };
        let seed = Seed::from_u64(given.seed).derive(NAME, "game");
        let game = Game::draw(seed, &setting).map_err(|error| refuse(error.to_string()))?;
        let instruction = Arc::clone(&game.instruction);
        let tags =
            vec![format!("w{}-o{}-q{}", setting.rooms, setting.objects, setting.quest_length)];
        let shared = Shared { game: Arc::new(game), rewards: given.rewards, instruction, tags };
        Ok(Self { shared: Arc::new(shared), play: None })
    }

    fn observe(&self, play: &Play, text: String) -> Observation {
        let mut listed: Vec<Arc<str>> = Vec::with_capacity(32);
        let is_over = play.is_won() || play.is_lost();
        if !is_over {
            play.each_command(|command| listed.push(command.words(play.game(), play).into()));
            listed.sort_unstable();
        }
        let over = if is_over { " over" } else { "" };
        Observation {
            text,
            admissible: Some(listed.into()),
            state_key: format!(
                "{} {:016x}{over}",
                self.shared.game.rooms[play.room()].name,
                play.knowledge()
            ),
            ..Observation::default()
        }
    }
}

#[async_trait]
impl Environment for TextWorld {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        self.shared.tags.clone()
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let play = Play::new(Arc::clone(&self.shared.game));
        let text = format!("{}\n\nYour task is to: {}", play.look(), self.shared.instruction);
        let mut first = self.observe(&play, text);
        first.instruction = Some(Arc::clone(&self.shared.instruction));
        self.play = Some(play);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let play = self.play.as_mut().ok_or(misused("before reset"))?;
        if play.is_won() || play.is_lost() {
            return Err(misused("after the end"));
        }
        let before = play.num_reached();
        let (mut text, valid) = match Command::read(action.said(), play) {
            Ok(command) => play.carry_out(command),
            Err(why) => (why.0, false),
        };
        let (is_won, is_lost) = (play.is_won(), play.is_lost());
        let all = self.shared.game.milestones.len() as f64;
        let mut rewards = Vec::new();
        let mut part = |name: &str, value: f64| {
            if value > 0.0 {
                rewards.push(RewardPart { name: name.to_owned(), value });
            }
        };
        match self.shared.rewards {
            Rewards::Sparse => part("success", f64::from(u8::from(is_won))),
            Rewards::Subgoals => {
                let each = SUBGOALS / all;
                let more = play.num_reached() - before;
                part("subgoal", each * more as f64);
                if is_won {
                    // What a solution has left out is paid with its end, so that every solution earns 1.
                    part("success", 1.0 - each * play.num_reached() as f64);
                }
            }
        }
        if is_won {
            text.push_str("\n\nThe quest is done.");
        } else if is_lost {
            text.push_str("\n\nThe quest cannot be done any more.");
        }
        let play = self.play.as_ref().ok_or(misused("before reset"))?;
        Ok(Step {
            observation: self.observe(play, text),
            rewards,
            terminated: is_won || is_lost,
            success: is_won,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let play = self.play.as_ref()?;
        play.next_of_solution().map(|command| command.words(play.game(), play).into())
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn house(parameters: Value) -> TextWorld {
        let mut house = TextWorld::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(house.reset(Seed::from_u64(0))).unwrap();
        house
    }

    #[test]
    fn subgoals_pay_half_of_what_a_solution_is_worth_and_each_once() {
        for seed in 0..30 {
            let mut house =
                house(json!({ "seed": seed, "rewards": "subgoals", "quest_length": 6 }));
            let (mut sum, mut paid) = (0.0, 0);
            while let Some(action) = house.oracle_action() {
                let step = block_on(house.step(&action)).unwrap();
                paid += step.rewards.iter().filter(|part| part.name == "subgoal").count();
                sum += step.reward();
                // What is undone and done again pays nothing.
                if step.observation.admissible.as_ref().unwrap().iter().any(|it| **it == *"look") {
                    let mut fork = block_on(house.fork()).unwrap().unwrap();
                    for said in ["inventory", "look", "examine nothing"] {
                        assert_eq!(block_on(fork.step(&said.into())).unwrap().reward(), 0.0);
                    }
                }
            }
            assert!((sum - 1.0).abs() < 1e-9 && paid >= 3, "{sum} in {paid}");
        }
    }

    #[test]
    fn nonsense_is_answered_and_changes_nothing() {
        let mut house = house(json!({ "seed": 1 }));
        let before = block_on(house.reset(Seed::from_u64(0))).unwrap().state_key;
        let giant = "take ".repeat(2_000_000);
        for said in [
            "",
            "  ",
            "fly",
            "take",
            "open the sky",
            "go up",
            "put",
            "lock x",
            "\u{0}",
            "take a from",
            &giant,
            "look around now",
        ] {
            let step = block_on(house.step(&said.into())).unwrap();
            assert!(!step.valid && !step.terminated && step.rewards.is_empty(), "{said:.20}");
            assert!(step.observation.text.len() < 400 && !step.observation.text.is_empty());
            assert_eq!(step.observation.state_key, before);
        }
    }

    #[test]
    fn parameters_are_strict() {
        for wrong in [
            json!({}),
            json!({ "seed": 1, "rooms": 0 }),
            json!({ "seed": 1, "rooms": 1, "objects": 1, "quest_length": 20 }),
            json!({ "seed": 1, "rewards": "dense" }),
            json!({ "seed": 1, "goal": "none" }),
            json!({ "seed": 1, "length": 3 }),
        ] {
            assert!(TextWorld::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }

    /// The episode that docs/text-world.md shows.
    #[test]
    fn the_documented_episode_is_played_so() {
        let mut house = house(json!({ "seed": 2_000_000, "rewards": "subgoals" }));
        let first = block_on(house.reset(Seed::from_u64(0))).unwrap();
        let mut told = format!("{}\n", first.text);
        let mut actions: Vec<Action> = vec!["inventory".into(), "open sesame".into()];
        while let Some(action) = actions.pop().or_else(|| house.oracle_action()) {
            let step = block_on(house.step(&action)).unwrap();
            told.push_str(&format!("\n> {action}\n{}\n", step.observation.text));
            for part in &step.rewards {
                told.push_str(&format!("[{} {:.3}]\n", part.name, part.value));
            }
        }
        let page = include_str!("../../docs/text-world.md");
        assert!(page.contains(&told), "docs/text-world.md is to show:\n{told}");
    }
}
