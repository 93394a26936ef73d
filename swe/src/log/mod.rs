//! What test runners print, as statuses by the name of the test, equal to what the benchmarks' own parsers make of it.
//!
//! A row names the parser of its log (`log_parser`), or its repository does. Names are found together with their origin:
//! two benchmarks have different parsers of the same name.
//!
//! ```
//! use spar_swe::TestStatus;
//! use spar_swe::log::{LogContext, Origin, find_log_parser};
//!
//! let parser = find_log_parser(Origin::SweBench, "parse_log_pytest")?;
//! let tests = parser.parse("PASSED a.py::one\nFAILED a.py::two - assert 1 == 2", &LogContext::default())?;
//! assert_eq!(tests["a.py::one"], TestStatus::Passed);
//! assert_eq!(tests["a.py::two"], TestStatus::Failed);
//! # Ok::<(), spar_swe::log::LogError>(())
//! ```
//!
//! Logs are not trusted: every parser takes time in proportion to their length, lines are cut at [`MAX_LINE_BYTES`], parsers
//! that read the log at once refuse more than [`MAX_WHOLE_BYTES`], and maps hold at most [`MAX_TESTS`] tests.

#[cfg(test)]
mod conformance;
mod error;
mod parsers;
mod reading;
mod repositories;
mod smith_repositories;
mod statuses;
mod table;

pub use error::LogError;
pub use reading::LogReading;
pub use repositories::log_parser_of_repository;
pub use smith_repositories::log_parser_of_smith_repository;
pub use statuses::StatusMap;
pub use table::{LOG_PARSERS, LogContext, LogParser, Origin, find_log_parser};

/// Bytes of a line that are read, 1 MiB; the rest of a longer one is left out.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Bytes of a log that a parser reads which needs all of it at once, 256 MiB.
pub const MAX_WHOLE_BYTES: usize = 1 << 28;

/// Tests that a log may name, 2²⁰.
pub const MAX_TESTS: usize = 1 << 20;

/// Bytes of names that a log may give in all, 1 GiB; a name that is given twice counts twice.
pub const MAX_NAME_BYTES: usize = 1 << 30;
