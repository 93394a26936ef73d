//! Folders with a `dataset.json`.

use std::path::Path;

use super::SuiteFormat;
use crate::{OfflineSuite, Suite, SuiteError};

/// A folder with a `dataset.json` and files of recorded episodes beside it, as `spar collect` writes it.
#[derive(Debug, Clone, Copy)]
pub struct Offline;

impl SuiteFormat for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with a dataset.json"
    }

    fn matches(&self, path: &Path) -> bool {
        OfflineSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(OfflineSuite::open(path)?))
    }
}
