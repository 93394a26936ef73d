//! An environment and a credit estimator of one's own, used without any table.
//!
//! CONTRIBUTING.md quotes them; a test holds it to that.
//!
//! ```text
//! cargo run --example own_environment
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar::agent::credit::{AdvantageEstimator, BatchView, CreditError, GroupView, TrajectoryView};
use spar::agent::policies::RandomPolicy;
use spar::agent::{Cancellation, CollectConfig, CollectRequest, SharedPlayer, collect_groups};
use spar::core::{Action, Credit, Observation, PerTurnOrToken, RewardPart, Seed, Signals, Step};
use spar::envs::{Environment, EnvironmentError};
use spar::tasks::Task;

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

/// Every step takes the return that follows it, less the group's mean return.
#[derive(Debug, Clone, Default)]
struct ToGo;

impl AdvantageEstimator for ToGo {
    fn name(&self) -> &'static str {
        "to_go"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(to_go))
    }
}

fn to_go(group: &GroupView<'_>) -> Vec<Vec<f64>> {
    let mean = group.returns().iter().sum::<f64>() / group.num_trajectories().max(1) as f64;
    let of_trajectory = |trajectory: TrajectoryView<'_, '_>| {
        let mut sum = 0.0;
        let mut advantages: Vec<f64> = trajectory
            .steps
            .iter()
            .rev()
            .map(|step| {
                sum += step.reward;
                sum - mean
            })
            .collect();
        advantages.reverse();
        advantages
    };
    group.trajectories().map(of_trajectory).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = Task {
        id: "guess/train/0".to_owned(),
        environment: "guess".to_owned(),
        parameters: serde_json::json!({ "seed": 0 }),
        instruction: "Answer every message with a number from 1 to 9.".to_owned(),
        max_turns: 9,
        tags: Vec::new(),
        graders: Vec::new(),
    };
    let request = CollectRequest {
        tasks: &[task],
        player: SharedPlayer::of(RandomPolicy),
        strategy: &spar::agent::strategies::Independent,
        open: Arc::new(|task| Ok(Box::new(Guess::open(task)?))),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
    let collection = collect_groups(&request, &config).await;
    for group in &collection.groups {
        let credit = ToGo.estimate(&GroupView::from_group(group).into(), &Signals::default())?;
        let PerTurnOrToken::Turns(advantages) = credit.advantages else { unreachable!() };
        for (trajectory, advantages) in group.trajectories.iter().zip(&advantages) {
            let guesses: Vec<&str> =
                trajectory.turns.iter().map(|turn| turn.text.as_str()).collect();
            println!("success {:5}  {}  {advantages:.2?}", trajectory.success, guesses.join(" "));
        }
    }
    Ok(())
}
