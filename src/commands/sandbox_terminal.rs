//! A command on a terminal that is operated from this one.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Instant;

use anyhow::{Context, ensure};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use spar::sandbox::{Captured, ExecRequest, ExecResult, PtyProcess, PtySize, Sandbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Keys that are read at one time.
const CHUNK: usize = 4096;

/// Whether this process has a terminal to operate from.
pub(super) fn check() -> anyhow::Result<()> {
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "operate a terminal (--tty) from what is none: leave it out where input or output is no terminal"
    );
    Ok(())
}

/// Runs a command on a terminal to its end. What it shows goes to this terminal and is not kept.
pub(super) async fn operate(
    sandbox: &dyn Sandbox,
    request: &ExecRequest,
) -> anyhow::Result<ExecResult> {
    let begun = Instant::now();
    let mut request = request.clone();
    if let Ok(term) = std::env::var("TERM") {
        request.env.entry("TERM".into()).or_insert(term);
    }
    let mut resizes = signal(SignalKind::window_change()).context("watch the terminal's size")?;
    let PtyProcess { terminal, window, mut handle } = sandbox.spawn_pty(&request, size()).await?;
    let (mut from, mut to) = tokio::io::split(terminal);
    let raw = Raw::enter()?;
    let show = async {
        let mut chunk = vec![0; 1 << 16];
        loop {
            let count = from.read(&mut chunk).await.context("read the terminal")?;
            if count == 0 {
                return anyhow::Ok(());
            }
            let mut out = stdout().lock();
            out.write_all(&chunk[..count])
                .and_then(|()| out.flush())
                .context("write the output")?;
        }
    };
    let mut keys = keys();
    let press = async {
        while let Some(bytes) = keys.recv().await {
            // Fails once the process has ended, which the other side tells.
            let _ = to.write_all(&bytes).await;
            let _ = to.flush().await;
        }
        std::future::pending::<()>().await;
    };
    let resize = async {
        while resizes.recv().await.is_some() {
            window.resize(size())?;
        }
        std::future::pending::<anyhow::Result<()>>().await
    };
    tokio::select! {
        shown = show => shown?,
        () = press => {}
        resized = resize => resized?,
    }
    let end = handle.wait().await;
    drop(raw);
    let none = || Captured::new(0);
    Ok(ExecResult { end: end?, stdout: none(), stderr: none(), wall: begun.elapsed() })
}

/// How large this terminal is.
fn size() -> PtySize {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            PtySize { rows: size.ws_row, columns: size.ws_col }
        }
        _ => PtySize::default(),
    }
}

/// What is typed here. A read cannot be given up, so nothing waits for the thread.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut chunk = [0; CHUNK];
        while let Ok(count @ 1..) = rustix::io::read(stdin(), &mut chunk) {
            if sender.blocking_send(chunk[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// This terminal while it hands on every key; set back when dropped.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> anyhow::Result<Self> {
        let before = tcgetattr(stdin()).context("look at the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).context("set up the terminal")?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
