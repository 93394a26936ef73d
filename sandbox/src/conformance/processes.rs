//! The end of everything that runs in a sandbox, whatever died there or resists.

use std::time::{Duration, Instant};

use super::context::{Context, Finding, ensure, sh};
use super::{Trial, trials};
use crate::{Death, ExecEnd, ExecRequest, Sandbox, SandboxError, ShellOptions};

pub(super) const TRIALS: &[Trial] = trials![
    "ending all keeps files, and commands go on" => keeps_files,
    "ending all ends a command under way" => under_way,
    "ending all leaves nothing of shells and commands, whatever was killed" => nothing_left,
    "ending all ends what kills everything that is started" => killers,
    "ending all makes room where all processes are used up" => makes_room,
    "ending all of a closed sandbox is told" => closed,
];

const LONG: Duration = Duration::from_secs(60);

/// Leaves its session, its parents and its pipes, and writes into a file without end.
const WRITER: &str = "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do echo x >>/tmp/alive; \
                      sleep 0.05; done' </dev/null >/dev/null 2>&1 &)";

/// Kills what stands above the shell that runs it: in a container, the program that would end it.
const KILL_ABOVE: &str = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID 2>/dev/null; sleep 1";

async fn keeps_files(context: &Context<'_>) -> Result<(), Finding> {
    let (program, spec) = context.program(&context.options.programs.echo)?;
    let sandbox = context.backend.create(&spec).await?;
    sandbox.write_file("/kept/file", b"kept", 0o644).await?;
    for _ in 0..2 {
        sandbox.end_all().await?;
        let bytes = sandbox.read_file("/kept/file", 100).await?;
        ensure!(bytes == b"kept", "{:?} is left", String::from_utf8_lossy(&bytes));
        let result = sandbox.exec(&program.request()).await?;
        ensure!(result.stdout.text() == "hello\n", "afterwards {:?}", result.stdout.text());
    }
    Ok(sandbox.close().await?)
}

async fn under_way(context: &Context<'_>) -> Result<(), Finding> {
    let (program, spec) = context.program(&context.options.programs.forever)?;
    let sandbox = context.backend.create(&spec).await?;
    let request = program.request().with_timeout(LONG * 2);
    let began = Instant::now();
    let ending = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        sandbox.end_all().await
    };
    let (result, ended) = tokio::join!(sandbox.exec(&request), ending);
    ended?;
    let end = result?.end;
    ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
    ensure!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
    Ok(sandbox.close().await?)
}

/// Nothing is counted right after everything was ended, and nothing writes into [`WRITER`]'s file.
async fn is_quiet(sandbox: &dyn Sandbox) -> Result<(), Finding> {
    // First, since what runs a command may need a moment to be gone after it.
    let pids = sandbox.stats().await?.pids;
    ensure!(pids.is_none_or(|pids| pids == 0), "{pids:?} processes are counted");
    let size = "wc -c </tmp/alive";
    let before = sh(sandbox, size).await?;
    ensure!(before.trim() != "0", "nothing was ever written");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = sh(sandbox, size).await?;
    ensure!(before == after, "it grew from {} to {} bytes", before.trim(), after.trim());
    Ok(())
}

/// Waits until [`WRITER`] has begun.
async fn has_begun(sandbox: &dyn Sandbox) -> Result<(), Finding> {
    for _ in 0..600 {
        if sandbox.read_file("/tmp/alive", 1 << 20).await.is_ok_and(|bytes| !bytes.is_empty()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(Finding::Failed("nothing was ever written".into()))
}

/// Whoever would tell how a command ended may have been killed by it: an engine may then lose what it was attached to.
fn or_torn_off<T>(result: Result<T, SandboxError>) -> Result<(), SandboxError> {
    match result {
        Ok(_) | Err(SandboxError::Backend { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn nothing_left(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await?;
    shell.run(WRITER, LONG).await?;
    or_torn_off(shell.run(&format!("{WRITER}; {KILL_ABOVE}"), LONG).await)?;
    let request = ExecRequest::sh(&format!("{WRITER}; kill -9 $PPID; sleep 1"));
    or_torn_off(sandbox.exec(&request.with_timeout(LONG)).await)?;
    has_begun(&*sandbox).await?;
    // A second shell is open, with something of its own.
    let mut other = sandbox.open_shell(&ShellOptions::default()).await?;
    other.run(WRITER, LONG).await?;
    sandbox.end_all().await?;
    is_quiet(&*sandbox).await?;
    // Shells begin anew, or say that they are gone; they do not hang.
    match shell.run("echo anew", LONG).await {
        Ok(result) => ensure!(result.stdout.text() == "anew\n", "a shell {}", result.end),
        Err(SandboxError::Died { .. } | SandboxError::Backend { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    sandbox.end_all().await?;
    Ok(sandbox.close().await?)
}

async fn killers(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let killer = "(setsid sh -c 'while :; do kill -9 -1; kill -15 1; kill -10 1; kill -12 1; done' \
                  </dev/null >/dev/null 2>&1 &); (setsid sh -c 'while :; do kill -19 -1; done' \
                  </dev/null >/dev/null 2>&1 &)";
    // They may kill the command that starts them, each other, and what says how it ended.
    let request = ExecRequest::sh(&format!("{WRITER}; sleep 0.3; {killer}; sleep 1"));
    let _ = sandbox.exec(&request.with_timeout(Duration::from_secs(5))).await;
    let began = Instant::now();
    sandbox.end_all().await?;
    ensure!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
    is_quiet(&*sandbox).await?;
    Ok(sandbox.close().await?)
}

async fn makes_room(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_posix()?;
    if !context.can().pids_limit {
        return Err(Finding::Skipped("the backend does not limit processes".into()));
    }
    let mut spec = context.spec();
    spec.limits.pids = Some(32);
    let sandbox = context.backend.create(&spec).await?;
    let fill = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                (setsid sh -c 'sleep 98763 & sleep 98763 & sleep 98763 & wait' \
                </dev/null >/dev/null 2>&1 &); done";
    let _ = sandbox.exec(&ExecRequest::sh(fill).with_timeout(Duration::from_secs(10))).await;
    sandbox.end_all().await?;
    let text = sh(&*sandbox, "echo one | cat | cat | cat").await?;
    ensure!(text == "one\n", "afterwards {text:?}");
    Ok(sandbox.close().await?)
}

async fn closed(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.close().await?;
    match sandbox.end_all().await {
        Err(SandboxError::Died { death: Death::Closed, .. }) => Ok(()),
        other => Err(Finding::Failed(format!("{other:?}"))),
    }
}
