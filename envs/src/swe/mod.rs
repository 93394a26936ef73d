//! Issues of repositories, resolved at a shell and judged by hidden tests in a second sandbox.
//!
//! ```text
//!   reset ─▶ issue
//!   prepare ─▶ sandbox with the repository, its history squashed to one commit, tests of the result absent
//!   step(command) ─▶ output, exit code            step("submit") ─▶ terminated
//!   verify ─▶ everything is ended ─▶ patch ─▶ the sandbox is closed
//!             ─▶ a fresh one: patch applied, files of test runners put back, hidden files in, script run ─▶ log ─▶ outcome
//! ```
//!
//! A task of several steps has them in one sandbox: `step("submit")` judges a step beside it, of a repository as above and of
//! other tasks in a copy of the sandbox, and shows the next instruction.
//!
//! Tasks without a repository, as task folders of Harbor and terminal-bench are, are judged where the agent worked, once
//! everything there has ended.
//!
//! Nothing of the agent's sandbox but its patch reaches the one that grades, and a patch that leaves the repository is
//! not applied. What a run of the tests tells is judged by [`spar_swe::grade`], equal to the benchmarks' own rules; where
//! [`SweTask::guarded`](spar_tasks::SweTask::guarded) holds, more is asked than they ask ([`guard`]).

mod attempt;
#[cfg(test)]
mod cheats;
mod disk;
#[cfg(test)]
mod disk_tests;
mod environment;
mod evidence;
#[cfg(test)]
mod fixture;
mod gold;
mod grader;
pub mod guard;
#[cfg(test)]
mod harbor_tests;
mod health;
mod judge;
mod patch;
mod place;
mod predictions;
mod repository;
mod runner;
mod schedule;
mod servers;
#[cfg(test)]
mod steps_tests;
#[cfg(test)]
mod tests;
mod verdict;

pub use environment::Swe;
pub use predictions::{AttemptRates, Predictions};
pub use verdict::{StepVerdict, SweVerdict, TestsRun};
