use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{check_absolute, check_relative};

/// Files that a sandbox is given, by their paths below a folder of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HiddenFiles {
    /// The folder, by an absolute path in the sandbox.
    pub into: String,
    /// The files.
    pub files: BTreeMap<String, HiddenFile>,
}

/// One such file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HiddenFile {
    /// What is in it.
    pub content: Content,
    /// Whether it can be run as a program. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// This text.
    Text(String),
    /// What lies there on the host. Only folders of tasks say so: a row never names a file of the host.
    Host(PathBuf),
}

impl HiddenFile {
    /// A file of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), executable: false }
    }
}

impl HiddenFiles {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        check_absolute("hidden files", &self.into, problems);
        for (path, file) in &self.files {
            check_relative("hidden file", path, problems);
            if let Content::Text(text) = &file.content
                && text.len() > super::MAX_TEXT_BYTES
            {
                problems.push(format!(
                    "hidden file `{path}` has {} bytes, and at most {} are read",
                    text.len(),
                    super::MAX_TEXT_BYTES
                ));
            }
        }
    }
}
