//! Folders with an `ors.toml`.

use std::path::Path;

use super::SuiteFormat;
use crate::{OrsSuite, Suite, SuiteError};

/// A folder that names a server of the Open Reward Standard, which gives the tasks.
#[derive(Debug, Clone, Copy)]
pub struct OrsToml;

impl SuiteFormat for OrsToml {
    fn name(&self) -> &'static str {
        "ors.toml"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with an ors.toml"
    }

    fn matches(&self, path: &Path) -> bool {
        OrsSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(OrsSuite::open(path)?))
    }
}
