//! What connections into a sandbox have to do.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::context::{Context, Finding, ensure, is_unsupported};
use super::{Trial, trials};
use crate::{
    ByteStream, CapabilitySet, Death, ExecRequest, NetworkPolicy, Sandbox, SandboxError,
    SandboxSpec,
};

pub(super) const TRIALS: &[Trial] = trials![
    "a port that listens is reached without a network, and each side's end is seen" => answers,
    "a port where nobody listens is told, and one that listens late is waited for" => late,
    "much passes a connection unchanged in both directions" => passes_much,
    "a hundred connections at one time do not disturb each other" => hundred,
    "a connection that nobody reads holds up its sender, and no other" => unread,
    "a connection that is dropped ends what serves it" => dropped,
    "connections end with all that runs in the sandbox, and come again" => with_processes,
    "connections end with the sandbox" => with_sandbox,
    "a connection leads to its own sandbox, and never to the host" => own_loopback,
    "what runs inside cannot speak in a connection that is not its own" => forged,
];

const LONG: Duration = Duration::from_secs(60);
const PORT: u16 = 8765;
/// More than a sender gets rid of where nobody reads.
const MUCH: usize = 16 << 20;

fn failed(error: std::io::Error) -> Finding {
    Finding::Failed(format!("a connection: {error}"))
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Finding> {
    let late = |_| Finding::Failed(format!("{what} took longer than {LONG:?}"));
    tokio::time::timeout(LONG, work).await.map_err(late)
}

/// A new sandbox in which [`PORT`] sends back what it is sent.
async fn serving(context: &Context<'_>) -> Result<Box<dyn Sandbox>, Finding> {
    if !context.can().connect {
        return Err(Finding::Unsupported);
    }
    let (_, spec) = context.program(&context.options.programs.echo_server)?;
    let spec = SandboxSpec { capabilities: context.capabilities, ..spec };
    let sandbox = context.backend.create(&spec).await?;
    serve(context, &*sandbox).await?;
    Ok(sandbox)
}

async fn serve(context: &Context<'_>, sandbox: &dyn Sandbox) -> Result<(), Finding> {
    let (program, _) = context.program(&context.options.programs.echo_server)?;
    let mut request = program.request();
    request.command.push(PORT.to_string());
    let result = sandbox.exec(&request).await?;
    ensure!(result.end.is_success(), "the server {}: {}", result.end, result.stderr.text());
    Ok(())
}

async fn connect(sandbox: &dyn Sandbox) -> Result<ByteStream, Finding> {
    Ok(in_time("connecting", sandbox.connect_within(PORT, LONG / 2)).await??)
}

/// Sends `text` and takes it back.
async fn round_trip(stream: &mut ByteStream, text: &str) -> Result<(), Finding> {
    let mut back = vec![0; text.len()];
    let trip = async {
        stream.write_all(text.as_bytes()).await?;
        stream.flush().await?;
        stream.read_exact(&mut back).await
    };
    in_time("an answer", trip).await?.map_err(failed)?;
    ensure!(back == text.as_bytes(), "{text:?} came back as {:?}", String::from_utf8_lossy(&back));
    Ok(())
}

/// The stream ends, with an error or without, and says no more.
async fn ends(stream: &mut ByteStream) -> Result<(), Finding> {
    let mut rest = Vec::new();
    // What is torn down may be told as an error.
    let _ = in_time("the end", stream.read_to_end(&mut rest)).await?;
    ensure!(rest.is_empty(), "it said {:?}", String::from_utf8_lossy(&rest));
    Ok(())
}

async fn answers(context: &Context<'_>) -> Result<(), Finding> {
    if !context.can().connect {
        let sandbox = context.create().await?;
        return match sandbox.connect(PORT).await {
            Ok(_) => Err(Finding::Failed("it does what it says it cannot".into())),
            Err(error) => is_unsupported(error),
        };
    }
    let sandbox = serving(context).await?;
    ensure!(sandbox.spec().network == NetworkPolicy::None, "it has a network");
    let mut stream = connect(&*sandbox).await?;
    for number in 0..100 {
        round_trip(&mut stream, &format!("question {number}")).await?;
    }
    stream.write_all(b"last words").await.map_err(failed)?;
    stream.shutdown().await.map_err(failed)?;
    let mut rest = Vec::new();
    in_time("the end", stream.read_to_end(&mut rest)).await?.map_err(failed)?;
    ensure!(rest == b"last words", "it ends with {:?}", String::from_utf8_lossy(&rest));
    Ok(sandbox.close().await?)
}

async fn late(context: &Context<'_>) -> Result<(), Finding> {
    if !context.can().connect {
        return Err(Finding::Unsupported);
    }
    let (_, spec) = context.program(&context.options.programs.echo_server)?;
    let sandbox = context.backend.create(&spec).await?;
    for patience in [Duration::ZERO, Duration::from_millis(300)] {
        let began = Instant::now();
        let absent = sandbox.connect_within(PORT, patience).await;
        let is_told = matches!(absent, Err(SandboxError::NotListening { port: PORT }));
        ensure!(is_told, "nobody listens, and connecting ends with {absent:?}");
        ensure!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
    }
    let begin = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        serve(context, &*sandbox).await
    };
    let (stream, begun) = tokio::join!(connect(&*sandbox), begin);
    begun?;
    round_trip(&mut stream?, "late").await?;
    Ok(sandbox.close().await?)
}

