//! What processes on a pseudo-terminal have to do.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::context::{Context, Finding, ensure, is_unsupported, sh};
use super::spawn::FAMILY;
use super::{Trial, trials};
use crate::{
    ByteStream, ExecEnd, ExecRequest, ProcessHandle, PtyProcess, PtySize, Sandbox, SandboxError,
};

pub(super) const TRIALS: &[Trial] = trials![
    "a terminal shows what is typed and what is written, in its size" => shows,
    "a terminal that is resized tells the process so" => resized,
    "keys reach the foreground of a terminal, and its shell goes on" => keys,
    "a terminal that is hung up tells the process so" => hung_up,
    "a process on a terminal that is killed or dropped ends with all that it started" => killed,
    "what a process on a terminal leaves behind does not hold it open" => left_behind,
    "a terminal that nobody looks at holds up its process" => unread,
    "a terminal whose keys nobody takes is resized, hung up and killed" => untaken,
    "a process on a terminal meets its deadline, and ends with its sandbox" => ends_early,
];

const LONG: Duration = Duration::from_secs(60);
const PROMPT: &str = "ready> ";

fn failed(error: std::io::Error) -> Finding {
    Finding::Failed(format!("the terminal: {error}"))
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Finding> {
    let late = |_| Finding::Failed(format!("{what} took longer than {LONG:?}"));
    tokio::time::timeout(LONG, work).await.map_err(late)
}

/// A terminal and what it showed so far.
struct Screen {
    terminal: ByteStream,
    shown: String,
}

impl Screen {
    async fn more(&mut self, until: impl Fn(&str) -> bool, what: &str) -> Result<(), Finding> {
        let until_then = Instant::now() + LONG;
        let mut chunk = [0; 4096];
        while !until(&self.shown) {
            let left = until_then.saturating_duration_since(Instant::now());
            let read = tokio::time::timeout(left, self.terminal.read(&mut chunk)).await;
            let seen = |how: &str| format!("{how} {what} the terminal shows {:?}", self.shown);
            let read = read.map_err(|_| Finding::Failed(seen("waiting for")))?;
            let read = read.map_err(failed)?;
            ensure!(read > 0, "{}", seen("at its end, without"));
            self.shown += &String::from_utf8_lossy(&chunk[..read]);
        }
        Ok(())
    }

    /// Waits until it shows `text`, and forgets what came up to its end.
    async fn shows(&mut self, text: &str) -> Result<(), Finding> {
        self.more(|shown| shown.contains(text), text).await?;
        let end = self.shown.find(text).unwrap_or(0) + text.len();
        self.shown.drain(..end);
        Ok(())
    }

    async fn types(&mut self, text: &str) -> Result<(), Finding> {
        in_time("typing", self.terminal.write_all(text.as_bytes())).await?.map_err(failed)?;
        self.terminal.flush().await.map_err(failed)
    }

    /// Everything up to its end.
    async fn rest(mut self) -> Result<String, Finding> {
        let mut rest = Vec::new();
        in_time("the end", self.terminal.read_to_end(&mut rest)).await?.map_err(failed)?;
        Ok(self.shown + &String::from_utf8_lossy(&rest))
    }
}

async fn start(
    context: &Context<'_>,
    sandbox: &dyn Sandbox,
    request: &ExecRequest,
    size: PtySize,
) -> Result<(Screen, crate::PtyWindow, ProcessHandle), Finding> {
    if !context.can().pty {
        return Err(Finding::Unsupported);
    }
    let PtyProcess { terminal, window, handle } = sandbox.spawn_pty(request, size).await?;
    Ok((Screen { terminal, shown: String::new() }, window, handle))
}

async fn script(
    context: &Context<'_>,
    sandbox: &dyn Sandbox,
    script: &str,
) -> Result<(Screen, crate::PtyWindow, ProcessHandle), Finding> {
    start(context, sandbox, &ExecRequest::sh(script), PtySize::default()).await
}

async fn wait(handle: &mut ProcessHandle) -> Result<ExecEnd, Finding> {
    Ok(in_time("the end of the process", handle.wait()).await??)
}

async fn shows(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let request = ExecRequest::sh(
        "echo on $TERM >/dev/tty; stty size; tty | cut -c1-9; read -r line; echo got $line >&2; exit 3",
    );
    let size = PtySize { rows: 33, columns: 101 };
    if !context.can().pty {
        return match sandbox.spawn_pty(&request, size).await {
            Ok(_) => Err(Finding::Failed("it does what it says it cannot".into())),
            Err(error) => is_unsupported(error),
        };
    }
    let given = sandbox.spawn_pty(&request.clone().with_stdin(b"before".to_vec()), size).await;
    let is_refused = matches!(given, Err(SandboxError::Unsupported { .. }));
    ensure!(is_refused, "input beforehand: {given:?}");
    let (mut screen, _window, mut handle) = start(context, &*sandbox, &request, size).await?;
    for text in ["on xterm\r\n", "33 101\r\n", "/dev/pts/\r\n"] {
        screen.shows(text).await?;
    }
    screen.types("hello\n").await?;
    screen.shows("hello\r\n").await?;
    screen.shows("got hello\r\n").await?;
    let rest = screen.rest().await?;
    ensure!(rest.is_empty(), "it goes on with {rest:?}");
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::Exited { code: 3 }, "it {end}");
    let absent = ExecRequest::new(["/no/such/program"]);
    let (screen, _window, mut handle) =
        start(context, &*sandbox, &absent, PtySize::default()).await?;
    let said = screen.rest().await?;
    ensure!(said.contains("/no/such/program"), "a program that is not there says {said:?}");
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::Exited { code: 127 }, "a program that is not there {end}");
    Ok(sandbox.close().await?)
}

