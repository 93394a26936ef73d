//! An interpreter that is a process of its sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::Language;
use crate::nonce::nonce;
use crate::shell::{Piece, Scanner};
use crate::{
    Captured, Death, ExecEnd, ExecRequest, Process, Sandbox, SandboxError, Shell, ShellOptions,
    ShellResult,
};

/// How long what was written by a process that has ended may take to arrive.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a program may take to say whether it is there.
const START: Duration = Duration::from_secs(30);
/// A name that no mark carries, for streams that have one name.
const NO_NAME: &str = "--------------------------------";

/// A session in a process that runs a driver: it is told code on standard input, and marks the end of what that wrote with a
/// name that was drawn for it.
///
/// What a cell leaves running writes into the output of those behind it. A cell that has not ended at its deadline is ended
/// with the process, and the next one begins a new process.
pub(super) struct ProcessSession {
    sandbox: Arc<dyn Sandbox>,
    language: Language,
    options: ShellOptions,
    process: Option<Process>,
    is_closed: bool,
}

/// How the output of a cell came to its end.
enum Ended {
    /// With the mark.
    Mark { kind: u8, code: i32 },
    /// Without one: the stream is over.
    Stream,
}

impl ProcessSession {
    /// Starts the language's program.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] where the sandbox has none, and those of the backend.
    pub(super) async fn open(
        sandbox: &Arc<dyn Sandbox>,
        language: Language,
        options: &ShellOptions,
    ) -> Result<Self, SandboxError> {
        let mut session = Self {
            sandbox: Arc::clone(sandbox),
            language,
            options: options.clone(),
            process: None,
            is_closed: false,
        };
        let first = session.run("1", START).await?;
        if first.end.is_success() {
            return Ok(session);
        }
        let program = program(language)[0];
        let told = first.stderr.text();
        Err(SandboxError::Unsupported {
            backend: "interpreter",
            what: format!(
                "run {}: `{program}` {} {}",
                language.title(),
                first.end,
                told.trim().lines().last().unwrap_or_default()
            ),
        })
    }
}

async fn start(
    sandbox: &Arc<dyn Sandbox>,
    language: Language,
    options: &ShellOptions,
) -> Result<Process, SandboxError> {
    let mut request = ExecRequest::new(program(language));
    request.workdir.clone_from(&options.workdir);
    request.user.clone_from(&options.user);
    // It lives as long as its sandbox; cells have deadlines of their own.
    request.timeout = Some(sandbox.spec().lifetimes.time_to_live());
    sandbox.spawn(&request).await
}

/// The language's program with what it is to run.
fn program(language: Language) -> [&'static str; 3] {
    match language {
        Language::Python => ["python3", "-c", include_str!("driver.py")],
        Language::Javascript => ["node", "-e", include_str!("driver.js")],
    }
}

#[async_trait]
impl Shell for ProcessSession {
    async fn run(&mut self, command: &str, limit: Duration) -> Result<ShellResult, SandboxError> {
        let started = Instant::now();
        if self.is_closed {
            let sandbox = self.sandbox.id().to_owned();
            return Err(SandboxError::Died { sandbox, death: Death::Closed });
        }
        // Taken out while a cell runs: if this future is dropped, the session is gone.
        let mut process = match self.process.take() {
            Some(process) => process,
            None => start(&self.sandbox, self.language, &self.options).await?,
        };
        let deadline = started.checked_add(limit).unwrap_or_else(|| started + START);
        let name = nonce();
        let told = format!("{name} {}\n{command}", command.len());
        let limit_bytes = self.options.output_limit_bytes;
        let (mut stdout, mut stderr) = (Captured::new(limit_bytes), Captured::new(limit_bytes));
        let Process { stdin, stdout: out, stderr: err, handle } = &mut process;
        let talk = async {
            let write = async {
                // A process that is gone tells so by its streams.
                let _ = stdin.write_all(told.as_bytes()).await;
                let _ = stdin.flush().await;
            };
            let read = async {
                tokio::join!(
                    read(&mut **out, &name, &mut stdout),
                    read(&mut **err, &name, &mut stderr)
                )
            };
            tokio::pin!(read);
            let both = async { tokio::join!(write, &mut read).1 };
            tokio::select! {
                biased;
                ended = both => return ended.0,
                _ = handle.wait() => {}
            }
            // What it left running may hold its streams.
            match timeout(DRAIN, read).await {
                Ok((ended, _)) => ended,
                Err(_) => Ended::Stream,
            }
        };
        let ended = timeout_at(deadline, talk).await;
        let end = match ended {
            Ok(Ended::Mark { kind: b'E', code }) => {
                self.process = Some(process);
                ExecEnd::Exited { code }
            }
            Ok(Ended::Mark { code, .. }) => {
                process.handle.kill().await?;
                ExecEnd::Exited { code }
            }
            Ok(Ended::Stream) => match timeout(DRAIN, process.handle.wait()).await {
                Ok(end) => match end? {
                    // It cannot have been told to end: that comes with a mark.
                    ExecEnd::Exited { code: 0 } => ExecEnd::Exited { code: 1 },
                    end => end,
                },
                // It closed its streams and lives.
                Err(_) => {
                    process.handle.kill().await?;
                    ExecEnd::Signalled { signal: 9 }
                }
            },
            Err(_) => {
                process.handle.kill().await?;
                ExecEnd::TimedOut
            }
        };
        let restarted = self.process.is_none();
        Ok(ShellResult { end, stdout, stderr, restarted, wall: started.elapsed() })
    }

    async fn close(&mut self) -> Result<(), SandboxError> {
        self.is_closed = true;
        match self.process.take() {
            Some(mut process) => process.handle.kill().await.map(drop),
            None => Ok(()),
        }
    }
}

/// Reads what a cell writes to a stream, up to its mark.
async fn read(
    stream: &mut (dyn AsyncRead + Send + Unpin),
    name: &str,
    written: &mut Captured,
) -> Ended {
    let mut scanner = Scanner::default();
    let mut buffer = [0; 8192];
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return Ended::Stream,
            Ok(count) => count,
        };
        scanner.push(&buffer[..count]);
        while let Some(piece) = scanner.next([name, NO_NAME]) {
            match piece {
                Piece::Data(range) => written.push(scanner.bytes(range)),
                Piece::Mark { kind, text } => {
                    return Ended::Mark { kind, code: text.parse().unwrap_or(1) };
                }
            }
        }
    }
}
