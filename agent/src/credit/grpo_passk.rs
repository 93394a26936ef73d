//! GRPO for pass@k: the best of a group takes what it is ahead of the second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization};

/// Options of [`GrpoPassk`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrpoPasskConfig {
    /// Whether to divide by the group's unbiased standard deviation. Default `mean_std_norm`: yes.
    pub normalization: Normalization,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for GrpoPasskConfig {
    fn default() -> Self {
        Self { normalization: Normalization::MeanStdNorm, epsilon: 1e-6 }
    }
}

impl NamedOptions for GrpoPasskConfig {
    fn problems(&self) -> Vec<String> {
        epsilon_problem(self.epsilon).into_iter().collect()
    }
}

/// Advantages for the best of k (arXiv 2503.19595, in verl's form).
///
/// `A = (R_first - R_second) / (std R + epsilon)` for the trajectory with the highest return of its group, 0 for all others and
/// where two share the highest. A group of one is an error, for nothing can be second in it.
#[derive(Debug, Clone, Default)]
pub struct GrpoPassk {
    config: GrpoPasskConfig,
}

impl GrpoPassk {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GrpoPasskConfig) -> Result<Self, CreditError> {
        refuse("grpo_passk", config.problems())?;
        Ok(Self { config })
    }

    fn trajectory_advantages(&self, group: &GroupView<'_>) -> Result<Vec<f64>, CreditError> {
        let returns = group.returns();
        let finite = || returns.iter().copied().filter(|value| value.is_finite());
        let moments = Moments::of(finite());
        if matches!(returns.len(), 1) {
            return Err(CreditError::GroupSize { estimator: "grpo_passk", found: 1, needed: 2 });
        }
        let mut advantages = vec![0.0; returns.len()];
        let first = finite().fold(f64::NEG_INFINITY, f64::max);
        let Some(best) = returns.iter().position(|value| *value == first) else {
            return Ok(advantages);
        };
        let others =
            returns.iter().enumerate().filter(|(index, it)| *index != best && it.is_finite());
        let second = others.map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        if second.is_finite() {
            advantages[best] = match self.config.normalization {
                Normalization::MeanNorm => first - second,
                Normalization::MeanStdNorm => {
                    (first - second) / (moments.deviation(1) + self.config.epsilon)
                }
            };
        }
        Ok(advantages)
    }
}

impl AdvantageEstimator for GrpoPassk {
    fn name(&self) -> &'static str {
        "grpo_passk"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let mut advantages = Vec::new();
        for group in batch.groups() {
            advantages.extend(self.trajectory_advantages(group)?);
        }
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{Rows, batch_of, cases, check_rows};
    use super::*;

    #[test]
    fn advantages_equal_the_reference_and_so_do_refusals() {
        cases("adv_grpo_passk", |case, near| {
            let normalization = match case.params["norm_adv_by_std_in_grpo"].as_bool().unwrap() {
                true => Normalization::MeanStdNorm,
                false => Normalization::MeanNorm,
            };
            let config = GrpoPasskConfig { normalization, ..GrpoPasskConfig::default() };
            let passk = GrpoPassk::new(config).unwrap();
            if case.outputs.get("error").is_none() {
                return check_rows(case, near, &passk, Rows::Whole);
            }
            let batch = batch_of(case, Rows::Whole).0;
            let error = passk.estimate(&batch, &Signals::default()).unwrap_err();
            assert!(matches!(error, CreditError::GroupSize { found: 1, needed: 2, .. }));
        });
    }
}
