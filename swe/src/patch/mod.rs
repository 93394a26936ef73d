//! Patches in git's format: what they change, and whether a repository may be given them.
//!
//! Bytes stay as they are: carriage returns, missing last newlines and names that are no UTF-8 included. What is read
//! is what `git apply` reads; text between files is skipped, as it skips it.

mod change;
mod directives;
mod error;
mod names;
mod parse;
mod quoted;
mod repo_path;
mod safety;

pub use change::{Binary, Body, FileChange, Hunk, Kind};
pub use directives::{NON_TEST_SUFFIXES, git_files, modified_files, test_directives};
pub use error::PatchError;
pub use parse::{Patch, PatchLimits};
pub use repo_path::RepoPath;
pub use safety::UnsafeChange;

#[cfg(test)]
mod tests;