async fn passes_much(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    let (mut from, mut to) = tokio::io::split(connect(&*sandbox).await?);
    let sent: Vec<u8> = (0..MUCH as u32 / 4).flat_map(u32::to_le_bytes).collect();
    let expected = sent.clone();
    let write = async move {
        to.write_all(&sent).await?;
        to.shutdown().await
    };
    let read = async {
        let mut back = Vec::new();
        from.read_to_end(&mut back).await.map(|_| back)
    };
    let (written, back) = in_time("much", async { tokio::join!(write, read) }).await?;
    written.map_err(failed)?;
    ensure!(back.map_err(failed)? == expected, "what came back differs");
    Ok(sandbox.close().await?)
}

async fn hundred(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    let sandbox = &*sandbox;
    let mut streams = Vec::new();
    let opened = (0..100).map(|_| connect(sandbox));
    for stream in futures::future::join_all(opened).await {
        streams.push(stream?);
    }
    let talks = streams.iter_mut().enumerate().map(|(number, stream)| async move {
        for round in 0..3 {
            round_trip(stream, &format!("{number} in round {round}")).await?;
        }
        Ok::<_, Finding>(())
    });
    for talk in futures::future::join_all(talks).await {
        talk?;
    }
    drop(streams);
    round_trip(&mut connect(sandbox).await?, "one more").await?;
    Ok(sandbox.close().await?)
}

async fn unread(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    let mut stuck = connect(&*sandbox).await?;
    let chunk = vec![7; 1 << 16];
    let mut sent = 0;
    // As long as no second passes in which nothing is taken.
    while let Ok(written) = tokio::time::timeout(Duration::from_secs(1), stuck.write(&chunk)).await
    {
        sent += written.map_err(failed)?;
        ensure!(sent < 2 * MUCH, "{sent} bytes were taken that nobody reads");
    }
    round_trip(&mut connect(&*sandbox).await?, "beside it").await?;
    // Nothing of it is lost.
    let mut back = vec![0; sent];
    in_time("what was sent", stuck.read_exact(&mut back)).await?.map_err(failed)?;
    ensure!(back.iter().all(|byte| *byte == 7), "what came back differs");
    Ok(sandbox.close().await?)
}

async fn dropped(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_posix()?;
    let sandbox = serving(context).await?;
    let mut stream = connect(&*sandbox).await?;
    round_trip(&mut stream, "hello").await?;
    ensure!(sandbox.read_file("/tmp/served", 100).await.is_err(), "it ended before its client did");
    drop(stream);
    let until = Instant::now() + LONG;
    while sandbox.read_file("/tmp/served", 100).await.is_err() {
        ensure!(Instant::now() < until, "what served it goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(sandbox.close().await?)
}

async fn with_processes(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    let mut stream = connect(&*sandbox).await?;
    round_trip(&mut stream, "before").await?;
    sandbox.end_all().await?;
    ends(&mut stream).await?;
    let after = sandbox.connect(PORT).await;
    let is_told = matches!(after, Err(SandboxError::NotListening { .. }));
    ensure!(is_told, "afterwards connecting ends with {after:?}");
    serve(context, &*sandbox).await?;
    round_trip(&mut connect(&*sandbox).await?, "again").await?;
    Ok(sandbox.close().await?)
}

async fn with_sandbox(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    let mut stream = connect(&*sandbox).await?;
    round_trip(&mut stream, "before").await?;
    sandbox.close().await?;
    ends(&mut stream).await?;
    match sandbox.connect_within(PORT, Duration::from_secs(5)).await {
        Err(SandboxError::Died { death: Death::Closed, .. }) => Ok(()),
        after => Err(Finding::Failed(format!("afterwards connecting ends with {after:?}"))),
    }
}

async fn own_loopback(context: &Context<'_>) -> Result<(), Finding> {
    let first = serving(context).await?;
    let second = context.backend.create(first.spec()).await?;
    round_trip(&mut connect(&*first).await?, "the first").await?;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await;
    let listener = listener.map_err(|error| Finding::Skipped(format!("no listener: {error}")))?;
    let port = listener.local_addr().map(|address| address.port()).unwrap_or(0);
    for (sandbox, port) in [(&second, PORT), (&first, port), (&second, port)] {
        let other = sandbox.connect(port).await;
        let is_told = matches!(other, Err(SandboxError::NotListening { .. }));
        ensure!(is_told, "to port {port} of another: {other:?}");
    }
    let arrived = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    ensure!(arrived.is_err(), "a connection came to the host: {arrived:?}");
    first.close().await?;
    Ok(second.close().await?)
}

async fn forged(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_posix()?;
    forged_by_root(context).await?;
    if !context.can().capability_sets {
        return Ok(());
    }
    // Nor can root who may read everything.
    let capabilities = CapabilitySet::Packages;
    forged_by_root(&Context { capabilities, before: Vec::new(), ..*context }).await
}

async fn forged_by_root(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = serving(context).await?;
    // Made first, so that whatever carries it is there to be looked into.
    round_trip(&mut connect(&*sandbox).await?, "before").await?;
    let forge = "while :; do for f in /proc/[0-9]*/fd/*; do \
                 case $f in /proc/self/*|/proc/$$/*) continue;; esac; \
                 [ -p $f ] && { printf FORGED >$f & } 2>/dev/null; done; wait; done";
    let request = ExecRequest::sh(&format!("({forge}) >/dev/null 2>&1 </dev/null & sleep 0.2"));
    sandbox.exec(&request).await?;
    for number in 0..10 {
        let mut stream = connect(&*sandbox).await?;
        for round in 0..10 {
            round_trip(&mut stream, &format!("{number} in round {round}")).await?;
        }
        stream.shutdown().await.map_err(failed)?;
        ends(&mut stream).await?;
    }
    Ok(sandbox.close().await?)
}
