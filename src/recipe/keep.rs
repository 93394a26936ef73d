//! What a run keeps on disk.

use serde::{Deserialize, Serialize};

/// What is kept on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepConfig {
    /// Iterations between checkpoints; a crash loses at most so many. Default 10.
    pub checkpoint_every: u64,
    /// Checkpoints kept beside those that are marked. Default 3.
    pub checkpoints: usize,
    /// Iterations between those whose trajectories are kept; 0 keeps none. Default 10.
    pub trajectories_every: u64,
}

impl Default for KeepConfig {
    fn default() -> Self {
        Self { checkpoint_every: 10, checkpoints: 3, trajectories_every: 10 }
    }
}
