//! R3L's positive amplification: what succeeded counts more than what did not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView};

/// What returns are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpmdBaseline {
    /// With the group's mean; a trajectory alone with 0.
    #[default]
    Mean,
    /// With `temperature * ln (mean of exp (R / temperature))`, which leans to the better ones.
    Logavgexp,
}

/// Options of [`R3l`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct R3lConfig {
    /// What positive advantages are multiplied by, at least 0. Default 3.
    pub amplification: f64,
    /// The return from which on a trajectory is a success, whose advantage is exactly 1. Default 1.
    pub success: f64,
    /// What returns are compared with. Default `mean`.
    pub baseline: OpmdBaseline,
    /// Of baseline `logavgexp`; above 0. Default 1.
    pub temperature: f64,
}

impl Default for R3lConfig {
    fn default() -> Self {
        Self { amplification: 3.0, success: 1.0, baseline: OpmdBaseline::Mean, temperature: 1.0 }
    }
}

impl NamedOptions for R3lConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let Self { amplification, success, temperature, .. } = *self;
        if !(amplification.is_finite() && amplification >= 0.0) {
            problems.push(format!("amplification is {amplification}, must be at least 0"));
        }
        if success.is_nan() {
            problems.push("success is not a number".to_owned());
        }
        if !(temperature.is_finite() && temperature > 0.0) {
            problems.push(format!("temperature is {temperature}, must be above 0"));
        }
        problems
    }
}

/// Positive amplification (R3L, arXiv 2601.03715, and its code `multi_step_grpo_advantage.py`).
///
/// ```text
/// A_i = 1                          where R_i is at least `success`
/// A_i = amplification (R_i - b)    where that is not negative
/// A_i = R_i - b                    otherwise
/// ```
///
/// `b` is the group's mean, or `logavgexp`. The same for every step; what a retry has in common with the attempt that it goes on from is left
/// untrained by the strategy and the turns' owners, not here. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct R3l {
    config: R3lConfig,
}

impl R3l {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: R3lConfig) -> Result<Self, CreditError> {
        refuse("r3l", config.problems())?;
        Ok(Self { config })
    }

    fn trajectory_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let R3lConfig { amplification, success, baseline, temperature } = self.config;
        let returns = group.returns();
        let finite = || returns.iter().copied().filter(|value| value.is_finite());
        let moments = Moments::of(finite());
        let most = finite().fold(f64::NEG_INFINITY, f64::max);
        let mean_exp = finite().map(|value| ((value - most) / temperature).exp()).sum::<f64>()
            / finite().count().max(1) as f64;
        let difference = |value: f64| match baseline {
            _ if moments.count() == 1 => value,
            OpmdBaseline::Mean => moments.difference(value),
            // Exactly 0, where the logarithm's rounding would leave crumbs.
            OpmdBaseline::Logavgexp if moments.deviation(0) == 0.0 => 0.0,
            OpmdBaseline::Logavgexp => value - (most + temperature * mean_exp.ln()),
        };
        let advantage = |value: f64| match difference(value) {
            _ if !value.is_finite() => 0.0,
            _ if value >= success => 1.0,
            above if above >= 0.0 => amplification * above,
            below => below,
        };
        returns.iter().map(|value| advantage(*value)).collect()
    }
}

impl AdvantageEstimator for R3l {
    fn name(&self) -> &'static str {
        "r3l"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let advantages = batch.groups().iter().flat_map(|group| self.trajectory_advantages(group));
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{cases, floats, number, returns_view};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_r3l_positive_amplification", |case, near| {
            let r3l = R3l::new(R3lConfig {
                amplification: number(&case.params, "alpha"),
                baseline: serde_json::from_value(case.params["opmd_baseline"].clone()).unwrap(),
                temperature: number(&case.params, "tau"),
                ..R3lConfig::default()
            })
            .unwrap();
            let found = r3l.trajectory_advantages(&returns_view(floats(&case.inputs["rewards"])));
            for (found, expected) in found.into_iter().zip(floats(&case.outputs["advantages"])) {
                near(found, expected);
            }
        });
    }
}
