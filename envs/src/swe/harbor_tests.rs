//! What task folders of Harbor ask of the sandboxes, over real backends.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use spar_core::registry::to_options;
use spar_core::{Action, Seed, ToolCall, Verdict};
use spar_swe::NetworkPolicy;
use spar_swe::grade::Outcome;
use spar_tasks::{SweTask, Task};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::steps_tests::{play, task_of, write};
use super::tests::{fake, sandboxes};
use super::{Swe, SweVerdict};
use crate::{Environment, EnvironmentError, Resources, SandboxPhase};

/// A folder with these files, and its task. What is not named is made up.
fn folder(config: &str, files: &[(&str, &str)]) -> (TempDir, Task) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("task");
    write(&place, "task.toml", &format!("schema_version = \"1.4\"\n{config}"));
    write(&place, "environment/Dockerfile", "FROM scratch\n");
    for (path, text) in files {
        write(&place, path, text);
    }
    if !place.join("steps").is_dir() {
        write(&place, "instruction.md", "Do it.");
    }
    let task = task_of(&place);
    (folder, task)
}

fn found(verdict: &Verdict) -> SweVerdict {
    SweVerdict::of(verdict).unwrap()
}

const JUDGED_BY_FILE: &str = "[ \"$(cat /app/out)\" = 42 ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n";

/// A folder whose tests look into the agent's sandbox, and its task.
pub(super) fn judged_by_file() -> (TempDir, Task) {
    let config = "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n";
    folder(config, &[("tests/test.sh", JUDGED_BY_FILE)])
}

/// Tells by a file that it runs. Processes of one command are seen by those of no other, by some backends.
const TICKS: &str = "while sleep 0.1; do echo >>ticks; done";
/// Whether that still runs.
const IS_TICKING: &str =
    "(before=$(wc -l </app/ticks); sleep 0.7; [ $(wc -l </app/ticks) -gt $before ])";

/// What a health check waits for is there when the agent begins; a check that fails is nobody's doing.
async fn waits_until_it_is_healthy(backend: &str) {
    let config = |command: &str, more: &str| {
        format!(
            "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
             [environment.healthcheck]\ncommand = \"\"\"{command}\"\"\"\ninterval_sec = 0.1\nretries = 4\n{more}"
        )
    };
    let third = "echo x >>/app/tries; [ $(wc -l </app/tries) -ge 3 ]";
    let files = [("tests/test.sh", JUDGED_BY_FILE)];
    let (_folder, task) = folder(&config(third, ""), &files);
    let (steps, verdict) = play(backend, &task, &["wc -l </app/tries", "echo 42 >out"]).await;
    assert_eq!(steps[0].observation.text, "3\n[exit code 0]");
    assert!(verdict.success, "{}", verdict.details);
    let (_folder, sick) = folder(&config("echo no; exit 3", ""), &files);
    let told = not_set_up(&sick, &Resources::with_sandboxes(sandboxes(backend))).await;
    let detail = "`echo no; exit 3` exited with 3: not ready after 4 failures in a row: no";
    assert_eq!(told, format!("set up the sandbox: {detail}"));
}

