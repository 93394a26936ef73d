//! What is half done is worth something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};
use spar_swe::grade::Outcome;

use super::RewardShaper;
use super::registry::AXIS;
use super::test_results::Attempt;
use crate::ShaperError;

const NAME: &str = "partial";

/// Options of [`Partial`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PartialOptions {
    /// What the fraction is multiplied by; above 0. At 1 what lacks one of many tests is worth almost as much as what is
    /// resolved. Default 1.
    pub weight: f64,
}

impl Default for PartialOptions {
    fn default() -> Self {
        Self { weight: 1.0 }
    }
}

impl NamedOptions for PartialOptions {
    fn problems(&self) -> Vec<String> {
        let weight = self.weight;
        let is_wrong = !(weight.is_finite() && weight > 0.0);
        is_wrong.then(|| format!("weight is {weight}, must be above 0")).into_iter().collect()
    }
}

/// An instance that is not resolved is worth the fraction of its failing tests that pass now:
/// `weight * |passed fail-to-pass| / |fail-to-pass|`, added to the last turn as part `partial`.
///
/// As SWE-bench's `RESOLVED_PARTIAL`, it is given only where all tests that passed still do, and where nothing speaks against the
/// log; what is resolved, and episodes of other environments, are left as they are.
#[derive(Debug, Clone)]
pub struct Partial {
    weight: f64,
}

impl Partial {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when the weight is not above 0.
    pub fn new(options: &PartialOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, NAME, options.problems())?;
        Ok(Self { weight: options.weight })
    }
}

impl RewardShaper for Partial {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let attempt = Attempt::of(trajectory).filter(|it| it.outcome == Outcome::Partial);
        let rate = attempt.as_ref().and_then(Attempt::counted).map(|it| it.fail_to_pass.rate());
        if let (Some(rate), Some(last)) = (rate, rewards.last_mut()) {
            last.push(RewardPart { name: NAME.to_owned(), value: self.weight * rate });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::test_results::judged;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn half_of_the_tests_are_half_of_the_weight() {
        let partial = Partial::new(&PartialOptions { weight: 0.5 }).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(partial)]);
        let rewards = |outcome: &str, parts: &[(&str, f64)]| {
            let verdict = Some(judged(outcome, &["a"], &["b"]));
            shapers.rewards(&Trajectory { verdict, ..episode(&[&[], parts]) })
        };
        assert_eq!(rewards("partial", &[("invalid_action", -0.5)]), [0.0, 0.25 - 0.5]);
        assert_eq!(rewards("resolved", &[("resolved", 1.0)]), [0.0, 1.0]);
        for other in ["failed", "invalid", "infrastructure"] {
            assert_eq!(rewards(other, &[]), [0.0, 0.0], "{other}");
        }
        assert_eq!(shapers.rewards(&episode(&[&[("success", 1.0)]])), [1.0]);
        let wrong = Partial::new(&PartialOptions { weight: 0.0 }).unwrap_err().to_string();
        assert!(wrong.contains("weight is 0, must be above 0"), "{wrong}");
    }
}
