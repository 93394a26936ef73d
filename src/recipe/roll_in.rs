//! Demonstrations that the policy begins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_agent::RollIn;

/// In which demonstrations the policy plays first; see [`RollIn`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RollInConfig {
    /// How many of an iteration's episodes the policy begins, from 0 to 1. Default 0.
    pub share: f64,
    /// The part of the stage's iterations that is over before it does, from 0 to 1: what has learned
    /// nothing yet leads nowhere. Default 0.5.
    pub after: f64,
    /// The fewest turns that it plays; at least 1. Default 1.
    pub min_turns: u32,
    /// The most turns that it plays, `min_turns` or more. Default 30.
    pub max_turns: u32,
    /// Tasks per iteration from then on; positive. What the policy solves before the demonstrator's turn comes costs
    /// no update, so that these may be more. Default absent: those of the stage.
    pub tasks: Option<usize>,
}

impl Default for RollInConfig {
    fn default() -> Self {
        Self { share: 0.0, after: 0.5, min_turns: 1, max_turns: 30, tasks: None }
    }
}

impl RollInConfig {
    /// What it comes to when `progress` of the stage, from 0 to 1, is over; absent where the demonstrator
    /// plays alone.
    pub fn at(&self, progress: f64) -> Option<RollIn> {
        let Self { share, after, min_turns, max_turns, .. } = *self;
        (share > 0.0 && progress >= after).then_some(RollIn { share, min_turns, max_turns })
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("share", self.share), ("after", self.after)] {
            if !(0.0..=1.0).contains(&value) {
                problems.push(format!("{name} is {value}, must be from 0 to 1"));
            }
        }
        if self.share > 0.0 && self.after == 1.0 {
            problems
                .push("after is 1, so that the stage is over before the policy plays".to_owned());
        }
        if self.min_turns == 0 {
            problems.push("min_turns is 0, must be at least 1".to_owned());
        }
        if self.max_turns < self.min_turns {
            problems.push(format!(
                "max_turns is {}, must be min_turns ({}) or more",
                self.max_turns, self.min_turns
            ));
        }
        if self.tasks == Some(0) {
            problems.push("tasks is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}
