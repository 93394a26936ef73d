//! Household games as environments.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use spar_core::{Action, Observation, RewardPart, Seed, Step};
use spar_tasks::Task;

use super::expert::Expert;
use super::game_source::{GameSource, OpenError};
use super::{Engine, Game, oracle};
use crate::{Environment, EnvironmentError};

const NAME: &str = "household";

/// A household game as an environment.
///
/// Parameters, one of:
///
/// - `game`: the path of a game file;
/// - `game` and `shuffle`: the room of that game with its objects laid elsewhere and another goal,
///   `shuffle` being the seed; optionally `family`;
/// - `scenes` (`train`, `dev` or `unseen`) and `seed`: a generated game; optionally `size`
///   (`small`, `medium`, `large` or the most receptacles, 4 to 60), `family` and `rules`, the path of
///   a game file under whose rules and in whose words it is played.
///
/// Texts are the reference's, letter by letter. The step that reaches the goal gives the reward
/// part `success` = 1 and ends the episode; afterwards nothing can be executed. Games are fully
/// determined by their parameters, so the seed of an episode changes nothing.
#[derive(Clone)]
pub struct Household {
    game: Arc<Game>,
    /// Absent before the first reset.
    engine: Option<Engine>,
    /// The commands so far that could be executed.
    commands: Vec<Box<str>>,
    /// Follows the episode once it has been asked for an action.
    expert: Option<Expert>,
    /// Commands that solve the game from here; computed when asked for.
    plan: OnceLock<Option<Vec<String>>>,
    over: bool,
}

impl fmt::Debug for Household {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Household")
            .field("game", &self.game.name())
            .field("commands", &self.commands)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl Household {
    /// Makes the game of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the task's parameters are not understood or the game cannot be
    /// read.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let source = GameSource::from_parameters(&task.parameters).map_err(refuse)?;
        let game = source.open().map_err(|error| match error {
            OpenError::Game(error) => EnvironmentError::Household(error),
            OpenError::NoGoal => refuse("the room of `game` allows no goal of `family`".to_owned()),
        })?;
        Ok(Self::new(game))
    }

    /// The family of a generated task, by its parameters alone; now and then the room drawn for it
    /// lacks what that family needs, and the task is of another one.
    pub(crate) fn likely_family(task: &Task) -> Option<String> {
        let source = GameSource::from_parameters(&task.parameters).ok()?;
        Some(source.likely_family()?.name().to_owned())
    }

    /// An environment of a loaded game.
    pub fn new(game: Arc<Game>) -> Self {
        let (commands, plan) = (Vec::new(), OnceLock::new());
        Self { game, engine: None, commands, expert: None, plan, over: false }
    }

    /// The game that is played.
    pub fn game(&self) -> &Arc<Game> {
        &self.game
    }

    fn observe(engine: &Engine) -> Observation {
        Observation {
            text: engine.observation().to_owned(),
            admissible: Some(admissible(engine)),
            state_key: format!("{:032x}", engine.state_key()),
            ..Observation::default()
        }
    }

    /// An expert that has seen the whole episode.
    fn caught_up_expert(&self) -> Expert {
        let mut engine = Engine::new(Arc::clone(&self.game));
        let mut expert = Expert::new(task_words(&engine), &admissible(&engine));
        for command in &self.commands {
            engine.step(command);
            expert.observe(command, engine.observation(), &admissible(&engine));
        }
        expert
    }
}

