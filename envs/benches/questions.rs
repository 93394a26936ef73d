//! Resets, forks, steps and whole episodes per second of environments that ask questions: `sql`, `search` and `question`.
//!
//! On one thread, over tasks of the suite in turn; what a search costs is a search in the world's index, what an episode costs is
//! all that its oracle does and the judging behind it.

use std::time::{Duration, Instant};

use spar_core::{Action, Seed};
use spar_envs::{Environment, Resources, open_environment};
use spar_tasks::{SuiteOptions, open_suite};

const LASTING: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;
/// Tasks that are taken in turn.
const TASKS: usize = 64;

/// A suite, and an action that does not end an episode, where there is one.
const SUITES: [(&str, Option<&str>); 3] = [
    ("sql", Some("schema")),
    ("search", Some("<search>the mayor of the capital</search>")),
    ("maths", None),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    for round in 1..=ROUNDS {
        for (suite, action) in SUITES {
            let mut tasks = open(suite);
            runtime.block_on(measure(&mut tasks, &format!("round {round}, {suite}"), action));
        }
    }
}

fn open(suite: &str) -> Vec<Box<dyn Environment>> {
    let suite = open_suite(suite, &SuiteOptions::default()).expect("it ships");
    let resources = Resources::default();
    let open = |index| {
        let task = suite.task("train", index).expect("it is there");
        open_environment(&task, &resources).expect("it opens")
    };
    (0..TASKS).map(open).collect()
}

async fn measure(tasks: &mut [Box<dyn Environment>], name: &str, action: Option<&str>) {
    for env in &mut *tasks {
        env.prepare().await.expect("it is prepared");
        env.reset(Seed::from_u64(0)).await.expect("it is reset");
    }
    let report = |what: &str, count: usize, began: Instant| {
        let each = began.elapsed().as_secs_f64() / count as f64;
        println!("{name}: {what} takes {:.2} us, {:.0} per second", 1e6 * each, 1.0 / each);
    };
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            env.reset(Seed::from_u64(count as u64)).await.expect("it is reset");
            count += 1;
        }
    }
    report("a reset", count, began);
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            assert!(env.fork().await.expect("it forks").is_some());
            count += 1;
        }
    }
    report("a fork", count, began);
    if let Some(action) = action.map(Action::text) {
        let (mut count, began) = (0, Instant::now());
        while began.elapsed() < LASTING {
            for env in &mut *tasks {
                assert!(env.step(&action).await.expect("it steps").valid);
                count += 1;
            }
        }
        report("a step", count, began);
    }
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < LASTING {
        for env in &mut *tasks {
            env.reset(Seed::from_u64(count as u64)).await.expect("it is reset");
            while let Some(action) = env.oracle_action() {
                env.step(&action).await.expect("it steps");
            }
            let verdict = env.verify().await.expect("it is judged");
            assert!(verdict.is_some_and(|verdict| verdict.success));
            count += 1;
        }
    }
    report("an episode of the oracle, judged,", count, began);
}
