//! Players and shuffles on ALFWorld's own games, which are not part of this repository.

use std::path::PathBuf;

use futures::executor::block_on;
use spar_core::{Action, Seed};
use spar_envs::household::{Household, find_games};
use spar_envs::{Environment, EnvironmentError};
use spar_tasks::Task;

fn games() -> Vec<PathBuf> {
    let data = std::env::var_os("ALFWORLD_DATA").expect("ALFWORLD_DATA names a folder of games");
    find_games(data.as_ref()).unwrap()
}

fn task(parameters: serde_json::Value) -> Task {
    Task {
        id: parameters.to_string(),
        environment: "household".to_owned(),
        parameters,
        instruction: String::new(),
        max_turns: 50,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

/// Turns to the goal, at most 50.
fn play(
    env: &mut Household,
    mut choose: impl FnMut(&mut Household) -> Option<Action>,
) -> Result<Option<usize>, EnvironmentError> {
    block_on(env.reset(Seed::from_u64(0)))?;
    for turn in 1..=50 {
        let Some(action) = choose(env) else { return Ok(None) };
        let step = block_on(env.step(&action))?;
        assert!(step.valid, "{action:?}");
        if step.terminated {
            assert_eq!(step.reward(), 1.0);
            return Ok(Some(turn));
        }
    }
    Ok(None)
}

/// Prints how many tasks were solved and in how many turns, and returns the share.
fn share_solved(name: &str, results: &[Option<usize>]) -> f64 {
    let solved: Vec<usize> = results.iter().flatten().copied().collect();
    let mean = solved.iter().sum::<usize>() as f64 / solved.len() as f64;
    println!("{name}: {} of {} solved, {mean:.2} turns on average", solved.len(), results.len());
    solved.len() as f64 / results.len() as f64
}

#[test]
#[ignore = "needs ALFWorld's games in ALFWORLD_DATA"]
fn the_players_solve_every_game() {
    let (mut by_expert, mut by_oracle) = (Vec::new(), Vec::new());
    for path in games() {
        let mut env = Household::open(&task(serde_json::json!({ "game": path }))).unwrap();
        by_expert.push(play(&mut env, Household::expert_action).unwrap());
        by_oracle.push(play(&mut env, |env| env.oracle_action()).unwrap());
    }
    assert_eq!(share_solved("oracle", &by_oracle), 1.0);
    assert!(share_solved("expert", &by_expert) > 0.995);
}

#[test]
#[ignore = "needs ALFWorld's games in ALFWORLD_DATA"]
fn the_players_solve_games_generated_under_the_rules_of_the_real_ones() {
    let rules = games().into_iter().next().unwrap();
    let (mut by_expert, mut by_oracle) = (Vec::new(), Vec::new());
    for seed in 0..60 {
        let parameters = serde_json::json!({ "scenes": "train", "seed": seed, "rules": rules });
        let mut env = Household::open(&task(parameters)).unwrap();
        by_expert.push(play(&mut env, Household::expert_action).unwrap());
        by_oracle.push(play(&mut env, |env| env.oracle_action()).unwrap());
    }
    assert_eq!(share_solved("oracle", &by_oracle), 1.0);
    assert!(share_solved("expert", &by_expert) > 0.98);
}

#[test]
#[ignore = "needs ALFWorld's games in ALFWORLD_DATA"]
fn the_players_solve_shuffled_games() {
    let (mut by_expert, mut by_oracle) = (Vec::new(), Vec::new());
    for (index, path) in games().into_iter().enumerate() {
        let parameters = serde_json::json!({ "game": path, "shuffle": index });
        let mut env = Household::open(&task(parameters)).unwrap();
        by_expert.push(play(&mut env, Household::expert_action).unwrap());
        by_oracle.push(play(&mut env, |env| env.oracle_action()).unwrap());
    }
    assert_eq!(share_solved("oracle", &by_oracle), 1.0);
    assert!(share_solved("expert", &by_expert) > 0.98);
}
