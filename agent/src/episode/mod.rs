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
mod table_in_progress;
#[cfg(test)]
mod tests;

pub use branch_point::{BranchError, BranchPoint};
pub(crate) use ends::{broken, cancelled, panicked};
pub use episode_in_progress::EpisodeInProgress;
pub(crate) use run::{play_behind, stillborn};
pub use run::{run_branch, run_episode, run_started_episode};
pub use table_in_progress::{SeatedEpisode, TableInProgress};

use spar_core::{
    EndReason, Lineage, Observation, Seat, Seed, TRAJECTORY_VERSION, Trajectory, Versions,
};
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
    /// Whose record of it is made; the first where there is one.
    pub seat: Seat,
    /// Where the random choices of the player start.
    pub seed: Seed,
    /// Where the random choices of the environment start: what it is, or was, reset with.
    pub environment_seed: Seed,
    /// Tells it to stop.
    pub cancellation: &'a Cancellation,
}

impl Episode<'_> {
    /// What a policy knows its conversation by: an id of its own for every seat, since several may have one policy.
    fn conversation(&self) -> u64 {
        match self.seat {
            Seat::FIRST => self.id,
            // Exact also in readers that know numbers only as doubles.
            Seat(seat) => Seed::from_u64(self.id).derive("seat", seat).as_u64() >> 11,
        }
    }

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
            seat: self.seat,
            verdict: None,
            refills: 0,
            spend: None,
            redacted: false,
            wall_time: std::time::Duration::ZERO,
        }
    }
}
