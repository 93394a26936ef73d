//! The examples of programs that environments are played in, and their skeleton.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use futures::future::join_all;
use serde_json::json;
use spar_core::{Action, Seed, Step};
use spar_envs::process::check_program;
use spar_envs::{Environment, EnvironmentError, Resources, open_environment};
use spar_tasks::{ProcessSuite, ProgramSandbox, Suite, Task};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn suite(folder: &str) -> ProcessSuite {
    ProcessSuite::open(&root().join(folder)).unwrap()
}

/// The folder that `spar env init` writes.
fn skeleton() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["env.toml", "game.py", "spar_env.py"] {
        let text = fs::read_to_string(root().join("src/commands/env/skeletons/python").join(file));
        fs::write(folder.path().join(file), text.unwrap().replace("NAME", "my-game")).unwrap();
    }
    folder
}

fn has_python() -> bool {
    let version = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Plays a task to its end by the oracle: the turns, and whether it was solved.
async fn play(task: &Task, resources: &Resources) -> Result<(u32, bool), EnvironmentError> {
    let mut env = open_environment(task, resources)?;
    env.reset(Seed::from_u64(1)).await?;
    env.prepare().await?;
    for turn in 1..=task.max_turns {
        let action = env.oracle_action().expect("there is an oracle");
        let step = env.step(&action).await?;
        if step.terminated {
            env.close().await?;
            return Ok((turn, step.success));
        }
    }
    env.close().await?;
    Ok((task.max_turns, false))
}

/// What the last of answers brings, behind others that are carried out on a desktop and show it.
async fn last_step(env: &mut dyn Environment, answers: &[&str]) -> Step {
    let (last, others) = answers.split_last().unwrap();
    for answer in others {
        let step = env.step(&(*answer).into()).await.unwrap();
        assert!(
            step.valid && !step.terminated && step.observation.media.len() == 1,
            "{answer}: {step:?}"
        );
    }
    env.step(&(*last).into()).await.unwrap()
}

/// Plays 64 tasks at one time.
async fn play_many(tasks: &[Task]) -> Vec<(u32, bool)> {
    let resources = Resources::default();
    let played = join_all(tasks.iter().map(|task| play(task, &resources))).await;
    resources.close_programs().await;
    played.into_iter().collect::<Result<_, _>>().unwrap()
}

fn tasks(suite: &ProcessSuite, count: usize) -> Vec<Task> {
    (0..count).map(|index| suite.task("train", index).unwrap()).collect()
}

/// The same tasks, in sandboxes.
fn in_sandboxes(tasks: Vec<Task>, backend: &str, image: &str) -> Vec<Task> {
    let sandbox = ProgramSandbox {
        backend: backend.to_owned(),
        image: image.to_owned(),
        ..ProgramSandbox::default()
    };
    let within = |mut task: Task| {
        task.parameters["program"]["sandbox"] = json!(sandbox);
        // Two sandboxes, with half of the sessions in each.
        task.parameters["program"]["limits"] = json!({ "sessions_per_program": 32 });
        task
    };
    tasks.into_iter().map(within).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_in_python_keep_to_the_protocol_many_at_a_time() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let skeleton = skeleton();
    let suites =
        [suite("examples/process/python-guess"), ProcessSuite::open(skeleton.path()).unwrap()];
    for suite in suites {
        let resources = Resources::default();
        let report = check_program(&suite, &resources).await.unwrap();
        assert!(report.is_valid() && report.has_oracle, "{report:#?}");
        let played = play_many(&tasks(&suite, 64)).await;
        assert!(played.iter().all(|(turns, is_solved)| *turns == 1 && *is_solved));
    }
}

#[test]
fn the_helper_of_the_example_is_that_of_the_skeleton() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let helper = read("src/commands/env/skeletons/python/spar_env.py");
    for example in ["android-world", "osworld", "python-gymnasium", "science-world"] {
        assert_eq!(read(&format!("examples/process/{example}/spar_env.py")), helper);
    }
    let guess = read("examples/process/python-guess/guess.py");
    assert!(guess.lines().filter(|line| !line.trim().is_empty()).count() <= 40);
}

