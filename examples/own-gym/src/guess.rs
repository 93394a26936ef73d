//! A game of numbers, and a suite of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar::core::registry::{OptionSet, Row};
use spar::core::{Action, Observation, RewardPart, Seed, Step};
use spar::envs::{Actions, Environment, EnvironmentError, EnvironmentRow, NamedEnvironment};
use spar::tasks::{NamedSuite, SuiteRow, Task, TemplateSuite};

pub(crate) const ENVIRONMENT: EnvironmentRow = Row {
    name: "guess",
    about: "Guess a number from 1 to 9 by what is said of other guesses.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: NamedEnvironment {
        suite: Some("guess"),
        needs_sandbox: false,
        actions: Actions::Words,
        open: |task, _| Ok(Box::new(Guess::open(task)?)),
        stratum: |_| None,
    },
};

pub(crate) const SUITE: SuiteRow = Row {
    name: "guess",
    about: "Numbers from 1 to 9 to be guessed.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: NamedSuite {
        needs_data: false,
        open: |_| {
            let text = include_str!("../suite.toml");
            Ok(Box::new(TemplateSuite::parse(text, Path::new("guess/suite.toml"))?))
        },
    },
};

/// Guess a number from 1 to 9. Parameters: `seed`.
#[derive(Debug, Clone)]
struct Guess {
    secret: u32,
    started: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
}

impl Guess {
    /// Makes the game of a task.
    fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let Parameters { seed } = Parameters::deserialize(&task.parameters).map_err(|error| {
            EnvironmentError::Parameters {
                task: task.id.clone(),
                environment: "guess",
                detail: error.to_string(),
            }
        })?;
        let secret = Seed::from_u64(seed).derive("secret", 0).as_u64() % 9 + 1;
        Ok(Self { secret: secret as u32, started: false })
    }
}

#[async_trait]
impl Environment for Guess {
    fn name(&self) -> &'static str {
        "guess"
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.started = true;
        Ok(observation("Guess a number from 1 to 9."))
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        if !self.started {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        }
        let guess = action.said().trim().parse().ok().filter(|guess| (1..=9).contains(guess));
        let success = guess == Some(self.secret);
        let text = match guess {
            None => "Nothing happens.",
            Some(guess) if guess < self.secret => "More.",
            Some(_) if success => "Right.",
            Some(_) => "Less.",
        };
        let reward = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Step {
            observation: observation(text),
            rewards: if success { vec![reward] } else { Vec::new() },
            terminated: success,
            success,
            valid: guess.is_some(),
            wall_time: Duration::ZERO,
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.started.then(|| self.secret.to_string().into())
    }
}

fn observation(text: &str) -> Observation {
    let numbers: Vec<Arc<str>> = (1..=9).map(|number: u32| number.to_string().into()).collect();
    Observation { admissible: Some(numbers.into()), ..Observation::new(text) }
}
