//! What the environment `code` costs with guests in WebAssembly: cells, resets and forks, medians.
//!
//! `cargo bench -p spar-envs --bench code`, behind `scripts/build_guests.sh`. Beside them the same cells in a `python3` of this
//! machine that is talked to over pipes, in the same run.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use spar_core::{Action, Seed, ToolCall};
use spar_envs::{Resources, Sandboxes, open_environment};
use spar_sandbox::backends::wasm::{WasmBackend, WasmSettings};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::Task;

const ROUNDS: usize = 300;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    runtime.block_on(run());
}

fn cell(code: &str) -> Action {
    let arguments = Map::from_iter([("code".to_owned(), code.into())]);
    Action::calls(vec![ToolCall::new("python", arguments)])
}

fn told(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let median = times[times.len() / 2];
    let per_second = 1.0 / median.as_secs_f64();
    println!("{what}: {:.1} us, {per_second:.0} per second", median.as_secs_f64() * 1e6);
}

async fn run() {
    let backend = Arc::new(WasmBackend::new(WasmSettings::default()).expect("a cache folder"));
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(backend, config).expect("settings that go together");
    let resources = Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)));
    let task: Task = serde_json::from_value(json!({
        "id": "bench", "environment": "code", "instruction": "", "max_turns": 8, "tags": [],
        "parameters": { "prompt": "?", "answer": 1 },
    }))
    .expect("it is a task");
    let mut env = open_environment(&task, &resources).expect("it can be opened");
    env.use_tools();
    let mut resets = Vec::new();
    for _ in 0..ROUNDS / 3 {
        let begun = Instant::now();
        env.reset(Seed::from_u64(1)).await.expect("it can be reset");
        env.prepare().await.expect("the guests are built");
        resets.push(begun.elapsed());
    }
    told("reset with a fresh interpreter", resets);
    let code = "x = sum(i * i for i in range(1000)); x";
    let mut cells = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        env.step(&cell(code)).await.expect("it runs");
        cells.push(begun.elapsed());
    }
    told("cell", cells);
    let mut forks = Vec::new();
    for _ in 0..ROUNDS / 3 {
        let begun = Instant::now();
        let mut fork = env.fork().await.expect("it forks").expect("guests do");
        fork.step(&cell("x")).await.expect("it runs");
        forks.push(begun.elapsed());
        fork.close().await.expect("it closes");
    }
    told("fork with all variables, and a cell in it", forks);
    env.close().await.expect("it closes");
    told("the same cell in a process of python3", process_cells(code));
}

fn process_cells(code: &str) -> Vec<Duration> {
    let loop_of = "import sys\nfor line in sys.stdin:\n    exec(line)\n    print(x, flush=True)";
    let child = Command::new("python3")
        .args(["-c", loop_of])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("there is a python3");
    let mut input = child.stdin.take().expect("it is piped");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    let times = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        writeln!(input, "{code}").expect("it reads");
        output.read_line(&mut line).expect("it answers");
        begun.elapsed()
    });
    let times = times.collect();
    drop(input);
    child.wait().expect("it ends");
    times
}
