//! What is right for the wrong reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::{add_at_end, artifact};
use crate::ShaperError;

/// Options of [`Flawed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlawedOptions {
    /// What the judging leaves where there is an error in the process: a number is its turn. Default `first_error`, as of the grader `judge` in mode `steps`.
    pub artifact: String,
    /// What a success with such an error costs; 0 or more. Default 1.
    pub penalty: f64,
    /// What an episode costs that did not succeed; 0 or more. Default 1.
    pub wrong: f64,
}

impl Default for FlawedOptions {
    fn default() -> Self {
        Self { artifact: "first_error".to_owned(), penalty: 1.0, wrong: 1.0 }
    }
}

impl NamedOptions for FlawedOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.artifact.is_empty() {
            problems.push("artifact is empty, name one".to_owned());
        }
        for (name, value) in [("penalty", self.penalty), ("wrong", self.wrong)] {
            if !(value.is_finite() && value >= 0.0) {
                problems.push(format!("{name} is {value}, must be 0 or more"));
            }
        }
        problems
    }
}

/// The reward of FAPO (arXiv 2510.22543, and its code): with success worth 1, an episode earns 1 where it is right without an error, 0 where it is right with one, and -1 where it is wrong.
///
/// Parts `flawed` and `wrong` are added to the last turn. While few of a group are right without an error, a flawed success stands above the mean of its group and is a way ahead; once most are, it stands below.
#[derive(Debug, Clone)]
pub struct Flawed {
    options: FlawedOptions,
}

impl Flawed {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &FlawedOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "flawed", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Flawed {
    fn name(&self) -> &'static str {
        "flawed"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let FlawedOptions { artifact: name, penalty, wrong } = &self.options;
        if !trajectory.success {
            add_at_end(trajectory, rewards, "wrong", -wrong);
        } else if artifact(trajectory, name).is_some_and(serde_json::Value::is_number) {
            add_at_end(trajectory, rewards, "flawed", -penalty);
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Verdict;

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn played(success: bool, first_error: Option<u64>) -> Trajectory {
        let parts: &[(&str, f64)] = if success { &[("success", 1.0)] } else { &[] };
        let mut trajectory = episode(&[&[], parts]);
        trajectory.success = success;
        let mut verdict = Verdict { success, ..Verdict::default() };
        let found = serde_json::json!({ "first_error": first_error, "success": success });
        verdict.artifacts.insert("judge".to_owned(), found);
        trajectory.verdict = Some(verdict);
        trajectory
    }

    #[test]
    fn a_flawed_success_is_a_way_ahead_until_clean_ones_are_the_most() {
        let flawed = Flawed::new(&FlawedOptions::default()).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(flawed)]);
        let reward = |trajectory: &Trajectory| shapers.rewards(trajectory).iter().sum::<f64>();
        let (clean, bad, wrong) =
            (played(true, None), played(true, Some(0)), played(false, Some(0)));
        assert_eq!([&clean, &bad, &wrong].map(reward), [1.0, 0.0, -1.0]);
        // Its advantage in a group of eight, beside so many clean and else wrong ones.
        let advantage = |cleans: usize| {
            let sum = cleans as f64 * reward(&clean) + (7 - cleans) as f64 * reward(&wrong);
            reward(&bad) - (sum + reward(&bad)) / 8.0
        };
        assert!(advantage(0) > 0.0 && advantage(3) > 0.0, "{}", advantage(3));
        assert!(advantage(4) < 0.0 && advantage(7) < 0.0, "{}", advantage(4));
        let wrong = FlawedOptions { artifact: String::new(), penalty: -1.0, wrong: f64::NAN };
        assert_eq!(wrong.problems().len(), 3);
    }
}
