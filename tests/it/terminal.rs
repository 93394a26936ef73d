//! Episodes in sandboxes, from the command line and over real backends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use spar::agent::policies::ScriptedPolicy;
use spar::agent::{
    Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
};
use spar::core::{Boundary, EndReason, Seed};
use spar::envs::{Resources, Sandboxes, open_environment};
use spar::sandbox::OwnerState;
use spar::sandbox::pool::{PoolConfig, SandboxPool};
use spar::sandbox::registry;
use spar::tasks::{Task, TerminalTask};

use crate::support::{run, spar, succeed};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The share of tasks that a built-in player solves.
fn success_rate(folder: &Path, backend: &str, player: &str, limit: &str) -> f64 {
    let arguments = ["eval", "--suite", "terminal", "--json", "--policy", player];
    let limit = ["--backend", backend, "--limit", limit];
    let report = json(&succeed(folder, &[&arguments[..], &limit].concat()).out);
    assert_eq!(report["is_complete"], true);
    report["evaluations"][0]["overall"]["success_rate"].as_f64().unwrap()
}

#[test]
fn the_oracle_solves_every_chore_and_chance_none() {
    let folder = Path::new(".");
    assert_eq!(success_rate(folder, "fake", "oracle", "40"), 1.0);
    assert!(success_rate(folder, "fake", "random", "40") < 0.05);
}

#[test]
fn what_was_done_at_a_shell_can_be_read_and_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let backend = ["--suite", "terminal", "--backend", "fake"];
    for (name, player) in [("solved", "oracle"), ("tried", "random")] {
        let rollout = ["rollout", "--out", name, "--policy", player, "--json"];
        let size = ["--limit", "3", "--group-size", "2"];
        let report = json(&succeed(folder, &[&rollout[..], &backend, &size].concat()).out);
        let counts = &report["splits"][0]["counts"];
        assert_eq!((&counts["finished"], &counts["sandbox_failures"]), (&6.into(), &0.into()));
        let again = succeed(folder, &["replay", name, "--backend", "fake", "--json"]).out;
        let again = json(&again);
        assert_eq!((&again["trajectories"], &again["mismatches"]), (&6.into(), &0.into()));
    }
    let shown = succeed(folder, &["show", "solved", "--episode", "1"]).out;
    assert!(shown.contains("solved") && shown.contains("[verified: 1]"), "{shown}");
}

