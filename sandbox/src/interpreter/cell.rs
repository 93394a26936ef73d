//! What came of a piece of code.

use std::time::Duration;

use crate::ExecEnd;

/// What came of a piece of code in an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What it wrote, the value of a last expression and a traceback among it, and how it ended where that was not by itself:
    /// for whoever wrote the code. Never empty, and bounded by
    /// [`InterpreterOptions::output_limit_bytes`](super::InterpreterOptions::output_limit_bytes) but for some words.
    pub text: String,
    /// How it ended.
    pub end: CellEnd,
    /// Whether the interpreter had to be started anew, so that its variables are gone.
    pub restarted: bool,
    /// From the request to the end.
    pub wall: Duration,
}

/// How a piece of code ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CellEnd {
    /// By itself.
    Done,
    /// By an error that it did not catch, or by ending the interpreter.
    Failed,
    /// At its deadline.
    TimedOut,
    /// It got no more memory.
    OutOfMemory,
    /// The interpreter crashed, by a trap, a signal or its fuel.
    Crashed,
    /// It was longer than a cell may be, and did not run.
    Refused,
}

impl CellEnd {
    /// Whether it ran to its end without an error.
    pub fn is_success(self) -> bool {
        self == Self::Done
    }

    pub(super) fn of(end: ExecEnd) -> Self {
        match end {
            ExecEnd::Exited { code: 0 } => Self::Done,
            ExecEnd::Exited { .. } => Self::Failed,
            ExecEnd::TimedOut => Self::TimedOut,
            ExecEnd::OutOfMemory => Self::OutOfMemory,
            ExecEnd::Signalled { .. } | ExecEnd::OutOfFuel | ExecEnd::Trapped => Self::Crashed,
        }
    }
}
