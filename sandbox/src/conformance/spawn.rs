//! What processes that their starter talks to have to do.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::context::{Context, Finding, ensure, is_unsupported, sh};
use super::{Trial, trials};
use crate::{ExecEnd, ExecRequest, Process, ProcessHandle, Sandbox, SandboxError};

pub(super) const TRIALS: &[Trial] = trials![
    "a process answers line by line until its input ends" => answers,
    "a process that cannot be had is refused" => refused,
    "a process's streams are told apart, and its end is told" => ends,
    "much passes a process unchanged in both directions" => passes_much,
    "several processes run at one time and do not disturb each other" => several,
    "a process that is killed or dropped ends with all that it started" => killed,
    "a process whose output nobody reads waits, and so does who writes what it does not read" => waits,
    "a process meets its deadline where it has one" => deadline,
    "a process ends with its sandbox" => with_sandbox,
];

const LONG: Duration = Duration::from_secs(60);
/// Lines that are written and read again.
const LINES: usize = 200_000;

async fn spawn(
    context: &Context<'_>,
    sandbox: &dyn Sandbox,
    script: &str,
) -> Result<Process, Finding> {
    if !context.can().spawn {
        return Err(Finding::Unsupported);
    }
    Ok(sandbox.spawn(&ExecRequest::sh(script)).await?)
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Finding> {
    let late = |_| Finding::Failed(format!("{what} took longer than {LONG:?}"));
    tokio::time::timeout(LONG, work).await.map_err(late)
}

fn failed(error: std::io::Error) -> Finding {
    Finding::Failed(format!("a stream: {error}"))
}

async fn wait(handle: &mut ProcessHandle) -> Result<ExecEnd, Finding> {
    Ok(in_time("the end", handle.wait()).await??)
}

/// What is written to a stream, to its end.
async fn all(mut stream: impl tokio::io::AsyncRead + Unpin) -> Result<String, Finding> {
    let mut text = Vec::new();
    in_time("reading", stream.read_to_end(&mut text)).await?.map_err(failed)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn answers(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let script = "while read -r line; do echo \"got $line in $PWD by $A\"; done; echo over; exit 3";
    let mut request = ExecRequest::sh(script);
    request.workdir = Some("/tmp".into());
    request.env.insert("A".into(), "a b".into());
    if !context.can().spawn {
        return match sandbox.spawn(&request).await {
            Ok(_) => Err(Finding::Failed("it does what it says it cannot".into())),
            Err(error) => is_unsupported(error),
        };
    }
    let Process { mut stdin, stdout, stderr, mut handle } = sandbox.spawn(&request).await?;
    let mut lines = BufReader::new(stdout).lines();
    for number in 0..3 {
        stdin.write_all(format!("{number}\n").as_bytes()).await.map_err(failed)?;
        stdin.flush().await.map_err(failed)?;
        let line = in_time("an answer", lines.next_line()).await?.map_err(failed)?;
        let expected = format!("got {number} in /tmp by a b");
        ensure!(line.as_deref() == Some(&expected), "the answer is {line:?}");
    }
    drop(stdin);
    let line = in_time("the last words", lines.next_line()).await?.map_err(failed)?;
    ensure!(line.as_deref() == Some("over"), "behind its input it said {line:?}");
    for _ in 0..2 {
        let end = wait(&mut handle).await?;
        ensure!(end == ExecEnd::Exited { code: 3 }, "it {end}");
    }
    ensure!(all(stderr).await?.is_empty(), "it wrote to standard error");
    Ok(sandbox.close().await?)
}

async fn refused(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    if !context.can().spawn {
        return Err(Finding::Unsupported);
    }
    let given = sandbox.spawn(&ExecRequest::new(["cat"]).with_stdin(b"before".to_vec())).await;
    let is_refused = matches!(given, Err(SandboxError::Unsupported { .. }));
    ensure!(is_refused, "input beforehand: {given:?}");
    let Process { stderr, mut handle, .. } =
        sandbox.spawn(&ExecRequest::new(["/no/such/program"])).await?;
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::Exited { code: 127 }, "a program that is not there {end}");
    let said = all(stderr).await?;
    ensure!(said.contains("/no/such/program"), "it says {said:?}");
    Ok(sandbox.close().await?)
}

async fn ends(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let Process { stdout, stderr, mut handle, .. } =
        spawn(context, &*sandbox, "echo out; echo err >&2; kill -15 $$").await?;
    let (out, err) = (all(stdout).await?, all(stderr).await?);
    ensure!((out.as_str(), err.as_str()) == ("out\n", "err\n"), "{out:?} and {err:?}");
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::Signalled { signal: 15 }, "it {end}");
    let end = handle.kill().await?;
    ensure!(end == ExecEnd::Signalled { signal: 15 }, "killed behind its end it {end}");
    Ok(sandbox.close().await?)
}