/// Tools, forks and errors of the helper, with a program of its own.
#[tokio::test]
async fn methods_are_tools_and_exceptions_fail_the_episode() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let folder = skeleton();
    let env = fs::read_to_string(folder.path().join("env.toml")).unwrap();
    let env = env.replace("command =", "actions = \"calls\"\ncommand =");
    fs::write(folder.path().join("env.toml"), env).unwrap();
    let program = r#"
from spar_env import Env, call, serve, tool

class Building(Env):
    @tool
    def look(self):
        return "A hall."

class Doors(Building):
    def reset(self, task, seed):
        print("this goes to standard error")
        self.right = task["seed"] % 3
        return "Three doors."

    @tool
    def open(self, door: int, slowly: bool = False):
        """Opens a door."""
        if door == 99:
            raise ValueError("there is no such door")
        if door == self.right:
            self.end(success=True, reward=1.0)
        return f"Door {door} is open."

    def oracle(self):
        return call("open", door=self.right)

serve(Doors)
"#;
    fs::write(folder.path().join("game.py"), program).unwrap();
    let suite = ProcessSuite::open(folder.path()).unwrap();
    let resources = Resources::default();
    let report = check_program(&suite, &resources).await.unwrap();
    assert!(report.is_valid(), "{report:#?}");
    let resources = Resources::default();
    let mut env = open_environment(&suite.task("train", 4).unwrap(), &resources).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let [looking, tool] = &*env.tools() else { panic!("{:?}", env.tools()) };
    assert_eq!(looking.name, "look");
    assert_eq!((tool.name.as_str(), tool.description.as_str()), ("open", "Opens a door."));
    let schema = json!({
        "type": "object",
        "properties": { "door": { "type": "integer" }, "slowly": { "type": "boolean" } },
        "required": ["door"],
    });
    assert_eq!(tool.parameters, schema);
    let open = |door: i32| {
        let arguments = json!({ "door": door }).as_object().unwrap().clone();
        Action::calls(vec![spar_core::ToolCall::new("open", arguments)])
    };
    // Arguments that it cannot be called with are the policy's mistake, and fail no episode.
    let wrong = [
        json!({ "door": "x" }),
        json!({ "door": true }),
        json!({ "door": 1.5 }),
        json!({ "door": null }),
        json!({ "door": 1, "slowly": 0 }),
        json!({ "gate": 1 }),
        json!({}),
    ];
    for arguments in wrong {
        let call = spar_core::ToolCall::new("open", arguments.as_object().unwrap().clone());
        let step = env.step(&Action::calls(vec![call])).await.unwrap();
        let result = &step.observation.results[0];
        assert!(result.is_error && !step.valid && !step.terminated, "{arguments}: {step:?}");
        assert!(result.text.contains("argument"), "{arguments}: {}", result.text);
    }
    let step = env.step(&open(0)).await.unwrap();
    assert_eq!((step.observation.results[0].text.as_str(), step.valid), ("Door 0 is open.", true));
    let mut fork = env.fork().await.unwrap().unwrap();
    assert!(fork.step(&open(1)).await.unwrap().success);
    let error = env.step(&open(99)).await.unwrap_err();
    let told = std::error::Error::source(&error).unwrap().to_string();
    assert!(told.contains("ValueError: there is no such door"), "{told}");
    // The program lives on.
    assert_eq!(play(&suite.task("train", 2).unwrap(), &resources).await.unwrap(), (1, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs namespaces"]
async fn namespaces_hold_programs() {
    let tasks = tasks(&suite("examples/process/python-guess"), 64);
    let played = play_many(&in_sandboxes(tasks, "local", "default")).await;
    assert!(played.iter().all(|(_, is_solved)| *is_solved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Docker"]
async fn docker_containers_hold_programs() {
    use spar_tasks::{SuiteOptions, open_suite};

    // The smallest image has a shell and no Python.
    let suite = open_suite("dial", &SuiteOptions::default()).unwrap();
    let tasks: Vec<_> = (0..64).map(|index| suite.task("train", index).unwrap()).collect();
    let played = play_many(&in_sandboxes(tasks, "docker", "default")).await;
    assert!(played.iter().all(|(_, is_solved)| *is_solved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs gymnasium from PyPI"]
async fn gymnasium_is_played() {
    let python = std::env::var("SPAR_GYMNASIUM_PYTHON")
        .expect("SPAR_GYMNASIUM_PYTHON names a Python with gymnasium");
    let suite = suite("examples/process/python-gymnasium");
    let with_python = |mut task: Task| {
        task.parameters["program"]["command"][0] = json!(python);
        task
    };
    let resources = Resources::default();
    let mut env =
        open_environment(&with_python(suite.task("train", 0).unwrap()), &resources).unwrap();
    let first = env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(first.text.contains("[S]"), "{}", first.text);
    let mut last = None;
    while let Some(action) = env.oracle_action() {
        let twin = env.fork().await.unwrap();
        let step = env.step(&action).await.unwrap();
        if let Some(mut twin) = twin {
            assert_eq!(twin.step(&action).await.unwrap().observation, step.observation);
            twin.close().await.unwrap();
        }
        last = Some(step);
    }
    let last = last.unwrap();
    assert!(last.success && last.terminated && last.reward() == 1.0, "{last:?}");
    // What is shown first follows from the task alone.
    let starts = async |split: &str, seed| {
        let mut texts = BTreeSet::new();
        for index in 0..20 {
            let task = with_python(suite.task(split, index).unwrap());
            let mut env = open_environment(&task, &resources).unwrap();
            texts.insert(env.reset(Seed::from_u64(seed)).await.unwrap().text.clone());
            env.close().await.unwrap();
        }
        texts
    };
    let (train, dev) = (starts("train", 1).await, starts("dev", 1).await);
    assert!(train.len() == 20 && train.is_disjoint(&dev), "{train:?} {dev:?}");
    assert_eq!(starts("train", 2).await, train);
    let taxis = starts("taxi", 1).await;
    assert!(taxis.iter().chain(&train).all(|text| !text.contains('\u{1b}')), "{taxis:?}");
    assert!(taxis.iter().any(|text| text.contains("([") || text.contains("{[")), "{taxis:?}");
    let taxis = (0..20).map(|index| suite.task("taxi", index).unwrap());
    let played: Vec<_> = tasks(&suite, 44).into_iter().chain(taxis).map(with_python).collect();
    assert!(play_many(&played).await.iter().all(|(_, is_solved)| *is_solved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Java, and scienceworld from PyPI"]
async fn science_world_is_played() {
    let python = std::env::var("SPAR_SCIENCE_WORLD_PYTHON")
        .expect("SPAR_SCIENCE_WORLD_PYTHON names a Python with scienceworld");
    let suite = suite("examples/process/science-world");
    let mut task = suite.task("shown", 0).unwrap();
    task.parameters["program"]["command"][0] = json!(python);
    let mut env = open_environment(&task, &Resources::default()).unwrap();
    let first = env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(first.admissible.is_some_and(|listed| listed.len() > 20));
    let nothing = env.step(&"do nothing at all".into()).await.unwrap();
    assert!(!nothing.valid && nothing.reward() == 0.0, "{nothing:?}");
    env.reset(Seed::from_u64(1)).await.unwrap();
    let (mut earned, mut last) = (0.0, None);
    while let Some(action) = env.oracle_action() {
        let step = env.step(&action).await.unwrap();
        earned += step.reward();
        last = Some(step);
    }
    let last = last.unwrap();
    assert!(last.success && last.terminated && (earned - 1.0).abs() < 1e-9, "{earned}: {last:?}");
    env.close().await.unwrap();
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_is_played_over_the_interface_of_androidworlds_server() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let server = root().join("envs/tests/fixtures/android_world_server.py");
    let server = Command::new("python3").arg(server).stdout(Stdio::piped()).spawn().unwrap();
    let mut server = Ended(server);
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let mut task = suite("examples/process/android-world").task("test", 0).unwrap();
    task.parameters["program"]["env"]["ANDROID_WORLD"] =
        json!(format!("http://127.0.0.1:{}", port.trim()));
    task.parameters["task"]["kinds"] = json!(["TapRight"]);
    task.parameters["task"]["scale"] = json!(2);
    let resources = Resources::default();
    let mut env = open_environment(&task, &resources).unwrap();
    for (taps, earned) in [(&[1, 3][..], 1.0), (&[3, 1], 0.0), (&[], 0.0)] {
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert_eq!(first.instruction.as_deref(), Some("Tap the right half."));
        let [screen] = &first.media[..] else { panic!("{first:?}") };
        assert_eq!(screen.media_type, "image/png");
        // Five by six pixels.
        assert_eq!(screen.bytes().unwrap()[16..24], [0, 0, 0, 5, 0, 0, 0, 6]);
        for wrong in [
            "tap",
            "{}",
            r#"{"action_type": "fly"}"#,
            r#"{"action_type": "click", "x": 1}"#,
            r#"{"action_type": "click", "x": 5, "y": 0}"#,
            r#"{"action_type": "click", "x": 1, "y": 1, "index": 2}"#,
            r#"{"action_type": "status", "goal_status": "won"}"#,
        ] {
            let step = env.step(&wrong.into()).await.unwrap();
            assert!(!step.valid && !step.terminated, "{wrong}: {step:?}");
            assert!(step.observation.text.starts_with("Nothing was done: "), "{step:?}");
        }
        for x in taps {
            let tap = format!(r#"{{"action_type": "click", "x": {x}, "y": 5}}"#);
            let step = env.step(&Action::text(tap)).await.unwrap();
            assert!(step.valid && !step.terminated && step.observation.media.len() == 1);
        }
        let done = r#"{"action_type": "status", "goal_status": "complete"}"#;
        let step = env.step(&done.into()).await.unwrap();
        assert!(step.terminated && step.success == (earned == 1.0), "{step:?}");
        assert_eq!(step.reward(), earned);
    }
    // What the server refuses is no doing of the policy.
    task.parameters["task"]["kinds"] = json!(["FlyAway"]);
    let mut lost = open_environment(&task, &resources).unwrap();
    env.close().await.unwrap();
    assert!(lost.reset(Seed::from_u64(1)).await.is_err());
    lost.close().await.unwrap();
    resources.close_programs().await;
}

/// A server of OSWorld's interface with a desktop of its own, and the variables by which the example finds it.
struct Desktop {
    _server: Ended,
    _folder: tempfile::TempDir,
    port: u16,
}

impl Desktop {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = root().join("envs/tests/fixtures/osworld_server.py");
        let mut command = Command::new("python3");
        command.arg(server).arg(folder.path()).stdout(Stdio::piped());
        let mut server = command.spawn().map(Ended).unwrap();
        let mut port = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { _server: server, _folder: folder, port: port.trim().parse().unwrap() }
    }

    /// The line of sh that asks for something.
    fn asking(&self, path: &str) -> String {
        format!(
            "python3 -c \"import urllib.request as web; web.build_opener(web.ProxyHandler({{}}))\
             .open('http://127.0.0.1:{}{path}', data=b'')\"",
            self.port
        )
    }

    /// A task on it, with nothing waited for.
    fn task(&self, revert: &str, what: &serde_json::Value) -> Task {
        let mut task = suite("examples/process/osworld").task("test", 0).unwrap();
        let env = &mut task.parameters["program"]["env"];
        env["OSWORLD"] = json!(format!("http://127.0.0.1:{}", self.port));
        env["OSWORLD_REVERT"] = json!(revert);
        env["OSWORLD_WAIT_SECS"] = json!("120");
        env["OSWORLD_RETRY_SECS"] = json!("0.05");
        let mut given = json!({ "pause": 0, "start_pause": 0, "end_pause": 0 });
        for (name, value) in what.as_object().unwrap() {
            given[name] = value.clone();
        }
        task.parameters["task"] = given;
        task
    }
}

/// What an error and its causes say.
fn told(error: &EnvironmentError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_desktop_is_played_over_the_interface_of_osworlds_server() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let desktop = Desktop::start();
    let revert = desktop.asking("/revert");
    let resources = Resources::default();
    let what = json!({
        "instruction": "Put the letters in order.",
        "related_apps": ["gedit"],
        "observation": "screenshot_a11y_tree",
        "config": [
            { "type": "execute", "parameters": { "command": "printf 'c\na\nb\n' > letters", "shell": true } },
            { "type": "open", "parameters": { "path": "~/letters" } },
            { "type": "upload_file", "parameters": { "files": [{ "local_path": "env.toml", "path": "~/more/env.toml" }] } },
            { "type": "change_wallpaper", "parameters": { "path": "~/more/env.toml" } },
        ],
        "evaluator": {
            "postconfig": [{ "type": "activate_window", "parameters": { "window_name": "letters" } }],
            "func": ["check_list", "exact_match", "check_moved_jpgs"],
            "conj": "and",
            "result": [
                { "type": "vm_file", "path": "~/letters", "dest": "letters" },
                { "type": "vm_command_line", "command": ["cat", "~/letters"] },
                { "type": "list_directory", "path": "/home/more" },
            ],
            "expected": [
                { "type": "rule", "rules": { "expect": ["^a$"], "unexpect": ["^d$"] } },
                { "type": "rule", "rules": { "expected": "a\nb\nc\n" } },
                { "type": "rule", "rules": { "expected": ["env.toml"] } },
            ],
        },
    });
    let task = desktop.task(&revert, &what);
    let mut env = open_environment(&task, &resources).unwrap();
    let sort = "I sort them.\n```python\nimport os\npath = os.path.expanduser('~/letters')\n\
                lines = sorted(open(path))\nopen(path, 'w').writelines(lines)\n```";
    for (answers, earned) in
        [(&[sort, "```DONE```"][..], 1.0), (&["DONE"], 0.0), (&[sort, "FAIL"], 0.0)]
    {
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert_eq!(first.instruction.as_deref(), Some("Put the letters in order."));
        let [screen] = &first.media[..] else { panic!("{first:?}") };
        assert_eq!(screen.media_type, "image/png");
        assert_eq!(screen.bytes().unwrap()[16..24], [0, 0, 0, 40, 0, 0, 0, 20]);
        assert!(
            first.text.contains("push-button\tSave\t\"\"\tButton\t\t(3, 4)\t(10, 5)\n"),
            "{}",
            first.text
        );
        assert!(!first.text.contains("Hidden") && !first.text.contains("panel"), "{}", first.text);
        for wrong in ["Let me see.", "```python\nprint('never ended')", "```python\n```"] {
            let step = env.step(&wrong.into()).await.unwrap();
            assert!(!step.valid && !step.terminated, "{wrong}: {step:?}");
            assert!(step.observation.text.starts_with("Nothing was done: "), "{step:?}");
        }
        let step = env.step(&"```python\nx = y\n```".into()).await.unwrap();
        assert!(!step.valid && step.observation.text.contains("NameError"), "{step:?}");
        let step = last_step(&mut *env, answers).await;
        assert!(step.terminated && step.success == (earned == 1.0), "{step:?}");
        assert_eq!(step.reward(), earned, "{step:?}");
    }
    env.close().await.unwrap();
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_of_computer_13_are_programs_on_the_desktop() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let desktop = Desktop::start();
    let resources = Resources::default();
    // Judged behind the last of its answers, though the policy says nothing.
    let actions = [
        r#"{"action_type": "TYPING", "text": "a<b"}"#,
        r#"{"action_type": "PRESS", "parameters": {"key": "enter"}}"#,
        r#"{"action_type": "HOTKEY", "keys": ["ctrl", "s"]}"#,
        r#"{"action_type": "CLICK", "x": 3, "y": 4, "button": "right", "num_clicks": 2}"#,
        r#"{"action_type": "SCROLL", "dy": -3}"#,
        "WAIT",
        r#"```json
{"action_type": "DRAG_TO", "x": 40, "y": 0}
```"#,
    ];
    let mouse = "[\"click\", {\"x\": 3, \"y\": 4, \"button\": \"right\", \"clicks\": 2}]\n[\"vscroll\", -3, {}]\n\
                 [\"dragTo\", 40, 0, {\"duration\": 1.0, \"button\": \"left\", \"mouseDownUp\": true}]\n";
    let wrong = [
        "```python\npyautogui.click()\n```",
        r#"{"action_type": "FLY"}"#,
        r#"{"action_type": "CLICK", "x": 3}"#,
        r#"{"action_type": "CLICK", "x": 41, "y": 3}"#,
        r#"{"action_type": "PRESS", "key": "any"}"#,
        r#"{"action_type": "SCROLL"}"#,
        r#"{"action_type": "TYPING", "text": "a", "speed": 2}"#,
    ];
    let what = json!({
        "instruction": "Do as you like.",
        "action_space": "computer_13",
        "terminal": true,
        "max_steps": actions.len() + wrong.len(),
        "evaluator": {
            "func": ["exact_match", "exact_match"],
            "result": [
                { "type": "vm_command_line", "command": "cat typed" },
                { "type": "vm_command_line", "command": "cat mouse" },
            ],
            "expected": [
                { "type": "rule", "rules": { "expected": "a<b\n[ctrl+s]" } },
                { "type": "rule", "rules": { "expected": mouse } },
            ],
        },
    });
    let mut env = open_environment(&desktop.task("", &what), &resources).unwrap();
    let first = env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(first.text.ends_with("Terminal:\n$ ls"), "{}", first.text);
    for wrong in wrong {
        let step = env.step(&wrong.into()).await.unwrap();
        assert!(!step.valid && !step.terminated, "{wrong}: {step:?}");
    }
    let step = last_step(&mut *env, &actions).await;
    assert!(step.terminated && step.success && step.reward() == 1.0, "{step:?}");
    // Nobody has brought the desktop back.
    let error = env.reset(Seed::from_u64(1)).await.map(|_| ()).unwrap_err();
    assert!(told(&error).contains("OSWORLD_REVERT"), "{}", told(&error));
    env.close().await.unwrap();
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_osworlds_server_cannot_do_fails_the_episode_by_name() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let desktop = Desktop::start();
    let revert = desktop.asking("/revert");
    let resources = Resources::default();
    let reset = async |what: serde_json::Value| {
        let mut env = open_environment(&desktop.task(&revert, &what), &resources).unwrap();
        let begun = env.reset(Seed::from_u64(1)).await.map(|_| ());
        env.close().await.unwrap();
        begun.map_err(|error| told(&error))
    };
    let infeasible = json!({ "func": "infeasible" });
    let opens = json!([{ "type": "chrome_open_tabs", "parameters": { "urls_to_open": ["x"] } }]);
    let tabs = json!({ "type": "open_tabs_info" });
    let rule = json!({ "type": "rule", "rules": { "expected": "x" } });
    // Told before anything is done.
    for (what, part) in [
        (
            json!({ "instruction": "x", "config": opens, "evaluator": infeasible }),
            "`chrome_open_tabs`",
        ),
        (
            json!({ "instruction": "x", "evaluator": { "func": "exact_match", "result": tabs, "expected": rule } }),
            "`open_tabs_info`",
        ),
        (
            json!({ "instruction": "x", "evaluator": { "func": "compare_sounds", "result": tabs } }),
            "metric `compare_sounds`",
        ),
        (json!({ "instruction": "x", "evaluator": infeasible, "speed": 2 }), "`speed`"),
        (
            json!({ "instruction": "x", "evaluator": infeasible, "observation": "som" }),
            "observation",
        ),
    ] {
        let error = reset(what).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    // By the server, at a step that is named.
    let open = json!([{ "type": "open", "parameters": { "path": "/nowhere" } }]);
    let error = reset(json!({ "instruction": "x", "config": open, "evaluator": infeasible }));
    let error = error.await.unwrap_err();
    assert!(
        error.contains("step 1 (`open`) was not carried out") && error.contains("404"),
        "{error}"
    );
    // What is refused before judging is for the judge to see.
    let what =
        json!({ "instruction": "x", "evaluator": { "func": "infeasible", "postconfig": open } });
    let mut env = open_environment(&desktop.task(&revert, &what), &resources).unwrap();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let step = env.step(&"FAIL".into()).await.unwrap();
    assert!(step.terminated && step.success, "{step:?}");
    assert!(step.observation.text.contains("step before judging 1 (`open`)"), "{step:?}");
    // A screen that cannot be had, in the middle of an episode; at last a computer that is not there.
    env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(Command::new("sh").args(["-c", &desktop.asking("/break")]).status().unwrap().success());
    let error = env.step(&"WAIT".into()).await.map(|_| ()).unwrap_err();
    assert!(told(&error).contains("no picture"), "{}", told(&error));
    env.close().await.unwrap();
    let mut task = desktop.task("", &json!({ "instruction": "x", "evaluator": infeasible }));
    task.parameters["program"]["env"]["OSWORLD"] = json!("http://127.0.0.1:9");
    task.parameters["program"]["env"]["OSWORLD_WAIT_SECS"] = json!("0.1");
    let mut lost = open_environment(&task, &resources).unwrap();
    let error = lost.reset(Seed::from_u64(1)).await.map(|_| ()).unwrap_err();
    assert!(told(&error).contains("is OSWorld's virtual machine up at"), "{}", told(&error));
    lost.close().await.unwrap();
    resources.close_programs().await;
}
