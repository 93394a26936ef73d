//! What the WebAssembly backend costs, medians on one thread.
//!
//! `cargo bench -p spar-sandbox --bench wasm -- [--json FILE]`
//!
//! Needs the guests of `scripts/build_guests.sh`. Ratios to a process of the host are of this run.

mod figures;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use figures::{Figures, Target, median, milliseconds};
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

    let mut figures = Figures::new("wasm");
    let f = &mut figures;
    let tiny = sandbox(&backend, hello.to_str().unwrap(), f).await;
    exec(&*tiny, "smallest guest, fresh instance, request to end", &[], 5000, f).await;
    let shell = sandbox(&backend, "shell", f).await;
    exec(&*shell, "C guest (shell: echo), fresh instance", &["echo", "hello"], 5000, f).await;
    let js = sandbox(&backend, "javascript", f).await;
    let program = "let s = 0; for (let i = 0; i < 1000; i++) s += i; print(s)";
    let javascript = rounds(&*js, &["-e", program], 500).await;
    f.add(
        "JavaScript, 1,000 iterations, fresh engine",
        javascript * 1e3,
        "ms",
        Target::AtMost(0.6),
    );
    let python = sandbox(&backend, "python", f).await;
    let first = milliseconds(first_output(&*python, &["-c", "print(1)"], 200).await);
    f.add("Python, fresh interpreter to first output", first, "ms", Target::AtMost(5.0));
    let whole = rounds(&*python, &["-c", "print(1)"], 200).await * 1e3;
    f.add("Python, fresh interpreter to end", whole, "ms", Target::None);
    let interpreter = interpreter();
    let process = median((0..30).map(|_| process_time(&interpreter)).collect());
    f.add("`python3 -c 'print(1)'` as a process", milliseconds(process), "ms", Target::None);
    let ratio = milliseconds(process) / whole;
    f.add(
        "the process to our fresh interpreter, each to its end",
        ratio,
        "times",
        Target::AtLeast(5.0),
    );
    for (guest, fill, read) in [
        ("javascript", "var data = new Uint8Array(10e6).fill(7)", "data[9999999]"),
        ("python", "data = bytearray(b'\\7' * 10_000_000)", "data[9999999]"),
    ] {
        forks(&backend, guest, fill, read, f).await;
    }
    for guest in ["shell", "javascript", "python"] {
        live_sessions(&backend, guest, f).await;
    }
    figures.finish();
}

async fn sandbox(backend: &WasmBackend, image: &str, figures: &mut Figures) -> Box<dyn Sandbox> {
    let spec = SandboxSpec::new(Image::Reference(image.into()));
    let started = Instant::now();
    backend.prepare(&spec).await.unwrap();
    let prepared = milliseconds(started.elapsed());
    let image = image.rsplit('/').next().unwrap_or(image);
    let what = format!("load `{image}` once a process, from the cache if it was compiled");
    figures.add(&what, prepared, "ms", Target::None);
    backend.create(&spec).await.unwrap()
}

/// The median of so many execs, in seconds.
async fn rounds(sandbox: &dyn Sandbox, command: &[&str], rounds: usize) -> f64 {
    let request = ExecRequest::new(command.iter().copied());
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let result = sandbox.exec(&request).await.unwrap();
        times.push(started.elapsed());
        assert!(result.end.is_success(), "{}", result.stderr.text());
        assert!(result.stdout.total_bytes() > 0);
    }
    median(times).as_secs_f64()
}

/// A guest that does next to nothing: what an instance costs, and how many there are in a second.
async fn exec(
    sandbox: &dyn Sandbox,
    what: &str,
    command: &[&str],
    times: usize,
    figures: &mut Figures,
) {
    let time = rounds(sandbox, command, times).await;
    figures.add(what, time * 1e6, "us", Target::AtMost(50.0));
    let started = Instant::now();
    rounds(sandbox, command, times).await;
    let rate = times as f64 / started.elapsed().as_secs_f64();
    figures.add(&format!("{what}, on one core"), rate, "a second", Target::AtLeast(20_000.0));
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
async fn forks(backend: &WasmBackend, guest: &str, fill: &str, read: &str, figures: &mut Figures) {
    let minute = Duration::from_secs(60);
    let sandbox = backend.create(&SandboxSpec::new(Image::Reference(guest.into()))).await.unwrap();
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    assert!(shell.run(fill, minute).await.unwrap().end.is_success());
    let (mut forks, mut resumes) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let started = Instant::now();
        let fork = sandbox.fork().await.unwrap();
        forks.push(started.elapsed());
        let mut shell = fork.open_shell(&ShellOptions::default()).await.unwrap();
        resumes.push(started.elapsed());
        let last = shell.run(read, minute).await.unwrap();
        assert_eq!(last.stdout.text(), "7\n");
    }
    let (fork, resumed) = (milliseconds(median(forks)), milliseconds(median(resumes)));
    let what = format!("fork of a {guest} session that holds 10 MB");
    figures.add(&what, fork, "ms", Target::AtMost(5.0));
    figures.add(&format!("{what}, its session open"), resumed, "ms", Target::None);
}

/// Memory of 1,000 sessions that each ran a command.
async fn live_sessions(backend: &WasmBackend, guest: &str, figures: &mut Figures) {
    let spec = SandboxSpec::new(Image::Reference(guest.into()));
    let command = match guest {
        "shell" => "x=1; echo $x",
        "javascript" => "var x = 1; x",
        _ => "x = 1; x",
    };
    let mut alive = Vec::new();
    let mut before = 0;
    // The first brings in what all of them share.
    for number in 0..=1000 {
        if number == 1 {
            before = private_bytes();
        }
        let sandbox = backend.create(&spec).await.unwrap();
        let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
        let result = shell.run(command, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.stdout.text(), "1\n");
        alive.push((sandbox, shell));
    }
    let grown = private_bytes().saturating_sub(before) as f64 / (1 << 20) as f64;
    let what = format!("1,000 live {guest} sessions, beyond the shared image");
    figures.add(&what, grown, "MiB", Target::AtMost(2048.0));
}

/// Memory of this process that it shares with no file.
fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
