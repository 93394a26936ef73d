//! What a recipe trains on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// Name of a suite, or a folder with a suite.toml. Default `household`.
    pub suite: String,
    /// Folder of third-party data, for suites that need it. Default absent.
    pub folder: Option<PathBuf>,
    /// The split that is trained on. Default `train`.
    pub train: String,
    /// The splits that are demonstrated, task by task in turn. Default empty: the one that is
    /// trained on.
    pub demonstrations: Vec<String>,
    /// The split that chooses among checkpoints. Default `dev`.
    pub dev: String,
    /// The splits that are only reported. Default `seen` and `unseen`.
    pub test: Vec<String>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            suite: "household".to_owned(),
            folder: None,
            train: "train".to_owned(),
            demonstrations: Vec::new(),
            dev: "dev".to_owned(),
            test: vec!["seen".to_owned(), "unseen".to_owned()],
        }
    }
}

impl DataConfig {
    /// Whether tasks come from the same suite.
    pub fn is_same_suite(&self, other: &Self) -> bool {
        (&self.suite, &self.folder) == (&other.suite, &other.folder)
    }
}