#[async_trait]
impl Environment for Household {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        self.game.task_family().map(|family| family.name().to_owned()).into_iter().collect()
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let engine = Engine::new(Arc::clone(&self.game));
        let mut observation = Self::observe(&engine);
        observation.instruction = Some(task_words(&engine).into());
        self.over = engine.won();
        self.engine = Some(engine);
        self.commands.clear();
        self.expert = None;
        self.plan = OnceLock::new();
        Ok(observation)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let Some(engine) = &mut self.engine else {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        };
        if self.over {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        let command = action.said().trim();
        let outcome = engine.step(command);
        let observation = Self::observe(engine);
        if outcome.executable {
            self.commands.push(command.into());
            // A plan that was followed goes on; any other step needs a new one.
            match self.plan.get_mut() {
                Some(Some(plan)) if plan.first().is_some_and(|first| first == command) => {
                    plan.remove(0);
                }
                _ => self.plan = OnceLock::new(),
            }
        }
        if let (Some(expert), Some(admissible)) = (&mut self.expert, &observation.admissible) {
            expert.observe(command, &observation.text, admissible);
        }
        self.over = outcome.won;
        let mut rewards = Vec::new();
        if outcome.won {
            rewards.push(RewardPart { name: "success".to_owned(), value: 1.0 });
        }
        Ok(Step {
            observation,
            rewards,
            terminated: outcome.won,
            success: outcome.won,
            valid: outcome.executable,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let engine = self.engine.as_ref().filter(|_| !self.over)?;
        let plan = self.plan.get_or_init(|| oracle::solve(engine));
        plan.as_ref()?.first().map(|command| command.as_str().into())
    }

    fn expert_action(&mut self) -> Option<Action> {
        if self.over || self.engine.is_none() {
            return None;
        }
        if self.expert.is_none() {
            self.expert = Some(self.caught_up_expert());
        }
        let engine = self.engine.as_ref()?;
        self.expert.as_mut()?.action(&admissible(engine)).map(Action::from)
    }
}

fn admissible(engine: &Engine) -> Arc<[Arc<str>]> {
    engine.admissible().iter().map(Arc::from).collect()
}

fn task_words(engine: &Engine) -> &str {
    engine.goal_text().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::json;

    use super::*;

    fn open(parameters: serde_json::Value) -> Result<Household, EnvironmentError> {
        Household::open(&Task {
            id: "test".to_owned(),
            environment: NAME.to_owned(),
            parameters,
            instruction: String::new(),
            max_turns: 50,
            tags: Vec::new(),
            graders: Vec::new(),
        })
    }

    fn small(seed: u64) -> Household {
        open(json!({ "scenes": "dev", "seed": seed, "size": "small" })).unwrap()
    }

    #[test]
    fn the_winning_step_alone_is_rewarded() {
        let mut env = small(1);
        let seed = Seed::from_u64(0);
        let first = block_on(env.reset(seed)).unwrap();
        let task = first.instruction.unwrap();
        assert!(first.text.ends_with(&format!("Your task is to: {task}.")));
        let mut rewards = Vec::new();
        while let Some(action) = env.oracle_action() {
            let step = block_on(env.step(&action)).unwrap();
            rewards.push(step.reward());
            assert_eq!(step.terminated, step.success);
        }
        assert_eq!(rewards.pop(), Some(1.0));
        assert!(rewards.iter().all(|reward| *reward == 0.0));
        let error = block_on(env.step(&"look".into())).unwrap_err();
        assert!(matches!(error, EnvironmentError::Misused { .. }), "{error}");
        assert!(!block_on(env.reset(seed)).unwrap().text.is_empty());
    }

    #[test]
    fn the_expert_can_join_a_running_episode() {
        for seed in 0..20 {
            let mut env = small(seed);
            let mut observation = block_on(env.reset(Seed::from_u64(0))).unwrap();
            for turn in 0..10 {
                let listed = observation.admissible.unwrap();
                let action = Arc::clone(&listed[(turn * 7 + seed as usize) % listed.len()]);
                let step = block_on(env.step(&(*action).into())).unwrap();
                observation = step.observation;
                if step.terminated {
                    break;
                }
            }
            let mut num_turns = 0;
            while let Some(action) = env.expert_action() {
                block_on(env.step(&action)).unwrap();
                num_turns += 1;
                assert!(num_turns <= 50, "{env:?}");
            }
            assert!(env.over, "{env:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_parameters_is_told() {
        let error = open(json!({ "scenes": "dev", "seed": 1, "colour": "red" })).unwrap_err();
        assert!(error.to_string().contains("unknown field `colour`"), "{error}");
        let error = open(json!({ "game": "/nowhere/game.tw-pddl" })).unwrap_err();
        assert!(matches!(error, EnvironmentError::Household(_)), "{error}");
        let error = block_on(small(1).step(&"look".into())).unwrap_err();
        assert_eq!(error.to_string(), "call `step` before reset");
    }
}
