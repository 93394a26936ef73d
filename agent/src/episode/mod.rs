//! Episodes: who plays what, and what becomes of it.
//!
//! ```text
//!  start ─▶ EpisodeInProgress ──turn──▶ ... ──turn──▶ finish ─▶ Trajectory
//!                 │    ▲
//!                 └─fork┘  at a turn, or in mid-turn at a token
//! ```
//!
//! [`run_episode`] is the loop that most callers need; a [strategy](crate::strategies) that grows trees
//! forks episodes on their way.

mod asking;
mod branch_point;
mod budgets;
mod ends;
mod episode_in_progress;
mod run;
#[cfg(test)]
mod tests;

pub use branch_point::{BranchError, BranchPoint};
pub(crate) use ends::{broken, cancelled, panicked};
pub use episode_in_progress::EpisodeInProgress;
pub(crate) use run::stillborn;
pub use run::{run_branch, run_episode, run_started_episode};

use spar_core::{EndReason, Lineage, Observation, Seed, TRAJECTORY_VERSION, Trajectory, Versions};
use spar_tasks::Task;

use crate::{Cancellation, Player};

/// Which episode is played, and by whom.
#[derive(Clone, Copy)]
pub struct Episode<'a> {
    /// Its id, one of its own among the episodes in progress with the same policy.
    pub id: u64,
    /// The task.
    pub task: &'a Task,
    /// Who chooses the actions.
    pub player: Player<'a>,
    /// Where the random choices of the player start.
    pub seed: Seed,
    /// Where the random choices of the environment start: what it is, or was, reset with.
    pub environment_seed: Seed,
    /// Tells it to stop.
    pub cancellation: &'a Cancellation,
}

impl Episode<'_> {
    /// The record of it before anything was shown.
    fn new_trajectory(&self, environment: &str, versions: Versions) -> Trajectory {
        Trajectory {
            version: TRAJECTORY_VERSION,
            episode: self.id,
            task: self.task.id.clone(),
            environment: environment.to_owned(),
            seed: self.seed,
            versions,
            environment_seed: Some(self.environment_seed),
            policy: self.player.name().to_owned(),
            first_observation: Observation::default(),
            tools: Vec::new(),
            turns: Vec::new(),
            grammars: Default::default(),
            end: EndReason::Terminated,
            success: false,
            lineage: Lineage { guided: self.player.is_guide(), ..Lineage::default() },
            seat: 0,
            verdict: None,
            refills: 0,
            wall_time: std::time::Duration::ZERO,
        }
    }
}
