//! Software-engineering instances as others publish them, and the rules by which attempts at them are graded. No sandbox and no
//! episode is known here: texts and values in, texts and values out.
//!
//! ```text
//!  rows, folders ─▶ Instance ─ issue, image, tests that have to pass, limits, what is unsupported
//!  log of a test runner ─▶ LogParser ─▶ test statuses ─▶ rules ─▶ resolved | partial | failed | invalid
//! ```
//!
//! ```
//! use spar_swe::log::{LogContext, Origin, find_log_parser};
//!
//! let parser = find_log_parser(Origin::SweBench, "parse_log_gotest")?;
//! let tests = parser.parse("--- PASS: TestAdd (0.00s)", &LogContext::default())?;
//! assert!(tests["TestAdd"].has_passed());
//! # Ok::<(), spar_swe::log::LogError>(())
//! ```

mod columns;
mod error;
mod folders;
pub mod grade;
mod instance;
pub mod log;
mod patch;
pub mod python_text;
pub mod report;
mod rows;
pub mod similarity;
mod test_status;

pub use error::{LoadError, Place, Row};
pub use folders::{FOLDER_FORMATS, FolderFormat, FolderSuite};
pub use instance::{
    Artifact, CollectHook, Compose, Content, DockerSpecs, Dockerfile, Gold, HealthCheck,
    HiddenFile, HiddenFiles, ImageAsset, Instance, Issue, Limits, McpServer, McpTransport,
    NetworkPolicy, ParserName, RepoSpec, RewardStrategy, SandboxSource, Stage, Verification,
    VerifierSandbox, host_variable, host_variables,
};
pub use patch::{
    Binary, Body, FileChange, Hunk, Kind, NON_TEST_SUFFIXES, Patch, PatchError, PatchLimits,
    RepoPath, UnsafeChange, git_files, modified_files, test_directives,
};
pub use rows::{ROW_FORMATS, RowFile, RowFormat, RowOptions};
pub use test_status::TestStatus;
