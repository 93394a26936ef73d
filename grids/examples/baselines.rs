//! What doing nothing, drawing actions and the oracle earn in every level of MiniGrid and BabyAI: a table in Markdown.
//!
//! ```sh
//! cargo run --release -p spar-grids --example baselines -- [FIRST [COUNT [LEVEL...]]]
//! ```
//!
//! Of each level COUNT episodes (default 20) from seed FIRST (default 0) on. Nothing is turning left until the steps are used up, 400 at most; so
//! long draws the random player as well, of the actions that the environment lists.

use spar_grids::minigrid::{Action, Episode, Level, plan};

const MOST: u32 = 400;

/// What an episode earns, in how many steps.
fn play(mut episode: Episode, mut choose: impl FnMut(usize) -> Option<Action>) -> (f64, usize) {
    let mut reward = 0.0;
    for number in 0..MOST as usize {
        let Some(action) = choose(number) else { return (reward, number) };
        let outcomes = episode.step(action);
        reward += outcomes.reward;
        if outcomes.terminated || outcomes.truncated {
            return (reward, number + 1);
        }
    }
    (reward, MOST as usize)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |it| it.parse());
    let (first, count) = (number(0, 0)?, number(1, 20)?);
    let names = arguments.get(2..).unwrap_or_default();
    println!("| level | nothing | random | oracle | solved by the oracle | its steps |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for level in Level::all() {
        if !names.is_empty() && !names.iter().any(|name| name == level.name) {
            continue;
        }
        let (mut nothing, mut random, mut oracle) = (0.0, 0.0, 0.0);
        let (mut solved, mut steps) = (0_u32, 0);
        for seed in first..first + count {
            let (episode, _) = Episode::new(level, seed)?;
            nothing += play(episode.clone(), |_| Some(Action::Left)).0;
            let listed = if level.ends_when_said() { 7 } else { 6 };
            let mut state = seed.wrapping_mul(2).wrapping_add(1);
            random += play(episode.clone(), |_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                Some(Action::ALL[(state >> 33) as usize % listed])
            })
            .0;
            if let Some(actions) = plan(&episode) {
                let (reward, number) = play(episode, |at| actions.get(at).copied());
                oracle += reward;
                solved += u32::from(reward > 0.0);
                steps += number;
            }
        }
        let mean = |sum: f64| sum / count as f64;
        println!(
            "| `{}` | {:.2} | {:.2} | {:.2} | {} of {count} | {:.1} |",
            level.name,
            mean(nothing),
            mean(random),
            mean(oracle),
            solved,
            steps as f64 / f64::from(solved.max(1))
        );
    }
    Ok(())
}
