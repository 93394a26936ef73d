//! What was played before, trained again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an iteration trains beside what it has played. What is trained again keeps the log-probabilities that it was sampled with, so that ratios
/// are relative to the policy of then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplayConfig {
    /// Groups of the last iterations in place of fresh ones: the rollout replay of DOTS (arXiv 2506.05316, section 4.3). Credit sees them again.
    Recent {
        /// The share of an iteration's groups that are replayed, once there are any; above 0, below 1. Default 0.5.
        #[serde(default = "half")]
        share: f64,
        /// Groups that are remembered, the newest ones; at least 1. Default 256.
        #[serde(default = "many")]
        keep: usize,
    },
    /// Trajectories whose advantage is not 0 for those of groups without a signal, in proportion to a power of the mean absolute advantage of their tokens: the selective sample replay of
    /// VL-Rethinker (arXiv 2504.08837, section 3.2). They keep the advantages that they had.
    Selective {
        /// The power; 0 or more. Default 1.
        #[serde(default = "one")]
        alpha: f64,
        /// Trajectories that are remembered, the newest ones; at least 1. Default 256.
        #[serde(default = "many")]
        keep: usize,
    },
}

fn half() -> f64 {
    0.5
}

fn one() -> f64 {
    1.0
}

fn many() -> usize {
    256
}

impl ReplayConfig {
    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let keep = match self {
            Self::Recent { share, keep } => {
                if !(*share > 0.0 && *share < 1.0) {
                    problems.push(format!("share is {share}, must be above 0 and below 1"));
                }
                *keep
            }
            Self::Selective { alpha, keep } => {
                if !(alpha.is_finite() && *alpha >= 0.0) {
                    problems.push(format!("alpha is {alpha}, must be 0 or more"));
                }
                *keep
            }
        };
        if keep == 0 {
            problems.push("keep is 0, must be at least 1".to_owned());
        }
        problems
    }
}
