//! Interactive shell sessions.

#[cfg(any(feature = "docker", feature = "local", test))]
mod driver;
#[cfg(any(feature = "docker", feature = "local", test))]
mod exchange;
#[cfg(any(feature = "docker", feature = "local", test))]
mod posix;
#[cfg(any(feature = "docker", feature = "local", test))]
mod scanner;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "docker", feature = "local", test))]
mod transport;

use std::time::Duration;

use async_trait::async_trait;

use crate::{Captured, SandboxError};

#[cfg(any(feature = "docker", feature = "local", test))]
pub(crate) use posix::PosixShell;
#[cfg(any(feature = "docker", feature = "local", test))]
pub(crate) use scanner::{Piece, Scanner};
#[cfg(any(feature = "docker", feature = "local", test))]
pub(crate) use transport::{ShellProcess, ShellTransport};

/// How a shell session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOptions {
    /// Bytes kept of each stream per command. Default 1 MiB.
    pub output_limit_bytes: usize,
    /// Where it starts. Default the sandbox's working directory.
    pub workdir: Option<String>,
    /// Who it runs as. Default the sandbox's user.
    pub user: Option<String>,
}

impl Default for ShellOptions {
    fn default() -> Self {
        Self { output_limit_bytes: 1 << 20, workdir: None, user: None }
    }
}

/// A shell that keeps its working directory and variables between commands.
#[async_trait]
pub trait Shell: Send {
    /// Runs `command`, which may be several lines, to its end or its deadline. Its standard input
    /// is empty.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend. A command that fails, times out or ends the
    /// shell is no error: the next command runs in order all the same.
    async fn run(&mut self, command: &str, timeout: Duration) -> Result<ShellResult, SandboxError>;

    /// Ends the shell and everything started in it.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    async fn close(&mut self) -> Result<(), SandboxError>;
}

/// What came of a command in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellResult {
    /// How it ended.
    pub end: crate::ExecEnd,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Whether the shell had to be started anew, so that variables are lost (its working directory
    /// is kept): the command ended it, or could not be ended otherwise.
    pub restarted: bool,
    /// From the command to its end.
    pub wall: Duration,
}
