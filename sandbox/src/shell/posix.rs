//! One long-lived `sh` that runs commands in turn.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout};

use super::driver;
use super::exchange::{Exchange, Outcome, Session};
use super::transport::ShellTransport;
use crate::nonce::nonce;
use crate::{Captured, Death, ExecEnd, SandboxError, Shell, ShellOptions, ShellResult};

/// How long a shell may take to be there.
const START: Duration = Duration::from_secs(30);

/// How long a script beside the shell may take.
const ASIDE: Duration = Duration::from_secs(15);

/// How long a command that was killed may take to be gone.
const GRACE: Duration = Duration::from_secs(2);

/// How long a shell may take to begin a command or to begin anew.
const BEGIN: Duration = Duration::from_secs(20);

/// A [`Shell`] over any [`ShellTransport`].
///
/// ```text
///   host ──stdin──▶ sh ── supervisor: starts the shell anew when it ended, says so (`X`)
///                    ├─ sh ── the shell: reads commands, runs each with `eval`
///                    │         │ o, e: named pipes, marks `S` and `E` around the output
///   host ◀─stdout── ├─ pump o ── cat, a new one for each command
///   host ◀─stderr── └─ pump e ── cat
/// ```
///
/// A command's output ends with the mark that the shell writes into the same pipe. Each mark carries
/// a name that was drawn for this command and that the command is never told. What still writes into
/// the pipe afterwards was left in the background: its `cat` is ended, the rest is thrown away, and
/// the next command gets another pipe.
///
/// At the deadline everything is killed that the command started; what was left in the background
/// by earlier commands lives on. If the shell itself does not come back then, it is started anew in
/// the last working directory, as it is when a command ends it. A future of [`Shell::run`] that is
/// dropped leaves the command running until the next call, which starts everything anew.
#[derive(Debug)]
pub(crate) struct PosixShell<T: ShellTransport> {
    transport: T,
    options: ShellOptions,
    session: Option<Session>,
    /// Of the last command that came back.
    workdir: Option<Vec<u8>>,
    is_closed: bool,
    /// [`BEGIN`], but in tests that wait for it to pass.
    pub(super) patience: Duration,
    /// A call is under way, or was dropped.
    is_busy: bool,
}

/// Where the parts of a session are, in the sandbox's numbers.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    pub(super) shell: u32,
    pub(super) supervisor: u32,
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) folder: String,
}

impl<T: ShellTransport> PosixShell<T> {
    /// Starts a shell.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] where `sh`, `cat`, `mkfifo`, `mkdir` or `rm` is missing, or no
    /// folder can be written; those of the transport.
    pub(crate) async fn open(transport: T, options: ShellOptions) -> Result<Self, SandboxError> {
        let mut shell = Self {
            transport,
            options,
            session: None,
            workdir: None,
            is_closed: false,
            patience: BEGIN,
            is_busy: false,
        };
        shell.start().await?;
        Ok(shell)
    }

    async fn start(&mut self) -> Result<(), SandboxError> {
        let command = ["sh", "-c", driver::BOOT].map(str::to_owned);
        let starting = async {
            let process = self.transport.start(&command, &self.options).await?;
            Session::begin(process, &nonce(), self.workdir.as_deref(), START).await.map_err(
                |reason| match reason.strip_prefix("missing ") {
                    Some(tool) => SandboxError::Unsupported {
                        backend: self.transport.backend(),
                        what: format!("open a shell in an image without `{tool}`"),
                    },
                    None => SandboxError::Backend {
                        doing: format!("start a shell in sandbox `{}`", self.transport.sandbox()),
                        source: reason.into(),
                    },
                },
            )
        };
        let session = timeout(START, starting).await.unwrap_or_else(|_| {
            Err(SandboxError::Backend {
                doing: format!("start a shell in sandbox `{}`", self.transport.sandbox()),
                source: format!("it was not there after {} s", START.as_secs()).into(),
            })
        });
        match session {
            Ok(session) => {
                self.session = Some(session);
                Ok(())
            }
            Err(error) => {
                // What was half started must not stay; the first error is the one to tell.
                let _ = timeout(ASIDE, self.transport.end()).await;
                Err(error)
            }
        }
    }

    /// Ends everything and starts anew in the last working directory.
    async fn restart(&mut self) -> Result<(), SandboxError> {
        self.end().await?;
        self.start().await
    }

    async fn end(&mut self) -> Result<(), SandboxError> {
        let session = self.session.take();
        // First, while the shell lives: what has left its session is known to be of it only as long
        // as the transport's process stands above it.
        let ended = timeout(ASIDE, self.transport.end()).await.unwrap_or_else(|_| {
            Err(SandboxError::Backend {
                doing: format!("end a shell in sandbox `{}`", self.transport.sandbox()),
                source: format!("it still ran after {} s", ASIDE.as_secs()).into(),
            })
        });
        if let Some(session) = session {
            self.aside(&driver::kill_all(&session.ids)).await;
        }
        ended
    }

