//! Shorter solutions are worth more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

/// Options of [`LengthDiscount`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LengthDiscountOptions {
    /// What success is multiplied by per turn of the episode; above 0, below 1. Default 0.95.
    pub factor: f64,
}

impl Default for LengthDiscountOptions {
    fn default() -> Self {
        Self { factor: 0.95 }
    }
}

impl NamedOptions for LengthDiscountOptions {
    fn problems(&self) -> Vec<String> {
        let Self { factor } = self;
        let is_wrong = !(*factor > 0.0 && *factor < 1.0);
        let tell = || format!("factor is {factor}, must be above 0 and below 1");
        is_wrong.then(tell).into_iter().collect()
    }
}

/// Discounts what success earns by the length of the episode: of two solutions the shorter one is
/// then worth more also to estimators that compare whole episodes.
///
/// `r' = r factor^T` for every part `r > 0` of an episode of `T` turns. Environments reward
/// success alone, so those are its parts, such as `success`, `goal` and `verified`. Penalties, `r < 0`,
/// stay as they are: discounted, they would cost a long episode less than a short one.
///
/// For a reward that comes with the last turn this is, but for one constant `factor`, the discounted
/// return of the first turn, `sum_t factor^t r_t` (Sutton and Barto, Reinforcement Learning, 2nd
/// edition, eq. 3.8), given to the whole episode. It is no part of GRPO, Dr.GRPO or GiGPO, whose
/// returns of episodes are not discounted.
#[derive(Debug, Clone)]
pub struct LengthDiscount {
    factor: f64,
}

impl LengthDiscount {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when the factor is not between 0 and 1.
    pub fn new(options: &LengthDiscountOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "length_discount", options.problems())?;
        Ok(Self { factor: options.factor })
    }
}

impl RewardShaper for LengthDiscount {
    fn name(&self) -> &'static str {
        "length_discount"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let factor = self.factor.powf(trajectory.acting().count() as f64);
        let successes = rewards.iter_mut().flatten().filter(|part| part.value > 0.0);
        successes.for_each(|part| part.value *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn success_is_discounted_by_all_turns_and_penalties_are_not() {
        let discount = LengthDiscount::new(&LengthDiscountOptions { factor: 0.5 }).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(discount)]);
        let long = episode(&[&[("invalid_action", -0.1)], &[], &[("success", 1.0)]]);
        assert_eq!(shapers.rewards(&long), [-0.1, 0.0, 0.125]);
        let both = episode(&[&[("verified", 0.5), ("invalid_action", -0.1)]]);
        assert_eq!(shapers.rewards(&both), [0.25 - 0.1]);
        // Without success, length is worth nothing.
        let lost = episode(&[&[], &[("invalid_action", -0.1)]]);
        assert_eq!(shapers.rewards(&lost), [0.0, -0.1]);
        assert!(shapers.rewards(&episode(&[])).is_empty());
    }

    #[test]
    fn factors_outside_their_range_are_refused() {
        for factor in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
            let error = LengthDiscount::new(&LengthDiscountOptions { factor }).unwrap_err();
            assert!(error.to_string().contains("must be above 0 and below 1"), "{error}");
        }
    }
}