async fn resized(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let (mut screen, window, mut handle) = script(
        context,
        &*sandbox,
        "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done",
    )
    .await?;
    screen.shows("ready\r\n").await?;
    for (rows, columns) in [(50, 120), (2, 2), (5000, 300)] {
        window.resize(PtySize { rows, columns })?;
        screen.shows(&format!("{rows} {columns}\r\n")).await?;
    }
    let end = handle.kill().await?;
    ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
    window.resize(PtySize::default())?;
    Ok(sandbox.close().await?)
}

async fn keys(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut request = ExecRequest::new(["sh", "-i"]);
    request.env.insert("PS1".into(), PROMPT.into());
    request.env.insert("ENV".into(), String::new());
    let (mut screen, _window, mut handle) =
        start(context, &*sandbox, &request, PtySize::default()).await?;
    screen.more(|shown| shown.contains(PROMPT), "a prompt").await?;
    ensure!(!screen.shown.contains("job control"), "it says {:?}", screen.shown);
    screen.shows(PROMPT).await?;
    // Ctrl-C, and Ctrl-\, which the terminal makes signals of; the quotes keep what is typed apart from
    // what is written.
    for key in ["\x03", "\x1c"] {
        screen.types("sh -c 'echo beg''un; exec sleep 1000'\n").await?;
        screen.shows("begun\r\n").await?;
        screen.types(key).await?;
        // What was typed before a signal is thrown away.
        screen.shows(PROMPT).await?;
        screen.types("echo ba''ck\n").await?;
        screen.shows("back\r\n").await?;
    }
    // Job control: one that is stopped by Ctrl-Z goes on in the foreground.
    screen.types("sh -c 'echo beg''un; read -r x; echo got $x'\n").await?;
    screen.shows("begun\r\n").await?;
    screen.types("\x1a").await?;
    screen.shows(PROMPT).await?;
    screen.types("echo ba''ck\n").await?;
    screen.shows("back\r\n").await?;
    screen.types("fg\n").await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    screen.types("on''ward\n").await?;
    screen.shows("got on''ward\r\n").await?;
    // Ctrl-D is the end of the input.
    screen.shows(PROMPT).await?;
    screen.types("\x04").await?;
    let end = wait(&mut handle).await?;
    ensure!(matches!(end, ExecEnd::Exited { .. }), "it {end}");
    Ok(sandbox.close().await?)
}

async fn hung_up(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    for is_shut_down in [false, true] {
        let (mut screen, _window, mut handle) = script(
            context,
            &*sandbox,
            "rm -f /tmp/hup; trap 'echo hup >/tmp/hup; exit 4' HUP; echo ready; \
             while :; do sleep 0.05; done",
        )
        .await?;
        screen.shows("ready\r\n").await?;
        if is_shut_down {
            screen.terminal.shutdown().await.map_err(failed)?;
            screen.rest().await?;
        } else {
            drop(screen);
        }
        let end = wait(&mut handle).await?;
        ensure!(end == ExecEnd::Exited { code: 4 }, "it {end}");
        ensure!(sh(&*sandbox, "cat /tmp/hup").await? == "hup\n", "it was not told");
    }
    Ok(sandbox.close().await?)
}

