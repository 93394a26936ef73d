//! What is longer than it should be costs something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

/// Options of [`Overlong`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverlongOptions {
    /// Sampled tokens at which the whole penalty is due, above 0. Default 20480.
    pub max_tokens: u32,
    /// Tokens before that from which on it grows, 1 to `max_tokens`. Default 4096.
    pub buffer: u32,
    /// The whole penalty; above 0. Default 1.
    pub penalty: f64,
}

impl Default for OverlongOptions {
    fn default() -> Self {
        Self { max_tokens: 20_480, buffer: 4_096, penalty: 1.0 }
    }
}

impl NamedOptions for OverlongOptions {
    fn problems(&self) -> Vec<String> {
        let Self { max_tokens, buffer, penalty } = *self;
        let mut problems = Vec::new();
        if buffer == 0 || buffer > max_tokens {
            problems.push(format!(
                "buffer is {buffer}, must be 1 to max_tokens, which is {max_tokens}"
            ));
        }
        if !(penalty.is_finite() && penalty > 0.0) {
            problems.push(format!("penalty is {penalty}, must be above 0"));
        }
        problems
    }
}

/// Soft punishment of overlong answers (DAPO, arXiv 2503.14476, equation 13, as its code has it).
///
/// `min(-(n - (max_tokens - buffer)) / buffer * penalty, 0)` is added to the last turn as part `overlong`, `n` being the tokens that were sampled in the whole episode. Beyond
/// `max_tokens` it goes on growing, as in the code; episodes without sampled tokens are left as they are.
#[derive(Debug, Clone)]
pub struct Overlong {
    options: OverlongOptions,
}

impl Overlong {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &OverlongOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "overlong", options.problems())?;
        Ok(Self { options: options.clone() })
    }

    /// What so many tokens cost; 0 or less.
    fn penalty(&self, tokens: usize) -> f64 {
        let OverlongOptions { max_tokens, buffer, penalty } = self.options;
        let free = f64::from(max_tokens) - f64::from(buffer);
        (-(tokens as f64 - free) / f64::from(buffer) * penalty).min(0.0)
    }
}

impl RewardShaper for Overlong {
    fn name(&self) -> &'static str {
        "overlong"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let tokens = trajectory.turns.iter().map(|turn| turn.sampled.ids.len()).sum();
        let value = self.penalty(tokens);
        if let Some(last) = rewards.last_mut().filter(|_| value < 0.0) {
            last.push(RewardPart { name: "overlong".to_owned(), value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;
    use crate::test_vectors::{all_cases, floats};

    #[test]
    fn penalties_equal_the_reference() {
        for case in all_cases("reward_overlong_dapo") {
            let param = |name: &str| case["params"][name].as_f64().unwrap();
            let overlong = Overlong::new(&OverlongOptions {
                max_tokens: param("max_response_length") as u32,
                buffer: param("overlong_buffer_len") as u32,
                penalty: param("penalty_factor"),
            })
            .unwrap();
            let rewards = floats(&case["inputs"]["rewards"]);
            let lengths = floats(&case["inputs"]["response_lengths"]);
            let expected = floats(&case["outputs"]["rewards"]);
            assert_eq!(lengths.len(), expected.len());
            for ((length, reward), expected) in lengths.iter().zip(rewards).zip(expected) {
                let found = reward + overlong.penalty(*length as usize);
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_last_turn_pays_for_all_tokens() {
        let options = OverlongOptions { max_tokens: 4, buffer: 2, penalty: 1.0 };
        let shapers = RewardShapers::new(vec![Box::new(Overlong::new(&options).unwrap())]);
        let mut long = episode(&[&[], &[("success", 1.0)]]);
        for turn in &mut long.turns {
            turn.sampled.ids = vec![1, 2];
        }
        assert_eq!(shapers.rewards(&long), [0.0, 0.0]);
        long.turns[0].sampled.ids = vec![1];
        assert_eq!(shapers.rewards(&long), [0.0, 0.5]);
        long.turns[0].sampled.ids.clear();
        assert_eq!(shapers.rewards(&long), [0.0, 1.0]);
        assert!(
            Overlong::new(&OverlongOptions { buffer: 9, max_tokens: 4, penalty: 1.0 }).is_err()
        );
    }
}
