//! Folders of tau2-bench's releases.

use std::path::Path;

use spar_tau2::Release;

use super::SuiteFormat;
use crate::{Suite, SuiteError, Tau2Suite};

/// A checkout of tau2-bench, its folder of domains, or the folder of one domain.
#[derive(Debug, Clone, Copy)]
pub struct Tau2;

impl SuiteFormat for Tau2 {
    fn name(&self) -> &'static str {
        "tau2"
    }

    fn looks_for(&self) -> &'static str {
        "a release of tau2-bench with a <domain>/tasks.json"
    }

    fn matches(&self, path: &Path) -> bool {
        Release::find(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(Tau2Suite::open(path)?))
    }
}
