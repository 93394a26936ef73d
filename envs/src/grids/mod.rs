//! Grid worlds in words, of the crate `spar-grids`: docs/grids.md.
//!
//! ```text
//! Task (level, seed) ──▶ GridWorld ──▶ WorldEnvironment: Environment
//!                          text, actions, act, plan
//! ```
//!
//! A family of worlds is one file with a `GridWorld`, and one row of the registry; `WorldEnvironment` is the rest of the environment.

mod maze;
mod minigrid;
mod sokoban;
mod survival;
mod world_environment;

pub use spar_grids::minigrid::{Report as MiniGridReport, replay as replay_minigrid};
pub use spar_grids::sokoban::replay as replay_sokoban;
pub use spar_grids::survival::replay as replay_crafter;

pub(crate) use maze::Maze;
pub(crate) use minigrid::MiniGrid;
pub(crate) use sokoban::Sokoban;
pub(crate) use survival::Survival;
pub(crate) use world_environment::WorldEnvironment;

use crate::EnvironmentError;
use serde::de::DeserializeOwned;
use spar_tasks::Task;

/// The parameters of a task.
fn parameters<P: DeserializeOwned>(
    task: &Task,
    environment: &'static str,
) -> Result<P, EnvironmentError> {
    P::deserialize(&task.parameters).map_err(|error| refused(task, environment, error.to_string()))
}

fn refused(task: &Task, environment: &'static str, detail: String) -> EnvironmentError {
    EnvironmentError::Parameters { task: task.id.clone(), environment, detail }
}
