//! Published scaffolds over real machines: the same answers show the same as with the original.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use spar_agent::{Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Player, ScaffoldChoice};
use spar_core::{
    Completion, CompletionRequest, EndReason, MalformedCall, Message, Policy, PolicyError, Seat,
    Seed, StopCause, ToolCall, Trajectory,
};
use spar_envs::{Resources, Sandboxes, open_environment};
use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_sandbox::{Image, registry};
use spar_tasks::{Task, TerminalTask};

/// Says what was recorded, and remembers what it was shown.
struct Recorded {
    answers: Mutex<VecDeque<Value>>,
    seen: Mutex<Vec<Vec<Message>>>,
}

impl Recorded {
    fn new(answers: &[Value]) -> Self {
        Self { answers: Mutex::new(answers.iter().cloned().collect()), seen: Mutex::default() }
    }
}

#[async_trait]
impl Policy for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn is_endpoint(&self) -> bool {
        true
    }

    fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        self.seen.lock().unwrap().push(request.messages.iter().map(|it| (**it).clone()).collect());
        let answer =
            self.answers.lock().unwrap().pop_front().ok_or_else(|| PolicyError::Unsupported {
                name: "recorded".to_owned(),
                what: "more answers".to_owned(),
            })?;
        let stop = match answer["finish"].as_str().unwrap() {
            "length" => StopCause::Length,
            "tool_calls" => StopCause::ToolCalls,
            _ => StopCause::EndOfTurn,
        };
        let text = answer["content"].as_str().unwrap();
        let calls = answer["calls"].as_array().unwrap();
        let mut completion = Completion::new("recorded", text, stop);
        if !calls.is_empty() {
            completion.calls = Some(calls.iter().map(read).collect());
        }
        Ok(completion)
    }
}

fn read(call: &Value) -> Result<ToolCall, MalformedCall> {
    let (name, written) = (call[0].as_str().unwrap(), call[1].as_str().unwrap());
    match serde_json::from_str(written) {
        Ok(Value::Object(arguments)) => Ok(ToolCall::new(name, arguments)),
        _ => Err(MalformedCall {
            name: name.to_owned(),
            detail: "its arguments are no object".to_owned(),
            written: written.to_owned(),
        }),
    }
}

fn task(instruction: &str) -> Task {
    task_with(instruction, &["mkdir -p /testbed".to_owned()])
}