/// Why the sandbox of a task is not set up.
async fn not_set_up(task: &Task, resources: &Resources) -> String {
    let mut env = Swe::open(task, resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let error = env.prepare().await.unwrap_err();
    let EnvironmentError::Sandbox { phase: SandboxPhase::SetUp, source } = &error else {
        panic!("{error}");
    };
    env.close().await.unwrap();
    source.to_string()
}

/// The command of a service runs where the agent works.
async fn runs_the_command_of_its_service(backend: &str) {
    let config = "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
         [environment.healthcheck]\ncommand = \"[ -s /app/ticks ]\"\ninterval_sec = 0.1\nretries = 50\n";
    let compose = format!(
        "services:\n  main:\n    build: .\n    command: [\"sh\", \"-c\", \"cd /app; {TICKS}\"]\n"
    );
    let files =
        [("tests/test.sh", JUDGED_BY_FILE), ("environment/docker-compose.yaml", compose.as_str())];
    let (_folder, task) = folder(config, &files);
    let look = format!("{IS_TICKING} && echo ticks; echo 42 >out");
    let (steps, verdict) = play(backend, &task, &[look.as_str(), "submit"]).await;
    assert_eq!(steps[0].observation.text, "ticks\n[exit code 0]");
    assert!(verdict.success, "{}", verdict.details);
}

/// A step's check runs behind its set-up as the agent; what the agent broke keeps the step from beginning.
async fn waits_until_a_step_is_healthy(backend: &str) {
    let config = "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
         [[steps]]\nname = \"one\"\n\
         [[steps]]\nname = \"two\"\nagent = { user = \"nobody\" }\n\
         healthcheck = { command = \"[ -f /app/ready ] && id -un >/tmp/checked-as\", interval_sec = 0.1, retries = 2 }\n";
    let files = [
        ("steps/one/instruction.md", "Make /app/out."),
        ("steps/one/tests/test.sh", JUDGED_BY_FILE),
        ("steps/two/instruction.md", "Again."),
        ("steps/two/tests/test.sh", JUDGED_BY_FILE),
        ("steps/two/workdir/setup.sh", "[ -f broken ] || touch ready\n"),
    ];
    let (_folder, task) = folder(config, &files);
    let open = "echo 42 >out; chmod 777 /app /tmp";
    let look = "id -un; cat /tmp/checked-as";
    let (steps, verdict) = play(backend, &task, &[open, "submit", look, "submit"]).await;
    // The second step's agent is another user, in a shell of its own.
    assert_eq!(steps[2].observation.text, "nobody\nnobody\n[exit code 0]");
    assert!(verdict.success, "{}", verdict.details);
    let (steps, verdict) =
        play(backend, &task, &["echo 42 >out; chmod 777 /app; touch broken", "submit"]).await;
    assert!(steps[1].terminated);
    assert_eq!((found(&verdict).reward, steps[1].reward()), (0.5, 0.5));
    assert!(verdict.details.contains("the next cannot begin: set up the sandbox"), "{verdict:?}");
    assert!(verdict.details.contains("not ready after 2 failures"), "{verdict:?}");
}

const SEPARATE: &str = r#"
artifacts = ["/app/out", "/app/ticks", { source = "/app/logs", exclude = ["*.tmp"] }, "/app/missing"]
[environment]
workdir = "/app"
network_mode = "no-network"
env = { OF_AGENT = "1" }
[verifier]
environment_mode = "separate"
env = { KEY = "k" }
[[verifier.collect]]
command = "mkdir -p /logs/artifacts; IS_TICKING && echo runs >/logs/artifacts/state"
[[verifier.collect]]
command = "exit 3"
"#;

/// Files of the sandbox are judged elsewhere: what is carried there and nothing else, with what hooks gathered.
async fn judges_in_a_sandbox_of_its_own(backend: &str) {
    let test = "exec 2>&1; set -x\nok=0\n[ \"$(cat /app/out)\" = 42 ] && [ \"$(cat /logs/artifacts/state)\" = runs ] && [ -f /app/logs/a ] \
                && [ ! -e /app/logs/b.tmp ] && [ ! -e /app/secret ] && [ ! -e /app/logs/passwd ] && [ \"$KEY\" = k ] \
                && ! IS_TICKING && ok=1\necho $ok >/logs/verifier/reward.txt\n";
    let in_place = |text: &str| text.replace("IS_TICKING", IS_TICKING);
    let (_folder, task) =
        folder(&in_place(SEPARATE), &[("tests/test.sh", in_place(test).as_str())]);
    let leave = "(while sleep 0.1; do echo >>ticks; done) >/dev/null 2>&1 &\nuntil [ -s ticks ]; do sleep 0.1; done; echo x >secret; mkdir logs; touch logs/a logs/b.tmp; ln -s /etc/passwd logs/passwd; \
                 mkdir -p /logs/verifier; echo 1 >/logs/verifier/reward.txt; ls /tests 2>/dev/null; true";
    let (steps, verdict) = play(backend, &task, &[leave, "echo 42 >out", "submit"]).await;
    assert_eq!(steps[0].observation.text, "[exit code 0]");
    let log = found(&verdict).run.unwrap().log;
    assert!(verdict.success, "{}\n{log}", verdict.details);
    // Who does nothing earns nothing, whatever lies where rewards do.
    let (_, verdict) = play(backend, &task, &[leave]).await;
    assert_eq!((verdict.success, found(&verdict).outcome), (false, Outcome::Failed));
    // A link in the place of what is carried is not followed.
    let (_, verdict) = play(backend, &task, &[leave, "ln -s /etc/hostname out"]).await;
    assert!(!verdict.success);
}

/// A step that is judged elsewhere needs no copy of the agent's sandbox, which goes on; the next may be judged in it.
async fn judges_steps_elsewhere(backend: &str) {
    let config = "artifacts = [\"/app/out\"]\n[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
         [[steps]]\nname = \"one\"\nartifacts = [\"/app/more\"]\n\
         [steps.verifier]\nenvironment_mode = \"separate\"\ncollect = [{ command = \"echo 1 >/app/more\" }]\n\
         [[steps]]\nname = \"two\"\n";
    let elsewhere = "[ -f /app/more ] && [ ! -e /app/left ] && [ \"$(cat /app/out)\" = 42 ] && echo 1 >/logs/verifier/reward.txt\ntouch /app/left\n";
    let files = [
        ("steps/one/instruction.md", "Make /app/out."),
        ("steps/one/tests/test.sh", elsewhere),
        ("steps/two/instruction.md", "Again."),
        (
            "steps/two/tests/test.sh",
            "[ -f /app/kept ] && [ ! -e /app/left ] && echo 1 >/logs/verifier/reward.txt\n",
        ),
    ];
    let (_folder, task) = folder(config, &files);
    let commands = [
        "(sleep 600 &); echo 42 >out; touch kept",
        "submit",
        "ls; grep -qsx sleep /proc/[0-9]*/comm && echo sleeps",
        "submit",
    ];
    let (steps, verdict) = play(backend, &task, &commands).await;
    assert_eq!(steps[1].reward(), 0.5, "{}", verdict.details);
    assert_eq!(steps[2].observation.text, "kept\nmore\nout\nsleeps\n[exit code 0]");
    assert!(verdict.success, "{}", verdict.details);
}

/// The image of a verifier has its tests, its own user judges, and reaches what the task lets it reach.
async fn judges_by_an_image_of_its_own(backend: &str) {
    let config = "artifacts = [\"/app/out\"]\n[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
         [verifier]\nuser = \"judge\"\n[verifier.environment]\nworkdir = \"/oracle\"\nmemory_mb = 300\nnetwork_mode = \"public\"\nenv = { OF_JUDGE = \"1\" }\n";
    let dockerfile = "FROM spar-base\nRUN useradd judge && mkdir /oracle && echo 42 >/oracle/answer\nCOPY test.sh /tests/test.sh\n";
    let test = "cmp /app/out answer && [ \"$(id -un) $OF_JUDGE\" = 'judge 1' ] && [ -e /sys/class/net/eth0 ] && echo 1 >/logs/verifier/reward.txt\n";
    let (_folder, task) =
        folder(config, &[("tests/Dockerfile", dockerfile), ("tests/test.sh", test)]);
    let commands = ["ls -d /oracle /tests /sys/class/net/eth0", "echo 42 >out", "submit"];
    let (steps, verdict) = play(backend, &task, &commands).await;
    assert!(steps[0].observation.text.matches("No such file").count() == 3, "{steps:?}");
    let log = found(&verdict).run.unwrap().log;
    assert!(verdict.success, "{}\n{log}", verdict.details);
    let (_, verdict) = play(backend, &task, &["echo 41 >out", "submit"]).await;
    assert!(!verdict.success);
}

/// A verifier that shares the agent's files and not its network judges in a copy.
async fn judges_with_another_network(backend: &str) {
    let config = "[environment]\nworkdir = \"/app\"\n[agent]\nnetwork_mode = \"no-network\"\n";
    let test = "[ -e /sys/class/net/eth0 ] && [ \"$(cat /app/out)\" = 42 ] && echo 1 >/logs/verifier/reward.txt\n";
    let (_folder, task) = folder(config, &[("tests/test.sh", test)]);
    let (steps, verdict) =
        play(backend, &task, &["ls /sys/class/net", "echo 42 >out", "submit"]).await;
    assert_eq!(steps[0].observation.text, "lo\n[exit code 0]");
    assert!(verdict.success, "{}", verdict.details);
}

/// A folder of three steps, the second of which has this network, and its task.
fn three_steps(second: &str) -> (TempDir, Task) {
    let config = format!(
        "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\n\
         [[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n{second}[[steps]]\nname = \"three\"\n"
    );
    let judged = "[ \"$(cat /app/out)\" = 42 ] && [ ! -e /sys/class/net/eth0 ] && echo 1 >/logs/verifier/reward.txt\n";
    let mut files = Vec::new();
    for step in ["one", "two", "three"] {
        files.push((format!("steps/{step}/instruction.md"), "Do it."));
        files.push((format!("steps/{step}/tests/test.sh"), judged));
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    folder(&config, &files)
}

/// Who connects to this machine's loopback is greeted; the port.
async fn greeter() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            let _ = stream.write_all(answer).await;
        }
    });
    port
}

