//! Folders of ALFWorld's games.

use std::path::Path;

use super::SuiteFormat;
use crate::{GameFolderSuite, Suite, SuiteError};

/// A folder as `alfworld-download` fills it: `<split>/<problem>/<trial>/game.tw-pddl`.
#[derive(Debug, Clone, Copy)]
pub struct Alfworld;

impl SuiteFormat for Alfworld {
    fn name(&self) -> &'static str {
        "alfworld"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with a <split>/<problem>/<trial>/game.tw-pddl"
    }

    fn matches(&self, path: &Path) -> bool {
        GameFolderSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(GameFolderSuite::open(path)?))
    }
}
