//! Folders with an `env.toml`.

use std::path::Path;

use super::SuiteFormat;
use crate::{ProcessSuite, Suite, SuiteError};

/// A folder with an `env.toml`: a program in any language that plays the tasks, and what they are.
#[derive(Debug, Clone, Copy)]
pub struct EnvToml;

impl SuiteFormat for EnvToml {
    fn name(&self) -> &'static str {
        "env.toml"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with an env.toml"
    }

    fn matches(&self, path: &Path) -> bool {
        ProcessSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(ProcessSuite::open(path)?))
    }
}
