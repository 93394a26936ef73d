//! What the WebAssembly backend costs, medians on one thread: `cargo bench -p spar-sandbox --bench wasm`.
//!
//! Needs the guests of `scripts/build_guests.sh`. Ratios to a process of the host are of this run.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use spar_sandbox::backends::wasm::{Allocation, WasmBackend, WasmSettings};
use spar_sandbox::{
    ExecRequest, Image, Sandbox, SandboxBackend, SandboxSpec, ShellOptions, Stream,
};

/// Writes one line: what the smallest guest does.
const HELLO: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\06\00\00\00") (data (i32.const 16) "hello\n")
    (func (export "_start") (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let settings = WasmSettings {
        allocation: Allocation::Pooled { instances: 1100 },
        ..WasmSettings::default()
    };
    let backend = WasmBackend::new(settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let hello = folder.path().join("hello.wat");
    std::fs::write(&hello, HELLO).unwrap();

    println!("| what | median | note |\n| --- | --- | --- |");
    let tiny = sandbox(&backend, hello.to_str().unwrap()).await;
    exec(&*tiny, "text module, fresh instance, request to end", &[], 5000).await;
    let shell = sandbox(&backend, "shell").await;
    exec(&*shell, "C guest (shell: echo), fresh instance", &["echo", "hello"], 3000).await;
    let js = sandbox(&backend, "javascript").await;
    let program = "let s = 0; for (let i = 0; i < 1000; i++) s += i; print(s)";
    exec(&*js, "JavaScript, 1,000 iterations", &["-e", program], 500).await;
    let python = sandbox(&backend, "python").await;
    let ours = first_output(&*python, &["-c", "print(1)"], 100).await;
    println!("| Python, fresh interpreter to first output | {ours:?} | |");
    exec(&*python, "Python, fresh interpreter to end", &["-c", "print(1)"], 100).await;
    let interpreter = interpreter();
    let process = median((0..30).map(|_| process_time(&interpreter)).collect());
    let ratio = process.as_secs_f64() / ours.as_secs_f64();
    println!("| `python3 -c 'print(1)'` as a process | {process:?} | {ratio:.1} times ours |");
    forks(&backend).await;
    for guest in ["shell", "javascript"] {
        live_sessions(&backend, guest).await;
    }
}

async fn sandbox(backend: &WasmBackend, image: &str) -> Box<dyn Sandbox> {
    let spec = SandboxSpec::new(Image::Reference(image.into()));
    let started = Instant::now();
    backend.prepare(&spec).await.unwrap();
    let prepared = started.elapsed();
    let image = image.rsplit('/').next().unwrap_or(image);
    println!(
        "| load `{image}`, from the cache if it was compiled | {prepared:?} | once a process |"
    );
    backend.create(&spec).await.unwrap()
}

async fn exec(sandbox: &dyn Sandbox, what: &str, command: &[&str], rounds: usize) {
    let request = ExecRequest::new(command.iter().copied());
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let result = sandbox.exec(&request).await.unwrap();
        times.push(started.elapsed());
        assert!(result.end.is_success(), "{}", result.stderr.text());
        assert!(result.stdout.total_bytes() > 0);
    }
    let median = median(times);
    println!("| {what} | {median:?} | {:.0} a second |", 1.0 / median.as_secs_f64());
}

/// From the request until the first byte of output.
async fn first_output(sandbox: &dyn Sandbox, command: &[&str], rounds: usize) -> Duration {
    let request = ExecRequest::new(command.iter().copied());
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let mut first = None;
        let mut sink = |_: Stream, _: &[u8]| {
            first.get_or_insert(started.elapsed());
        };
        sandbox.exec_streaming(&request, &mut sink).await.unwrap();
        times.push(first.expect("it prints"));
    }
    median(times)
}

/// The interpreter itself: `python3` may be a script that looks for it.
fn interpreter() -> String {
    let program = "import sys; print(sys.executable)";
    let output = Command::new("python3").args(["-c", program]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn process_time(interpreter: &str) -> Duration {
    let started = Instant::now();
    let mut command = Command::new(interpreter);
    let status = command.args(["-c", "print(1)"]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    started.elapsed()
}

/// Forks a session whose heap holds ten million bytes.
async fn forks(backend: &WasmBackend) {
    let spec = SandboxSpec::new(Image::Reference("javascript".into()));
    let sandbox = backend.create(&spec).await.unwrap();
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let fill = "var data = new Uint8Array(10e6).fill(7)";
    shell.run(fill, Duration::from_secs(60)).await.unwrap();
    let memory = sandbox.stats().await.unwrap().memory_bytes.unwrap();
    let (mut forks, mut resumes) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let started = Instant::now();
        let fork = sandbox.fork().await.unwrap();
        forks.push(started.elapsed());
        let mut shell = fork.open_shell(&ShellOptions::default()).await.unwrap();
        resumes.push(started.elapsed());
        let sum = shell.run("data[9999999]", Duration::from_secs(60)).await.unwrap();
        assert_eq!(sum.stdout.text(), "7\n");
    }
    let (fork, resumed) = (median(forks), median(resumes));
    println!(
        "| fork of a session of {} MB | {fork:?} | with its session opened {resumed:?} |",
        memory / 1_000_000
    );
}

/// Memory of 1,000 sessions that each ran a command.
async fn live_sessions(backend: &WasmBackend, guest: &str) {
    let before = resident_bytes();
    let mut alive = Vec::new();
    for _ in 0..1000 {
        let spec = SandboxSpec::new(Image::Reference(guest.into()));
        let sandbox = backend.create(&spec).await.unwrap();
        let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
        let command = if guest == "shell" { "x=1; echo $x" } else { "var x = 1; x" };
        let result = shell.run(command, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.stdout.text(), "1\n");
        alive.push((sandbox, shell));
    }
    let grown = resident_bytes().saturating_sub(before);
    println!(
        "| 1,000 live {guest} sessions | {} MB | {} kB each |",
        grown >> 20,
        grown / 1000 / 1024
    );
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
