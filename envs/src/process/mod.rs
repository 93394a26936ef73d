//! Environments that are programs in any language.
//!
//! ```text
//!  Task { program, task } ──open──▶ Process ──takes a place──▶ ProgramPool ──starts──▶ Program
//!                                      │                                                 │  ▲
//!                                      └── reset, step, tools, fork, close ── a line each ┴──┘
//! ```
//!
//! A program reads requests from its standard input and answers on its standard output, a line of JSON each;
//! docs/process-environments.md has the protocol. [`Programs`] keeps a pool for every
//! [`ProgramSpec`](spar_tasks::ProgramSpec): programs are started when an episode needs a place, serve one episode after the
//! other, or several at a time where they say so, and are replaced when they break. Whatever a program does that it should
//! not ends it and is a [`ProgramError`], which fails the episodes in it without scoring them.

mod conformance;
mod driver;
mod environment;
mod launch;
mod local_process;
mod messages;
mod pool;
mod program;
mod program_error;
mod programs;
#[cfg(test)]
mod tests;

pub use conformance::{ProgramCheck, ProgramReport, check_program};
pub use environment::Process;
pub(crate) use launch::{Launched, Launcher, Running};
pub use messages::{PROTOCOL, read_answer};
pub use program_error::{ProgramError, ProgramFault};
pub use programs::Programs;
