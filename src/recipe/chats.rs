//! Conversations in files.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Conversations in files, a JSON object per line.
///
/// An object has `messages` as OpenAI's interface has them, and `tools` where they may be called. Of the messages
/// only the assistant's are trained, and of these those whose own `weight`, 0 or 1, is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChatsConfig {
    /// The files, whose lines follow on each other; at least one.
    pub files: Vec<PathBuf>,
    /// Which of the assistant's messages are trained. Default `all`.
    pub messages: TrainedMessages,
    /// Conversations per iteration, drawn without repeats until all were met. Default absent: all.
    pub per_iteration: Option<usize>,
}

/// Which of the assistant's messages are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrainedMessages {
    /// All of them.
    #[default]
    All,
    /// The last one of each conversation.
    Last,
}

impl ChatsConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.files.is_empty() {
            problems.push("`files` is empty, name at least one".to_owned());
        }
        if self.per_iteration == Some(0) {
            problems.push("per_iteration is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}
