//! What doing nothing, drawing actions and the oracle earn in every level of MiniGrid and BabyAI, or for every achievement of Crafter: a table in
//! Markdown.
//!
//! ```sh
//! cargo run --release -p spar-grids --example baselines -- [FIRST [COUNT [LEVEL...]]]
//! cargo run --release -p spar-grids --example baselines -- FIRST COUNT survival [STEPS]
//! ```
//!
//! Of each level COUNT episodes (default 20) from seed FIRST (default 0) on. Nothing is turning left until the steps are used up, 400 at most; so
//! long draws the random player as well, of the actions that the environment lists.

use spar_grids::minigrid::{Action, Episode, Level, plan};
use spar_grids::survival;

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
    if let [name, steps @ ..] = names
        && name == "survival"
    {
        let steps = steps.first().map_or(Ok(400), |steps| steps.parse())?;
        return Ok(achievements(first, count, steps)?);
    }
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

/// How often doing nothing, drawing actions that have an effect, and the oracle reach each achievement in so many steps, alone and in a game of all.
fn achievements(first: u64, count: u64, steps: u32) -> Result<(), survival::WorldError> {
    use survival::{Achievement, Achievements, World};
    type Choose<'a> = &'a mut dyn FnMut(&World) -> survival::Action;
    let play = |seed: u64, choose: Choose<'_>| -> Result<Achievements, survival::WorldError> {
        let mut world = World::new(seed, 64)?;
        for _ in 0..steps {
            if world.step(choose(&world)).is_dead {
                break;
            }
        }
        Ok(world.player().achievements())
    };
    let mut reached = [[0_u32; 22]; 4];
    let mut state = first.wrapping_mul(2).wrapping_add(1);
    let mut random = |world: &World| {
        let all = survival::Action::ALL.into_iter();
        let listed: Vec<survival::Action> = all.filter(|it| world.has_effect(*it)).collect();
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        listed[(state >> 33) as usize % listed.len()]
    };
    for seed in first..first + count {
        let mut all = [
            play(seed, &mut |_| survival::Action::Noop)?,
            play(seed, &mut random)?,
            Achievements::default(),
            play(seed, &mut |world| survival::next_action(world, &survival::COURSE))?,
        ];
        for goal in Achievement::ALL {
            let alone = play(seed, &mut |world| survival::next_action(world, &[goal]))?;
            if alone.has(goal) {
                all[2].insert(goal);
            }
        }
        for (player, achievements) in all.iter().enumerate() {
            achievements.iter().for_each(|it| reached[player][it as usize] += 1);
        }
    }
    println!(
        "| in {steps} steps, of {count} | nothing | random | oracle, this goal alone | oracle, all |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for goal in Achievement::ALL {
        let [nothing, random, alone, game] = reached.map(|of| of[goal as usize]);
        println!("| `{}` | {nothing} | {random} | {alone} | {game} |", goal.name());
    }
    let mean = |of: [u32; 22]| f64::from(of.iter().sum::<u32>()) / count as f64;
    let [nothing, random, _, game] = reached.map(mean);
    println!("| mean achievements | {nothing:.1} | {random:.1} | | {game:.1} |");
    Ok(())
}
