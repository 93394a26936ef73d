//! The hardest tasks are demonstrated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_agent::{DemonstrationConfig, Guide};

/// Tasks that no episode of a group has solved wait until there are enough of them; then they are demonstrated, and what is shown is imitated between two iterations: ReLIFT (arXiv 2506.07527). A task that is solved meanwhile does not wait any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HardestConfig {
    /// Tasks that wait before they are demonstrated, so many at a time, or several times as many where they wait; at least 1. Default 32.
    pub buffer: usize,
    /// Who demonstrates; what does not solve its task is not imitated. Default `expert`.
    pub demonstrator: Guide,
    /// Tokens per update, roughly; at least 1. Default 2048.
    pub batch_tokens: usize,
    /// What tokens weigh.
    pub weights: DemonstrationConfig,
}

impl Default for HardestConfig {
    fn default() -> Self {
        Self {
            buffer: 32,
            demonstrator: Guide::default(),
            batch_tokens: 2048,
            weights: DemonstrationConfig::default(),
        }
    }
}

impl HardestConfig {
    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("buffer", self.buffer), ("batch_tokens", self.batch_tokens)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        let weights = self.weights.validate();
        problems.extend(weights.err().map(|error| format!("weights: {error}")));
        problems
    }
}