/// Each step reaches what it may, what the agent left running goes on, and its shell is told anew.
async fn plays_steps_with_networks_of_their_own(backend: &str) {
    let port = greeter().await;
    let (_folder, mut task) = three_steps("");
    let mut parameters: SweTask = serde_json::from_value(task.parameters).unwrap();
    let list = NetworkPolicy::Allowlist(vec![format!("127.0.0.1:{port}")]);
    parameters.instance.stages[1].network = Some(list);
    task.parameters = serde_json::to_value(parameters).unwrap();
    let ask = format!(
        "python3 -c 'import urllib.request as it; print(it.urlopen(\"http://127.0.0.1:{port}/\", timeout=5).read().decode())' 2>/dev/null || echo nothing; echo ${{http_proxy-none}}"
    );
    let leave = format!("({TICKS}) >/dev/null 2>&1 & echo 42 >out");
    let look = format!("{IS_TICKING} && echo ticks");
    let commands = [
        ask.as_str(),
        leave.as_str(),
        "submit",
        ask.as_str(),
        look.as_str(),
        "submit",
        ask.as_str(),
        look.as_str(),
        "submit",
    ];
    let (steps, verdict) = play(backend, &task, &commands).await;
    let shown = |step: usize| steps[step].observation.text.as_str();
    assert_eq!(shown(0), "nothing\nnone\n[exit code 0]");
    assert_eq!(shown(3), "hello\nhttp://127.0.0.1:3128\n[exit code 0]", "{}", verdict.details);
    assert_eq!(shown(6), "nothing\nnone\n[exit code 0]");
    assert_eq!((shown(4), shown(7)), ("ticks\n[exit code 0]", "ticks\n[exit code 0]"));
    assert!(verdict.success, "{}", verdict.details);
}

