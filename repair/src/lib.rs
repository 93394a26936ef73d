//! Tasks of repair without end: packages that have tests, with bugs that mutations of their syntax trees make.
//!
//! ```text
//!  SourcePackage ─▶ baseline, twice ─▶ what passes, which lines each test runs
//!        │                                        │
//!        └─▶ mutations ─▶ candidates ─▶ covering tests ─▶ whole suite ─▶ rows of SWE-smith and SWE-bench
//! ```
//!
//! ```
//! use spar_repair::mutation::{Language, mutations};
//!
//! let source = "def larger(a, b):\n    return a if a > b else b\n";
//! let found = mutations(Language::Python, source)?;
//! let bug = found.iter().find(|mutation| mutation.operator == "compare_changed").unwrap();
//! assert_eq!(bug.apply(source), "def larger(a, b):\n    return a if a >= b else b\n");
//! assert_eq!(bug.inverse(source).apply(&bug.apply(source)), source);
//! # Ok::<(), spar_repair::MutationError>(())
//! ```

mod baseline;
mod candidates;
mod diff;
mod error;
mod git;
mod issue;
mod make;
pub mod mutation;
mod options;
mod package;
mod report;
mod rows;
pub mod runner;
mod staged;
mod task_log;
mod validate;

pub use error::{MakeError, MutationError, PackageError, RunnerError};
pub use make::{Maker, Observer, Tools};
pub use options::MakeOptions;
pub use package::{MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES, PackageFile, SourcePackage};
pub use report::{PackageReport, Yield};
pub use task_log::{Attempt, Outcome, Rows};