async fn passes_much(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let Process { mut stdin, stdout, mut handle, .. } = spawn(context, &*sandbox, "cat").await?;
    let text: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    let expected = text.clone();
    let write = async move {
        stdin.write_all(text.as_bytes()).await?;
        stdin.shutdown().await
    };
    let (written, read) = tokio::join!(in_time("writing", write), all(stdout));
    written?.map_err(failed)?;
    ensure!(read? == expected, "what came back differs");
    let end = wait(&mut handle).await?;
    ensure!(end.is_success(), "it {end}");
    Ok(sandbox.close().await?)
}

async fn several(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut processes = Vec::new();
    for number in 0..4 {
        processes.push(spawn(context, &*sandbox, &format!("cat; exit {number}")).await?);
    }
    let mut last = processes.pop().expect("there are four");
    last.handle.kill().await?;
    for (number, process) in processes.into_iter().enumerate() {
        let Process { mut stdin, stdout, mut handle, .. } = process;
        stdin.write_all(b"hello").await.map_err(failed)?;
        drop(stdin);
        ensure!(all(stdout).await? == "hello", "process {number} does not answer");
        let end = wait(&mut handle).await?;
        ensure!(end == ExecEnd::Exited { code: number as i32 }, "process {number} {end}");
    }
    Ok(sandbox.close().await?)
}

/// Started in the background, and in a session of its own.
pub(super) const FAMILY: &str = "rm -f /tmp/alive; (setsid sh -c 'while :; do echo x >>/tmp/alive; sleep 0.05; done' \
                      </dev/null >/dev/null 2>&1 &); while [ ! -s /tmp/alive ]; do sleep 0.05; done; echo begun; \
                      exec sleep 1000";

async fn killed(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    for is_dropped in [false, true] {
        let Process { stdout, mut handle, .. } = spawn(context, &*sandbox, FAMILY).await?;
        let mut lines = BufReader::new(stdout).lines();
        let line = in_time("its first words", lines.next_line()).await?.map_err(failed)?;
        ensure!(line.as_deref() == Some("begun"), "it said {line:?}");
        if is_dropped {
            drop(handle);
        } else {
            let began = Instant::now();
            let end = handle.kill().await?;
            ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
            ensure!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
        }
        ensure!(goes_quiet(&*sandbox, is_dropped).await?, "what it started goes on");
    }
    Ok(sandbox.close().await?)
}

/// Whether [`FAMILY`] does nothing any more. A dropped one ends without anybody who waits.
pub(super) async fn goes_quiet(sandbox: &dyn Sandbox, is_dropped: bool) -> Result<bool, Finding> {
    for _ in 0..50 {
        let found = sh(sandbox, "wc -c </tmp/alive; sleep 0.3; wc -c </tmp/alive").await?;
        let mut counts = found.split_whitespace();
        let is_quiet = counts.next() == counts.next();
        if is_quiet || !is_dropped {
            return Ok(is_quiet);
        }
    }
    Ok(false)
}

/// What may be on its way to somebody who does not read.
pub(super) const MOST: u64 = 4 << 20;

/// Writes without end, so many bytes at one time, and how many that were into a file.
pub(super) fn flood(file: &str, gush: u64) -> String {
    format!(
        "i=0; while :; do head -c {gush} /dev/zero; i=$((i + {gush})); echo $i >{file}.new; \
         mv {file}.new {file}; done"
    )
}