#[test]
fn a_person_works_at_a_shell() {
    let arguments = ["play", "terminal", "--backend", "fake", "--index", "3"];
    let mut child = spar(Path::new("."), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"ls\nnowhere\n:hint\n?\nsubmit\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn tasks_come_from_folders_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let line = r#"{"id": "copy", "instruction": "Copy a to b.", "files": {"a": "x"},
        "verifier": {"command": "[ -e b ]"}, "solution": ["cp a b"]}"#;
    write("chores.jsonl", &line.replace('\n', ""));
    write(
        "mine/suite.toml",
        "name = \"mine\"\nversion = \"1\"\nabout = \"a\"\nenvironment = \"terminal\"\n\
         [splits.test]\ntasks = \"test\"\n",
    );
    write("mine/test/copy/instruction.md", "Copy a to b.");
    write("mine/test/copy/files/a", "x");
    write("mine/test/copy/tests/test.sh", "[ -e b ]");
    write("mine/test/copy/task.toml", "[verifier]\ncommand = \"[ -e b ] && cat /tests/test.sh\"\n");
    write("mine/test/copy/solution.sh", "cp a b\n");
    let fresh =
        line.replace("\"[ -e b ]\"", "\"[ -e b ]\", \"sandbox\": \"fresh\", \"carry\": [\"b\"]");
    write("fresh.jsonl", &fresh.replace('\n', ""));
    for suite in ["chores.jsonl", "fresh.jsonl", "mine"] {
        let arguments = ["eval", "--suite", suite, "--policy", "oracle", "--backend", "fake"];
        let ran = succeed(folder, &arguments);
        assert!(ran.out.contains(" 100.0 "), "{suite}: {}", ran.out);
        let checked = succeed(folder, &["validate", suite, "--backend", "fake"]).out;
        assert!(checked.ends_with("nothing is wrong\n"), "{checked}");
    }
    write("wrong.jsonl", "{\"id\": \"a\"}\n");
    let ran = run(folder, &["validate", "wrong.jsonl", "--backend", "fake"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("wrong.jsonl`, line 1"), "{}", ran.err);
    for (verifier, problem) in [
        (r#""sandbox": "fresh""#, "names nothing to judge"),
        (r#""carry": ["b"]"#, "has no effect"),
        (r#""processes": true"#, "names no port"),
    ] {
        let line = format!(r#"{{"id": "a", "instruction": "a", "verifier": {{{verifier}}}}}"#);
        write("wrong.jsonl", &line);
        let ran = run(folder, &["validate", "wrong.jsonl", "--backend", "fake"]);
        assert!(ran.code == Some(1) && ran.err.contains(problem), "{verifier}: {}", ran.err);
    }
}

#[test]
fn what_has_no_effect_or_does_not_work_is_refused_before_anything_is_played() {
    let refused = |arguments: &[&str], part: &str| {
        let ran = run(Path::new("."), arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}");
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    };
    let eval = ["eval", "--policy", "oracle", "--limit", "1"];
    let lake = ["--suite", "frozen-lake", "--backend", "fake"];
    refused(&[&eval[..], &lake].concat(), "it needs none");
    let unknown = ["--suite", "terminal", "--backend", "dokcer"];
    refused(&[&eval[..], &unknown].concat(), "`docker`, `wasm`, `local`");
    let image = ["--suite", "terminal", "--backend", "fake", "--image", "root.tar"];
    refused(&[&eval[..], &image].concat(), "bring up task `terminal/test/0`");
}

/// Chores, forks and repeats over a real backend.
fn chores_on(backend: &str) {
    let folder = Path::new(".");
    assert_eq!(success_rate(folder, backend, "oracle", "21"), 1.0);
    assert!(success_rate(folder, backend, "random", "14") < 0.1);
    let arguments = ["validate", "terminal", "--split", "test", "--limit", "7"];
    let checked = succeed(folder, &[&arguments[..], &["--backend", backend]].concat()).out;
    assert!(checked.ends_with("nothing is wrong\n"), "{checked}");
}

fn task_of(found: &TerminalTask) -> Task {
    Task {
        id: "it/test/0".to_owned(),
        environment: "terminal".to_owned(),
        parameters: serde_json::to_value(found).unwrap(),
        instruction: String::new(),
        max_turns: 8,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

fn pool(backend: &str) -> Arc<SandboxPool> {
    let backend = registry::open(backend).unwrap();
    Arc::new(SandboxPool::new(backend, PoolConfig::default()).unwrap())
}

/// Nothing that the agent left running is there when the verifier comes, nor what it put where the
/// verifier's files go.
async fn cheats_fail_on(backend: &str) {
    let pool = pool(backend);
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
    let mut task =
        TerminalTask::new("Nothing.", "[ ! -e /tests/old ] && rm -f a && sleep 2 && [ ! -e a ]");
    task.verifier.files = [("test.sh".to_owned(), "true".into())].into();
    let writer = "(setsid sh -c 'while :; do echo x >/task/a; sleep 0.1; done' \
                  </dev/null >/dev/null 2>&1 &)";
    let policy = ScriptedPolicy::new([
        writer,
        "mkdir -p /tests && touch /tests/old && ln -s /etc/passwd /tests/test.sh",
        // Only what can be reached from here: the loopback.
        "[ \"$(tail -n +3 /proc/net/dev | grep -c :)\" = 1 ]",
        "sleep 1; [ -e a ]",
        "submit",
    ]);
    let request = CollectRequest {
        tasks: &[task_of(&task)],
        player: SharedPlayer::of(policy),
        seating: Seating::default(),
        strategy: &spar::agent::strategies::Independent,
        open: Arc::new(move |task| open_environment(task, &resources)),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    let collection = collect_groups(&request, &config).await;
    pool.shutdown().await;
    assert_eq!(collection.counts.finished, 1, "{:?}", collection.last_failure);
    let turns = &collection.groups[0].trajectories[0].turns;
    for turn in &turns[..4] {
        let text = &turn.step.observation.text;
        assert!(text.ends_with("[exit code 0]"), "{}: {text}", turn.text);
    }
    let last = &turns[4].step;
    assert!(last.success, "{}", last.observation.text);
}

#[test]
#[ignore = "needs Docker"]
fn chores_are_done_in_docker_containers() {
    chores_on("docker");
}

#[test]
#[ignore = "needs namespaces"]
fn chores_are_done_in_namespaces() {
    chores_on("local");
}

#[test]
#[ignore = "needs the wasm guests"]
fn chores_are_done_in_wasm_guests() {
    chores_on("wasm");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn cheats_fail_in_docker_containers() {
    cheats_fail_on("docker").await;
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn cheats_fail_in_namespaces() {
    cheats_fail_on("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn docker_containers_that_are_killed_are_refilled() {
    let pool = pool("docker");
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
    let mut found = TerminalTask::new("Wait.", "[ -e done ]");
    found.solution = vec!["sleep 5".to_owned(), "echo x > done".to_owned()];
    let tasks: Vec<Task> =
        (0..4).map(|index| Task { id: format!("it/test/{index}"), ..task_of(&found) }).collect();
    let failures = std::sync::Mutex::new(Vec::new());
    let request = CollectRequest {
        tasks: &tasks,
        player: SharedPlayer::Oracle { encoder: None },
        seating: Seating::default(),
        strategy: &spar::agent::strategies::Independent,
        open: Arc::new(move |task| open_environment(task, &resources)),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|trajectory| {
            if let EndReason::Failed { boundary, .. } = trajectory.end {
                failures.lock().unwrap().push(boundary);
            }
        },
    };
    let config =
        CollectConfig { group_size: 4, concurrency: 16.into(), ..CollectConfig::default() };
    let kill = async {
        // Those that are at their first command by now.
        while pool.metrics().in_use < 16 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let listed = pool.backend().list().await.unwrap();
        let own = listed.iter().filter(|record| record.owner_state == OwnerState::Own);
        let ids: Vec<&str> = own.map(|record| record.id.as_str()).take(6).collect();
        let killed = Command::new("docker").arg("kill").args(&ids).output().unwrap();
        assert!(killed.status.success(), "{killed:?}");
        ids.len()
    };
    let (collection, num_killed) = tokio::join!(collect_groups(&request, &config), kill);
    pool.shutdown().await;
    let counts = collection.counts;
    assert_eq!((counts.finished, counts.missing()), (16, 0), "{:?}", collection.last_failure);
    assert!(collection.groups.iter().all(|group| group.trajectories.len() == 4));
    assert!(collection.groups.iter().flat_map(|group| &group.trajectories).all(|t| t.success));
    let failures = failures.into_inner().unwrap();
    assert!((1..=num_killed).contains(&counts.sandbox_failures), "{counts:?}");
    assert!(failures.iter().all(|boundary| *boundary == Boundary::Sandbox), "{failures:?}");
    assert_eq!(pool.metrics().live, 0);
}

#[cfg(feature = "docker")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_docker_engine_that_is_killed_and_comes_back_is_survived() {
    use crate::engine_process::EngineProcess;
    use spar::sandbox::backends::docker::DockerBackend;

    let mut engine = EngineProcess::docker();
    let backend = DockerBackend::connect_many([engine.address().parse().unwrap()]).await.unwrap();
    let pool = Arc::new(SandboxPool::new(Arc::new(backend), PoolConfig::default()).unwrap());
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
    let mut found = TerminalTask::new("Wait.", "[ -e done ]");
    found.solution = vec!["sleep 10".to_owned(), "echo x > done".to_owned()];
    let tasks: Vec<Task> =
        (0..2).map(|index| Task { id: format!("it/test/{index}"), ..task_of(&found) }).collect();
    let request = CollectRequest {
        tasks: &tasks,
        player: SharedPlayer::Oracle { encoder: None },
        seating: Seating::default(),
        strategy: &spar::agent::strategies::Independent,
        open: Arc::new(move |task| open_environment(task, &resources)),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let config = CollectConfig { group_size: 4, concurrency: 8.into(), ..CollectConfig::default() };
    let watched = Arc::clone(&pool);
    // On a thread of its own: starting an engine is waited for.
    let restart = tokio::task::spawn_blocking(move || {
        while watched.metrics().in_use < 8 {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_secs(2));
        engine.kill();
        std::thread::sleep(Duration::from_secs(5));
        engine.again();
        engine
    });
    let collection = collect_groups(&request, &config).await;
    let engine = restart.await.unwrap();
    pool.shutdown().await;
    drop(engine);
    let counts = collection.counts;
    assert_eq!((counts.finished, counts.missing()), (8, 0), "{:?}", collection.last_failure);
    assert!(counts.sandbox_failures >= 8, "{counts:?}");
    assert!(collection.groups.iter().flat_map(|group| &group.trajectories).all(|t| t.success));
}
