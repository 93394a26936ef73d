//! The record of an episode.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{SampledTokens, Seed, Step};

/// Version of the trajectory format that this code writes; older ones stay readable.
pub const TRAJECTORY_VERSION: u32 = 1;

/// A limit from outside the task that ended an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Turns.
    Turns,
    /// Wall-clock time.
    Time,
    /// The policy's context.
    Context,
}

/// The seam at which an episode broke for reasons that are not the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// The policy or its endpoint.
    Policy,
    /// The environment.
    Environment,
    /// The sandbox below the environment.
    Sandbox,
    /// The run was told to stop.
    Cancelled,
}

/// How an episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EndReason {
    /// The task ended: won or lost.
    Terminated,
    /// A limit from outside ended it.
    Truncated {
        /// Which limit.
        limit: Limit,
    },
    /// It broke; such an episode carries no reward and is refilled.
    Failed {
        /// Where it broke.
        boundary: Boundary,
        /// What was reported.
        detail: String,
    },
}

/// What a turn's completion was read as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ParsedAction {
    /// An action for the environment.
    Action {
        /// The action.
        text: String,
    },
    /// No action could be read; the environment was not called.
    Invalid {
        /// Why not.
        reason: String,
    },
}

/// The prompt of a turn, as the difference to what stood before it.
///
/// The prompt is the first `kept` tokens of the previous turn's prompt and sampled tokens, then
/// `appended`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptTokens {
    /// Tokens kept from the previous turn; 0 in the first turn.
    pub kept: usize,
    /// Tokens that come behind them.
    pub appended: Vec<u32>,
}

/// One assistant message with the observation that answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the policy saw.
    pub prompt: PromptTokens,
    /// Whose completion it is.
    pub author: String,
    /// What it wrote.
    pub text: String,
    /// What it sampled.
    pub sampled: SampledTokens,
    /// How that was read.
    pub parsed: ParsedAction,
    /// Canonical name of the situation in which the action was chosen.
    pub state_key: String,
    /// The step that answered, with the penalty of an invalid action among its rewards.
    pub step: Step,
    /// Wall time the policy took.
    pub policy_time: Duration,
}

/// Where a trajectory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lineage {
    /// The episode this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Turns taken over from the parent.
    #[serde(default)]
    pub fork_turn: u32,
    /// Whether hints or demonstrations guided it.
    #[serde(default)]
    pub guided: bool,
}

/// The record of one episode; self-describing and versioned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// Format version, [`TRAJECTORY_VERSION`] when written by this code.
    pub version: u32,
    /// The episode's id within its run.
    pub episode: u64,
    /// The task's id.
    pub task: String,
    /// The environment's name.
    pub environment: String,
    /// The seed that the episode's random choices derive from.
    pub seed: Seed,
    /// The seed its environment was reset with, so that the episode can be played again; absent
    /// in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_seed: Option<Seed>,
    /// The policy's name.
    pub policy: String,
    /// What the environment showed on reset.
    pub first_observation: crate::Observation,
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
    /// How it ended.
    pub end: EndReason,
    /// Whether the environment judged the task solved.
    pub won: bool,
    /// Where it comes from.
    #[serde(default)]
    pub lineage: Lineage,
    /// Which player of a multi-agent environment; 0 in the others.
    #[serde(default)]
    pub seat: u32,
    /// Wall time of the whole episode.
    pub wall_time: Duration,
}

/// A stored trajectory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrajectoryError {
    /// It was written by newer code.
    #[error("read trajectory format {found}: this build reads up to {TRAJECTORY_VERSION}")]
    Version {
        /// The version in the file.
        found: u64,
    },
    /// It is not a trajectory.
    #[error("read a trajectory")]
    Malformed(#[source] serde_json::Error),
    /// Its token lists contradict each other.
    #[error("use turn {turn} of episode {episode}: {detail}")]
    Inconsistent {
        /// The episode.
        episode: u64,
        /// The turn, from 0.
        turn: usize,
        /// What contradicts what.
        detail: String,
    },
}

impl Trajectory {
    /// The sum of all rewards.
    pub fn total_reward(&self) -> f64 {
        self.turns.iter().map(|turn| turn.step.reward()).sum()
    }

    /// Whether the episode broke for reasons that are not the policy's.
    pub fn is_failed(&self) -> bool {
        matches!(self.end, EndReason::Failed { .. })
    }

    /// Reads one JSON record.
    ///
    /// # Errors
    ///
    /// [`TrajectoryError`] when the bytes are no trajectory, a newer one, or contradict
    /// themselves.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TrajectoryError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(TrajectoryError::Malformed)?;
        if head.version > u64::from(TRAJECTORY_VERSION) {
            return Err(TrajectoryError::Version { found: head.version });
        }
        let trajectory: Self = serde_json::from_slice(bytes).map_err(TrajectoryError::Malformed)?;
        trajectory.validate()?;
        Ok(trajectory)
    }

    /// Checks that the token lists of every turn fit together.
    ///
    /// # Errors
    ///
    /// [`TrajectoryError::Inconsistent`] names the first turn that does not.
    pub fn validate(&self) -> Result<(), TrajectoryError> {
        let mut length = 0;
        for (index, turn) in self.turns.iter().enumerate() {
            let fail = |detail: String| TrajectoryError::Inconsistent {
                episode: self.episode,
                turn: index,
                detail,
            };
            if turn.prompt.kept > length {
                return Err(fail(format!("keeps {} of {length} tokens", turn.prompt.kept)));
            }
            let tokens = &turn.sampled;
            let count = tokens.ids.len();
            let lists = [
                ("log-probabilities", tokens.logprobs.len()),
                ("versions", tokens.versions.len()),
                (
                    "allowed lists",
                    if tokens.allowed.is_empty() { count } else { tokens.allowed.len() },
                ),
            ];
            for (name, found) in lists {
                if found != count {
                    return Err(fail(format!("{count} sampled tokens with {found} {name}")));
                }
            }
            for (id, allowed) in tokens.ids.iter().zip(&tokens.allowed) {
                if !allowed.is_empty() && !allowed.contains(id) {
                    return Err(fail(format!("token {id} was not allowed where it was sampled")));
                }
            }
            length = turn.prompt.kept + turn.prompt.appended.len() + count;
        }
        Ok(())
    }
}