/// A step may reach everything, and its verifier nothing.
async fn plays_a_step_that_reaches_everything(backend: &str) {
    let (_folder, task) = three_steps("agent = { network_mode = \"public\" }\n");
    let look = "ls /sys/class/net; echo 42 >out";
    let commands = [look, "submit", look, "submit", look, "submit"];
    let (steps, verdict) = play(backend, &task, &commands).await;
    let seen: Vec<bool> =
        [0, 2, 4].map(|step: usize| steps[step].observation.text.contains("eth0")).into();
    assert_eq!(seen, [false, true, false], "{}", verdict.details);
    assert!(verdict.success, "{}", verdict.details);
}

#[tokio::test]
async fn networks_of_steps_are_refused_where_sandboxes_have_one_for_all_their_life() {
    let (_folder, task) = three_steps(
        "agent = { network_mode = \"allowlist\" , allowed_hosts = [\"example.org\"] }\n",
    );
    assert_eq!(
        not_set_up(&task, &fake()).await,
        "change the network of a sandbox between steps with the backend `fake`, which cannot do that"
    );
}

/// The task of a folder with these servers, whose programs are put into the sandbox before anything else.
fn with_servers(servers: &str) -> (TempDir, Task) {
    let config = format!(
        "[environment]\nworkdir = \"/app\"\nnetwork_mode = \"no-network\"\nmcp_servers = {servers}\n"
    );
    let (folder, mut task) = folder(&config, &[("tests/test.sh", JUDGED_BY_FILE)]);
    let mut parameters: SweTask = serde_json::from_value(task.parameters).unwrap();
    let write = |name: &str, text: &str| format!("cat >/app/{name} <<'SPAR_END'\n{text}\nSPAR_END");
    parameters.instance.setup = vec![
        write("stdio.py", include_str!("../../tests/fixtures/mcp_server.py")),
        write("web.py", include_str!("../../tests/fixtures/mcp_http_server.py")),
        "nohup python3 web.py 8765 >/dev/null 2>&1 </dev/null &".to_owned(),
    ];
    task.parameters = serde_json::to_value(parameters).unwrap();
    (folder, task)
}

const SERVERS: &str = r#"[{ name = "notes", transport = "stdio", command = "python3", args = ["stdio.py"] }, { name = "web", transport = "streamable-http", url = "http://localhost:8765/mcp" }, { name = "old", url = "http://127.0.0.1:8765/sse" }]"#;

