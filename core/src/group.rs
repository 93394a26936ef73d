//! Trajectories that are compared with each other.

use serde::{Deserialize, Serialize};

use crate::Trajectory;

/// The trajectories of one task that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The task's id.
    pub task: String,
    /// The trajectories; those that failed are not among them.
    pub trajectories: Vec<Trajectory>,
}
