//! Programs that are judged by tests: honest ones, and those that cheat.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use spar_core::{Seed, Verdict};
use spar_tasks::{CodeProblemSuite, Suite};

use super::{begun, wasm};
use crate::{Environment, Resources, open_environment};

async fn judged(tests: &Value, program: &str, resources: &Resources) -> Verdict {
    let task = json!({ "prompt": "Write it.", "tests": tests });
    let mut env = begun(task, resources).await;
    let step = env.step(&format!("```python\n{program}\n```").as_str().into()).await.unwrap();
    assert!(step.terminated);
    let verdict = env.verify().await.unwrap().unwrap();
    env.close().await.unwrap();
    verdict
}

fn asserts() -> Value {
    json!({
        "kind": "asserts",
        "setup": "import math\ndef close(a, b): return math.isclose(a, b)",
        "tests": [
            "assert add(2, 3) == 5\nassert add([1], [2]) == [1, 2]",
            "assert close(add(0.1, 0.2), 0.3)",
            "assert not add(0, 0)",
            "try:\n    add(1, 'a')\nexcept TypeError:\n    pass\nelse:\n    assert False",
            "x = [3]\nassert grow(x) is None and x == [3, 4]\np = Point(1)\np.x += 1\nassert p.twice() == 4",
        ],
    })
}

const HONEST: &str = "
class Point:
    def __init__(self, x): self.x = x
    def twice(self): return 2 * self.x
def grow(x): x.append(x[-1] + 1)
def add(a, b): return a + b";

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_pass_honest_programs() {
    let resources = wasm();
    let verdict = judged(&asserts(), HONEST, &resources).await;
    assert!(verdict.success, "{}", verdict.details);
    assert_eq!(verdict.reward(), 1.0);
    // One of six asserts.
    let wrong = HONEST.replace("return a + b", "return a + b if a != 2 else 6");
    let verdict = judged(&asserts(), &wrong, &resources).await;
    assert!(!verdict.success && verdict.reward() == 0.0, "{}", verdict.details);
    assert!(verdict.artifacts["fraction"].as_f64().unwrap() > 0.7, "{}", verdict.details);

    let check = json!({
        "kind": "asserts", "entry_point": "double", "setup": "def double(x):\n    'Doubles.'\n    pass",
        "tests": ["import random\ndef check(candidate):\n    for _ in range(50):\n        n = random.randint(0, 99)\n        assert candidate(n) == 2 * n"],
    });
    let verdict = judged(&check, "def double(x): return x + x", &resources).await;
    assert!(verdict.success, "{}", verdict.details);
    assert_eq!(verdict.artifacts["total"], 50);

    let calls = json!({ "kind": "calls", "function": "pairs", "cases": [
        { "arguments": [[1, 2]], "results": [[[1, 1.0], [2, 2]]] }, { "arguments": [[]], "results": [[]] },
    ] });
    let program = "class Solution:\n    def pairs(self, x):\n        return [(y, y) for y in x]";
    let verdict = judged(&calls, program, &resources).await;
    assert!(verdict.success, "{}", verdict.details);

    let streams = json!({ "kind": "streams", "cases": [
        { "input": "1 2\n", "output": "3\n" }, { "input": "5 6\n", "output": "11" },
    ] });
    let program = "import sys\nprint(sum(map(int, sys.stdin.read().split())))";
    let verdict = judged(&streams, program, &resources).await;
    assert!(verdict.success, "{}", verdict.details);
}

