//! Folders of the Berkeley Function-Calling Leaderboard.

use std::path::Path;

use super::SuiteFormat;
use crate::{BfclSuite, Suite, SuiteError};

/// The folder `data` of a release: `BFCL_v4_<category>.json`, with `possible_answer/` beside them.
#[derive(Debug, Clone, Copy)]
pub struct Bfcl;

impl SuiteFormat for Bfcl {
    fn name(&self) -> &'static str {
        "bfcl"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with a BFCL_v4_<category>.json"
    }

    fn matches(&self, path: &Path) -> bool {
        BfclSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(BfclSuite::open(path)?))
    }
}
