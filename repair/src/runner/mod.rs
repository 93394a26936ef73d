//! Tests of a package, run again and again with changes of its files.
//!
//! ```text
//!  Place (a sandbox, or this machine) ─▶ PytestServer ── RunRequest ─▶ a fork: write, run, put back ─▶ TestRun
//!                                     ─▶ CargoRunner ─── RunRequest ─▶ write what differs, build, run ──▶ TestRun
//! ```

mod cargo;
mod place;
mod pytest;
mod test_run;

pub use cargo::{Cargo, CargoRunner};
pub use place::{Place, PlaceOptions, Python};
pub(crate) use pytest::Loading;
pub use pytest::PytestServer;
pub use test_run::{Coverage, RunRequest, TestOutcome, TestResult, TestRun};
