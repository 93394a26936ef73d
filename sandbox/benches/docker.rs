//! What the docker backend costs beside the ways other programs take, in one run.
//!
//! `cargo bench -p spar-sandbox --bench docker -- [ROUNDS] [CONTAINERS] [--json FILE]`, 40 and 64 by default; needs
//! an engine and `spar-busybox`. Rounds take turns, so that a machine that is busy for a while is busy
//! for all of them. The containers do ten execs each at one time, first through spar, then the same
//! ones through the command line of docker.

mod figures;
mod talks;

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use figures::{Figures, Target};
use futures::StreamExt;
use spar_sandbox::backends::docker::DockerBackend;
use spar_sandbox::pool::{PoolConfig, PooledSandbox, SandboxPool};
use spar_sandbox::{ExecRequest, Image, Sandbox, SandboxBackend, SandboxSpec};

const OUTPUT: &str = "hello\n";
/// Execs of each of many containers.
const ACTIONS: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let rounds = numbers.next().unwrap_or(40);
    let containers = numbers.next().unwrap_or(64);
    let backend = Arc::new(DockerBackend::connect().await.expect("an engine answers"));
    eprintln!("{}", backend.probe().await.expect("an engine answers"));
    let spec = SandboxSpec::new(Image::Default);
    backend.prepare(&spec).await.expect("the image is there: docker/build-images.sh");
    let docker = Docker::connect_with_defaults().expect("an engine answers");

    let begun = Instant::now();
    let sandbox = backend.create(&spec).await.expect("a sandbox can be made");
    eprintln!("first create                {:>8.1} ms", milliseconds(begun.elapsed()));
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

    let mut warm = warm_hand_outs(&backend, &spec, rounds.min(20)).await;
    let [mut ours_of_many, mut cli_of_many] = many(&backend, &spec, containers).await;

    let base = median(&mut raw);
    let lines = [
        ("exec, raw bollard", &mut raw),
        ("exec, spar", &mut ours),
        ("exec, docker CLI", &mut cli),
        ("create and close", &mut create),
        ("fork and close", &mut fork),
        ("warm hand-out", &mut warm),
        ("exec of many, spar", &mut ours_of_many),
        ("exec of many, docker CLI", &mut cli_of_many),
    ];
    let mut figures = Figures::new("docker");
    for (name, times) in lines {
        let middle = median(times);
        let target = if name == "warm hand-out" { Target::AtMost(5.0) } else { Target::None };
        figures.add(name, milliseconds(middle), "ms", target);
        let late = times[times.len() * 19 / 20];
        figures.add(&format!("{name}, 95 %"), milliseconds(late), "ms", Target::None);
        let ratio = middle.as_secs_f64() / base.as_secs_f64();
        let target = if name == "exec, spar" { Target::AtMost(1.1) } else { Target::None };
        figures.add(&format!("{name}, to raw bollard"), ratio, "times", target);
    }
    let sandbox = backend.create(&spec).await.expect("a sandbox can be made");
    talks::talks(&*sandbox, &mut figures).await.expect("it can be talked to");
    sandbox.close().await.expect("a sandbox can be closed");
    figures.finish();
}

/// How long a caller waits for a sandbox of which there are warm ones.
async fn warm_hand_outs(
    backend: &Arc<DockerBackend>,
    spec: &SandboxSpec,
    rounds: usize,
) -> Vec<Duration> {
    let pool =
        SandboxPool::new(Arc::clone(backend) as _, PoolConfig::default()).expect("it is valid");
    let mut times = Vec::new();
    pool.keep_warm(spec, 2);
    for _ in 0..rounds {
        while pool.metrics().warm < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let begun = Instant::now();
        let sandbox = pool.acquire(spec).await.expect("one is warm");
        times.push(begun.elapsed());
        our_exec(&sandbox).await;
    }
    assert_eq!(pool.metrics().warm_hits, rounds as u64);
    pool.shutdown().await;
    times
}

/// What single execs take when many containers do them at one time: through spar, then through the
/// command line. Any error ends the run.
async fn many(
    backend: &Arc<DockerBackend>,
    spec: &SandboxSpec,
    containers: usize,
) -> [Vec<Duration>; 2] {
    let config = PoolConfig { max_live: containers, ..PoolConfig::default() };
    let pool = SandboxPool::new(Arc::clone(backend) as _, config).expect("it is valid");
    let begun = Instant::now();
    let sandboxes = futures::future::join_all((0..containers).map(|_| pool.acquire(spec))).await;
    let sandboxes: Vec<_> = sandboxes.into_iter().map(|made| made.expect("it is made")).collect();
    eprintln!("{containers} creates at one time  {:>8.1} ms", milliseconds(begun.elapsed()));
    let mut phases = [const { Vec::new() }; 2];
    for (phase, name) in phases.iter_mut().zip(["spar", "docker CLI"]) {
        let begun = Instant::now();
        let each = sandboxes.iter().map(async |sandbox: &PooledSandbox| {
            let mut times = Vec::new();
            for _ in 0..ACTIONS {
                times.push(match name {
                    "spar" => our_exec(sandbox).await,
                    _ => cli_exec(sandbox.id()).await,
                });
            }
            times
        });
        *phase = futures::future::join_all(each).await.concat();
        eprintln!(
            "{containers} x {ACTIONS} execs, {name:<10} {:>8.1} ms, no error",
            milliseconds(begun.elapsed())
        );
    }
    drop(sandboxes);
    pool.shutdown().await;
    let metrics = pool.metrics();
    assert_eq!((metrics.live, metrics.close_failures), (0, 0), "nothing is left");
    let own = spar_sandbox::Owner::this_process();
    let left = backend.list().await.expect("an engine answers");
    let left = left.iter().filter(|record| record.owner == *own).count();
    eprintln!("left of them: {left}");
    assert_eq!(left, 0);
    phases
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
