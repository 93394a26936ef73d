//! Episodes with servers that work, and with servers that break.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use spar_core::registry::to_options;
use spar_core::{Action, Seed, Step, ToolCall};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::tools::ToolUse;
use crate::{Environment, EnvironmentError, Resources, test_task};

fn fixture() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_server.py"))
}

/// The fixture as a tool of a task, with these options.
fn server(options: Value) -> Value {
    let mut server = json!({ "tool": "mcp", "command": ["python3", fixture()] });
    server.as_object_mut().unwrap().extend(to_options(&options));
    server
}

fn parameters(tools: Value) -> Value {
    json!({ "prompt": "?", "tools": tools, "limits": { "call_secs": 1.5 } })
}

fn opened(tools: Value) -> Result<ToolUse, EnvironmentError> {
    ToolUse::open_with_servers(&test_task("mcp", parameters(tools)), &Resources::default())
}

async fn begun(tools: Value) -> ToolUse {
    let mut env = opened(tools).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.prepare().await.unwrap();
    env
}

fn names(env: &ToolUse) -> Vec<String> {
    env.tools().iter().map(|spec| spec.name.clone()).collect()
}

async fn step(
    env: &mut dyn Environment,
    calls: &[(&str, Value)],
) -> Result<Step, EnvironmentError> {
    let call = |(name, arguments): &(&str, Value)| ToolCall::new(*name, to_options(arguments));
    env.step(&Action::calls(calls.iter().map(call).collect())).await
}

async fn texts(env: &mut dyn Environment, calls: &[(&str, Value)]) -> Vec<String> {
    let step = step(env, calls).await.unwrap();
    step.observation.results.into_iter().map(|result| result.text).collect()
}

#[tokio::test]
async fn tools_of_several_servers_are_called_and_may_change() {
    let mut env = begun(json!([
        server(json!({ "name": "a", "tools": ["say", "count"] })),
        server(json!({ "name": "b", "resources": true, "prompts": true, "env": { "MCP_B": "1" } })),
        "calculator",
    ]))
    .await;
    let own = ["picture", "sleep", "crash", "hang", "babble", "environment"];
    let mut expected = vec!["a_say", "a_count", "b_say", "b_count"];
    expected.extend(own);
    expected.extend(["list_resources", "read_resource", "list_prompts", "get_prompt"]);
    expected.extend(["calculator", "answer"]);
    assert_eq!(names(&env), expected);
    let calls = [
        ("a_count", json!({})),
        ("a_count", json!({})),
        ("b_count", json!({})),
        ("a_say", json!({ "text": "hé" })),
        ("a_say", json!({ "text": 1 })),
        ("environment", json!({})),
        ("read_resource", json!({ "uri": "note://1" })),
        ("read_resource", json!({ "uri": "note://2" })),
        ("list_prompts", json!({})),
        ("get_prompt", json!({ "name": "greet", "arguments": { "who": "Ann" } })),
        ("calculator", json!({ "expression": "1 + 1" })),
    ];
    let expected = [
        "1",
        "2",
        "1",
        "hé",
        "`text` has to be a text",
        "MCP_B",
        "Buy milk.",
        "unknown: note://2",
        "greet(who*): A greeting.",
        "Greet Ann.",
        "2",
    ];
    assert_eq!(texts(&mut env, &calls).await, expected);
    assert_eq!(
        texts(&mut env, &[("list_resources", json!({}))]).await,
        ["note://1: The first note."]
    );
    let shown = step(&mut env, &[("picture", json!({}))]).await.unwrap();
    let [picture] = &shown.observation.results[0].media[..] else { panic!("one picture") };
    assert_eq!(&**picture.bytes().unwrap(), b"pixels");
    env.close().await.unwrap();
}

#[tokio::test]
async fn resources_and_prompts_that_a_task_names_stand_in_the_first_observation() {
    let show = |options: Value| json!([server(options)]);
    let both =
        json!({ "first_resources": ["note://1"], "first_prompts": { "greet": { "who": "Ann" } } });
    let mut env = opened(show(both)).unwrap();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(first.text, "?\n\nBuy milk.\n\nGreet Ann.");
    assert_eq!(first.instruction.as_deref(), Some("?"));
    let mut fork = env.fork().await.unwrap().unwrap();
    let [own, forked] = [&mut env as &mut dyn Environment, fork.as_mut()];
    let counts = [("count", json!({}))];
    let own = step(own, &counts).await.unwrap().observation;
    let forked = step(forked, &counts).await.unwrap().observation;
    assert_eq!(own, forked, "each has a server of its own, behind the same start");
    env.close().await.unwrap();
    fork.close().await.unwrap();
    let mut absent = opened(show(json!({ "first_resources": ["note://2"] }))).unwrap();
    let told = absent.reset(Seed::from_u64(0)).await.unwrap_err().to_string();
    assert!(told.contains("it does not show resource `note://2`: unknown: note://2"), "{told}");
}

