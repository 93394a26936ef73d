//! The tasks of the Berkeley Function-Calling Leaderboard. docs/bfcl.md tells how they are played.

pub use spar_bfcl::{ConformanceReport, replay_traces};
