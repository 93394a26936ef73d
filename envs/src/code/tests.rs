mod unit_tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use spar_core::{Action, Seed, Step, ToolCall};
use spar_sandbox::SandboxBackend;
use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::backends::wasm::{WasmBackend, WasmSettings};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::{SuiteOptions, open_suite};

use super::Code;
use crate::{Environment, Resources, Sandboxes, open_environment, test_task, validate_suite};

fn resources(backend: Arc<dyn SandboxBackend>) -> Resources {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    Resources::with_sandboxes(Sandboxes::new(Arc::new(SandboxPool::new(backend, config).unwrap())))
}

fn fake() -> Resources {
    resources(Arc::new(FakeBackend::new()))
}

fn wasm() -> Resources {
    resources(Arc::new(WasmBackend::new(WasmSettings::default()).unwrap()))
}

async fn begun(parameters: Value, resources: &Resources) -> Code {
    let mut env = Code::open(&test_task("code", parameters), resources).unwrap();
    env.use_tools();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env
}

fn call(tool: &str, code: &str) -> ToolCall {
    ToolCall::new(tool, Map::from_iter([("code".to_owned(), code.into())]))
}

fn cell(code: &str) -> Action {
    Action::calls(vec![call("python", code)])
}

fn shown(step: &Step) -> Vec<&str> {
    step.observation.results.iter().map(|result| &*result.text).collect()
}

#[tokio::test]
async fn one_boxed_answer_ends_it_and_several_end_it_unsolved() {
    for (said, terminated, success) in [
        (r"It is \boxed{42}.", true, true),
        (r"\boxed{42} so \boxed{ 42 }", true, true),
        (r"\boxed{41}", true, false),
        (r"\boxed{41} or \boxed{42}", true, false),
        ("42", false, false),
        (r"\boxed{}", false, false),
    ] {
        let mut env = begun(json!({ "prompt": "6 * 7?", "answer": 42 }), &fake()).await;
        let step = env.step(&said.into()).await.unwrap();
        assert_eq!((step.terminated, step.valid), (terminated, terminated), "{said}");
        let verdict = env.verify().await.unwrap();
        let solved = verdict.as_ref().is_some_and(|verdict| verdict.success);
        assert_eq!(solved, success, "{said}");
        assert_eq!(verdict.map_or(0.0, |it| it.reward()), f64::from(u8::from(success)));
        if terminated {
            assert!(env.step(&r"\boxed{42}".into()).await.is_err(), "it is over");
            assert!(env.tools().is_empty());
        } else {
            assert!(step.observation.text.contains("boxed"));
        }
    }
}

#[tokio::test]
async fn calls_that_cannot_be_are_told_as_such() {
    let mut env = begun(json!({ "prompt": "?", "answer": "a" }), &fake()).await;
    env.tools()[0].validate().unwrap();
    let odd = |arguments: Value| ToolCall::new("python", arguments.as_object().unwrap().clone());
    let calls = vec![
        call("bash", "ls"),
        odd(json!({})),
        odd(json!({ "code": 1 })),
        odd(json!({ "code": "1", "timeout": 3600 })),
        call("python", "1"),
    ];
    let step = env.step(&Action::calls(calls)).await.unwrap();
    assert!(step.observation.results.iter().all(|result| result.is_error));
    assert!(!step.valid && !step.terminated);
    let told = shown(&step);
    assert!(told[0].contains("only `python`") && told[1].contains("takes `code`"), "{told:?}");
    assert!(told[4].contains("at most 4 calls"), "{told:?}");
}