fn task_with(instruction: &str, setup: &[String]) -> Task {
    let found: TerminalTask = serde_json::from_value(json!({
        "instruction": instruction, "workdir": "/testbed", "setup": setup, "verifier": { "command": "true" },
    }))
    .unwrap();
    Task {
        id: "recorded".to_owned(),
        environment: "terminal".to_owned(),
        parameters: serde_json::to_value(found).unwrap(),
        instruction: String::new(),
        max_turns: 100,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

fn sandboxes(backend: &str) -> Sandboxes {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(registry::open(backend).unwrap(), config).unwrap();
    let mut sandboxes = Sandboxes::new(Arc::new(pool));
    let image = if backend == "docker" { "spar-base" } else { "host" };
    sandboxes.image = Image::Reference(image.to_owned());
    sandboxes
}

/// Plays answers with a scaffold: the episode, and all that the policy has seen.
async fn play(
    sandboxes: Sandboxes,
    scaffold: &str,
    task: &Task,
    answers: &[Value],
) -> (Trajectory, Vec<Vec<Message>>) {
    let policy = Recorded::new(answers);
    let config = EpisodeConfig {
        scaffold: ScaffoldChoice::named(scaffold).unwrap(),
        ..EpisodeConfig::default()
    };
    config.fits(task).unwrap();
    let resources = Resources::with_sandboxes(sandboxes);
    let environment = open_environment(task, &resources).unwrap();
    let cancellation = Cancellation::new();
    let seed = Seed::from_u64(1);
    let episode = Episode {
        id: 1,
        task,
        player: Player::Policy(&policy),
        seat: Seat::FIRST,
        seed,
        environment_seed: seed,
        cancellation: &cancellation,
    };
    let mut playing = EpisodeInProgress::start(environment, &episode, &config).await;
    while playing.turn().await.is_some() {}
    let (trajectory, mut environment) = playing.finish().await;
    environment.close().await.unwrap();
    let seen = policy.seen.lock().unwrap().clone();
    (trajectory, seen)
}

/// Long runs of a character stand shorter in recordings.
fn lengthen(text: &str) -> String {
    let mut parts = text.split('⟦');
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (run, rest) = part.split_once('⟧').unwrap();
        let (character, count) = run.split_once('*').unwrap();
        whole += &character.repeat(count.parse().unwrap());
        whole += rest;
    }
    whole
}

/// What a turn has shown, one text for each message.
fn shown(trajectory: &Trajectory) -> Vec<String> {
    let mut all = Vec::new();
    for turn in &trajectory.turns {
        let observation = &turn.step.observation;
        all.extend(observation.results.iter().map(|result| result.text.clone()));
        if !observation.text.is_empty() || observation.results.is_empty() {
            all.push(observation.text.clone());
        }
    }
    all
}

fn mini_cases() -> Vec<(String, Value)> {
    const RECORDED: &str = include_str!("../../../envs/src/toolsets/mini/recorded.json");
    let recording: Value = serde_json::from_str(RECORDED).unwrap();
    let of = |version: &str| recording[version]["cases"].as_array().unwrap().clone();
    let all = [of("v2"), of("v1")].concat().into_iter();
    let scaffold = |form: &str| match form {
        "calls" => "mini".to_owned(),
        form => format!("mini-{form}"),
    };
    all.map(|case| (scaffold(case["form"].as_str().unwrap()), case)).collect()
}

/// The answers of a case that are no actions are told in the words of the original: no machine is needed for that.
#[tokio::test]
async fn mini_tells_format_errors_as_the_original() {
    let mut count = 0;
    for (scaffold, case) in mini_cases() {
        for (place, answer) in case["answers"].as_array().unwrap().iter().enumerate() {
            let told = case["shown"].get(place).filter(|told| told["raw"].is_null());
            let Some(told) = told.filter(|_| case["name"] == "format") else { continue };
            // What names a tool that there is not gets to the machine's tools, which have a test of their own.
            if !answer["calls"].as_array().unwrap().is_empty() {
                continue;
            }
            let pool = SandboxPool::new(Arc::new(FakeBackend::new()), PoolConfig::default());
            let sandboxes = Sandboxes::new(Arc::new(pool.unwrap()));
            let task = task_with("`calc.add` subtracts.\n\nIt should add.", &[]);
            let (trajectory, seen) =
                play(sandboxes, &scaffold, &task, std::slice::from_ref(answer)).await;
            assert_eq!(shown(&trajectory)[0], lengthen(told["text"].as_str().unwrap()), "{answer}");
            assert_eq!(seen[0][0].text(), case["first"][0].as_str().unwrap());
            count += 1;
        }
    }
    assert_eq!(count, 17);
}

#[tokio::test]
async fn mini_gives_up_after_three_answers_without_an_action() {
    let pool = SandboxPool::new(Arc::new(FakeBackend::new()), PoolConfig::default());
    let sandboxes = Sandboxes::new(Arc::new(pool.unwrap()));
    let said = json!({ "content": "so", "calls": [], "finish": "stop" });
    let (trajectory, _) = play(sandboxes, "mini", &task_with("Do it.", &[]), &vec![said; 9]).await;
    assert_eq!((trajectory.turns.len(), trajectory.end), (3, EndReason::Terminated));
}

/// All recorded answers, over a backend.
async fn mini_shows_what_the_original_has_shown(backend: &str) {
    for (scaffold, case) in mini_cases() {
        let task = task("`calc.add` subtracts.\n\nIt should add.");
        let answers = case["answers"].as_array().unwrap();
        let (trajectory, _) = play(sandboxes(backend), &scaffold, &task, answers).await;
        assert_eq!(trajectory.end, EndReason::Terminated, "{:?}", trajectory.end);
        assert_eq!(trajectory.turns.len(), answers.len());
        let told = case["shown"].as_array().unwrap().iter();
        // The original answers calls behind a submission with words of its own, which nobody sees.
        let told = told.filter(|it| it["raw"]["exception_info"] != "action was not executed");
        let told: Vec<_> = told.map(|it| lengthen(it["text"].as_str().unwrap())).collect();
        let shown: Vec<_> = shown(&trajectory);
        for (place, told) in told.iter().enumerate() {
            assert_eq!(&shown[place], told, "{scaffold} {} {place}", case["name"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_mini_shows_what_the_original_has_shown() {
    mini_shows_what_the_original_has_shown("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_mini_shows_what_the_original_has_shown() {
    mini_shows_what_the_original_has_shown("docker").await;
}

/// The commands that make a recorded repository.
fn repository(files: &Value) -> Vec<String> {
    let mut setup = vec!["mkdir -p /testbed/calc && cd /testbed && git init -q -b main".to_owned()];
    for (name, text) in files.as_object().unwrap() {
        let octal = |bytes: Vec<u8>| -> String {
            bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
        };
        let bytes = match text {
            Value::String(text) => lengthen(text).into_bytes(),
            latin => latin["latin1"].as_str().unwrap().chars().map(|c| c as u8).collect(),
        };
        for (place, part) in bytes.chunks(4000).enumerate() {
            let into = if place == 0 { ">" } else { ">>" };
            setup.push(format!("printf '{}' {into}/testbed/{name}", octal(part.to_vec())));
        }
        if bytes.is_empty() {
            setup.push(format!(": >/testbed/{name}"));
        }
    }
    let commit = "git -c user.name=a -c user.email=a@b commit -qm base";
    setup.push(format!("cd /testbed && git add -A && {commit}"));
    setup
}

/// All recorded answers to SWE-agent's tools, over a backend.
async fn aci_shows_what_the_original_has_shown(backend: &str) {
    const RECORDED: &str = include_str!("../../../envs/src/toolsets/aci/recorded.json");
    let recording: Value = serde_json::from_str(RECORDED).unwrap();
    let task = task_with(recording["task"].as_str().unwrap(), &repository(&recording["files"]));
    let answers = recording["answers"].as_array().unwrap();
    let (trajectory, seen) = play(sandboxes(backend), "aci", &task, answers).await;
    assert_eq!(trajectory.end, EndReason::Terminated, "{:?}", trajectory.end);
    // The task, what was wrong with an answer and the look over a submission are put in words of our own.
    let task = recording["task"].as_str().unwrap();
    assert!(seen[0].iter().any(|message| message.text().contains(task)));
    // Calls of one answer are told the same.
    let of_turn = |turn: &spar_core::Turn| turn.step.observation.results.first().cloned();
    let texts = trajectory.turns.iter().map(|turn| match of_turn(turn) {
        Some(result) => result.text,
        None => turn.step.observation.text.clone(),
    });
    let shown: Vec<String> = texts.collect();
    const NO_OUTPUT: &str = "Your command ran successfully and did not produce any output.";
    let mut num_reworded = 0;
    for (place, told) in recording["shown"].as_array().unwrap().iter().enumerate() {
        let mut told = lengthen(told.as_str().unwrap());
        if answers[place]["calls"][0][1].as_str().is_some_and(|it| it.contains("sleep 30")) {
            told = told.replace("more than 3 seconds", "more than 30 seconds");
        }
        if place + 1 == answers.len() {
            // The original shows the patch that it was handed in nobody any more.
            told = recording["end"]["submission"].as_str().unwrap().to_owned();
        }
        let is_reworded = told.starts_with("Your last output ")
            || told.starts_with("Your action could not be parsed properly")
            || told.contains("Thank you for your work on this issue.");
        if is_reworded {
            assert!(!shown[place].is_empty() && shown[place] != NO_OUTPUT, "{place}");
            num_reworded += 1;
            continue;
        }
        if let Some(listed) = told.strip_prefix("OBSERVATION:\nHere's the files and directories") {
            // Folders are listed in the order of their file system.
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let found = shown[place].strip_prefix("OBSERVATION:\nHere's the files and directories");
            assert_eq!(sorted(found.unwrap_or_default()), sorted(listed));
            continue;
        }
        assert_eq!(shown[place], told, "{place}: {}", answers[place]);
    }
    assert!(num_reworded > 0 && num_reworded < answers.len() / 3, "{num_reworded}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_aci_shows_what_the_original_has_shown() {
    aci_shows_what_the_original_has_shown("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_aci_shows_what_the_original_has_shown() {
    aci_shows_what_the_original_has_shown("docker").await;
}

/// The recordings that tests are held to are what the original shows now.
#[test]
#[ignore = "needs mini-swe-agent from PyPI"]
fn recordings_are_those_of_mini_swe_agent() {
    let python = std::env::var("SPAR_MINI_PYTHON")
        .expect("SPAR_MINI_PYTHON names a Python with mini-swe-agent");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("recorded.json");
    let mut command = std::process::Command::new(python);
    command.current_dir(root).arg("scripts/record_scaffolds.py").arg("mini").arg(&out);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let now: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    const RECORDED: &str = include_str!("../../../envs/src/toolsets/mini/recorded.json");
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(now["v2"], recorded["v2"]);
}

/// What a terminal shows for the same keys, over a backend.
async fn terminus_shows_what_the_original_has_shown(backend: &str) {
    const RECORDED: &str = include_str!("../../../envs/src/toolsets/terminus/recorded.json");
    let recording: Value = serde_json::from_str(RECORDED).unwrap();
    let keys = recording["typed"].as_array().unwrap();
    let answer = |commands: Value, is_complete: bool| {
        let said = json!({
            "analysis": "a", "plan": "p", "commands": commands, "task_complete": is_complete,
        });
        json!({ "content": said.to_string(), "calls": [], "finish": "stop" })
    };
    let typed =
        keys.iter().map(|keys| answer(json!([{ "keystrokes": keys, "duration": 1.5 }]), false));
    let ends = [answer(json!([]), true), answer(json!([]), true)];
    let answers: Vec<Value> = typed.chain(ends).collect();
    // The same prompt as on the machine where it was recorded.
    let profile = "mkdir -p /testbed && cd && printf 'PS1=\"$ \"\\ncd /testbed\\n' >.bash_profile";
    let task = task_with("Do it.", &[profile.to_owned()]);
    let (trajectory, seen) = play(sandboxes(backend), "terminus", &task, &answers).await;
    assert_eq!(trajectory.end, EndReason::Terminated, "{:?}", trajectory.end);
    let told = recording["shown"].as_array().unwrap();
    assert!(
        seen[0][0].text().contains(&lengthen(told[0].as_str().unwrap())),
        "{}",
        seen[0][0].text()
    );
    let shown = shown(&trajectory);
    for (place, told) in told.iter().skip(1).enumerate() {
        assert_eq!(shown[place], lengthen(told.as_str().unwrap()), "{place}: {}", keys[place]);
    }
    assert!(shown[keys.len()].contains("Are you sure you want to mark the task as complete?"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_terminus_shows_what_the_original_has_shown() {
    terminus_shows_what_the_original_has_shown("local").await;
}
