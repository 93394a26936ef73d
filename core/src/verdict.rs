//! What an episode was judged to be.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{RewardPart, Step};

/// What an episode was judged to be when it was over, by its environment or by graders.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The reward in named parts, which the last step carries too; empty means zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RewardPart>,
    /// Whether the task is solved.
    pub success: bool,
    /// The verdict in words, for whoever reads the episode; no policy sees it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// What else the judging left, by name, such as the answer of a judge.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, serde_json::Value>,
    /// The graders that judged; empty where the environment itself did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<String>,
    /// Whether the machinery, such as a limit of time or memory of the judging, kept the episode from being judged as it would
    /// have been. It counts as not solved where scores are told, and nothing is trained on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// How long the judging took.
    #[serde(default)]
    pub duration: Duration,
}

impl Verdict {
    /// Adds it to the last step of its episode: the parts to its rewards, and what success is.
    pub fn apply(&self, step: &mut Step) {
        step.rewards.extend(self.parts.iter().cloned());
        step.success = self.success;
    }

    /// Takes it back from the last step of an episode that goes on after all: its parts leave the rewards, and nothing
    /// is solved yet.
    pub fn take_back(&self, step: &mut Step) {
        let before = step.rewards.len().saturating_sub(self.parts.len());
        if step.rewards[before..] == self.parts[..] {
            step.rewards.truncate(before);
        }
        step.success = false;
    }

    /// The sum of its parts.
    pub fn reward(&self) -> f64 {
        // From +0, since an empty sum of floats is -0.
        self.parts.iter().fold(0.0, |sum, part| sum + part.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_round_trips_and_says_what_success_is() {
        let mut verdict = Verdict {
            parts: vec![RewardPart { name: "judge".to_owned(), value: 0.5 }],
            details: "judge: half of it".to_owned(),
            graders: vec!["judge".to_owned()],
            duration: Duration::from_millis(3),
            ..Verdict::default()
        };
        verdict.artifacts.insert("judge".to_owned(), serde_json::json!({ "score": 5 }));
        let json = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        let least: Verdict = serde_json::from_str(r#"{ "success": true }"#).unwrap();
        assert_eq!((least.success, least.reward().to_bits()), (true, 0.0_f64.to_bits()));
        let mut step = Step {
            observation: crate::Observation::default(),
            rewards: Vec::new(),
            terminated: true,
            success: true,
            valid: true,
            wall_time: Duration::ZERO,
        };
        let before = Step { success: false, ..step.clone() };
        verdict.apply(&mut step);
        assert_eq!((step.reward(), step.success), (0.5, false));
        verdict.take_back(&mut step);
        assert_eq!(step, before);
    }
}
