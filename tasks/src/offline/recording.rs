//! An episode that was played, without anything that only its player knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use spar_core::{Action, Observation, OfferedTools, RewardPart, Seed, Step, Trajectory, Verdict};

use crate::Task;

/// The reward part that who plays an episode takes off for what is no action, and no environment.
const PENALTY: &str = "invalid_action";

/// An episode that was played: what was shown, done and earned, and no token of who did it.
///
/// So it can be learned from by any policy, in the policy's own words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The id of the task in its own suite.
    pub task: String,
    /// The environment that it was played in.
    pub environment: String,
    /// How to act there, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruction: String,
    /// Labels of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who played.
    pub player: String,
    /// What the environment was reset with. Absent where nobody kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// What was shown first.
    pub first: Observation,
    /// The tools that were offered: an entry for each change, by the number of the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OfferedTools>,
    /// What was done, oldest first; at least one turn.
    pub turns: Vec<RecordedTurn>,
    /// Whether the task was solved.
    pub success: bool,
    /// What the episode was judged to be, where its steps do not say it all; its rewards stand at the last turn too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A turn of a [`Recording`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTurn {
    /// What was done; what was said, where that was no action.
    pub action: Action,
    /// What came of it.
    pub step: Step,
}

impl Recording {
    /// What a trajectory of this task recorded, its times and the penalty for what is no action left out: that is a setting
    /// of who plays. `None` where nothing was done, the episode broke, or nobody could judge it.
    pub fn of(trajectory: &Trajectory, task: &Task) -> Option<Self> {
        let is_masked = trajectory.verdict.as_ref().is_some_and(|verdict| verdict.masked);
        if trajectory.is_failed() || trajectory.redacted || is_masked {
            return None;
        }
        let mut tools: Vec<OfferedTools> = Vec::new();
        let mut turns = Vec::new();
        for (index, turn) in trajectory.turns.iter().enumerate() {
            if turn.is_summary() {
                continue;
            }
            let offered = trajectory.tools_at(index);
            let before = tools.last().map(|last| &last.tools);
            if before.map_or(!offered.is_empty(), |before| *before != offered) {
                tools.push(OfferedTools { turn: turns.len(), tools: offered });
            }
            let said = || Action::text(turn.text.as_str());
            let mut step = Step { wall_time: Duration::ZERO, ..turn.step.clone() };
            step.rewards.retain(|part| part.name != PENALTY);
            let action = turn.parsed.action().cloned().unwrap_or_else(said);
            turns.push(RecordedTurn { action, step });
        }
        let verdict = trajectory.verdict.clone();
        let verdict = verdict.map(|verdict| Verdict { duration: Duration::ZERO, ..verdict });
        (!turns.is_empty()).then(|| Self {
            task: trajectory.task.clone(),
            environment: trajectory.environment.clone(),
            instruction: task.instruction.clone(),
            tags: task.tags.clone(),
            player: trajectory.policy.clone(),
            seed: trajectory.environment_seed,
            first: trajectory.first_observation.clone(),
            tools,
            turns,
            success: trajectory.success,
            verdict,
        })
    }

    /// The sum of its rewards.
    pub fn total_reward(&self) -> f64 {
        self.turns.iter().fold(0.0, |sum, turn| sum + turn.step.reward())
    }

    /// Whether who played it came to the end of its task, and was not stopped by a limit.
    pub fn is_terminated(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.step.terminated)
    }

    /// What is wrong with it; `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        if self.turns.is_empty() {
            return Some("it has no turns".to_owned());
        }
        if self.first.all_media().next().is_some() {
            return Some("it shows media, which datasets do not hold".to_owned());
        }
        let is_finite = |part: &RewardPart| part.value.is_finite();
        for (number, turn) in self.turns.iter().enumerate() {
            if let Some(part) = turn.step.rewards.iter().find(|part| !is_finite(part)) {
                let (name, value) = (&part.name, part.value);
                return Some(format!("reward `{name}` of turn {number} is {value}, no number"));
            }
            if turn.step.observation.all_media().next().is_some() {
                return Some(format!("turn {number} shows media, which datasets do not hold"));
            }
            let is_last = number + 1 == self.turns.len();
            if turn.step.terminated && !is_last {
                return Some(format!("it has turns behind turn {number}, which ended the episode"));
            }
        }
        if !self.total_reward().is_finite() {
            return Some("its rewards add up to no number".to_owned());
        }
        let ends = self.tools.iter().map(|offered| offered.turn);
        if !ends.clone().zip(ends.skip(1)).all(|(one, next)| one < next) {
            return Some("its tools are not in the order of their turns".to_owned());
        }
        None
    }
}