/// Waits until [`flood`] has been held up; how much it wrote.
pub(super) async fn stands_still(sandbox: &dyn Sandbox, file: &str) -> Result<u64, Finding> {
    let count = async || match sandbox.read_file(file, 100).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0),
        Err(_) => 0u64,
    };
    let until = Instant::now() + LONG;
    let mut before = count().await;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = count().await;
        if now == before && now > 0 || now >= MOST {
            return Ok(now);
        }
        ensure!(Instant::now() < until, "it wrote {now} bytes and is not held up");
        before = now;
    }
}

async fn waits(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let Process { mut stdout, mut handle, .. } =
        spawn(context, &*sandbox, &flood("/tmp/count", 1 << 16)).await?;
    let written = stands_still(&*sandbox, "/tmp/count").await?;
    ensure!(written < MOST, "{written} bytes were taken that nobody reads");
    // It goes on once somebody reads.
    let mut much = vec![1; 2 * MOST as usize];
    in_time("much", stdout.read_exact(&mut much)).await?.map_err(failed)?;
    ensure!(much.iter().all(|byte| *byte == 0), "what was read differs");
    let end = in_time("killing", handle.kill()).await??;
    ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");

    // Whatever is unread, it can be killed: its input, its output, both.
    let writes = flood("/tmp/count", 1 << 16);
    for script in ["exec sleep 1000", &writes, &format!("{{ {writes}; }} >&2")] {
        sh(&*sandbox, "rm -f /tmp/count").await?;
        let Process { mut stdin, stdout, stderr, mut handle } =
            spawn(context, &*sandbox, script).await?;
        if script.contains("/tmp/count") {
            stands_still(&*sandbox, "/tmp/count").await?;
        }
        let taken = fill(&mut stdin).await?;
        ensure!(taken < MOST, "{taken} bytes were taken that the process does not read");
        let end = in_time("killing", handle.kill()).await??;
        ensure!(end == ExecEnd::Signalled { signal: 9 }, "with its input unread it {end}");
        drop((stdin, stdout, stderr));
    }
    Ok(sandbox.close().await?)
}

/// Writes until nobody takes any more; how much was taken.
pub(super) async fn fill(to: &mut (impl AsyncWrite + Unpin)) -> Result<u64, Finding> {
    let (mut taken, chunk) = (0, vec![b'x'; 1 << 16]);
    while taken < MOST
        && let Ok(count) = tokio::time::timeout(Duration::from_secs(1), to.write(&chunk)).await
    {
        taken += count.map_err(failed)? as u64;
    }
    Ok(taken)
}

async fn deadline(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    if !context.can().spawn {
        return Err(Finding::Unsupported);
    }
    let request = ExecRequest::sh("echo begun; sleep 1000").with_timeout(Duration::from_secs(1));
    let began = Instant::now();
    let Process { stdout, mut handle, .. } = sandbox.spawn(&request).await?;
    ensure!(all(stdout).await? == "begun\n", "it did not begin");
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::TimedOut, "it {end}");
    ensure!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
    Ok(sandbox.close().await?)
}

async fn with_sandbox(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let Process { mut stdout, mut handle, .. } =
        spawn(context, &*sandbox, "echo begun; exec sleep 1000").await?;
    let mut begun = [0; 6];
    in_time("its first words", stdout.read_exact(&mut begun)).await?.map_err(failed)?;
    sandbox.close().await?;
    let wrote = all(stdout).await?;
    ensure!(wrote.is_empty(), "it wrote {wrote:?} after {begun:?}");
    // How its end is told depends on who notices first.
    let ended = in_time("the end", handle.wait()).await?;
    let is_told = match &ended {
        Ok(end) => *end == ExecEnd::Signalled { signal: 9 },
        Err(error) => matches!(error, SandboxError::Died { .. }),
    };
    ensure!(is_told, "its end is told as {ended:?}");
    let after = sandbox.spawn(&ExecRequest::sh("true")).await;
    ensure!(matches!(after, Err(SandboxError::Died { .. })), "afterwards: {after:?}");
    Ok(())
}
