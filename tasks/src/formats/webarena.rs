//! Files of tasks in WebArena's form.

use std::path::Path;

use super::SuiteFormat;
use crate::{Suite, SuiteError, WebArenaSuite};

/// A `.json` file with tasks as WebArena writes them.
#[derive(Debug, Clone, Copy)]
pub struct WebArena;

impl SuiteFormat for WebArena {
    fn name(&self) -> &'static str {
        "webarena"
    }

    fn looks_for(&self) -> &'static str {
        "a .json file with WebArena's tasks"
    }

    fn matches(&self, path: &Path) -> bool {
        WebArenaSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(WebArenaSuite::open(path)?))
    }
}