/// Ways to look right, by what they do.
fn cheats() -> BTreeMap<&'static str, String> {
    let of = |body: &str| {
        HONEST.replace("def add(a, b): return a + b", &format!("def add(a, b):\n    {body}"))
    };
    let equal = "class All(int):\n    def __eq__(self, other): return True\n    def __bool__(self): return False\n    \
                 def __hash__(self): return 0\n";
    BTreeMap::from([
        ("equal to all", format!("class All:\n    def __eq__(self, other): return True\n{}", of("return All()"))),
        ("a number equal to all", format!("{equal}{}", of("return All(7)"))),
        ("ends with code 0", of("import os; os._exit(0)")),
        ("ends politely", of("raise SystemExit(0)")),
        ("ends at once", "import sys; sys.exit(0)".to_owned()),
        ("says that it passed", of("print('passed', flush=True); return 'passed'")),
        (
            "writes the answer of the judge",
            of("open('/tmp/spar/told.json', 'w').write('{\"number\": 2, \"passed\": 9, \"failed\": 0, \"error\": null}')"),
        ),
        (
            "answers in place of what carries it",
            format!(
                "import spar_remote\ndef answer():\n    asked = spar_remote.loads(open('/tmp/spar/asked.json').read())\n    \
                 open('/tmp/spar/told.json', 'w').write(spar_remote.dumps({{'number': asked['number'], 'passed': 9, 'failed': \
                 0, 'error': None, 'value': True}}))\nspar_remote.answer = answer\n{HONEST}"
            )
            .replace("return a + b", "return 0"),
        ),
        (
            "replaces functions of others",
            format!("import builtins, math\nbuiltins.AssertionError = ValueError\nmath.isclose = lambda *a: True\n{}", of("return 0.3")),
        ),
        (
            "looks for the tests",
            of("import glob, gc\n    found = [open(f).read() for f in glob.glob('/**', recursive=True) if f.endswith('tests.json')]\n    \
                texts = [x for x in gc.get_objects() if isinstance(x, str) and 'assert add' in x]\n    return 5 if found or texts else None"),
        ),
        ("fails as the tests do", of("raise AssertionError")),
        ("fails as broken tests do", of("raise ImportError('no module')")),
        ("takes for ever", of("while True: pass")),
        ("takes all memory", of("x = []\n    while True: x.append(bytearray(1 << 20))")),
        ("fills the disk", of("f = open('/big', 'wb')\n    while True: f.write(bytes(1 << 20))")),
        ("returns what cannot be carried", of("x = []; x.append(x); return x")),
        ("returns what is gone through without end", of("import itertools; return itertools.count()")),
        ("is no program", "def (".to_owned()),
        ("deletes what is carried", of("import os; os.remove('/tmp/spar/asked.json'); os.mkdir('/tmp/spar/told.json'); return 1")),
    ])
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_hold_off_programs_that_cheat() {
    let resources = wasm();
    let mut tests = asserts();
    // One is enough, and a cheat that takes its time takes it for each.
    tests["tests"] = json!(["assert add(2, 3) == 5", "assert not add(0, 0)"]);
    for (name, program) in cheats() {
        let grader = json!({ "kind": "unit_tests", "test_secs": 2, "total_secs": 20 });
        let mut task = crate::test_task("code", json!({ "prompt": "Write it.", "tests": tests }));
        task.parameters["interpreter"] =
            json!({ "memory_bytes": 128 << 20, "disk_bytes": 1 << 20 });
        task.graders = vec![serde_json::from_value(grader).unwrap()];
        let mut env = open_environment(&task, &resources).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        let said = format!("```python\n{program}\n```");
        assert!(env.step(&said.as_str().into()).await.unwrap().terminated);
        let trajectory = record(&said);
        let verdict = env.grade(&trajectory).await;
        let verdict = verdict.unwrap_or_else(|error| panic!("{name}: {error:?}")).unwrap();
        assert!(!verdict.success && verdict.reward() == 0.0, "{name}: {}", verdict.details);
        env.close().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_hold_off_outputs_that_cheat() {
    let resources = wasm();
    let streams = json!({ "kind": "streams", "cases": [
        { "input": "1 2\n", "output": "3\n" }, { "input": "5 6\n", "output": "11\n" },
    ] });
    for program in [
        "",
        "print('3')",
        "print('3\\n11')",
        "for n in range(100): print(n)",
        "print(' '.join(map(str, range(100000))))",
        "raise SystemExit(0)",
        "a, b = map(int, input().split()); print(a + b); raise SystemExit(1)",
        "import os; print(open('/tmp/spar/tests.json').read())",
        "print('passed')",
    ] {
        let verdict = judged(&streams, &format!("{program}\n#"), &resources).await;
        assert!(!verdict.success && verdict.reward() == 0.0, "{program}: {}", verdict.details);
    }
}

/// Plays every problem of a published file (`SPAR_CODE_PROBLEMS`) by its own solution, which has to pass.
#[tokio::test]
#[ignore = "needs a file of problems in SPAR_CODE_PROBLEMS"]
async fn problems_of_a_published_file_are_solved_by_their_solutions() {
    let path = std::env::var("SPAR_CODE_PROBLEMS").expect("a .jsonl file");
    let suite = CodeProblemSuite::open_file(path.as_ref()).unwrap();
    let resources = wasm();
    let (mut passed, count) = (0, suite.len("test").unwrap());
    for index in 0..count {
        let task = suite.task("test", index).unwrap();
        let mut env = open_environment(&task, &resources).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        let action = env.oracle_action().expect("it has a solution");
        env.step(&action).await.unwrap();
        match env.verify().await {
            Ok(Some(verdict)) if verdict.success => passed += 1,
            Ok(verdict) => println!("{}: {}", task.id, verdict.unwrap_or_default().details),
            Err(error) => println!("{}: {error:?}", task.id),
        }
        env.close().await.unwrap();
    }
    println!("{passed} of {count} passed");
    assert_eq!(passed, count);
}

/// The record of an episode in which this was said.
fn record(said: &str) -> spar_core::Trajectory {
    let observation = json!({ "text": "", "state_key": "" });
    let zero = json!({ "secs": 0, "nanos": 0 });
    let turn = json!({
        "prompt": { "kept": 0, "appended": [] }, "author": "policy", "text": said,
        "sampled": { "ids": [], "logprobs": [], "versions": [] },
        "parsed": { "kind": "action", "text": said }, "state_key": "", "policy_time": zero,
        "step": { "observation": observation, "rewards": [], "terminated": true, "success": false, "valid": true, "wall_time": zero },
    });
    let record = json!({
        "version": 3, "episode": 7, "task": "test", "environment": "code", "seed": Seed::from_u64(5), "policy": "policy",
        "first_observation": observation, "turns": [turn], "end": { "kind": "terminated" }, "success": false, "wall_time": zero,
    });
    spar_core::Trajectory::from_json(record.to_string().as_bytes()).unwrap()
}