#[tokio::test]
async fn pictures_of_resources_and_prompts_stand_beside_the_first_observation() {
    let shown =
        json!({ "first_resources": ["picture://1", "note://1"], "first_prompts": { "look": {} } });
    let mut env = opened(json!([server(shown)])).unwrap();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(first.text, "?\n\n[picture://1]\n\nBuy milk.\n\nLook.");
    let shown: Vec<_> =
        first.media.iter().map(|it| (it.media_type.as_str(), &**it.bytes().unwrap())).collect();
    assert_eq!(shown, [("image/png", &b"pixels"[..]); 2]);
    // The same again, and beside the result of a call.
    let again = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(again, first);
    let seen = step(&mut env, &[("picture", json!({}))]).await.unwrap().observation;
    assert_eq!((seen.results[0].media.len(), seen.results[0].text.as_str()), (1, ""));
    env.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn a_server_in_namespaces_is_used_and_ended() {
    a_server_in_a_sandbox_is_used_and_ended("local").await;
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_server_in_docker_is_used_and_ended() {
    a_server_in_a_sandbox_is_used_and_ended("docker").await;
}

async fn a_server_in_a_sandbox_is_used_and_ended(backend: &str) {
    let stock = include_str!("../../../tasks/suites/mcp/stock.sh");
    let tools = json!([{
        "tool": "mcp", "command": ["sh", "-c", stock], "env": { "STOCK": "apple=30" }, "sandbox": { "backend": backend },
    }]);
    let parameters = json!({ "prompt": "?", "tools": tools, "limits": { "call_secs": 20 } });
    let resources = Resources::default();
    let mut env = ToolUse::open_with_servers(&test_task("mcp", parameters), &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.prepare().await.unwrap();
    let take = [("take", json!({ "item": "apple", "count": 6 }))];
    assert_eq!(texts(&mut env, &take).await, ["24 left"]);
    let mut fork = env.fork().await.unwrap();
    assert!(fork.take().is_none(), "it is brought there by its calls");
    env.close().await.unwrap();
    resources.close_programs().await;
}

#[tokio::test]
async fn a_server_that_tells_of_other_tools_is_asked_for_them() {
    let mut env =
        begun(json!([{ "tool": "mcp", "name": "g", "command": ["python3", "-c", GROWING] }])).await;
    assert_eq!(names(&env), ["grow", "answer"]);
    assert_eq!(texts(&mut env, &[("grow", json!({}))]).await, ["grown"]);
    assert_eq!(names(&env), ["grow", "grown", "answer"]);
    assert_eq!(texts(&mut env, &[("grown", json!({}))]).await, ["grown"]);
    env.close().await.unwrap();
}

#[tokio::test]
async fn a_list_of_tools_that_does_not_come_again_leaves_the_old_one_where_failures_are_told() {
    let list = "if method == \"tools/list\":";
    for fails in ["continue", "sys.exit(3)"] {
        let script = GROWING.replace(list, &format!("{list}\n        if len(tools) > 1: {fails}"));
        let mut env = begun(json!([{
            "tool": "mcp", "name": "g", "command": ["python3", "-c", script], "on_failure": "tell",
        }]))
        .await;
        assert_eq!(texts(&mut env, &[("grow", json!({}))]).await, ["grown"]);
        assert_eq!(names(&env), ["grow", "answer"]);
        let after = texts(&mut env, &[("grow", json!({}))]).await;
        assert_eq!(after == ["grown"], fails == "continue", "{after:?}");
        env.close().await.unwrap();
    }
}

const GROWING: &str = r#"
import json, sys
tools = ["grow"]
def tell(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, result = request["method"], {}
    if "id" not in request: continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "g", "version": "1"}}
    if method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    if method == "tools/call":
        if len(tools) == 1:
            tools.append("grown")
            tell({"method": "notifications/tools/list_changed"})
        result = {"content": [{"type": "text", "text": "grown"}]}
    tell({"id": request["id"], "result": result})
"#;

#[tokio::test]
async fn a_call_that_takes_too_long_is_told_and_the_server_goes_on() {
    let mut env = begun(json!([server(json!({}))])).await;
    let calls = [("count", json!({})), ("sleep", json!({})), ("count", json!({}))];
    let told = texts(&mut env, &calls).await;
    assert_eq!(told, ["1", "`sleep` was not done within 1.5 s, and was stopped.", "2"]);
    env.close().await.unwrap();
    // What the policy reads beside the tools is a call like others.
    let shy = json!({ "resources": true, "prompts": true, "env": { "MCP_SHY": "1" } });
    let mut env = begun(json!([server(shy)])).await;
    let calls = [
        ("read_resource", json!({ "uri": "note://late" })),
        ("list_prompts", json!({})),
        ("count", json!({})),
    ];
    let told = texts(&mut env, &calls).await;
    let late = "`read_resource` was not done within 1.5 s, and was stopped.";
    assert_eq!(told, [late, "unknown: prompts", "1"]);
    env.close().await.unwrap();
}

#[tokio::test]
async fn servers_that_break_fail_the_episode_or_are_told_of() {
    let mut env = begun(json!([server(json!({}))])).await;
    let error = step(&mut env, &[("crash", json!({}))]).await.unwrap_err();
    let told = crate::validate::chain(&error);
    for part in ["use a server of tools: MCP server `mcp`", "exited with code 7", "I crash."] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(error.boundary(), spar_core::Boundary::Environment);
    let mut env = begun(json!([server(json!({}))])).await;
    let error = step(&mut env, &[("babble", json!({}))]).await.unwrap_err();
    let told = crate::validate::chain(&error);
    assert!(
        told.contains("a message of more than 8388608 bytes"),
        "{}",
        &told[..told.len().min(300)]
    );
    assert!(told.len() < 8000);
    let mut env = begun(json!([server(json!({ "on_failure": "tell" }))])).await;
    let told = texts(&mut env, &[("crash", json!({})), ("count", json!({}))]).await;
    assert!(told[0].contains("exited with code 7"), "{told:?}");
    assert_eq!(told[1], "The server `mcp` is gone.");
    env.close().await.unwrap();
}

#[tokio::test]
async fn servers_that_cannot_be_started_tell_why() {
    let failure = async |server: Value| {
        let mut env = opened(json!([server])).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        crate::validate::chain(&env.prepare().await.unwrap_err())
    };
    let absent = failure(json!({ "tool": "mcp", "command": ["no-such-program-here"] })).await;
    assert!(absent.contains("it could not be started"), "{absent}");
    let ends = json!({ "tool": "mcp", "command": ["sh", "-c", "echo ended early >&2; exit 3"] });
    let ends = failure(ends).await;
    assert!(
        ends.contains("did not take up the connection") && ends.contains("ended early"),
        "{ends}"
    );
    let wrong = failure(server(json!({ "tools": ["no-such"] }))).await;
    assert!(wrong.contains("it has no tool `no-such`, only say, count"), "{wrong}");
    let refused = |tools: Value| opened(tools).err().unwrap().to_string();
    assert!(refused(json!([{ "tool": "mcp" }])).contains("a `command` or a `url`"));
    assert!(refused(json!(["calculator"])).contains("none of its `tools` is a server"));
    let both = json!([{ "tool": "mcp", "url": "http://localhost", "command": ["a"], "name": "é" }]);
    let both = refused(both);
    assert!(both.contains("command has no effect") && both.contains("name is `é`"), "{both}");
}

#[tokio::test]
async fn episodes_are_forked_by_replay_or_not_at_all() {
    let mut env = begun(json!([server(json!({}))])).await;
    let mut early = env.fork().await.unwrap().expect("nothing was called");
    assert_eq!(texts(&mut env, &[("count", json!({}))]).await, ["1"]);
    assert_eq!(
        texts(early.as_mut(), &[("count", json!({}))]).await,
        ["1"],
        "it has a server of its own"
    );
    assert!(env.fork().await.unwrap().is_none());
    early.close().await.unwrap();
    let mut env = begun(json!([server(json!({ "repeatable": false }))])).await;
    texts(&mut env, &[("count", json!({}))]).await;
    let refused = env.fork().await.err().unwrap();
    assert!(refused.to_string().contains("server `mcp` is not `repeatable`"), "{refused}");
}

#[tokio::test]
async fn a_server_is_reached_over_http_with_a_session_and_a_secret() {
    let mut command = tokio::process::Command::new("python3");
    command.arg(fixture()).arg("http").stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut running = command.spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let port = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
    let port: u16 = port.unwrap().unwrap().unwrap().parse().unwrap();
    let at = format!("http://127.0.0.1:{port}/mcp");
    // Taken from what cargo sets, so that no test has to set a variable of this process.
    let header = |variable: &str| json!({ "Authorization": variable });
    let wrong = json!([{ "tool": "mcp", "url": at, "secret_headers": header("CARGO_PKG_NAME") }]);
    let mut env = opened(wrong).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let told = crate::validate::chain(&env.prepare().await.unwrap_err());
    assert!(told.contains("did not take up the connection"), "{told}");
    assert!(!told.contains("spar-envs"), "the header is a secret: {told}");
    let absent =
        json!([{ "tool": "mcp", "url": at, "secret_headers": header("SPAR_NO_SUCH_VARIABLE") }]);
    let mut env = opened(absent).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let told = env.prepare().await.unwrap_err().to_string();
    assert!(told.contains("variable `SPAR_NO_SUCH_VARIABLE` of header `Authorization`"), "{told}");
    let open = json!({ "Authorization": "Bearer open sesame" });
    let mut env =
        begun(json!([{ "tool": "mcp", "url": at, "headers": open, "resources": true }])).await;
    let calls = [
        ("count", json!({})),
        ("say", json!({ "text": "a" })),
        ("read_resource", json!({ "uri": "note://1" })),
    ];
    assert_eq!(texts(&mut env, &calls).await, ["1", "a", "Buy milk."]);
    env.close().await.unwrap();
    running.kill().await.unwrap();
    let mut env =
        opened(json!([{ "tool": "mcp", "url": at, "headers": open, "start_secs": 5 }])).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    assert!(env.prepare().await.is_err(), "nobody is there any more");
}

/// The reference servers that scripts/get_mcp_servers.sh has put into a folder, as tools of a task.
#[tokio::test]
#[ignore = "needs MCP servers from npm and PyPI"]
async fn the_reference_servers_of_npm_and_pypi_work() {
    let home = PathBuf::from(std::env::var("SPAR_MCP_SERVERS").expect("SPAR_MCP_SERVERS"));
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a.txt"), "one\ntwo\n").unwrap();
    let files = files.path().canonicalize().unwrap();
    let npm =
        |name: &str| home.join(format!("node_modules/@modelcontextprotocol/{name}/dist/index.js"));
    let python = |module: &str| json!([home.join("venv/bin/python"), "-m", module]);
    let server = |name: &str, command: Value| json!({ "tool": "mcp", "name": name, "command": command, "prefix": name });
    let mut everything = server("all", json!(["node", npm("server-everything"), "stdio"]));
    everything
        .as_object_mut()
        .unwrap()
        .extend(to_options(&json!({ "resources": true, "prompts": true })));
    let parameters = json!({ "prompt": "?", "limits": { "call_secs": 30 }, "tools": [
        everything,
        server("files", json!(["node", npm("server-filesystem"), files])),
        server("time", json!([home.join("venv/bin/python"), "-m", "mcp_server_time", "--local-timezone", "UTC"])),
        server("fetch", python("mcp_server_fetch")),
    ]});
    let mut env =
        ToolUse::open_with_servers(&test_task("mcp", parameters), &Resources::default()).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.prepare().await.unwrap();
    let names = names(&env);
    for name in [
        "all_echo",
        "all_list_resources",
        "files_read_text_file",
        "time_convert_time",
        "fetch_fetch",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    env.tools().iter().for_each(|spec| spec.validate().unwrap());
    let path = files.join("a.txt");
    let noon =
        json!({ "source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00" });
    let calls = [
        ("all_echo", json!({ "message": "hé" })),
        ("files_read_text_file", json!({ "path": path })),
        ("files_read_text_file", json!({ "path": "/etc/passwd" })),
        ("time_convert_time", noon),
        ("fetch_fetch", json!({ "url": "http://127.0.0.1:9/" })),
        ("all_list_resources", json!({})),
        ("all_list_prompts", json!({})),
        ("all_echo", json!({ "message": 1 })),
    ];
    let step = step(&mut env, &calls).await.unwrap();
    let results = &step.observation.results;
    for (index, is_error, part) in [
        (0, false, "hé"),
        (1, false, "one\ntwo"),
        (2, true, "denied"),
        (3, false, "21:00"),
        (4, true, "127.0.0.1"),
        (5, false, "://"),
        (6, false, ": "),
        (7, true, "message"),
    ] {
        let result = &results[index];
        assert!(
            result.is_error == is_error && result.text.contains(part),
            "{:?}: {result:?}",
            calls[index]
        );
    }
    let image =
        names.iter().find(|name| name.contains("tiny-image") || name.contains("getTinyImage"));
    let shown = self::step(&mut env, &[(image.expect("it has one"), json!({}))]).await.unwrap();
    assert_eq!(shown.observation.results[0].media[0].media_type, "image/png");
    env.close().await.unwrap();
}