#[test]
fn tasks_that_cannot_be_played_here_are_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let resources = fake();
    for (parameters, part) in [
        (json!({ "seed": 1, "level": 4 }), "level"),
        (
            json!({ "prompt": "a", "answer": 1, "interpreter": { "backend": "docker" } }),
            "--backend docker",
        ),
        (
            json!({ "prompt": "a", "answer": 1, "tests": { "kind": "streams", "cases": [] } }),
            "beside",
        ),
        (json!({ "prompt": "a", "answr": 1 }), "answr"),
    ] {
        let error = Code::open(&test_task("code", parameters), &resources).err().unwrap();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_keep_variables_and_fork_with_them() {
    let resources = wasm();
    let mut env = begun(json!({ "prompt": "?", "answer": 12 }), &resources).await;
    let step = env.step(&cell("import random\nx = 5\nprint('a')\nx + 1")).await.unwrap();
    assert_eq!(shown(&step), ["a\n6"]);
    let mut fork = env.fork().await.unwrap().unwrap();
    assert_eq!(shown(&env.step(&cell("x += 1; x")).await.unwrap()), ["6"]);
    let draw = cell("x += 7; (x, random.random())");
    let forked = fork.step(&draw).await.unwrap();
    assert!(shown(&forked)[0].starts_with("(12, 0."), "{:?}", shown(&forked));
    // Equal actions show equal things.
    let mut again = begun(json!({ "prompt": "?", "answer": 12 }), &resources).await;
    again.step(&cell("import random\nx = 5\nprint('a')\nx + 1")).await.unwrap();
    assert_eq!(again.step(&draw).await.unwrap().observation, forked.observation);
    let failed = env.step(&cell("def f():\n    return y\nf()")).await.unwrap();
    let told = shown(&failed)[0];
    assert!(told.starts_with("Traceback") && told.ends_with("name 'y' is not defined"), "{told}");
    let js = json!({ "prompt": "?", "answer": 1, "interpreter": { "language": "javascript" } });
    let mut js = begun(js, &resources).await;
    let one = Action::calls(vec![call("javascript", "let n = 6")]);
    js.step(&one).await.unwrap();
    let two = Action::calls(vec![call("javascript", "console.log('b'); n * 7")]);
    assert_eq!(shown(&js.step(&two).await.unwrap()), ["b\n42"]);
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_hold_off_hostile_cells() {
    let limits = json!({ "cell_secs": 3, "memory_bytes": 128 << 20, "disk_bytes": 1 << 20 });
    let task = json!({ "prompt": "?", "answer": 1, "interpreter": limits });
    let mut env = begun(task, &wasm()).await;
    env.step(&cell("kept = 1")).await.unwrap();
    for (code, part, loses) in [
        ("while True: pass", "[stopped after 3 s]", true),
        ("x = []\nwhile True: x.append(bytearray(1 << 24))", "out of memory", true),
        ("for _ in range(1 << 6): print('a' * (1 << 20))", "bytes left out", false),
        ("import os; os.fork()", "Error", false),
        ("print(open('/etc/passwd').read())", "FileNotFoundError", false),
        ("open('big', 'wb').write(bytes(2 << 20))", "No space left", false),
        ("import socket; socket.create_connection(('127.0.0.1', 80))", "Error", false),
        ("raise SystemExit", "restarted", true),
        ("def f(): return f()\nf()", "RecursionError", false),
        ("(", "SyntaxError", false),
    ] {
        let step = env.step(&cell(code)).await.unwrap();
        let told = shown(&step)[0].to_owned();
        assert!(told.contains(part), "{code}: {told}");
        assert!(told.len() < 6000, "{code}: {}", told.len());
        let kept = env.step(&cell("kept")).await.unwrap();
        assert_eq!(shown(&kept)[0].contains("NameError"), loses, "{code}: {:?}", shown(&kept));
        env.step(&cell("kept = 1")).await.unwrap();
    }
    env.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_print_the_answers_of_all_generated_tasks() {
    let resources = wasm();
    let suite = open_suite("code", &SuiteOptions::default()).unwrap();
    for index in 0..60 {
        let task = suite.task("train", index).unwrap();
        let mut env = open_environment(&task, &resources).unwrap();
        env.use_tools();
        let first = env.reset(Seed::from_u64(0)).await.unwrap();
        let right = env.reference_answer().unwrap().texts().remove(0);
        let gold = env.oracle_action().unwrap();
        let step = env.step(&gold).await.unwrap();
        assert_eq!(step.observation.results[0].text, right, "{}: {:?}", task.id, env.tags());
        if index < 12 {
            println!(
                "{}: {}\n{:?}\n{right}\n",
                task.id,
                first.text,
                gold.tool_calls()[0].arguments["code"]
            );
        }
        let last = env.step(&env.oracle_action().unwrap()).await.unwrap();
        assert!(last.terminated && env.verify().await.unwrap().unwrap().success);
        env.close().await.unwrap();
    }
    let report = validate_suite(&*suite, &["dev", "hard"], Some(6), &resources, |_, _| {
        std::ops::ControlFlow::Continue(())
    });
    let report = report.await.unwrap();
    assert!(report.is_valid(), "{:#?}", report.failures);
}
