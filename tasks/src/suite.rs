//! A named, versioned set of tasks with splits.

use serde::{Deserialize, Serialize};

use crate::{SuiteError, Task};

/// What identifies a suite in a run's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteManifest {
    /// Its name.
    pub name: String,
    /// Its version, as its author counts.
    pub version: String,
    /// Hash of all that determines its tasks, 64 hexadecimal digits.
    pub content_hash: String,
    /// Names and sizes of its splits.
    pub splits: Vec<(String, usize)>,
}

/// A named, versioned set of tasks with splits.
pub trait Suite: Send + Sync {
    /// What identifies it.
    fn manifest(&self) -> &SuiteManifest;

    /// One line on what it is about.
    fn about(&self) -> &str;

    /// Task `index` of `split`, counted from 0.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when there is no such split or index.
    fn task(&self, split: &str, index: usize) -> Result<Task, SuiteError>;

    /// How many tasks `split` has.
    ///
    /// # Errors
    ///
    /// [`SuiteError::UnknownSplit`] names the splits there are.
    fn len(&self, split: &str) -> Result<usize, SuiteError> {
        let manifest = self.manifest();
        manifest.splits.iter().find(|(name, _)| name == split).map(|(_, len)| *len).ok_or_else(
            || SuiteError::UnknownSplit {
                suite: manifest.name.clone(),
                split: split.to_owned(),
                known: manifest
                    .splits
                    .iter()
                    .map(|(name, _)| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
            },
        )
    }

    /// Checks `index` against the size of `split`.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when there is no such split or index.
    fn check_index(&self, split: &str, index: usize) -> Result<(), SuiteError> {
        let len = self.len(split)?;
        if index < len {
            return Ok(());
        }
        let (suite, split) = (self.manifest().name.clone(), split.to_owned());
        Err(SuiteError::OutOfRange { suite, split, index, len })
    }
}
