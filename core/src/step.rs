//! What an environment answers.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Action, Media, ToolResult};

/// What an environment shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Observation {
    /// The text for the policy; may be empty where tools were called, whose results say it all.
    pub text: String,
    /// What is shown beside the text, such as a screenshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// What came of the calls of the action, one for each, in their order; empty behind an action in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolResult>,
    /// What the task demands, in words; set on reset, absent where the text alone says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<Arc<str>>,
    /// What was carried out in the place of the policy's action, where its history is to show that and not its own answer: the
    /// answer is recorded and trained as it was given, and in later prompts this stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_out: Option<Action>,
    /// The actions that can be executed now, where the environment can list them; sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admissible: Option<Arc<[Arc<str>]>>,
    /// Canonical name of the situation as the policy can know it; equal keys are equal
    /// situations for credit assignment.
    pub state_key: String,
}

impl Observation {
    /// An observation in words, which are the situation's name as well.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { state_key: text.clone(), text, ..Self::default() }
    }

    /// All media in it, those of results included.
    pub fn all_media(&self) -> impl Iterator<Item = &Media> {
        self.media.iter().chain(self.results.iter().flat_map(|result| &result.media))
    }

    /// The same, to be changed.
    pub fn all_media_mut(&mut self) -> impl Iterator<Item = &mut Media> {
        self.media.iter_mut().chain(self.results.iter_mut().flat_map(|result| &mut result.media))
    }
}

/// One named part of a reward.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewardPart {
    /// What it is for, such as `success` or `invalid_action`.
    pub name: String,
    /// Its value; parts add up to the step's reward.
    pub value: f64,
}

/// An environment's answer to one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What can be seen afterwards.
    pub observation: Observation,
    /// The reward in named parts; empty means zero.
    pub rewards: Vec<RewardPart>,
    /// Whether the task itself ended here (won or lost).
    pub terminated: bool,
    /// Whether the task is solved, as the environment judges it.
    #[serde(alias = "won")]
    pub success: bool,
    /// Whether the action could be executed at all.
    #[serde(alias = "executable")]
    pub valid: bool,
    /// Wall time of the call.
    pub wall_time: Duration,
}

impl Step {
    /// The sum of the reward's parts.
    pub fn reward(&self) -> f64 {
        // From +0, since an empty sum of floats is -0.
        self.rewards.iter().fold(0.0, |sum, part| sum + part.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reward_is_the_sum_of_its_parts() {
        let part = |name: &str, value| RewardPart { name: name.to_owned(), value };
        let mut step = Step {
            observation: Observation::default(),
            rewards: vec![part("success", 1.0), part("invalid_action", -0.25)],
            terminated: true,
            success: true,
            valid: true,
            wall_time: Duration::ZERO,
        };
        assert_eq!(step.reward(), 0.75);
        step.rewards.clear();
        assert_eq!(step.reward().to_bits(), 0.0_f64.to_bits(), "not -0");
    }
}
