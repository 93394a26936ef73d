//! What the actions of the local backend cost, beside the same through command-line tools.
//!
//! `cargo bench -p spar-sandbox --bench local -- [--json FILE]`

mod figures;
mod talks;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use figures::{Figures, Target, median, milliseconds};
use spar_sandbox::backends::local::LocalBackend;
use spar_sandbox::{ExecRequest, Image, Sandbox, SandboxBackend, SandboxError, SandboxSpec};

const ROUNDS: usize = 40;

/// A program of the host from start to end; absent where it cannot run.
fn tool(command: &[&str]) -> Option<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut child = Command::new(command[0]);
        child.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !child.status().is_ok_and(|status| status.success()) {
            return None;
        }
        times.push(start.elapsed());
    }
    Some(times)
}

async fn timed<T>(times: &mut Vec<Duration>, work: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let result = work.await;
    times.push(start.elapsed());
    result
}

async fn measure(backend: &LocalBackend, figures: &mut Figures) -> Result<(), SandboxError> {
    eprintln!("{}", backend.probe().await?);
    let mut line = |what: &str, times: Vec<Duration>, target: Target| {
        figures.add(what, milliseconds(median(times)), "ms", target);
    };
    let spec = SandboxSpec::new(Image::Default);
    let request = ExecRequest::new(["true"]);
    let [mut first, mut create, mut close] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let sandbox = timed(&mut create, backend.create(&spec)).await?;
        sandbox.exec(&request).await?;
        first.push(start.elapsed());
        timed(&mut close, sandbox.close()).await?;
    }
    line("create", create, Target::None);
    line("create and first exec", first, Target::AtMost(25.0));
    line("close", close, Target::None);
    let sandbox = backend.create(&spec).await?;
    let mut exec = Vec::new();
    for _ in 0..ROUNDS * 5 {
        timed(&mut exec, sandbox.exec(&request)).await?;
    }
    line("exec", exec, Target::AtMost(5.0));
    sandbox.write_file("/tmp/file", &vec![7; 1 << 20], 0o644).await?;
    let mut fork = Vec::new();
    for _ in 0..ROUNDS {
        let forked: Box<dyn Sandbox> = timed(&mut fork, sandbox.fork()).await?;
        forked.close().await?;
    }
    line("fork (1 MiB written)", fork, Target::AtMost(40.0));
    talks::talks(&*sandbox, figures).await?;
    sandbox.close().await
}

fn main() {
    let backend = LocalBackend::new().expect("the folder for state can be made");
    let mut figures = Figures::new("local");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    if let Err(error) = runtime.block_on(measure(&backend, &mut figures)) {
        eprintln!("could not {error}");
        std::process::exit(1);
    }
    let bwrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev"];
    let unshare = ["unshare", "-Urmpfniu", "--mount-proc", "true"];
    for (name, command) in [
        ("beside it: `true` on the host", &["true"][..]),
        ("beside it: bwrap --unshare-all", &[&bwrap[..], &["/dev", "true"]].concat()),
        ("beside it: unshare of all namespaces", &unshare),
    ] {
        match tool(command) {
            Some(times) => figures.add(name, milliseconds(median(times)), "ms", Target::None),
            None => eprintln!("{name}: cannot run"),
        }
    }
    figures.finish();
}