    /// A script that could not run shows in what it should have done.
    async fn aside(&mut self, script: &str) {
        match timeout(ASIDE, self.transport.run_aside(script)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a script beside a shell failed"),
            Err(_) => tracing::debug!("a script beside a shell took too long"),
        }
    }

    async fn run_once(
        &mut self,
        exchange: &mut Exchange,
        command: &str,
        deadline: Instant,
    ) -> Result<Outcome, SandboxError> {
        if self.session.is_none() {
            self.start().await?;
        }
        let session = self.session.as_mut().expect("it was started");
        let status = std::mem::take(&mut session.status);
        let text = driver::run(&session.ids.folder, &exchange.nonce, status, command.as_bytes());
        let mut outcome =
            session.drive(exchange, &text, deadline, self.patience, Exchange::is_over).await;
        if outcome == Outcome::TimedOut {
            self.kill(exchange).await;
        }
        if exchange.is_gone() {
            let session = self.session.as_mut().expect("nobody took it");
            if !session.revive(exchange, self.workdir.as_deref(), self.patience).await {
                let _ = self.session.take();
                if !exchange.has_begun() {
                    outcome = Outcome::Lost;
                }
            }
        }
        Ok(outcome)
    }

    /// Ends what the present command started, and the shell if that is not enough.
    async fn kill(&mut self, exchange: &mut Exchange) {
        let Some(session) = &self.session else { return };
        let (ids, since) = (session.ids.clone(), exchange.since_ticks());
        for (script, grace) in [
            (driver::kill_command(&ids, since), GRACE / 2),
            (driver::kill_shell(&ids, since), GRACE),
        ] {
            self.aside(&script).await;
            let Some(session) = &mut self.session else { return };
            let until = Instant::now() + grace;
            let ended = session.drive(exchange, b"", until, self.patience, Exchange::is_over).await;
            if ended == Outcome::Reached {
                return;
            }
        }
    }

    /// Makes ready for the next command; whether variables were lost.
    async fn settle(&mut self, exchange: &mut Exchange) -> Result<bool, SandboxError> {
        if let Some(session) = &mut self.session
            && exchange.is_over()
        {
            let Some((code, workdir)) = exchange.take_end() else { return Ok(true) };
            session.status = code;
            self.workdir = Some(workdir);
            if session.settle(exchange, 's', self.patience).await {
                return Ok(false);
            }
        }
        self.restart().await?;
        Ok(true)
    }
}

#[async_trait]
impl<T: ShellTransport> Shell for PosixShell<T> {
    async fn run(&mut self, command: &str, limit: Duration) -> Result<ShellResult, SandboxError> {
        let began = Instant::now();
        if self.is_closed {
            let sandbox = self.transport.sandbox().to_owned();
            return Err(SandboxError::Died { sandbox, death: Death::Closed });
        }
        if command.contains('\0') {
            return Ok(refused(self.options.output_limit_bytes, began));
        }
        let mut restarted = false;
        if std::mem::replace(&mut self.is_busy, true) {
            self.restart().await?;
            restarted = true;
        }
        let deadline = began + limit;
        let mut exchange = Exchange::new(nonce(), self.options.output_limit_bytes);
        let mut outcome = self.run_once(&mut exchange, command, deadline).await?;
        if outcome == Outcome::Lost && Instant::now() < deadline {
            // The shell was broken before the command began.
            self.restart().await?;
            restarted = true;
            exchange = Exchange::new(nonce(), self.options.output_limit_bytes);
            outcome = self.run_once(&mut exchange, command, deadline).await?;
        }
        let end = match (outcome, exchange.code()) {
            (Outcome::TimedOut | Outcome::Lost, _) => ExecEnd::TimedOut,
            (Outcome::Reached, Some(code)) => ExecEnd::Exited { code },
            // Everything vanished without a word.
            _ => ExecEnd::Signalled { signal: 9 },
        };
        restarted |= self.settle(&mut exchange).await?;
        self.is_busy = false;
        let (stdout, stderr) = exchange.into_output();
        Ok(ShellResult { end, stdout, stderr, restarted, wall: began.elapsed() })
    }

    async fn close(&mut self) -> Result<(), SandboxError> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.end().await
    }
}

/// No shell can be given a NUL byte; the command is to blame, so this is an observation.
fn refused(limit_bytes: usize, began: Instant) -> ShellResult {
    let mut stderr = Captured::new(limit_bytes);
    stderr.push(b"sh: the command holds a NUL byte\n");
    ShellResult {
        end: ExecEnd::Exited { code: 2 },
        stdout: Captured::new(limit_bytes),
        stderr,
        restarted: false,
        wall: began.elapsed(),
    }
}

#[cfg(test)]
impl<T: ShellTransport> PosixShell<T> {
    /// Where the pipes of the present session are.
    pub(super) fn session_folder(&self) -> &str {
        &self.session.as_ref().expect("it is open").ids.folder
    }
}
