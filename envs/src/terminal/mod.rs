//! Work at a shell in a sandbox, judged by a script when it is done.
//!
//! ```text
//!   reset ─▶ instruction          nothing is started yet: a fork of this costs nothing
//!   prepare ─▶ sandbox from the pool, files, set-up, a shell
//!   step(command) ─▶ output, exit code          step("submit") ─▶ terminated
//!   verify ─▶ everything is ended, the verifier's files come in, it runs: here or in a fresh sandbox
//!             (services that are judged run on, and the verifier reaches them from a fresh one)
//! ```
//!
//! A command that fails, runs into its time limit or runs out of memory is an observation. A sandbox
//! that cannot do its part ends the episode: as an infrastructure failure
//! ([`EnvironmentError::Sandbox`](crate::EnvironmentError::Sandbox)) where something speaks against the
//! backend or the host, else as the agent's own doing, which is judged
//! ([`SandboxError::fault`](spar_sandbox::SandboxError::fault)).

pub mod cheats;
pub(crate) mod course;
pub(crate) mod deadlines;
pub(crate) mod environment;
mod generator;
pub(crate) mod machine;
mod service;
#[cfg(test)]
mod tests;
pub(crate) mod transcript;

pub use deadlines::Deadlines;
pub use environment::{SUBMIT, Terminal};
pub use generator::{TaskKind, generate};
