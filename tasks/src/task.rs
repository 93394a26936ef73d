//! A problem and how it is judged.

use serde::{Deserialize, Serialize};

use crate::graders::GraderConfig;

/// A problem and how it is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Unique name: `suite/split/key`.
    pub id: String,
    /// The environment that makes it interactive, as the registry names it.
    pub environment: String,
    /// The environment's parameters.
    pub parameters: serde_json::Value,
    /// How to act in this environment, in words, for policies that read instructions.
    pub instruction: String,
    /// Turns an episode may have when the run does not say otherwise.
    pub max_turns: u32,
    /// Labels to report by; environments add their own, such as the task family.
    pub tags: Vec<String>,
    /// Who judges its episodes; empty: the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<GraderConfig>,
}
