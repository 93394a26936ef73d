//! The tasks of the Berkeley Function-Calling Leaderboard. docs/bfcl.md tells how they are played.

mod environment;
mod gold;
#[cfg(test)]
mod tests;

pub use environment::Bfcl;
pub use spar_bfcl::{ConformanceReport, replay_traces};
