//! What a backend gives so that [`PosixShell`](super::PosixShell) can keep a shell in it.

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{SandboxError, ShellOptions};

/// A process in a sandbox with its three streams.
pub(crate) struct ShellProcess {
    /// Its standard input.
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output; it ends when nobody holds it any more.
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error.
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

/// Starts and ends processes in one sandbox.
///
/// Dropping one ends what it started, as far as that is possible without waiting.
#[async_trait]
pub(crate) trait ShellTransport: Send + Sync {
    /// Name of the backend, for errors.
    fn backend(&self) -> &'static str;

    /// The sandbox's id, for errors.
    fn sandbox(&self) -> &str;

    /// Starts `command` in the working directory and as the user of `options`, with the sandbox's
    /// environment, as the leader of a session, or at least of a process group, of its own.
    ///
    /// What was started before has ended, or `end` was called for it.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] if the sandbox is gone, and those of the backend.
    async fn start(
        &mut self,
        command: &[String],
        options: &ShellOptions,
    ) -> Result<ShellProcess, SandboxError>;

    /// Runs `script` with `sh -c` in the same sandbox as the same user, in another session or
    /// process group, and waits for its end. The caller sets the deadline by dropping the future.
    ///
    /// # Errors
    ///
    /// As `start`. The exit code of the script does not matter.
    async fn run_aside(&mut self, script: &str) -> Result<(), SandboxError>;

    /// Ends the started process and what is in its session by the strongest means the backend has
    /// (a control group, the process-number namespace), since `run_aside` may have been unable to.
    /// Nothing to end is no error.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    async fn end(&mut self) -> Result<(), SandboxError>;
}