async fn killed(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    for is_dropped in [false, true] {
        let (mut screen, _window, mut handle) = script(context, &*sandbox, FAMILY).await?;
        screen.shows("begun\r\n").await?;
        if is_dropped {
            drop(handle);
        } else {
            let end = in_time("killing", handle.kill()).await??;
            ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
        }
        screen.rest().await?;
        let is_quiet = super::spawn::goes_quiet(&*sandbox, is_dropped).await?;
        ensure!(is_quiet, "what it started goes on");
    }
    Ok(sandbox.close().await?)
}

async fn left_behind(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let (screen, _window, mut handle) = script(
        context,
        &*sandbox,
        "(trap '' HUP TTOU; while :; do echo again; echo x >>/tmp/alive; sleep 0.05; done) & \
         while [ ! -s /tmp/alive ]; do sleep 0.05; done; echo over",
    )
    .await?;
    let rest = screen.rest().await?;
    ensure!(rest.contains("over\r\n"), "it shows {rest:?}");
    let end = wait(&mut handle).await?;
    ensure!(end.is_success(), "it {end}");
    sandbox.end_all().await?;
    Ok(sandbox.close().await?)
}

async fn unread(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let (mut screen, _window, mut handle) =
        script(context, &*sandbox, &super::spawn::flood("/tmp/count", 512)).await?;
    let written = super::spawn::stands_still(&*sandbox, "/tmp/count").await?;
    ensure!(written < super::spawn::MOST, "{written} bytes were taken that nobody looks at");
    // It goes on once somebody does.
    let mut much = vec![0; 1 << 16];
    in_time("much", screen.terminal.read_exact(&mut much)).await?.map_err(failed)?;
    let end = in_time("killing", handle.kill()).await??;
    ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
    Ok(sandbox.close().await?)
}

async fn untaken(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    for is_killed in [false, true] {
        let (mut screen, window, mut handle) = script(
            context,
            &*sandbox,
            "stty raw -echo; trap 'stty size' WINCH; trap 'exit 4' HUP; echo ready; \
             while :; do sleep 0.05; done",
        )
        .await?;
        screen.shows("ready").await?;
        let taken = super::spawn::fill(&mut screen.terminal).await?;
        ensure!(
            taken < super::spawn::MOST,
            "{taken} keys were taken that the process does not read"
        );
        window.resize(PtySize { rows: 7, columns: 9 })?;
        screen.shows("7 9").await?;
        if is_killed {
            let end = in_time("killing", handle.kill()).await??;
            ensure!(end == ExecEnd::Signalled { signal: 9 }, "it {end}");
        } else {
            drop(screen);
            let end = wait(&mut handle).await?;
            ensure!(end == ExecEnd::Exited { code: 4 }, "hung up it {end}");
        }
    }
    Ok(sandbox.close().await?)
}

async fn ends_early(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let request = ExecRequest::sh("echo begun; trap '' HUP; sleep 1000");
    let limited = request.clone().with_timeout(Duration::from_secs(1));
    let (screen, _window, mut handle) =
        start(context, &*sandbox, &limited, PtySize::default()).await?;
    ensure!(screen.rest().await? == "begun\r\n", "it did not begin");
    let end = wait(&mut handle).await?;
    ensure!(end == ExecEnd::TimedOut, "it {end}");
    let (mut screen, _window, mut handle) =
        start(context, &*sandbox, &request, PtySize::default()).await?;
    screen.shows("begun\r\n").await?;
    sandbox.close().await?;
    screen.rest().await?;
    let ended = in_time("the end", handle.wait()).await?;
    let is_told = match &ended {
        Ok(end) => *end == ExecEnd::Signalled { signal: 9 },
        Err(error) => matches!(error, SandboxError::Died { .. }),
    };
    ensure!(is_told, "its end is told as {ended:?}");
    let after = sandbox.spawn_pty(&request, PtySize::default()).await;
    ensure!(matches!(after, Err(SandboxError::Died { .. })), "afterwards: {after:?}");
    Ok(())
}
