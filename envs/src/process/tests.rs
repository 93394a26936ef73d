//! Programs that do what they should not, and many episodes at one time.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Map, json};
use spar_core::{Action, Boundary, Observation, Seed};
use spar_tasks::{
    ProcessSuite, ProcessTask, ProgramActions, ProgramLimits, ProgramSpec, ProgramTimeouts, Suite,
    SuiteOptions, Task, open_suite,
};

use super::*;
use crate::{Actions, EnvironmentError, Resources, actions_of_task, open_environment};

/// A program that keeps to the protocol but for what it does in a step.
fn script(step: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
        id=${{line#*\"id\":}} id=${{id%%,*}}
        case $line in
        *'"call":"hello"'*) echo "{{\"id\":$id,\"protocol\":1}}" ;;
        *'"call":"reset"'*) echo "{{\"id\":$id,\"observation\":{{\"text\":\"start\"}}}}" ;;
        *'"call":"step"'*) {step} ;;
        *) echo "{{\"id\":$id}}" ;;
        esac
        done"#
    )
}

const GOOD: &str = r#"echo "{\"id\":$id,\"observation\":{\"text\":\"on\"}}""#;

fn spec(script: String) -> ProgramSpec {
    ProgramSpec {
        name: "shell".to_owned(),
        folder: None,
        command: vec!["sh".to_owned(), "-c".to_owned(), script],
        workdir: None,
        env: Default::default(),
        pass_env: Vec::new(),
        actions: ProgramActions::Words,
        whole_answers: false,
        timeouts: ProgramTimeouts { start_secs: 20, reset_secs: 20, step_secs: 20 },
        limits: ProgramLimits::default(),
        sandbox: None,
    }
}