/// Tools of a task's servers are called beside the shell's, by whichever transport.
async fn offers_tools_of_servers(backend: &str) {
    let (_folder, task) = with_servers(SERVERS);
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let mut env = Swe::open(&task, &resources).unwrap();
    env.use_tools();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert!(!first.text.contains("MCP"), "{}", first.text);
    env.prepare().await.unwrap();
    let names: Vec<_> = env.tools().iter().map(|spec| spec.name.clone()).collect();
    assert_eq!(names[..4], ["shell", "submit", "say", "notes_count"], "{names:?}");
    assert!(names.contains(&"web_shell".to_owned()) && names.contains(&"old_count".to_owned()));
    let mut call = async |name: &str, arguments: Value| {
        let call = ToolCall::new(name, to_options(&arguments));
        let step = env.step(&Action::calls(vec![call])).await.unwrap();
        assert!(step.valid, "{step:?}");
        step.observation.results[0].text.clone()
    };
    assert_eq!(call("notes_count", json!({})).await, "1");
    assert_eq!(call("notes_count", json!({})).await, "2");
    assert_eq!(call("web_count", json!({ "by": 5 })).await, "count\n5");
    assert_eq!(call("old_shell", json!({ "by": 2 })).await, "shell\n7");
    // They live in the agent's sandbox, where it can end them.
    let stop = "python3 -c 'import urllib.request as it; it.urlopen(\"http://localhost:8765/stop\", b\"\")' 2>/dev/null; echo 42 >out";
    let ended = call("shell", json!({ "command": stop })).await;
    assert_eq!(ended, "[exit code 0]");
    let call = ToolCall::new("web_count", Map::new());
    let step = env.step(&Action::calls(vec![call])).await.unwrap();
    assert!(step.observation.results[0].is_error && !step.terminated, "{step:?}");
    assert!(env.fork().await.unwrap().is_none());
    let verdict = env.verify().await.unwrap().unwrap();
    assert!(verdict.success, "{}", verdict.details);
    env.close().await.unwrap();
}

#[tokio::test]
async fn whoever_calls_no_tools_is_told_of_servers_in_words() {
    let (_folder, task) = with_servers(SERVERS);
    let mut env = Swe::open(&task, &fake()).unwrap();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(
        first.text,
        "Do it.\n\nMCP Servers:\nThe following MCP servers are available for this task.\n\
         - notes: stdio transport, command: python3 stdio.py\n\
         - web: streamable-http transport, url: http://localhost:8765/mcp\n\
         - old: sse transport, url: http://127.0.0.1:8765/sse\n\n\
         You are in /app. A command may take 20 s; submit ends the task."
    );
    let (_folder, task) =
        with_servers(r#"[{ name = "n", transport = "http", url = "http://elsewhere:1" }]"#);
    let refused = Swe::open(&task, &fake()).err().unwrap().to_string();
    assert!(refused.contains("only those in the sandbox are reached"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn tools_of_a_server_elsewhere_are_called_by_this_program() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_http_server.py");
    let mut server = tokio::process::Command::new("python3");
    server.arg(fixture).arg(port.to_string()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        assert!(server.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // In this spelling it is no port of the sandbox.
    let elsewhere = format!(
        r#"[{{ name = "n", transport = "http", url = "http://[::ffff:127.0.0.1]:{port}/mcp" }}]"#
    );
    let (_folder, mut task) = with_servers(&elsewhere);
    let mut parameters: SweTask = serde_json::from_value(task.parameters).unwrap();
    parameters.instance.setup.clear();
    parameters.outside_servers = vec![format!("127.0.0.1:{port}").parse().unwrap()];
    task.parameters = serde_json::to_value(parameters).unwrap();
    let resources = Resources::with_sandboxes(sandboxes("local"));
    let mut env = Swe::open(&task, &resources).unwrap();
    env.use_tools();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.prepare().await.unwrap();
    let call = ToolCall::new("count", to_options(&json!({ "by": 5 })));
    let step = env.step(&Action::calls(vec![call])).await.unwrap();
    assert_eq!(step.observation.results[0].text, "count\n5");
    env.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_offer_tools_of_servers() {
    offers_tools_of_servers("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_offers_tools_of_servers() {
    offers_tools_of_servers("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_wait_until_they_are_healthy() {
    waits_until_it_is_healthy("local").await;
    waits_until_a_step_is_healthy("local").await;
    runs_the_command_of_its_service("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_play_steps_with_networks_of_their_own() {
    plays_steps_with_networks_of_their_own("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_plays_steps_with_networks_of_their_own() {
    plays_steps_with_networks_of_their_own("docker").await;
    plays_a_step_that_reaches_everything("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_judge_in_a_sandbox_of_its_own() {
    judges_in_a_sandbox_of_its_own("local").await;
    judges_steps_elsewhere("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_waits_until_it_is_healthy() {
    waits_until_it_is_healthy("docker").await;
    waits_until_a_step_is_healthy("docker").await;
    runs_the_command_of_its_service("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_judges_in_a_sandbox_of_its_own() {
    judges_in_a_sandbox_of_its_own("docker").await;
    judges_steps_elsewhere("docker").await;
    judges_by_an_image_of_its_own("docker").await;
    judges_with_another_network("docker").await;
}
