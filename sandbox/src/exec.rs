//! One command in a sandbox.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Captured;

/// One command to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// The program and its arguments; no shell reads them. For a wasm guest, the arguments alone
    /// (the program is the image).
    pub command: Vec<String>,
    /// Bytes on standard input, which then ends. Default none.
    pub stdin: Vec<u8>,
    /// Environment variables beside those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Working directory. Default the sandbox's.
    pub workdir: Option<String>,
    /// Who it runs as. Default the sandbox's user.
    pub user: Option<String>,
    /// After this it is ended together with everything it started. Default
    /// [`Lifetimes::exec`](crate::Lifetimes::exec).
    pub timeout: Option<Duration>,
    /// Bytes kept of each stream. Default 1 MiB.
    pub output_limit_bytes: usize,
}

impl ExecRequest {
    /// Runs `command` with the defaults.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            stdin: Vec::new(),
            env: BTreeMap::new(),
            workdir: None,
            user: None,
            timeout: None,
            output_limit_bytes: 1 << 20,
        }
    }

    /// Runs `script` with `sh -c`.
    pub fn sh(script: &str) -> Self {
        Self::new(["sh", "-c", script])
    }

    /// The same with a deadline.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Refuses to give a process its input beforehand, which is to be written to it.
    #[cfg(any(feature = "docker", feature = "local"))]
    pub(crate) fn check_spawn(&self, backend: &'static str) -> Result<(), crate::SandboxError> {
        if self.stdin.is_empty() {
            return Ok(());
        }
        let what = "give a process its input beforehand".to_owned();
        Err(crate::SandboxError::Unsupported { backend, what })
    }

    /// The same with these bytes on standard input.
    #[must_use]
    pub fn with_stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }
}

/// How a command ended: an observation, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ExecEnd {
    /// By itself.
    Exited {
        /// Its exit code; 126 and 127 are also those of a program that cannot be run or found.
        code: i32,
    },
    /// By a signal that was not ours.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// By its deadline; nothing it started is left.
    TimedOut,
    /// The sandbox ran out of memory while it ran and it was killed for that.
    OutOfMemory,
    /// A wasm guest used up [`Limits::fuel`](crate::Limits::fuel).
    OutOfFuel,
    /// A wasm guest trapped: an access out of bounds, `unreachable`, a stack overflow.
    Trapped,
}

impl ExecEnd {
    /// Whether it exited with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited { code: 0 }
    }

    /// The code a shell would give it: 124 for a deadline, 137 for memory, 128 + n for a signal,
    /// 134 for a trap, 152 for fuel (the code of a used-up CPU limit).
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Exited { code } => code,
            Self::Signalled { signal } => 128 + signal,
            Self::TimedOut => 124,
            Self::OutOfMemory => 137,
            Self::OutOfFuel => 152,
            Self::Trapped => 134,
        }
    }
}

impl fmt::Display for ExecEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exited with {code}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::TimedOut => write!(f, "ended at its deadline"),
            Self::OutOfMemory => write!(f, "out of memory"),
            Self::OutOfFuel => write!(f, "out of fuel"),
            Self::Trapped => write!(f, "trapped"),
        }
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    /// How it ended.
    pub end: ExecEnd,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// From the request to the end.
    pub wall: Duration,
}

/// Which stream bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes output while a command runs.
///
/// Called from the task that runs the exec, in the order in which the bytes of a stream came. It
/// gets all bytes, also those that [`ExecResult`] leaves out.
pub trait OutputSink: Send {
    /// `bytes` were written to `stream`.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
}

impl<F: FnMut(Stream, &[u8]) + Send> OutputSink for F {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self(stream, bytes);
    }
}
