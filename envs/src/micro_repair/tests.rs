//! The environment over guests.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::RngExt;
use serde_json::{Value, json};
use spar_core::{Action, Seed, Step, ToolCall};
use spar_sandbox::SandboxBackend;
use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::backends::wasm::{WasmBackend, WasmSettings};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::{SuiteOptions, open_suite};

use super::MicroRepair;
use super::generator::{Parameters, Part, Problem, SHOWN, Tongue, generate};
use super::guest::{Outcome, outcomes};
use crate::{Environment, EnvironmentError, Resources, Sandboxes, test_task, validate_suite};

fn resources(backend: Arc<dyn SandboxBackend>) -> Resources {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    Resources::with_sandboxes(Sandboxes::new(Arc::new(SandboxPool::new(backend, config).unwrap())))
}

fn wasm() -> Resources {
    resources(Arc::new(WasmBackend::new(WasmSettings::default()).unwrap()))
}

async fn begun(parameters: Value, resources: &Resources) -> MicroRepair {
    let mut env = MicroRepair::open(&test_task("micro-repair", parameters), resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(tool, arguments.as_object().unwrap().clone())
}

async fn one(env: &mut MicroRepair, tool: &str, arguments: Value) -> Step {
    env.step(&Action::calls(vec![call(tool, arguments)])).await.unwrap()
}

fn shown(step: &Step) -> &str {
    &step.observation.results[0].text
}

/// Puts a whole program in the place of the one that is there.
async fn rewrite(env: &mut MicroRepair, num_lines: usize, program: &str) {
    for _ in 0..num_lines {
        one(env, "delete_line", json!({ "line": 1 })).await;
    }
    for (line, text) in program.lines().enumerate() {
        let step = one(env, "insert_line", json!({ "line": line, "text": text })).await;
        assert!(step.valid, "{text}: {}", shown(&step));
    }
}

/// A problem with a function of one whole number.
fn of_one_number(language: Tongue) -> (Value, Problem) {
    let found = (0..).find_map(|seed| {
        let parameters = Parameters { seed, programs: Part::Train, level: None, language };
        let problem = generate(&parameters)?;
        let is_one = problem.tests.iter().all(|test| {
            test.arguments.len() == 1 && test.arguments[0].is_i64() && test.want.is_i64()
        });
        let name = match language {
            Tongue::Javascript => "javascript",
            _ => "python",
        };
        is_one.then(|| (json!({ "seed": seed, "language": name }), problem))
    });
    found.unwrap()
}

#[tokio::test]
async fn lines_are_changed_and_shown_without_a_sandbox() {
    let resources = resources(Arc::new(FakeBackend::new()));
    let task = test_task("micro-repair", json!({ "seed": 3, "level": "easy" }));
    let mut env = MicroRepair::open(&task, &resources).unwrap();
    assert!(env.tools().is_empty());
    assert!(matches!(
        env.step(&"view".into()).await,
        Err(EnvironmentError::Misused { when: "before reset", .. })
    ));
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(env.tools().len(), 6);
    let viewed = one(&mut env, "view", json!({})).await;
    assert!(first.text.ends_with(shown(&viewed)), "{}", first.text);
    let key = viewed.observation.state_key.clone();
    assert_eq!(key, first.state_key, "it tells nothing new");
    let changed = one(&mut env, "replace_line", json!({ "line": 2, "text": "t = 1" })).await;
    assert_eq!(shown(&changed), "2     t = 1");
    assert_ne!(changed.observation.state_key, key);
    let mut fork = env.fork().await.unwrap().unwrap();
    let gone = one(&mut env, "delete_line", json!({ "line": 2 })).await;
    assert_eq!(shown(&gone), "Line 2 is gone.");
    let again = fork.step(&Action::calls(vec![call("delete_line", json!({ "line": 2 }))])).await;
    assert_eq!(again.unwrap().observation, gone.observation);
    for (tool, arguments, part) in [
        ("replace_line", json!({ "line": 50, "text": "" }), "lines."),
        ("replace_line", json!({ "line": 0, "text": "" }), "do not fit"),
        ("replace_line", json!({ "line": 1, "text": "x".repeat(5000) }), "at most 200"),
        ("insert_line", json!({ "line": 99, "text": "" }), "lines."),
        ("python", json!({}), "no tool `python`"),
    ] {
        let step = one(&mut env, tool, arguments).await;
        assert!(!step.valid && shown(&step).contains(part), "{tool}: {}", shown(&step));
    }
    let words = env.step(&"submit".into()).await.unwrap();
    assert!(!words.valid && !words.terminated && words.observation.text.contains("call a tool"));
    let many = vec![call("view", json!({})); 9];
    let step = env.step(&Action::calls(many)).await.unwrap();
    let errors: Vec<bool> = step.observation.results.iter().map(|it| it.is_error).collect();
    assert_eq!(errors, [[false; 4].as_slice(), &[true; 5]].concat());
    for _ in 0..100 {
        one(&mut env, "insert_line", json!({ "line": 0, "text": "" })).await;
    }
    let full = one(&mut env, "insert_line", json!({ "line": 0, "text": "" })).await;
    assert_eq!(shown(&full), "A program has at most 40 lines.");
    let over = one(&mut env, "submit", json!({})).await;
    assert!(over.terminated && over.valid && !over.success && over.rewards.is_empty());
    assert!(env.step(&"view".into()).await.is_err() && env.tools().is_empty());
}

#[test]
fn parameters_that_are_wrong_are_told() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let resources = resources(Arc::new(FakeBackend::new()));
    for (parameters, part) in [
        (json!({}), "seed"),
        (json!({ "seed": 1, "level": "none" }), "unknown variant"),
        (json!({ "seed": 1, "language": "rust" }), "unknown variant"),
        (json!({ "seed": 1, "programs": "all" }), "unknown variant"),
        (json!({ "seed": 1, "bugs": 2 }), "bugs"),
    ] {
        let error = MicroRepair::open(&test_task("micro-repair", parameters), &resources).err();
        let error = error.unwrap().to_string();
        assert!(error.contains(part), "{error}");
    }
    let task = test_task("micro-repair", json!({ "seed": 1 }));
    let error = MicroRepair::open(&task, &Resources::default()).err().unwrap();
    assert!(matches!(error, EnvironmentError::NoSandboxes { .. }));
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_give_what_the_generator_says() {
    let resources = wasm();
    let sandboxes = resources.sandboxes("micro-repair").unwrap();
    for seed in 0..150 {
        for language in [Tongue::Python, Tongue::Javascript] {
            let parameters = Parameters { seed, programs: Part::Train, level: None, language };
            let problem = generate(&parameters).unwrap();
            let arguments: Vec<&[Value]> =
                problem.tests.iter().map(|test| &*test.arguments).collect();
            let run = async |lines: &[String]| {
                let program = lines.join("\n");
                let Problem { language, entry, .. } = &problem;
                outcomes(sandboxes, *language, &program, entry, &arguments).await.unwrap()
            };
            let right = run(&problem.right).await;
            let wanted: Vec<Outcome> =
                problem.tests.iter().map(|test| Outcome::Gave(test.want.clone())).collect();
            assert_eq!(right, wanted, "seed {seed}: {}", problem.right.join("\n"));
            // What the wrong one gives, exceptions by name, is what the generator has found.
            let wrong = run(&problem.lines).await;
            let expected: Vec<Outcome> = problem
                .gots
                .iter()
                .map(|got| match got {
                    Ok(value) => Outcome::Gave(value.clone()),
                    Err(name) => Outcome::Raised((*name).to_owned()),
                })
                .collect();
            assert_eq!(wrong, expected, "seed {seed}: {}", problem.lines.join("\n"));
            let passes = |it: &[Outcome]| it.iter().zip(&wanted).filter(|(a, b)| a == b).count();
            let passed = passes(&wrong[..SHOWN]);
            assert!((1..SHOWN).contains(&passed), "seed {seed}: {passed} of {SHOWN}");
        }
    }
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_judge_what_oracle_and_idler_leave() {
    let resources = wasm();
    let suite = open_suite("micro-repair", &SuiteOptions::default()).unwrap();
    let splits = ["train", "dev", "test", "test-easy", "test-javascript", "test-hard"];
    let go_on = |_, _| ControlFlow::Continue(());
    let report = validate_suite(&*suite, &splits, Some(8), &resources, go_on).await.unwrap();
    assert!(report.is_valid(), "{:?}", report.failures);
    assert_eq!((report.num_tasks, report.num_solved), (48, 48));
    assert!(report.mean_oracle_turns().unwrap() < 3.5, "an edit, the tests, the end");
    // A wrong line scores nothing, and the tests say so.
    let mut env = begun(json!({ "seed": 5 }), &resources).await;
    let told = one(&mut env, "run_tests", json!({})).await;
    assert!(shown(&told).contains(" of 3 tests pass. "), "{}", shown(&told));
    let broken = one(&mut env, "replace_line", json!({ "line": 1, "text": "def (" })).await;
    assert!(broken.valid);
    let told = one(&mut env, "run_tests", json!({})).await;
    assert!(shown(&told).starts_with("0 of 3 tests pass."), "{}", shown(&told));
    assert!(shown(&told).contains("raises SyntaxError"), "{}", shown(&told));
    assert!(!env.verify().await.unwrap().unwrap().success);
}

/// Programs that want to pass without being right; `NAME` is the tested function.
const PYTHON_CHEATS: [&str; 22] = [
    "def NAME(n):\n    raise SystemExit(0)",
    "import sys\nsys.exit(0)",
    "import os\nos._exit(0)",
    "def NAME(n):\n    while True:\n        pass",
    "def NAME(n):\n    return NAME(n)",
    "def NAME(n):\n    x = [0]\n    while True:\n        x = x * 2",
    "class Equal(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\ndef NAME(n):\n    return Equal(0)",
    "class Any:\n    def __eq__(self, other):\n        return True\ndef NAME(n):\n    return Any()",
    "print('3 of 3 tests pass.')\nprint('{\"value\": 0}')\ndef NAME(n):\n    print('ok')",
    "import sys, os\nfor _ in range(99):\n    os.write(1, b'{\"value\": true}\\n')\nos._exit(0)",
    "import sys\nsys.__stdout__.write('12 passed\\n')\nsys.__stdout__.flush()\nsys.exit(0)",
    "import json\njson.dumps = lambda value: '{\"value\": true}'\njson.loads = lambda text: {}\ndef NAME(n):\n    return None",
    "import sys\ndef NAME(n):\n    given = sys._getframe(1).f_locals['given']\n    for key in list(given):\n        given[key] = []\n    return 0",
    "import sys\nframe = sys._getframe(1)\nframe.f_locals['given']['arguments'].clear()\ndef NAME(n):\n    return 0",
    "import gc\nfor it in gc.get_objects():\n    if isinstance(it, dict) and 'want' in it:\n        raise ValueError\ndef NAME(n):\n    return 0",
    "def NAME(n):\n    try:\n        return {}[n]\n    except BaseException:\n        pass\n    finally:\n        return None",
    "import builtins\nbuiltins.compile = builtins.exec = lambda *_, **__: None\ndef NAME(n):\n    return 0",
    "import os\ndef NAME(n):\n    for name, _, files in os.walk('/'):\n        for file in files:\n            open(os.path.join(name, file)).read()\n    return 0",
    "import sys\nsys.settrace(lambda *_: None)\nsys.exitfunc = None\nimport atexit\natexit.register(print, 'passed')\ndef NAME(n):\n    return True",
    "def NAME(n):\n    x = []\n    for _ in range(10000):\n        x = [x]\n    return x",
    "def NAME(n):\n    return '0' * (1 << 24)",
    "def NAME(n):\n    return float('nan')",
];

const JAVASCRIPT_CHEATS: [&str; 14] = [
    "function NAME(n) { std.exit(0); }",
    "std.exit(0);",
    "function NAME(n) { while (true) {} }",
    "function NAME(n) { return NAME(n); }",
    "function NAME(n) { const x = []; while (true) x.push(new Array(1e6).fill(0)); }",
    "function NAME(n) { return { valueOf: () => n, toJSON: () => true, toString: () => '0' }; }",
    "console.log('3 of 3 tests pass.'); function NAME(n) { console.log('ok'); }",
    "for (let i = 0; i < 99; i++) std.out.puts('{\"value\": true}\\n'); std.out.flush(); std.exit(0);",
    "JSON.stringify = () => '{\"value\": true}'; function NAME(n) { return null; }",
    "} catch (e) {} say('{\"value\": true}'); try {",
    "Object.prototype.toString = () => '0'; function NAME(n) { try { return n.x.y; } catch (e) {} }",
    "function NAME(n) { throw { get name() { throw 1; } }; }",
    "function NAME(n) { const x = {}; x.x = x; return x; }",
    "Array.prototype[Symbol.iterator] = function* () {}; function NAME() { return 0; }",
];

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_hold_off_programs_that_cheat() {
    let resources = wasm();
    for (language, cheats) in [
        (Tongue::Python, PYTHON_CHEATS.as_slice()),
        (Tongue::Javascript, JAVASCRIPT_CHEATS.as_slice()),
    ] {
        let (parameters, problem) = of_one_number(language);
        for cheat in cheats {
            let program = cheat.replace("NAME", &problem.entry);
            let mut env = begun(parameters.clone(), &resources).await;
            rewrite(&mut env, problem.lines.len(), &program).await;
            let told = one(&mut env, "run_tests", json!({})).await;
            assert!(!shown(&told).starts_with("3 of 3"), "{program}: {}", shown(&told));
            assert!(shown(&told).len() < 400, "{program}: {}", shown(&told));
            one(&mut env, "submit", json!({})).await;
            let verdict = env.verify().await.unwrap().unwrap();
            assert!(!verdict.success && verdict.reward() == 0.0, "{program}: {verdict:?}");
        }
        // What is right passes whatever it prints.
        let mut env = begun(parameters, &resources).await;
        let noise = match language {
            Tongue::Javascript => "console.log('noise');",
            _ => "print('noise')",
        };
        let program = format!("{noise}\n{}", problem.right.join("\n"));
        rewrite(&mut env, problem.lines.len(), &program).await;
        assert!(env.verify().await.unwrap().unwrap().success, "{program}");
    }
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_pass_no_program_that_knows_only_the_tests_that_are_shown() {
    let resources = wasm();
    let (parameters, problem) = of_one_number(Tongue::Python);
    let mut lines = vec![format!("def {}(n):", problem.entry)];
    for test in &problem.tests[..SHOWN] {
        lines.push(format!("    if n == {}:", test.arguments[0]));
        lines.push(format!("        return {}", test.want));
    }
    let mut env = begun(parameters, &resources).await;
    rewrite(&mut env, problem.lines.len(), &lines.join("\n")).await;
    let told = one(&mut env, "run_tests", json!({})).await;
    assert_eq!(shown(&told), "3 of 3 tests pass.");
    let verdict = env.verify().await.unwrap().unwrap();
    assert!(!verdict.success, "{}", verdict.details);
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_see_no_argument_of_a_hidden_test_before_the_end() {
    let resources = wasm();
    let (parameters, problem) = of_one_number(Tongue::Python);
    let spy = format!(
        "import sys\ndef {}(n):\n    return len(sys._getframe(1).f_locals['given']['arguments'])",
        problem.entry
    );
    let mut env = begun(parameters.clone(), &resources).await;
    rewrite(&mut env, problem.lines.len(), &spy).await;
    let told = one(&mut env, "run_tests", json!({})).await;
    assert!(shown(&told).contains(&format!("gives {SHOWN}, should")), "{}", shown(&told));
    // Nothing of a run is there in the next.
    let keeps = format!(
        "import os\ndef {}(n):\n    found = os.path.exists('/kept')\n    open('/kept', 'w').close()\n    return 7 if found else 8",
        problem.entry
    );
    let mut env = begun(parameters, &resources).await;
    rewrite(&mut env, problem.lines.len(), &keeps).await;
    let first = one(&mut env, "run_tests", json!({})).await;
    one(&mut env, "insert_line", json!({ "line": 0, "text": "" })).await;
    let second = one(&mut env, "run_tests", json!({})).await;
    assert_eq!(shown(&first), shown(&second));
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_give_nothing_for_calls_at_random_or_none() {
    let resources = wasm();
    let mut rng = Seed::from_u64(1).rng();
    let mut solved = 0;
    for seed in 0..60 {
        let mut env = begun(json!({ "seed": seed, "language": "mixed" }), &resources).await;
        let verdict = env.verify().await.unwrap().unwrap();
        assert!(!verdict.success && verdict.reward() == 0.0, "seed {seed}: nothing was done");
        let first = env.reset(Seed::from_u64(0)).await.unwrap();
        let lines: Vec<String> = first.text.lines().map(str::to_owned).collect();
        for _ in 0..6 {
            let line = rng.random_range(1..=12);
            let text = lines[rng.random_range(0..lines.len())].split_once(' ').unwrap().1;
            let (tool, arguments) = match rng.random_range(0..4) {
                0 => ("replace_line", json!({ "line": line, "text": text })),
                1 => ("insert_line", json!({ "line": line, "text": text })),
                2 => ("delete_line", json!({ "line": line })),
                _ => ("view", json!({})),
            };
            one(&mut env, tool, arguments).await;
        }
        solved += usize::from(env.verify().await.unwrap().unwrap().success);
    }
    assert_eq!(solved, 0);
}

/// The episode that docs/micro-repair.md shows.
#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_play_the_documented_episode() {
    let resources = wasm();
    let parameters = json!({ "seed": 27, "level": "hard" });
    let mut env = begun(parameters, &resources).await;
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    let mut told = format!("{}\n", first.text);
    let mut action = Action::calls(vec![call("run_tests", json!({}))]);
    loop {
        let step = env.step(&action).await.unwrap();
        let ToolCall { name, arguments, .. } = &action.tool_calls()[0];
        let arguments = Value::Object(arguments.clone());
        told.push_str(&format!("\n> {name} {arguments}\n{}\n", shown(&step)));
        let Some(next) = env.oracle_action() else { break };
        action = next;
    }
    let verdict = env.verify().await.unwrap().unwrap();
    told.push_str(&format!("\n{}\n", verdict.details));
    let page = include_str!("../../../docs/micro-repair.md");
    assert!(page.contains(&told), "docs/micro-repair.md is to show:\n{told}");
}
