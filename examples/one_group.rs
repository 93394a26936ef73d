//! Plays one household task twice, by script, and prints what every step was worth.
//!
//! ```text
//! cargo run --example one_group
//! ```

use spar::agent::credit::{CreditConfig, GroupView, open_estimator};
use spar::agent::policies::ScriptedPolicy;
use spar::agent::{Cancellation, Episode, EpisodeConfig, Player, run_episode};
use spar::core::{Group, Seat, Seed, Signals};
use spar::envs::{Resources, open_environment};
use spar::tasks::{SuiteOptions, Task, open_suite};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = open_suite("household", &SuiteOptions::default())?.task("dev", 0)?;
    let solution = solution(&task).await?;

    // One episode follows the solution; the other one turns back half-way and runs out of turns.
    let mut detour = solution[..solution.len() / 2].to_vec();
    detour.push("look".to_owned());
    let mut group = Group { task: task.id.clone(), trajectories: Vec::new() };
    for (id, script) in [solution, detour].into_iter().enumerate() {
        let policy = ScriptedPolicy::new(script);
        let seed = Seed::from_u64(1).derive("episode", id);
        let episode = Episode {
            id: id as u64,
            task: &task,
            player: Player::Policy(&policy),
            seat: Seat::FIRST,
            seed,
            environment_seed: Seed::from_u64(2),
            cancellation: &Cancellation::new(),
        };
        let config = EpisodeConfig { max_turns: Some(12), ..EpisodeConfig::default() };
        let mut environment = open_environment(&task, &Resources::default())?;
        group.trajectories.push(run_episode(environment.as_mut(), &episode, &config).await);
    }

    println!("{}", group.trajectories[0].first_observation.text);
    let gigpo = open_estimator(&CreditConfig::new("gigpo"))?;
    let credit = gigpo.estimate(&GroupView::from_group(&group).into(), &Signals::default())?;
    for (index, trajectory) in group.trajectories.iter().enumerate() {
        println!("\n{:?}, reward {}", trajectory.end, trajectory.total_reward());
        for (number, turn) in trajectory.turns.iter().enumerate() {
            // GiGPO's advantages are those of whole turns, so that it does not matter of which token.
            println!("{:+8.3}  {}", credit.advantages.at(index, number, 0), turn.text);
        }
    }
    Ok(())
}

/// What the environment's own solver does.
async fn solution(task: &Task) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut environment = open_environment(task, &Resources::default())?;
    environment.reset(Seed::from_u64(2)).await?;
    let mut actions = Vec::new();
    while let Some(action) = environment.oracle_action() {
        environment.step(&action).await?;
        actions.push(action.said().to_owned());
    }
    Ok(actions)
}
