//! The environment over the fake backend.

use std::sync::Arc;
use std::time::Duration;

use spar_core::{Boundary, Seed, Trajectory, Verdict};
use spar_sandbox::backends::fake::{FakeBackend, FakeFaults, FakeReply, FakeTrouble};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::graders::GraderConfig;
use spar_tasks::{GraderError, Task, TerminalTask, VerifierSandbox};

use super::{SUBMIT, Terminal};
use crate::{Environment, EnvironmentError, Resources, SandboxPhase, Sandboxes, open_environment};

mod services;

fn sandboxes(backend: &FakeBackend) -> Sandboxes {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    Sandboxes::new(Arc::new(SandboxPool::new(Arc::new(backend.clone()), config).unwrap()))
}

fn task_of(found: &TerminalTask) -> Task {
    Task {
        id: "t/test/0".to_owned(),
        environment: "terminal".to_owned(),
        parameters: serde_json::to_value(found).unwrap(),
        instruction: String::new(),
        max_turns: 8,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

/// Copy a file; the verifier looks whether it is there.
fn chore() -> TerminalTask {
    let mut task = TerminalTask::new("Copy a to b.", "[ \"$(cat b)\" = \"$(cat /tests/b)\" ]");
    task.files = [("a".to_owned(), "x\n".into())].into();
    task.verifier.files = [("b".to_owned(), "x\n".into())].into();
    task.solution = vec!["cp a b".to_owned()];
    task
}

fn open(backend: &FakeBackend, task: &TerminalTask) -> Terminal {
    let resources = Resources::with_sandboxes(sandboxes(backend));
    Terminal::open(&task_of(task), &resources).unwrap()
}

async fn begun(backend: &FakeBackend, task: &TerminalTask) -> Terminal {
    let mut env = open(backend, task);
    env.reset(Seed::from_u64(0)).await.unwrap();
    env
}

async fn text(env: &mut Terminal, action: &str) -> String {
    env.step(&action.into()).await.unwrap().observation.text
}

#[tokio::test]
async fn an_episode_reads_as_it_should() {
    let backend = FakeBackend::new();
    let mut env = open(&backend, &chore());
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    // Nothing is started before something has to be done.
    assert_eq!(backend.num_created(), 0);
    assert_eq!(first.instruction.as_deref(), Some("Copy a to b."));
    let mut transcript = first.text;
    for action in ["ls", "cat missing", "nowhere", "do it", "cp a b", SUBMIT] {
        let step = env.step(&action.into()).await.unwrap();
        transcript += &format!("\n> {action}\n{}", step.observation.text);
        assert_eq!(step.valid, !["nowhere", "do it"].contains(&action), "{action}");
        assert_eq!(step.terminated, action == SUBMIT);
        assert!(step.rewards.is_empty() && !step.success);
    }
    let verdict = env.verify().await.unwrap().unwrap();
    transcript += &format!("\n[{}]", verdict.details);
    assert!(verdict.success);
    insta::assert_snapshot!(transcript);
    env.close().await.unwrap();
    assert_eq!((backend.num_live(), backend.num_created()), (0, 1));
}

#[tokio::test]
async fn what_the_verifier_reads_comes_after_the_agent() {
    let backend = FakeBackend::new();
    let mut env = begun(&backend, &chore()).await;
    assert!(text(&mut env, "cat /tests/b").await.contains("No such file"));
    // What the agent puts there is gone when the verifier comes.
    text(&mut env, "mkdir /tests; echo forged > /tests/b; echo forged > b").await;
    let verdict = env.verify().await.unwrap().unwrap();
    assert_eq!((verdict.success, verdict.parts.len()), (false, 0));
    assert_eq!(verdict.details, "verified: 0: the verifier exited with 1");
    assert!(env.step(&"ls".into()).await.is_err(), "nothing comes after the verdict");
    env.close().await.unwrap();
}

#[tokio::test]
async fn rewards_can_be_fractions_that_the_agent_cannot_write() {
    let backend = FakeBackend::new();
    let mut task = chore();
    task.verifier.reward_file = Some("/tests/reward".to_owned());
    task.verifier.command = "[ -e half ] && echo 0.5 > /tests/reward || true".to_owned();
    for (action, reward, success) in [
        ("echo a > half", 0.5, false),
        ("mkdir /tests; echo 1 > /tests/reward", 0.0, false),
        ("true", 0.0, false),
    ] {
        let mut env = begun(&backend, &task).await;
        text(&mut env, action).await;
        let verdict = env.verify().await.unwrap().unwrap();
        let sum: f64 = verdict.parts.iter().map(|part| part.value).sum();
        assert_eq!((sum, verdict.success), (reward, success), "{action}: {}", verdict.details);
        env.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_fails_or_is_late_is_an_observation() {
    let backend = FakeBackend::new();
    let mut env = begun(&backend, &chore()).await;
    assert!(text(&mut env, "false").await.ends_with("[exit code 1]"));
    assert!(text(&mut env, "sleep 1000").await.ends_with("[ended at its limit of 30 s]"));
    // The verifier's own deadline is an observation as well.
    let mut task = chore();
    task.verifier.command = "sleep 1000".to_owned();
    let mut late = begun(&backend, &task).await;
    let verdict = late.verify().await.unwrap().unwrap();
    assert!(verdict.details.contains("deadline") && !verdict.success, "{}", verdict.details);
    env.close().await.unwrap();
    late.close().await.unwrap();
}

#[tokio::test]
async fn a_sandbox_that_dies_is_a_failure_wherever_it_dies() {
    let mut task = chore();
    task.setup = vec!["echo ready > c".to_owned()];
    // The commands of an episode, in order: set-up, the agent's, clearing, going, the verifier's.
    for (dies_at, phase) in [
        (1, SandboxPhase::SetUp),
        (2, SandboxPhase::Step),
        (3, SandboxPhase::Verify),
        (4, SandboxPhase::Verify),
        (5, SandboxPhase::Verify),
    ] {
        let faults = FakeFaults { dies_at_exec: Some(dies_at), ..FakeFaults::default() };
        let backend = FakeBackend::new().with_faults(faults);
        let mut env = begun(&backend, &task).await;
        let error = fails(&mut env).await;
        assert_eq!(error.boundary(), Boundary::Sandbox);
        let EnvironmentError::Sandbox { phase: found, .. } = error else { panic!("{error}") };
        assert_eq!(found, phase, "{dies_at}");
        env.close().await.unwrap();
        assert_eq!(backend.num_live(), 0);
    }
    let faults = FakeFaults { failing_creates: 1, ..FakeFaults::default() };
    let backend = FakeBackend::new().with_faults(faults);
    let error = fails(&mut begun(&backend, &task).await).await;
    assert!(matches!(error, EnvironmentError::Sandbox { phase: SandboxPhase::Create, .. }));
    assert!(!error.is_refusal());
}

/// Plays an episode to the error that ends it.
async fn fails(env: &mut Terminal) -> EnvironmentError {
    if let Err(error) = env.prepare().await {
        return error;
    }
    if let Err(error) = env.step(&"cp a b".into()).await {
        return error;
    }
    env.verify().await.unwrap_err()
}

#[tokio::test]
async fn a_set_up_that_fails_breaks_the_task() {
    let backend = FakeBackend::new();
    let mut task = chore();
    task.setup = vec!["complain no space".to_owned()];
    let error = open_and_prepare(&backend, &task).await.unwrap_err();
    let EnvironmentError::Sandbox { phase, source } = &error else { panic!("{error}") };
    assert_eq!(*phase, SandboxPhase::SetUp);
    assert!(source.to_string().contains("no space"), "{source}");
}

async fn open_and_prepare(
    backend: &FakeBackend,
    task: &TerminalTask,
) -> Result<(), EnvironmentError> {
    let mut env = begun(backend, task).await;
    env.prepare().await
}

#[tokio::test(start_paused = true)]
async fn a_set_up_without_end_meets_its_deadline() {
    let backend = FakeBackend::new();
    let mut task = chore();
    (task.setup, task.setup_secs) = (vec!["sleep 1000000".to_owned()], 7);
    let began = tokio::time::Instant::now();
    let error = open_and_prepare(&backend, &task).await.unwrap_err();
    assert!(matches!(error, EnvironmentError::Sandbox { phase: SandboxPhase::SetUp, .. }));
    assert_eq!(began.elapsed(), Duration::from_secs(7));
}

#[tokio::test]
async fn forks_go_their_own_ways() {
    let backend = FakeBackend::new();
    let mut env = begun(&backend, &chore()).await;
    env.prepare().await.unwrap();
    // Before anything was done a fork is a new sandbox, made when it is needed.
    let mut early = env.fork().await.unwrap().unwrap();
    assert_eq!(backend.num_created(), 1);
    text(&mut env, "mkdir d; echo one > d/f").await;
    text(&mut env, "cd d").await;
    let mut fork = env.fork().await.unwrap().unwrap();
    assert_eq!(backend.num_created(), 2);
    let mine = env.step(&"echo two > f".into()).await.unwrap();
    let theirs = fork.step(&"cat f".into()).await.unwrap().observation.text;
    assert_eq!(theirs, "one\n[exit code 0]", "in the same folder, and not what came later");
    assert_eq!(early.oracle_action(), Some("cp a b".into()));
    assert_eq!(env.oracle_action(), None, "something else was done");
    let twin = fork.fork().await.unwrap().unwrap().step(&"echo two > f".into()).await.unwrap();
    assert_ne!(twin.observation.state_key, mine.observation.state_key, "it has seen more");
    assert!(early.step(&"ls".into()).await.unwrap().observation.text.starts_with("a\n[exit"));
    for env in [&mut early, &mut fork] {
        env.close().await.unwrap();
    }
    env.close().await.unwrap();
}

#[tokio::test]
async fn equal_histories_are_equal_situations() {
    let backend = FakeBackend::new();
    let mut keys = Vec::new();
    for actions in [["ls", "cat a"], ["ls", "cat a"], ["cat a", "ls"]] {
        let mut env = begun(&backend, &chore()).await;
        for action in actions {
            keys.push(env.step(&action.into()).await.unwrap().observation.state_key);
        }
        env.close().await.unwrap();
    }
    assert_eq!(keys[..2], keys[2..4]);
    assert_ne!(keys[1], keys[5]);
}

#[tokio::test]
async fn the_oracle_solves_what_is_generated() {
    let backend = FakeBackend::new();
    let resources = Resources::with_sandboxes(sandboxes(&backend));
    for seed in 0..300 {
        let parameters = serde_json::json!({ "seed": seed });
        let task = Task { parameters, ..task_of(&chore()) };
        let mut env = Terminal::open(&task, &resources).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        while let Some(action) = env.oracle_action() {
            let step = env.step(&action).await.unwrap();
            assert!(step.valid, "{seed}: {action}: {}", step.observation.text);
        }
        assert!(env.verify().await.unwrap().unwrap().success, "{seed}");
        env.close().await.unwrap();
        // Without the solution nothing is solved.
        let mut idle = Terminal::open(&task, &resources).unwrap();
        idle.reset(Seed::from_u64(0)).await.unwrap();
        assert!(!idle.verify().await.unwrap().unwrap().success, "{seed}");
        idle.close().await.unwrap();
    }
    assert_eq!(backend.num_live(), 0);
}

#[tokio::test]
async fn parameters_are_strict_and_sandboxes_are_needed() {
    let backend = FakeBackend::new();
    let resources = Resources::with_sandboxes(sandboxes(&backend));
    let open = |parameters, resources: &Resources| {
        Terminal::open(&Task { parameters, ..task_of(&chore()) }, resources).err().unwrap()
    };
    let error = open(serde_json::json!({ "seed": 1, "kid": "count" }), &resources).to_string();
    assert!(error.contains("`kid`"), "{error}");
    let error = open(serde_json::json!({ "instruction": "a" }), &resources).to_string();
    assert!(error.contains("verifier"), "{error}");
    let error = open(serde_json::json!({ "seed": 1 }), &Resources::default());
    assert!(matches!(error, EnvironmentError::NoSandboxes { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_given_up_lets_the_verifier_in() {
    let backend = FakeBackend::with_script(|request, _| {
        let is_slow = request.command.last().is_some_and(|script| script == "slow");
        is_slow.then(|| FakeReply::exited(0, "").after(Duration::from_secs(20)))
    });
    let mut env = begun(&backend, &chore()).await;
    text(&mut env, "cp a b").await;
    let limit = Duration::from_secs(5);
    assert!(tokio::time::timeout(limit, env.step(&"slow".into())).await.is_err());
    assert!(env.verify().await.unwrap().unwrap().success);
    env.close().await.unwrap();
    assert_eq!(backend.num_live(), 0);
}

/// Judged in a sandbox of the verifier's own, with the answer carried over.
fn fresh_chore() -> TerminalTask {
    let mut task = chore();
    task.setup = vec!["echo ready > c".to_owned()];
    task.verifier.command =
        "[ -e c ] && [ ! -e left ] && [ ! -e /else ] && [ \"$(cat b)\" = \"$(cat /tests/b)\" ]"
            .to_owned();
    task.verifier.sandbox = VerifierSandbox::Fresh;
    task.verifier.carry = vec!["b".to_owned()];
    task
}

#[tokio::test]
async fn a_fresh_sandbox_has_what_is_carried_and_nothing_else() {
    let backend = FakeBackend::new();
    // One at a time: the agent's sandbox is given back before the verifier's is asked for.
    let config = PoolConfig { max_live: 1, starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(Arc::new(backend.clone()), config).unwrap();
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)));
    for (actions, success) in [
        (&["cp a b", "echo x > left", "mkdir /else", "rm c"][..], true),
        (&["echo x > left"], false),
        (&["echo wrong > b"], false),
        (&["mkdir b; cp a b/b"], false),
    ] {
        let mut env = Terminal::open(&task_of(&fresh_chore()), &resources).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        for action in actions {
            text(&mut env, action).await;
        }
        let verdict = env.verify().await.unwrap().unwrap();
        assert_eq!(verdict.success, success, "{actions:?}: {}", verdict.details);
        env.close().await.unwrap();
    }
    assert_eq!((backend.most_live(), backend.num_created(), backend.num_live()), (1, 8, 0));
}

#[tokio::test]
async fn what_is_carried_replaces_what_the_task_began_with() {
    let backend = FakeBackend::new();
    let mut task = fresh_chore();
    task.files.insert("b".to_owned(), "x\n".into());
    let mut env = begun(&backend, &task).await;
    text(&mut env, "rm b").await;
    assert!(!env.verify().await.unwrap().unwrap().success, "what the agent removed is not there");
    env.close().await.unwrap();
}

#[tokio::test]
async fn a_result_that_is_too_large_is_not_solved() {
    let backend = FakeBackend::new();
    let mut task = fresh_chore();
    task.verifier.carry_limit_bytes = 4000;
    let mut env = begun(&backend, &task).await;
    text(&mut env, "repeat 5000 > b").await;
    let verdict = env.verify().await.unwrap().unwrap();
    assert!(
        verdict.details.contains("larger than 4000 bytes") && !verdict.success,
        "{}",
        verdict.details
    );
    env.close().await.unwrap();
}

#[tokio::test]
async fn a_fresh_sandbox_that_cannot_be_had_is_a_failure_of_verifying() {
    let backend = FakeBackend::new();
    let mut env = begun(&backend, &fresh_chore()).await;
    text(&mut env, "cp a b").await;
    backend.set_faults(FakeFaults { failing_creates: 1, ..FakeFaults::default() });
    let error = env.verify().await.unwrap_err();
    assert_eq!(error.boundary(), Boundary::Sandbox);
    let EnvironmentError::Sandbox { phase, .. } = &error else { panic!("{error}") };
    assert_eq!(*phase, SandboxPhase::Verify);
    env.close().await.unwrap();
    assert_eq!(backend.num_live(), 0);
}

#[tokio::test]
async fn a_result_that_is_a_running_process_needs_a_port() {
    let resources = Resources::with_sandboxes(sandboxes(&FakeBackend::new()));
    let mut task = chore();
    task.verifier.processes = true;
    let error = Terminal::open(&task_of(&task), &resources).err().unwrap().to_string();
    assert!(error.contains("names no port"), "{error}");
}

fn troubled(trouble: FakeTrouble, at_exec: u64) -> FakeBackend {
    let trouble_at_exec = Some((at_exec, trouble));
    FakeBackend::new().with_faults(FakeFaults { trouble_at_exec, ..FakeFaults::default() })
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_does_to_its_sandbox_is_its_own_and_judged() {
    // The second command of a sandbox fails, so that a fresh one can run its first.
    for trouble in [FakeTrouble::Refused, FakeTrouble::UsedUp, FakeTrouble::Hangs] {
        let backend = troubled(trouble, 2);
        let mut env = begun(&backend, &chore()).await;
        text(&mut env, "cp a b").await;
        let step = env.step(&"break it".into()).await.unwrap();
        assert!(step.terminated && !step.success && step.valid, "{trouble:?}");
        let shown = &step.observation.text;
        assert!(shown.starts_with("[the sandbox cannot go on: could not "), "{shown}");
        // Nothing comes after it, and what is left is judged.
        assert!(env.step(&"ls".into()).await.is_err());
        assert!(env.verify().await.unwrap().unwrap().success, "{trouble:?}");
        env.close().await.unwrap();
        assert_eq!(backend.num_live(), 0, "the fresh one is gone as well");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_fresh_sandbox_cannot_do_either_is_the_backends() {
    for (trouble, at_exec) in [(FakeTrouble::Refused, 1), (FakeTrouble::Hangs, 1)] {
        let backend = troubled(trouble, at_exec);
        let mut env = begun(&backend, &chore()).await;
        let error = env.step(&"cp a b".into()).await.unwrap_err();
        assert_eq!(error.boundary(), Boundary::Sandbox);
        assert!(matches!(error, EnvironmentError::Sandbox { phase: SandboxPhase::Step, .. }));
        env.close().await.unwrap();
        assert_eq!(backend.num_live(), 0);
    }
    // A backend that makes none any more is no witness for the sandbox.
    let backend = troubled(FakeTrouble::Refused, 1);
    let mut env = begun(&backend, &chore()).await;
    env.prepare().await.unwrap();
    backend.set_faults(FakeFaults {
        failing_creates: 1,
        trouble_at_exec: Some((1, FakeTrouble::Refused)),
        ..FakeFaults::default()
    });
    assert!(env.step(&"cp a b".into()).await.is_err());
    env.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_verifier_that_the_agent_has_made_impossible_finds_nothing_solved() {
    // The agent's own command, clearing, going, and the verifier's.
    for at_exec in 2..=4 {
        for trouble in [FakeTrouble::Refused, FakeTrouble::UsedUp, FakeTrouble::Hangs] {
            let backend = troubled(trouble, at_exec);
            let mut env = begun(&backend, &chore()).await;
            text(&mut env, "cp a b").await;
            let verdict = env.verify().await.unwrap().unwrap();
            assert!(!verdict.success && verdict.parts.is_empty());
            let why = "verified: 0: the agent left nothing that can be judged: could not ";
            assert!(verdict.details.starts_with(why), "{}", verdict.details);
            env.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_is_an_observation_and_the_episode_goes_on() {
    let backend = FakeBackend::new();
    let mut env = begun(&backend, &chore()).await;
    let step = env.step(&format!("cd {}", "a".repeat(5000)).into()).await.unwrap();
    assert!(!step.valid && !step.terminated, "{step:?}");
    assert!(step.observation.text.starts_with("[could not use path"), "{step:?}");
    text(&mut env, "cp a b").await;
    assert!(env.verify().await.unwrap().unwrap().success);
    env.close().await.unwrap();
}

#[tokio::test]
async fn a_time_limit_of_the_task_is_told_and_named() {
    let backend = FakeBackend::new();
    let mut task = chore();
    let env = begun(&backend, &task).await;
    assert_eq!(
        (env.time_rules().task, env.time_rules().command),
        (None, Some(Duration::from_secs(30)))
    );
    task.agent_secs = Some(90);
    let mut env = open(&backend, &task);
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert!(first.text.contains("may take 30 s, all of them 90 s; submit"), "{}", first.text);
    assert_eq!(env.time_rules().task, Some(Duration::from_secs(90)));
}

/// The verdict of graders on an episode in which these commands ran.
async fn judged(
    backend: &FakeBackend,
    task: &TerminalTask,
    graders: serde_json::Value,
    actions: &[&str],
) -> Result<Verdict, EnvironmentError> {
    let graders: Vec<GraderConfig> = serde_json::from_value(graders).unwrap();
    let task = Task { graders, ..task_of(task) };
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let mut env = open_environment(&task, &resources)?;
    env.reset(Seed::from_u64(0)).await?;
    for action in actions {
        env.step(&(*action).into()).await?;
    }
    let record = serde_json::json!({
        "version": 3, "episode": 1, "task": task.id, "environment": "terminal", "seed": Seed::from_u64(0),
        "policy": "p", "first_observation": { "text": "", "state_key": "" }, "turns": [],
        "end": { "kind": "terminated" }, "success": false, "wall_time": { "secs": 0, "nanos": 0 },
    });
    let record = Trajectory::from_json(record.to_string().as_bytes()).unwrap();
    let verdict = env.grade(&record).await;
    env.close().await?;
    verdict.map(Option::unwrap)
}

#[tokio::test]
async fn scripts_are_graders_of_any_task_at_a_shell() {
    let backend = FakeBackend::new();
    let own = serde_json::json!([
        { "kind": "environment", "decides": true },
        { "kind": "script", "name": "listed", "weight": 0.5, "command": "cat a" },
        { "kind": "script", "name": "never", "command": "false" },
        {
            "kind": "fresh_sandbox", "name": "alone", "weight": 2, "carry": ["b"],
            "command": "[ \"$(cat b)\" = \"$(cat /tests/right)\" ]", "files": { "right": "x\n" }
        },
    ]);
    let verdict = judged(&backend, &chore(), own.clone(), &["cp a b"]).await.unwrap();
    assert_eq!((verdict.reward(), verdict.success), (3.5, true), "{}", verdict.details);
    let names: Vec<_> = verdict.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["verified", "listed", "alone"]);
    let idle = judged(&backend, &chore(), own, &[]).await.unwrap();
    assert_eq!((idle.reward(), idle.success), (0.5, false), "{}", idle.details);
    assert_eq!(backend.num_live(), 0);

    // What is left of the agent's own is not in the fresh sandbox, and its own files are not there before.
    let fresh =
        serde_json::json!([{ "kind": "fresh_sandbox", "carry": ["b"], "command": "cat c" }]);
    let verdict = judged(&backend, &chore(), fresh, &["cp a b", "cp a c"]).await.unwrap();
    assert!(!verdict.success && verdict.reward() == 0.0, "{}", verdict.details);
}

#[tokio::test]
async fn graders_that_cannot_be_are_refused_and_trouble_below_them_is_the_sandbox_s() {
    let backend = FakeBackend::new();
    let told = async |graders: serde_json::Value| {
        let error = judged(&backend, &chore(), graders, &[]).await.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error}: {source}")
    };
    let judge = told(serde_json::json!([{ "kind": "judge" }])).await;
    assert!(judge.contains("--judge URL"), "{judge}");
    let exact = told(serde_json::json!([{ "kind": "exact" }])).await;
    assert!(exact.contains("an answer that is right"), "{exact}");
    let carried =
        told(serde_json::json!([{ "kind": "fresh_sandbox", "carry": ["/proc/1"] }])).await;
    assert!(carried.contains("not the agent's"), "{carried}");
    let behind = serde_json::json!([
        { "kind": "environment", "decides": true }, { "kind": "script", "command": "cat a" },
    ]);
    let error = judged(&backend, &fresh_chore(), behind, &[]).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("name it before `environment`"), "{source}");
    // An error of the sandbox stays one, whichever grader was at work.
    let place = GraderError::Place(Box::new(EnvironmentError::NoSandboxes { environment: "t" }));
    let error = EnvironmentError::from(place);
    assert!(matches!(error, EnvironmentError::NoSandboxes { .. }), "{error}");
    let unread = GraderError::Late { model: "m".to_owned(), seconds: 1 };
    assert_eq!(EnvironmentError::from(unread).boundary(), Boundary::Grader);
}

/// A line of a task file: another user's file is to be written, which only who may become that user can do.
const AS_ANOTHER: &str = r#"{
    "instruction": "Let user 4711 write `done` into its file `mine`.", "capabilities": "packages",
    "setup": ["echo 'ann:*:4711:4711::/tmp:/bin/sh' >>/etc/passwd"],
    "verifier": {"command": "ls -ln mine | grep -q ' 4711 ' && [ \"$(cat mine)\" = done ]"},
    "solution": ["touch mine; chown 4711 mine", "su ann -c 'echo done >mine' </dev/null"]}"#;

/// The reward of the solution of a task on a backend of the registry.
async fn solved_on(backend: &str, task: &TerminalTask) -> f64 {
    let backend = spar_sandbox::registry::open(backend).unwrap();
    let pool = Arc::new(SandboxPool::new(backend, PoolConfig::default()).unwrap());
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
    let mut env = Terminal::open(&task_of(task), &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    for command in &task.solution {
        env.step(&command.as_str().into()).await.unwrap();
    }
    env.step(&SUBMIT.into()).await.unwrap();
    let reward = env.verify().await.unwrap().unwrap_or_default().reward();
    env.close().await.unwrap();
    pool.shutdown().await;
    reward
}

async fn capabilities_are_given_where_a_task_asks(backend: &str) {
    let mut task: TerminalTask = serde_json::from_str(AS_ANOTHER).unwrap();
    assert_eq!(solved_on(backend, &task).await, 1.0);
    task.capabilities = spar_sandbox::CapabilitySet::None;
    assert_eq!(solved_on(backend, &task).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_task_has_the_capabilities_that_it_asks_for_on_docker() {
    capabilities_are_given_where_a_task_asks("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn a_task_has_the_capabilities_that_it_asks_for_in_namespaces() {
    let backend = spar_sandbox::registry::open("local").unwrap();
    if !backend.capabilities().capability_sets {
        // Without being root there are no other users: that is refused, as conformance checks.
        return;
    }
    capabilities_are_given_where_a_task_asks("local").await;
}

#[tokio::test]
async fn capabilities_that_a_backend_lacks_are_refused_before_anything_is_played() {
    let task: TerminalTask = serde_json::from_str(AS_ANOTHER).unwrap();
    let mut env = begun(&FakeBackend::new(), &task).await;
    let error = env.prepare().await.unwrap_err();
    let EnvironmentError::Sandbox { source, .. } = &error else { panic!("{error}") };
    assert!(source.to_string().contains("give capabilities"), "{source}");
}