fn task(spec: ProgramSpec) -> Task {
    let parameters = ProcessTask { program: Arc::new(spec), task: Map::new() };
    Task {
        id: "t/test/0".to_owned(),
        environment: Process::NAME.to_owned(),
        parameters: serde_json::to_value(parameters).unwrap(),
        instruction: String::new(),
        max_turns: 3,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

#[test]
fn a_reset_is_given_all_the_time_that_its_parts_may_take() {
    let mut slow = spec(script(GOOD));
    slow.timeouts = ProgramTimeouts { start_secs: 300, reset_secs: 200, step_secs: 150 };
    slow.limits.wait_secs = 1000;
    // Two sessions that wait for each other.
    slow.limits.sessions_per_program = 2;
    let rules = open_environment(&task(slow), &Resources::default()).unwrap().time_rules();
    assert_eq!(rules.reset, Some(Duration::from_secs(300 + 1000 + 300 + 400 + 300)));
    // The action, and the tools behind it.
    assert_eq!(
        (rules.step, rules.command, rules.task),
        (Some(Duration::from_secs(600)), None, None)
    );
}

fn told(error: &EnvironmentError) -> String {
    crate::validate::chain(error)
}

/// What a step in a program of this spec ends in.
async fn breaks(spec: ProgramSpec) -> (ProgramFault, String) {
    let resources = Resources::default();
    let task = task(spec);
    let began = Instant::now();
    let mut env = open_environment(&task, &resources).unwrap();
    let broken = match env.reset(Seed::from_u64(1)).await {
        Ok(_) => env.step(&"go".into()).await.map(drop),
        Err(error) => Err(error),
    };
    let error = broken.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "{}", told(&error));
    assert_eq!(error.boundary(), Boundary::Environment);
    assert!(env.step(&"go".into()).await.is_err(), "what broke is not gone on with");
    env.close().await.unwrap();
    resources.close_programs().await;
    let text = told(&error);
    let EnvironmentError::Program { source, .. } = error else { panic!("{text}") };
    assert!(text.contains("program `shell` (sh -c"), "{text}");
    assert!(text.len() < 8000, "{}", text.len());
    assert!(!text.contains(|c: char| c.is_control()), "{text}");
    (source.fault.clone(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_break_ends_in_a_fault_with_the_last_words() {
    type Is = fn(&ProgramFault) -> bool;
    let not_understood: Is = |fault| matches!(fault, ProgramFault::NotUnderstood { .. });
    let ended: Is = |fault| matches!(fault, ProgramFault::Ended { .. });
    let too_long: Is = |fault| matches!(fault, ProgramFault::LineTooLong { .. });
    let late: Is = |fault| matches!(fault, ProgramFault::Late { call: "step", .. });
    let not_asked: Is = |fault| matches!(fault, ProgramFault::NotAsked { .. });
    let answer = |rest: &str| format!("echo \"{{\\\"id\\\":$id,{rest}}}\"");
    let cases: Vec<(String, Is, &str)> = vec![
        (
            "echo oh no >&2; exit 3".into(),
            ended,
            "exited with code 3; its last words on standard error: oh no",
        ),
        ("kill -9 $$".into(), ended, "was ended by signal 9"),
        // Its output is held open by what it started, in a session of its own.
        ("(setsid sleep 300 &); exit 4".into(), ended, "exited with code 4"),
        (
            "printf '{\"id\"'; exit 5".into(),
            ended,
            "exited with code 5; its last words on standard output: {\"id\"",
        ),
        (
            "exec >&-; exec sleep 300".into(),
            |fault| *fault == ProgramFault::ClosedOutput,
            "closed its standard output",
        ),
        ("echo hello, world".into(), not_understood, "hello, world"),
        ("printf '\\377\\376\\033[2J\\n'".into(), not_understood, "JSON object"),
        ("yes".into(), not_understood, "JSON object"),
        ("yes '{\"id\":99}'".into(), not_asked, "answered request 99"),
        (answer("\\\"observation\\\":{},\\\"reward\\\":NaN"), not_understood, "no answer"),
        (answer("\\\"observation\\\":{},\\\"reward\\\":1e999"), not_understood, "no answer"),
        (answer("\\\"observation\\\":{\\\"test\\\":1}"), not_understood, "unknown field `test`"),
        (
            answer("\\\"observation\\\":{\\\"results\\\":[{}]}"),
            not_understood,
            "1 `results` for 0 calls",
        ),
        (
            answer("\\\"error\\\":\\\"it rains\\\""),
            |fault| matches!(fault, ProgramFault::Refused { .. }),
            "it rains",
        ),
        ("cat /dev/zero | tr '\\0' x".into(), too_long, "limits.line_bytes"),
        ("head -c 100000000 /dev/zero | tr '\\0' x; echo".into(), too_long, "limits.line_bytes"),
    ];
    let slow: Vec<(String, Is, &str)> = vec![
        ("printf '{\"id\":'; sleep 300".into(), late, "did not answer `step` within 1 s"),
        ("trap '' TERM HUP INT; while :; do sleep 300; done".into(), late, "within 1 s"),
        ("yes oh no >&2".into(), late, "standard error: oh no | oh no"),
    ];
    let cases =
        cases.into_iter().map(|case| (case, 20)).chain(slow.into_iter().map(|case| (case, 1)));
    let played = cases.map(|((step, is, part), step_secs)| async move {
        let mut spec = spec(script(&step));
        spec.timeouts.step_secs = step_secs;
        let (fault, text) = breaks(spec).await;
        assert!(is(&fault) && text.contains(part), "`{step}` is to be {part}: {text}");
    });
    join_all(played).await;
}

#[tokio::test]
async fn programs_that_do_not_start_are_told() {
    let mut absent = spec(String::new());
    absent.command[0] = "no-such-program".to_owned();
    let error = open_environment(&task(absent), &Resources::default())
        .unwrap()
        .reset(Seed::from_u64(1))
        .await;
    let text = told(&error.unwrap_err());
    assert!(text.contains("no-such-program") && text.contains("could not be started"), "{text}");
    let (fault, _) = breaks(spec("exit 7".to_owned())).await;
    assert_eq!(fault, ProgramFault::Ended { how: "exited with code 7".to_owned() });
    let old = "read -r line; echo '{\"id\":0,\"protocol\":0}'; sleep 300";
    assert!(breaks(spec(old.to_owned())).await.1.contains("spar speaks 1"));
    let mut silent = spec("sleep 300".to_owned());
    silent.timeouts.start_secs = 1;
    assert_eq!(breaks(silent).await.0, ProgramFault::Late { call: "hello", seconds: 1 });
}

#[tokio::test]
async fn a_broken_program_is_replaced_and_a_flood_of_errors_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once").display().to_string();
    let step = format!("if [ -e {once} ]; then {GOOD}; else : >{once}; exit 1; fi");
    let flood = format!("yes oh no >&2 & {}", script(&step));
    let task = task(ProgramSpec {
        limits: ProgramLimits { programs: 1, ..ProgramLimits::default() },
        ..spec(flood)
    });
    let resources = Resources::default();
    let mut env = open_environment(&task, &resources).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(env.step(&"go".into()).await.is_err());
    env.reset(Seed::from_u64(1)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(env.step(&"go".into()).await.unwrap().observation.text, "on");
    }
    // What was given up is not gone on with: the program plays one session at a time.
    let resources = Resources::default();
    let mut hanging = open_environment(&self::task(spec(script("sleep 300"))), &resources).unwrap();
    hanging.reset(Seed::from_u64(1)).await.unwrap();
    let action = Action::text("go");
    let step = hanging.step(&action);
    assert!(tokio::time::timeout(Duration::from_millis(50), step).await.is_err());
    let began = Instant::now();
    hanging.reset(Seed::from_u64(1)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// Plays a task to its end by the oracle.
async fn play(task: &Task, resources: &Resources) -> (Vec<Observation>, bool) {
    let mut env = open_environment(task, resources).unwrap();
    let mut shown = vec![env.reset(Seed::from_u64(1)).await.unwrap()];
    tokio::task::yield_now().await;
    env.prepare().await.unwrap();
    while let Some(action) = env.oracle_action() {
        let step = env.step(&action).await.unwrap();
        let is_solved = step.success && step.reward() == 1.0;
        shown.push(step.observation);
        if step.terminated {
            env.close().await.unwrap();
            return (shown, is_solved);
        }
    }
    (shown, false)
}

/// The tasks of the dial, with other limits.
fn dial(limits: ProgramLimits, count: usize) -> Vec<Task> {
    let suite = open_suite("dial", &SuiteOptions::default()).unwrap();
    let task = |index| {
        let mut task = suite.task("train", index).unwrap();
        task.parameters["program"]["limits"] = serde_json::to_value(limits).unwrap();
        task
    };
    (0..count).map(task).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_play_at_once_in_few_programs_and_nobody_waits_for_ever() {
    for (programs, sessions) in [(1, 64), (2, 3), (1, 1)] {
        let limits = ProgramLimits {
            programs,
            sessions_per_program: sessions,
            wait_secs: 20,
            ..ProgramLimits::default()
        };
        let tasks = dial(limits, 64);
        let resources = Resources::default();
        // Starts that wait for others hold up nobody, since they lose their places.
        let mut starts = Vec::new();
        for task in &tasks[..5] {
            let mut env = open_environment(task, &resources).unwrap();
            let first = env.reset(Seed::from_u64(1)).await.unwrap();
            starts.push((env, first));
        }
        let played = join_all(tasks.iter().map(|task| play(task, &resources))).await;
        assert!(played.iter().all(|(_, is_solved)| *is_solved), "{programs} x {sessions}");
        for (index, (env, first)) in starts.iter_mut().enumerate() {
            assert_eq!(*first, played[index].0[0]);
            let mut fork = env.fork().await.unwrap().expect("a start can always be forked");
            let action = fork.oracle_action().unwrap();
            assert_eq!(fork.step(&action).await.unwrap().observation, played[index].0[1]);
            fork.close().await.unwrap();
        }
        resources.close_programs().await;
        assert!(starts[0].0.step(&"up".into()).await.is_err(), "all is over");
    }
}

#[tokio::test]
async fn who_finds_no_place_in_time_is_refused() {
    let limits = ProgramLimits {
        programs: 1,
        sessions_per_program: 1,
        wait_secs: 1,
        ..ProgramLimits::default()
    };
    let tasks = dial(limits, 2);
    let resources = Resources::default();
    let mut one = open_environment(&tasks[0], &resources).unwrap();
    one.reset(Seed::from_u64(1)).await.unwrap();
    one.prepare().await.unwrap();
    let mut other = open_environment(&tasks[1], &resources).unwrap();
    let error = other.reset(Seed::from_u64(1)).await.unwrap_err();
    assert!(error.is_refusal(), "{error}");
    one.close().await.unwrap();
    other.reset(Seed::from_u64(1)).await.unwrap();
}

#[tokio::test]
async fn a_folder_has_its_working_folder_and_variables() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let env = "name = 'f'\nversion = '1'\nabout = 'a'\nmax_turns = 3\ncommand = ['./run.sh']\nworkdir = 'sub'\n\
               actions = 'calls'\nwhole_answers = true\nenv = { WORD = 'tea' }\n[splits.test]\ncount = 1\n";
    fs::write(folder.path().join("env.toml"), env).unwrap();
    let answer = r#"echo "{\"id\":$id,\"observation\":{\"text\":\"$WORD ${PWD##*/} ${CARGO_MANIFEST_DIR:-none}\"}}""#;
    let program = script(answer).replace("\"protocol\\\":1", "\"protocol\\\":1,\\\"tools\\\":true");
    let tools = r#"*'"call":"tools"'*) echo "{\"id\":$id,\"tools\":[{\"name\":\"f\",\"parameters\":{}}]}" ;;
        *'"call":"step"'*)"#;
    let program = program.replacen("*'\"call\":\"step\"'*)", tools, 1);
    let path = folder.path().join("run.sh");
    fs::write(&path, format!("#!/bin/sh\n{program}")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    let suite = ProcessSuite::open(folder.path()).unwrap();
    let task = suite.task("test", 0).unwrap();
    assert_eq!(actions_of_task(&task), Some(Actions::Calls));
    let resources = Resources::default();
    let mut env = open_environment(&task, &resources).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    assert_eq!(env.tools()[0].name, "f");
    assert!(env.reads_whole_answers());
    // It has nothing of the variables of who runs spar.
    assert_eq!(env.step(&"go".into()).await.unwrap().observation.text, "tea sub none");

    let mut wrong = task.clone();
    wrong.parameters["program"]["command"] = json!([]);
    let error = open_environment(&wrong, &resources).err().unwrap();
    assert!(matches!(error, EnvironmentError::Parameters { .. }), "{error}");
}

#[tokio::test]
async fn the_shipped_program_passes_its_check_and_wrong_ones_are_told_what_to_mend() {
    let check = async |program: String| {
        let folder = tempfile::tempdir().unwrap();
        let env = "name = 'f'\nversion = '1'\nabout = 'a'\nmax_turns = 3\ncommand = ['sh', 'run.sh']\n\
                   [timeouts]\nstep_secs = 1\n[splits.test]\ncount = 2\n";
        fs::write(folder.path().join("env.toml"), env).unwrap();
        fs::write(folder.path().join("run.sh"), program).unwrap();
        let suite = ProcessSuite::open(folder.path()).unwrap();
        check_program(&suite, &Resources::default()).await.unwrap()
    };
    let dial = include_str!("../../../tasks/suites/dial/dial.sh");
    let report = check(dial.to_owned()).await;
    assert!(report.is_valid(), "{report:#?}");
    assert_eq!(report.checks.iter().filter(|check| check.passed == Some(true)).count(), 8);
    let restoring = dial_that_tells_its_state();
    let report = check(restoring.clone()).await;
    assert!(report.is_valid(), "{report:#?}");
    let restored = report.checks.iter().find(|check| check.name.contains("restored")).unwrap();
    assert_eq!(restored.passed, Some(true), "{report:#?}");
    let fails = async |program: String, name: &str, part: &str| {
        let report = check(program).await;
        let check = report.checks.iter().find(|check| check.passed == Some(false));
        let check = check.unwrap_or_else(|| panic!("{name}: {report:#?}"));
        assert!(check.name.contains(name) && check.detail.contains(part), "{report:#?}");
    };
    fails("exit 3".to_owned(), "starts", "exited with code 3").await;
    fails(script("exit 3"), "plays an episode", "exited with code 3").await;
    let counting =
        "n=$((n + 1)); echo \"{\\\"id\\\":$id,\\\"observation\\\":{\\\"text\\\":\\\"$n\\\"}}\"";
    fails(script(counting), "deterministic", "`seed`").await;
    let shared = dial.replace("at_$env", "at").replace("at_$found", "at");
    fails(shared, "keeps sessions apart", "`env`").await;
    let shallow = dial.replace(
        "eval \"at_$found=\\$at_$env goal_$found=\\$goal_$env\"",
        "eval \"at_$found=0 goal_$found=\\$goal_$env\"",
    );
    fails(shallow, "forks", "copy all").await;
    let forgetful = restoring.replace("at_$env=${found%%-*} goal", "at_$env=0 goal");
    fails(forgetful, "restored", "copy all").await;
    fails(script(GOOD), "survives", "answer `nonsense`").await;
}

/// The dial, with its state told in a text in place of forks.
fn dial_that_tells_its_state() -> String {
    let dial = include_str!("../../../tasks/suites/dial/dial.sh");
    let (before, rest) = dial.split_once("    *'\"call\":\"fork\"'*)").unwrap();
    let (_, behind) = rest.split_once(";;").unwrap();
    let telling = r#"    *'"call":"snapshot"'*)
        eval "at=\$at_$env goal=\$goal_$env"
        echo "{\"id\":$id,\"snapshot\":\"$at-$goal\"}"
        ;;
    *'"call":"restore"'*)
        between "$line" '"snapshot":"'
        found=${found%\"}
        eval "at_$env=${found%%-*} goal_$env=${found#*-}"
        echo "{\"id\":$id}"
        ;;"#;
    format!("{before}{telling}{behind}").replace("\\\"fork\\\":true", "\\\"snapshot\\\":true")
}

/// What twins show of a session that was stepped once; absent where there are none.
async fn twin(program: String, limits: ProgramLimits) -> Option<(Observation, Observation)> {
    let mut task = task(ProgramSpec { limits, ..spec(program) });
    task.parameters["task"] = json!({ "seed": 3 });
    let resources = Resources::default();
    let mut env = open_environment(&task, &resources).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    env.step(&"up".into()).await.unwrap();
    let twin = env.fork().await.unwrap();
    let shown = match twin {
        Some(mut twin) => {
            let moved = twin.step(&"up".into()).await.unwrap().observation;
            Some((moved, env.step(&"up".into()).await.unwrap().observation))
        }
        None => None,
    };
    resources.close_programs().await;
    shown
}

#[tokio::test]
async fn told_states_are_restored_in_any_program_and_others_are_replayed() {
    let one = ProgramLimits { programs: 1, ..ProgramLimits::default() };
    let two = ProgramLimits { programs: 2, sessions_per_program: 1, ..one };
    for limits in [one, two] {
        let (twin, origin) = twin(dial_that_tells_its_state(), limits).await.unwrap();
        assert!(twin.text.starts_with("The dial stands at 7."), "{}", twin.text);
        assert_eq!(twin, origin);
    }
    let full = ProgramLimits { sessions_per_program: 1, ..one };
    assert!(twin(dial_that_tells_its_state(), full).await.is_none(), "there is no room");
    let neither =
        dial_that_tells_its_state().replace("\\\"snapshot\\\":true", "\\\"fork\\\":false");
    assert!(twin(neither, two).await.is_none(), "it is played anew");
}

#[tokio::test]
async fn whoever_stands_in_a_queue_is_not_late() {
    let slow = script(&format!("sleep 0.3; {GOOD}"))
        .replace("\"protocol\\\":1", "\"protocol\\\":1,\\\"concurrent\\\":8");
    let mut spec = spec(slow);
    spec.limits.programs = 1;
    spec.timeouts.step_secs = 1;
    let task = task(spec);
    let resources = Resources::default();
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let mut env = open_environment(&task, &resources).unwrap();
        env.reset(Seed::from_u64(1)).await.unwrap();
        env.prepare().await.unwrap();
        sessions.push(env);
    }
    let began = Instant::now();
    let action = Action::text("go");
    let stepped = join_all(sessions.iter_mut().map(|env| env.step(&action))).await;
    assert!(stepped.iter().all(|step| step.as_ref().is_ok_and(|it| it.observation.text == "on")));
    assert!(began.elapsed() > Duration::from_secs(1), "the last one waited beyond its time");
    resources.close_programs().await;
}

#[tokio::test]
async fn whoever_does_not_read_is_late_and_what_breaks_behind_the_last_step_changes_nothing() {
    let deaf = script(GOOD).replace("\"start\\\"}}\"", "\"start\\\"}}\"; exec sleep 300");
    let mut spec = spec(deaf);
    spec.timeouts.step_secs = 1;
    let mut env = open_environment(&task(spec.clone()), &Resources::default()).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let error = env.step(&Action::text("x".repeat(200_000))).await.unwrap_err();
    let EnvironmentError::Program { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.fault, ProgramFault::Late { call: "step", seconds: 1 });

    let last = r#"echo "{\"id\":$id,\"observation\":{},\"reward\":1,\"terminated\":true,\"success\":true}"; exit 3"#;
    spec.command[2] = script(last);
    let mut env = open_environment(&task(spec), &Resources::default()).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let step = env.step(&"go".into()).await.unwrap();
    assert!(step.success && step.reward() == 1.0);
}

#[tokio::test]
async fn variables_that_are_handed_on_are_kept_out_of_what_is_written() {
    let mut spec = spec(script(GOOD));
    // Set where tests run.
    spec.pass_env = vec!["CARGO_PKG_DESCRIPTION".to_owned()];
    let mut env = open_environment(&task(spec), &Resources::default()).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let value = std::env::var("CARGO_PKG_DESCRIPTION").unwrap();
    let told = spar_core::redaction::told(format!("it says {value}"));
    assert_eq!(told, "it says [redacted CARGO_PKG_DESCRIPTION]");
}
