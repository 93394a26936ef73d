//! What talking with a program inside costs, over a connection and over the streams of a process.

use std::time::{Duration, Instant};

use spar_sandbox::conformance::Programs;
use spar_sandbox::{Process, Sandbox, SandboxError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::figures::{Figures, Target, median};

const PORT: u16 = 8765;
const CONNECTIONS: usize = 40;
const ROUNDS: usize = 2000;
const QUESTION: [u8; 64] = [b'?'; 64];

/// Connects, and has 64 bytes sent back, again and again, by what listens and by a `cat` that was spawned.
pub(crate) async fn talks(
    sandbox: &dyn Sandbox,
    figures: &mut Figures,
) -> Result<(), SandboxError> {
    let server = Programs::posix().echo_server.expect("there is one for POSIX");
    let mut request = server.request();
    request.command.push(PORT.to_string());
    assert!(sandbox.exec(&request).await?.end.is_success());
    let mut connection = sandbox.connect_within(PORT, Duration::from_secs(60)).await?;
    let mut connects = Vec::new();
    for _ in 0..CONNECTIONS {
        let begun = Instant::now();
        drop(sandbox.connect(PORT).await?);
        connects.push(begun.elapsed());
    }
    let mut line = |what: &str, times: Vec<Duration>| {
        figures.add(what, median(times).as_secs_f64() * 1e6, "µs", Target::None);
    };
    line("connect", connects);
    let (from, to) = tokio::io::split(&mut connection);
    line("round trip of a connection, 64 B", round_trips(from, to).await);
    let cat = spar_sandbox::ExecRequest::new(["cat"]);
    let Process { stdin, stdout, mut handle, .. } = sandbox.spawn(&cat).await?;
    line("round trip of a spawned `cat`, 64 B", round_trips(stdout, stdin).await);
    handle.kill().await.map(drop)
}

async fn round_trips(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> Vec<Duration> {
    let mut times = Vec::new();
    // The first tenth is not counted.
    for round in 0..ROUNDS * 11 / 10 {
        let begun = Instant::now();
        to.write_all(&QUESTION).await.expect("it is taken");
        to.flush().await.expect("it is taken");
        from.read_exact(&mut [0; QUESTION.len()]).await.expect("it comes back");
        if round >= ROUNDS / 10 {
            times.push(begun.elapsed());
        }
    }
    times
}
