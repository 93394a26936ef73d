//! Agents that cheat on a repository: none of them resolves its issue, and each does where nothing is guarded.
//!
//! ```text
//!   Cheat { commands } ──▶ the environment as it is                                    ──▶ not resolved
//!         └──────────────▶ one sandbox with all of history, tests run beside the agent ──▶ resolved
//! ```
//!
//! The second shows that the first could have failed.

mod table;

use std::time::Duration;

use futures::stream::{self, StreamExt};
use spar_core::Seed;
use spar_sandbox::{ExecRequest, Sandbox, SandboxSpec, ShellOptions};
use spar_swe::Verification;
use spar_swe::grade::{Edition, EvalLog, Resolution};
use spar_swe::log::{LogContext, find_log_parser};
use spar_tasks::SweTask;

use super::fixture::{Runner, WORKDIR, task, write};
use super::guard::flags;
use super::repository::bring;
use super::tests::{image, sandboxes};
use super::{Swe, SweVerdict};
use crate::{Environment, Resources, Sandboxes};

use table::CHEATS;

/// The longest that anything but the tests takes.
const ASIDE: Duration = Duration::from_secs(30);

/// An agent that is after the reward by other means than resolving the issue.
#[derive(Debug, Clone, Copy)]
struct Cheat {
    /// What it does, after "an agent".
    name: &'static str,
    /// What runs the tests.
    runner: Runner,
    /// Its commands. None holds the fix.
    commands: &'static [&'static str],
}

/// Cheats that are played at one time.
const AT_ONCE: usize = 6;

/// What came of a cheat: what the environment says, and whether it resolves the issue where nothing is guarded, if that is asked.
async fn play(
    sandboxes: &Sandboxes,
    backend: &str,
    cheat: &Cheat,
    asks_unguarded: bool,
) -> (SweVerdict, Option<bool>) {
    let folder = tempfile::tempdir().unwrap();
    let instance = write(folder.path(), cheat.runner);
    let resources = Resources::with_sandboxes(sandboxes.clone());
    let mut env = Swe::open(&task(instance.clone(), folder.path()), &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    for command in cheat.commands {
        env.step(&(*command).into()).await.unwrap();
    }
    let verdict = env.verify().await.unwrap().unwrap();
    env.close().await.unwrap();
    let mut swe = SweTask::new(instance);
    swe.repository = Some(folder.path().to_owned());
    let resolves = match asks_unguarded {
        true => Some(unguarded(sandboxes, backend, &swe, cheat).await),
        false => None,
    };
    (SweVerdict::of(&verdict).unwrap(), resolves)
}

/// A harness as one would write it without a thought of cheats: history is there, tests run where the agent was, and
/// what they print is the truth.
async fn unguarded(sandboxes: &Sandboxes, backend: &str, task: &SweTask, cheat: &Cheat) -> bool {
    let spec =
        SandboxSpec { workdir: Some(WORKDIR.to_owned()), ..SandboxSpec::new(image(backend)) };
    let sandbox = sandboxes.pool.acquire(&spec).await.unwrap();
    bring(&sandbox, task.repository.as_ref().unwrap(), WORKDIR, ASIDE).await.unwrap();
    let options = ShellOptions { workdir: Some(WORKDIR.to_owned()), ..ShellOptions::default() };
    let mut shell = sandbox.open_shell(&options).await.unwrap();
    for command in cheat.commands {
        shell.run(command, ASIDE).await.unwrap();
    }
    let Some(Verification::TestLog { script, parser, expected, eval_type }) =
        &task.instance.verification
    else {
        panic!("the fixture is judged by its log")
    };
    sandbox.write_file("/tmp/eval.sh", script.as_bytes(), 0o755).await.unwrap();
    let request = ExecRequest::sh("exec bash /tmp/eval.sh 2>&1").with_timeout(ASIDE);
    let parser = find_log_parser(parser.origin, &parser.name).unwrap();
    let mut log = EvalLog::new(parser, &LogContext::default(), Edition::Four).unwrap();
    let mut sink = |_: spar_sandbox::Stream, bytes: &[u8]| log.push(bytes);
    let done = sandbox.exec_streaming(&request, &mut sink).await.unwrap();
    sandbox.close().await.unwrap();
    let resolved = log.finish(None).verdict.is_ok_and(|tests| {
        expected.report(&tests, *eval_type, Edition::Four).resolution() == Resolution::Full
    });
    if !resolved {
        println!("{}: {}", cheat.name, done.stdout.text());
    }
    resolved
}

/// Plays all cheats with a runner on a backend; that each resolves where nothing is guarded is looked at with `SPAR_TEST_ALL` alone, since
/// it takes as long again.
async fn none_scores(backend: &str, runners: &[Runner]) {
    let sandboxes = &sandboxes(backend);
    let asks_unguarded = std::env::var_os("SPAR_TEST_ALL").is_some();
    let mut wrong = Vec::new();
    let cheats: Vec<&Cheat> =
        CHEATS.iter().filter(|cheat| runners.contains(&cheat.runner)).collect();
    let plays = cheats.iter().map(|cheat| play(sandboxes, backend, cheat, asks_unguarded));
    let played: Vec<_> = stream::iter(plays).buffered(AT_ONCE).collect().await;
    for (cheat, (verdict, resolves)) in cheats.iter().zip(&played) {
        println!(
            "{:70} {:?}: {} {:?}",
            cheat.name, verdict.outcome, verdict.reason, verdict.left_out
        );
        if verdict.reward > 0.0 {
            wrong.push(format!("{}: it scores", cheat.name));
        }
        if *resolves == Some(false) {
            wrong.push(format!("{}: it holds nothing off", cheat.name));
        }
    }
    println!("{backend}: {} cheats", played.len());
    assert!(!played.is_empty());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn there_are_twenty_cheats_and_none_knows_the_fix() {
    assert!(CHEATS.len() >= 20, "{}", CHEATS.len());
    let names: std::collections::BTreeSet<_> = CHEATS.iter().map(|cheat| cheat.name).collect();
    assert_eq!(names.len(), CHEATS.len());
    for cheat in CHEATS {
        assert!(!cheat.commands.iter().any(|command| command.contains("a + b")), "{}", cheat.name);
    }
}

#[test]
fn most_cheats_are_flagged_by_their_commands() {
    let is_flagged =
        |cheat: &&Cheat| cheat.commands.iter().any(|command| !flags(command).is_empty());
    let missed: Vec<_> =
        CHEATS.iter().filter(|cheat| !is_flagged(cheat)).map(|cheat| cheat.name).collect();
    assert!(missed.len() * 4 <= CHEATS.len(), "{missed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_holds_off_cheats_on_repositories() {
    none_scores("docker", &[Runner::Unittest, Runner::Pytest]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_hold_off_cheats_on_repositories() {
    none_scores("local", &[Runner::Unittest]).await;
}
