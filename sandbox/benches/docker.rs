//! What an exec of the docker backend costs beside the ways other programs take, in one run.
//!
//! `cargo bench -p spar-sandbox --bench docker -- [ROUNDS]`; needs an engine and `spar-busybox`.
//! Rounds take turns, so that a machine that is busy for a while is busy for all of them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::StreamExt;
use spar_sandbox::backends::docker::DockerBackend;
use spar_sandbox::{ExecRequest, Image, Sandbox, SandboxBackend, SandboxSpec};

const OUTPUT: &str = "hello\n";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(40);
    let backend = DockerBackend::connect().await.expect("an engine answers");
    println!("{}", backend.probe().await.expect("an engine answers"));
    let spec = SandboxSpec::new(Image::Default);
    backend.prepare(&spec).await.expect("the image is there: docker/build-images.sh");
    let docker = Docker::connect_with_defaults().expect("an engine answers");

    let begun = Instant::now();
    let sandbox = backend.create(&spec).await.expect("a sandbox can be made");
    println!("first create                {:>8.1} ms", milliseconds(begun.elapsed()));
    let [mut ours, mut raw, mut cli] = [const { Vec::new() }; 3];
    // One round of each is not counted.
    for round in 0..=rounds {
        let times = [
            our_exec(&*sandbox).await,
            raw_exec(&docker, sandbox.id()).await,
            cli_exec(sandbox.id()).await,
        ];
        if round > 0 {
            for (list, time) in [&mut ours, &mut raw, &mut cli].into_iter().zip(times) {
                list.push(time);
            }
        }
    }
    let [mut create, mut fork] = [const { Vec::new() }; 2];
    for _ in 0..rounds.min(10) {
        let begun = Instant::now();
        let another = backend.create(&spec).await.expect("a sandbox can be made");
        create.push(begun.elapsed());
        another.close().await.expect("a sandbox can be closed");
        let begun = Instant::now();
        let another = sandbox.fork().await.expect("a sandbox can be forked");
        fork.push(begun.elapsed());
        another.close().await.expect("a sandbox can be closed");
    }
    sandbox.close().await.expect("a sandbox can be closed");

    let base = median(&mut raw);
    let lines = [
        ("exec, raw bollard", &mut raw),
        ("exec, spar", &mut ours),
        ("exec, docker CLI", &mut cli),
        ("create and close", &mut create),
        ("fork and close", &mut fork),
    ];
    println!("{:<24} {:>10} {:>10} {:>8}", "median of a round", "ms", "90 %", "ratio");
    for (name, times) in lines {
        let middle = median(times);
        let late = times[times.len() * 9 / 10];
        let ratio = middle.as_secs_f64() / base.as_secs_f64();
        println!(
            "{name:<24} {:>10.1} {:>10.1} {ratio:>8.2}",
            milliseconds(middle),
            milliseconds(late)
        );
    }
}

async fn our_exec(sandbox: &dyn Sandbox) -> Duration {
    let begun = Instant::now();
    let result = sandbox.exec(&ExecRequest::new(["echo", "hello"])).await.expect("exec works");
    assert_eq!(result.stdout.text(), OUTPUT);
    begun.elapsed()
}

/// As the documentation of bollard shows it: create, start, read, ask for the exit code.
async fn raw_exec(docker: &Docker, container: &str) -> Duration {
    let begun = Instant::now();
    let options = CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(vec!["echo", "hello"]),
        ..Default::default()
    };
    let exec = docker.create_exec(container, options).await.expect("exec works");
    let started = docker.start_exec(&exec.id, None::<StartExecOptions>).await.expect("exec works");
    let StartExecResults::Attached { mut output, .. } = started else { panic!("attached") };
    let mut text = Vec::new();
    while let Some(piece) = output.next().await {
        text.extend(piece.expect("exec works").into_bytes());
    }
    assert_eq!(text, OUTPUT.as_bytes());
    let code = docker.inspect_exec(&exec.id).await.expect("exec works").exit_code;
    assert_eq!(code, Some(0));
    begun.elapsed()
}

async fn cli_exec(container: &str) -> Duration {
    let begun = Instant::now();
    let mut command = tokio::process::Command::new("docker");
    command.args(["exec", container, "echo", "hello"]).stdin(Stdio::null());
    let output = command.output().await.expect("the docker CLI is there");
    assert_eq!(output.stdout, OUTPUT.as_bytes());
    begun.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
