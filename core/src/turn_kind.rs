//! What a turn is for.

use serde::{Deserialize, Serialize};

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// The policy acts, and the environment answers.
    #[default]
    Action,
    /// The policy sums up what came before, which its summary stands for in the prompts behind it. The environment is not
    /// asked, nothing is earned, and the situation stays as it was.
    Summary,
}

impl TurnKind {
    /// Whether the environment is asked.
    pub fn is_action(&self) -> bool {
        *self == Self::Action
    }
}
