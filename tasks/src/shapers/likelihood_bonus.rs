//! Reasoning that its answer follows from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::{add_at_end, artifact};
use crate::ShaperError;

/// Options of [`LikelihoodBonus`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LikelihoodBonusOptions {
    /// Under which name the judging leaves the likelihood. Default `likelihood`, as of the grader of that name with weight 0.
    pub artifact: String,
    /// What an episode earns that is right and likelier than its group; above 0. Default 0.5.
    pub bonus: f64,
}

impl Default for LikelihoodBonusOptions {
    fn default() -> Self {
        Self { artifact: "likelihood".to_owned(), bonus: 0.5 }
    }
}

impl NamedOptions for LikelihoodBonusOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.artifact.is_empty() {
            problems.push("artifact is empty, name one".to_owned());
        }
        if !(self.bonus.is_finite() && self.bonus > 0.0) {
            problems.push(format!("bonus is {}, must be above 0", self.bonus));
        }
        problems
    }
}

/// The consistency bonus of GRPO-CARE (arXiv 2506.16141; reconstructed from its abstract): a right episode whose reasoning makes its answer likelier than the mean of the right ones of its group earns `bonus`
/// more, as part `consistency` of the last turn. Wrong ones, those without a likelihood, and one alone earn none.
#[derive(Debug, Clone)]
pub struct LikelihoodBonus {
    options: LikelihoodBonusOptions,
}

impl LikelihoodBonus {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &LikelihoodBonusOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "likelihood_bonus", options.problems())?;
        Ok(Self { options: options.clone() })
    }

    fn likelihood(&self, trajectory: &Trajectory) -> Option<f64> {
        let found = artifact(trajectory, &self.options.artifact)?.as_f64()?;
        (trajectory.success && found.is_finite()).then_some(found)
    }
}

impl RewardShaper for LikelihoodBonus {
    fn name(&self) -> &'static str {
        "likelihood_bonus"
    }

    fn shape(&self, _: &Trajectory, _: &mut [Vec<RewardPart>]) {}

    fn shape_group(&self, trajectories: &[&Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        let found: Vec<Option<f64>> = trajectories.iter().map(|it| self.likelihood(it)).collect();
        let known: Vec<f64> = found.iter().copied().flatten().collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        for ((trajectory, rewards), found) in trajectories.iter().zip(rewards).zip(found) {
            if found.is_some_and(|found| found > mean) {
                add_at_end(trajectory, rewards, "consistency", self.options.bonus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Verdict;

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn only_right_episodes_above_their_group_earn_the_bonus() {
        let played = |success: bool, likelihood: Option<f64>| {
            let mut trajectory = episode(&[&[]]);
            trajectory.success = success;
            let mut verdict = Verdict::default();
            if let Some(likelihood) = likelihood {
                let found = serde_json::json!({ "likelihood": likelihood });
                verdict.artifacts.insert("likelihood".to_owned(), found);
            }
            trajectory.verdict = Some(verdict);
            trajectory
        };
        let bonus = LikelihoodBonus::new(&LikelihoodBonusOptions::default()).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(bonus)]);
        let sums = |group: &[Trajectory]| -> Vec<f64> {
            let shaped = shapers.shape_group(&group.iter().collect::<Vec<_>>());
            shaped.iter().map(|turns| turns.iter().flatten().map(|it| it.value).sum()).collect()
        };
        // The nested object stands under the grader's name, as graders leave it.
        let nested = |success, likelihood| {
            let mut it = played(success, Some(likelihood));
            let verdict = it.verdict.as_mut().unwrap();
            let found = verdict.artifacts.remove("likelihood").unwrap();
            verdict.artifacts.insert("care".to_owned(), found);
            it
        };
        let group = [nested(true, 0.9), nested(true, 0.2), nested(false, 0.95), played(true, None)];
        assert_eq!(sums(&group), [0.5, 0.0, 0.0, 0.0]);
        assert_eq!(sums(&group[..1]), [0.0], "nobody to compare it with");
    }
}
