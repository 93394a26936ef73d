//! Resets, forks, steps and whole episodes per second of the environments in which tools are called and users talked to: `apps`,
//! `dialogue`, `toolbox`, `bfcl` and `tau2`.
//!
//! On one thread, over tasks of the suites in turn. Steps are those of the players that solve the tasks, the choice of them not counted;
//! forks are taken in the middle of episodes, behind the first step.

use std::time::{Duration, Instant};

use spar_core::{Action, Seed};
use spar_envs::{Environment, Resources, open_environment};
use spar_tasks::{SuiteOptions, open_suite};

const LASTING: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;
/// Tasks that are taken in turn.
const TASKS: usize = 64;

/// Suites with the split that is played.
const SUITES: [(&str, &str); 5] = [
    ("apps", "train"),
    ("dialogue", "train"),
    ("toolbox", "bills"),
    ("bfcl", "turns"),
    ("tau2", "train"),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("it starts");
    for round in 1..=ROUNDS {
        for (suite, split) in SUITES {
            let mut tasks = open(suite, split);
            runtime.block_on(measure(&mut tasks, &format!("round {round}, {suite}")));
        }
    }
}

fn open(suite: &str, split: &str) -> Vec<Box<dyn Environment>> {
    let suite = open_suite(suite, &SuiteOptions::default()).expect("it ships");
    let resources = Resources::default();
    let open = |index| {
        let task = suite.task(split, index).expect("it is there");
        let mut env = open_environment(&task, &resources).expect("it opens");
        env.use_tools();
        env
    };
    (0..TASKS).map(open).collect()
}

/// What the player of whoever is to move does next.
fn next(env: &mut dyn Environment) -> Option<Action> {
    env.to_move()?;
    env.oracle_action().or_else(|| env.expert_action())
}

async fn begin(env: &mut dyn Environment, seed: u64) {
    env.reset(Seed::from_u64(seed)).await.expect("it is reset");
    env.prepare().await.expect("it is prepared");
}

async fn measure(tasks: &mut [Box<dyn Environment>], name: &str) {
    let report = |what: &str, count: usize, took: Duration| {
        let each = took.as_secs_f64() / count as f64;
        println!("{name}: {what} takes {:.2} us, {:.0} per second", 1e6 * each, 1.0 / each);
    };
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            begin(env.as_mut(), count as u64).await;
            count += 1;
        }
    }
    report("a reset", count, began.elapsed());
    for env in &mut *tasks {
        if let Some(action) = next(env.as_mut()) {
            env.step(&action).await.expect("it steps");
        }
    }
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            assert!(env.fork().await.expect("it forks").is_some());
            count += 1;
        }
    }
    report("a fork in mid-episode", count, began.elapsed());
    let (mut steps, mut stepping, mut episodes) = (0, Duration::ZERO, 0);
    let began = Instant::now();
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            begin(env.as_mut(), episodes as u64).await;
            let mut is_over = false;
            while !is_over && let Some(action) = next(env.as_mut()) {
                let started = Instant::now();
                is_over = env.step(&action).await.expect("it steps").terminated;
                stepping += started.elapsed();
                steps += 1;
            }
            env.verify().await.expect("it is judged");
            episodes += 1;
        }
    }
    report("an episode, judged,", episodes, began.elapsed());
    report("a step of it", steps, stepping);
}
