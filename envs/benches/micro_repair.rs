//! Episodes of micro-repair per second with a scripted agent, with guests in WebAssembly and with a process of `python3` (or
//! `node`) for every run of tests.
//!
//! `cargo bench -p spar-envs --bench micro_repair`, behind `scripts/build_guests.sh`; `-- 200` plays 200 tasks, `PYTHON` names
//! another interpreter. The agent is the oracle: it changes a line, runs the tests and submits, so that programs run twice an
//! episode. Environment and agent are the same in all rows; the rows take turns, so that all of them meet the same machine.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use spar_core::Seed;
use spar_envs::{Resources, Sandboxes, open_environment};
use spar_sandbox::SandboxBackend;
use spar_sandbox::backends::fake::{FakeBackend, FakeReply};
use spar_sandbox::backends::wasm::{WasmBackend, WasmSettings};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::Task;

/// Episodes between two turns of a row.
const CHUNK: u64 = 10;

struct Row {
    name: &'static str,
    language: &'static str,
    resources: Resources,
    took: Duration,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200);
    runtime.block_on(run(count));
}

async fn run(count: u64) {
    let wasm = WasmBackend::new(WasmSettings::default()).expect("a cache folder");
    let wasm: Arc<dyn SandboxBackend> = Arc::new(wasm);
    let row = |name, language, backend| Row {
        name,
        language,
        resources: resources(backend),
        took: Duration::ZERO,
    };
    let mut rows = [
        row("python, guest in WebAssembly", "python", Arc::clone(&wasm)),
        row("python, process of python3", "python", processes(&[])),
        row("python, process of python3 -I -S", "python", processes(&["-I", "-S"])),
        row("javascript, guest in WebAssembly", "javascript", wasm),
        row("javascript, process of node", "javascript", processes(&[])),
    ];
    // Guests are compiled once in a lifetime and loaded once in a process.
    for row in &rows {
        episode(row, 0).await;
    }
    for first in (0..count).step_by(CHUNK as usize) {
        for row in &mut rows {
            let begun = Instant::now();
            for seed in first..(first + CHUNK).min(count) {
                episode(row, seed).await;
            }
            row.took += begun.elapsed();
        }
    }
    let begun = Instant::now();
    for seed in 0..count {
        open(&rows[0], seed);
    }
    let opened = begun.elapsed();
    let per_second = |took: Duration| count as f64 / took.as_secs_f64();
    for row in &rows {
        let millis = row.took.as_secs_f64() * 1e3 / count as f64;
        println!(
            "{}: {:.1} episodes per second, {millis:.2} ms each",
            row.name,
            per_second(row.took)
        );
    }
    println!("of these, making a task: {:.3} ms", opened.as_secs_f64() * 1e3 / count as f64);
    for (guest, process) in [(0, 1), (0, 2), (3, 4)] {
        let ratio = per_second(rows[guest].took) / per_second(rows[process].took);
        println!("{} to {}: {ratio:.2} times", rows[guest].name, rows[process].name);
    }
}

fn resources(backend: Arc<dyn SandboxBackend>) -> Resources {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(backend, config).expect("settings that go together");
    Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)))
}

/// Runs every command as a process of this machine, without a sandbox, with flags of its own.
fn processes(flags: &'static [&'static str]) -> Arc<dyn SandboxBackend> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    Arc::new(FakeBackend::with_script(move |request, _| {
        let program = if request.command[0] == "python3" { &python } else { &request.command[0] };
        let mut command = Command::new(program);
        let ran = command.args(flags).args(&request.command[1..]).output();
        let ran = ran.expect("there is such a program");
        Some(FakeReply::exited(ran.status.code().unwrap_or(1), ran.stdout))
    }))
}

fn open(row: &Row, seed: u64) -> Box<dyn spar_envs::Environment> {
    let task: Task = serde_json::from_value(json!({
        "id": "bench", "environment": "micro-repair", "instruction": "", "max_turns": 8, "tags": [],
        "parameters": { "seed": seed, "language": row.language },
    }))
    .expect("it is a task");
    open_environment(&task, &row.resources).expect("it can be opened")
}

/// Plays a task, which has to end solved.
async fn episode(row: &Row, seed: u64) {
    let mut env = open(row, seed);
    env.use_tools();
    env.reset(Seed::from_u64(seed)).await.expect("it can be reset");
    while let Some(action) = env.oracle_action() {
        env.step(&action).await.expect("it runs");
    }
    let verdict = env.verify().await.expect("it is judged").expect("there is a verdict");
    assert!(verdict.success, "{}, seed {seed}: {}", row.name, verdict.details);
    env.close().await.expect("it closes");
}
