//! PSR and NSR: what positive and what negative samples teach, apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::discounting::{discount_problem, returns_to_go};
use super::error::refuse;
use super::token_rewards::{is_told, token_rewards};
use super::{AdvantageEstimator, BatchView, CreditError};

/// Which samples teach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaughtBy {
    /// Those that succeeded: PSR.
    Positive,
    /// Those that failed: NSR.
    Negative,
    /// Both, those that succeeded with a weight: W-REINFORCE.
    #[default]
    Weighted,
}

/// Options of [`PsrNsr`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PsrNsrConfig {
    /// Which samples teach. Default `weighted`.
    pub samples: TaughtBy,
    /// What those that succeeded weigh, for `weighted` alone; at least 0. Default absent: 0.1 there.
    pub positive_weight: Option<f64>,
    /// Discount per sampled token, 0 to 1. Default 1.
    pub discount: f64,
}

impl Default for PsrNsrConfig {
    fn default() -> Self {
        Self { samples: TaughtBy::Weighted, positive_weight: None, discount: 1.0 }
    }
}

impl NamedOptions for PsrNsrConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(discount_problem(self.discount));
        if let Some(weight) = self.positive_weight {
            if self.samples != TaughtBy::Weighted {
                problems.push("positive_weight has no effect: set samples `weighted`".to_owned());
            } else if !(weight.is_finite() && weight >= 0.0) {
                problems.push(format!("positive_weight is {weight}, must be at least 0"));
            }
        }
        problems
    }
}

/// Positive and negative sample reinforcement (arXiv 2506.01347, and its code in `core_algos.py`), for rewards of 0 and 1.
///
/// With `G_t = r_t + discount * G_{t+1}` over sampled tokens: `positive` takes `G_t`, `negative` `G_t - 1`, which without a discount is 0 for
/// what succeeded and -1 for what failed, and `weighted` takes `positive_weight * G_t` where the episode earned something and `G_t - 1` elsewhere. No other
/// trajectory is looked at. A trajectory with a reward that is not finite gets 0: it neither succeeded nor failed.
#[derive(Debug, Clone, Default)]
pub struct PsrNsr {
    config: PsrNsrConfig,
}

impl PsrNsr {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: PsrNsrConfig) -> Result<Self, CreditError> {
        refuse("psr_nsr", config.problems())?;
        Ok(Self { config })
    }
}

/// What successes weigh where nobody says it.
const POSITIVE_WEIGHT: f64 = 0.1;

impl AdvantageEstimator for PsrNsr {
    fn name(&self) -> &'static str {
        "psr_nsr"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let weight = self.config.positive_weight.unwrap_or(POSITIVE_WEIGHT);
        let of = |trajectory: super::TrajectoryView<'_, '_>| {
            let mut tokens = token_rewards(trajectory.steps);
            if !is_told(trajectory.steps) {
                return vec![0.0; tokens.len()];
            }
            let succeeded = tokens.iter().sum::<f64>() > 0.0;
            returns_to_go(&mut tokens, self.config.discount);
            let advantage = |value: f64| match self.config.samples {
                TaughtBy::Positive => value,
                TaughtBy::Negative => value - 1.0,
                TaughtBy::Weighted if succeeded => weight * value,
                TaughtBy::Weighted => value - 1.0,
            };
            tokens.into_iter().map(advantage).collect()
        };
        let advantages = PerTurnOrToken::Tokens(batch.trajectories().map(of).collect());
        Ok(Credit { advantages, weights: None, returns: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{Rows, cases, check_rows, number};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_psr_nsr", |case, near| {
            let samples: TaughtBy =
                serde_json::from_value(case.params["advantage"].clone()).unwrap();
            let weight = number(&case.params, "positive_advantage_weight");
            let config = PsrNsrConfig {
                samples,
                positive_weight: (samples == TaughtBy::Weighted).then_some(weight),
                discount: number(&case.params, "gamma"),
            };
            check_rows(case, near, &PsrNsr::new(config).unwrap(), Rows::Tokens);
        });
    }
}
