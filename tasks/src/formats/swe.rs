//! Instances of software engineering.

use std::path::Path;

use super::SuiteFormat;
use crate::{Suite, SuiteError, SweSuite};

/// A file of rows of SWE-bench or one of its relatives, a task folder of SWE-bench 5, Harbor or terminal-bench, a folder of such, or a
/// folder with a `swe.toml`. The columns of the first row, or the files of the folder, tell which.
#[derive(Debug, Clone, Copy)]
pub struct Swe;

impl SuiteFormat for Swe {
    fn name(&self) -> &'static str {
        "swe"
    }

    fn looks_for(&self) -> &'static str {
        "a .jsonl or .json file of rows of SWE-bench and the like, task folders of SWE-bench, Harbor or terminal-bench, or a folder with a \
         swe.toml"
    }

    fn matches(&self, path: &Path) -> bool {
        SweSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(SweSuite::open(path)?))
    }
}
