//! GPG: differences to the group's mean, scaled up where few trajectories earned anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, Normalization, Singleton};

/// Options of [`Gpg`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpgConfig {
    /// What differences are divided by; above 0. Default 1.
    pub norm: f64,
    /// What the only trajectory of a group gets. Default `zero`; verl's rule is `raw`.
    pub singleton: Singleton,
}

impl Default for GpgConfig {
    fn default() -> Self {
        Self { norm: 1.0, singleton: Singleton::Zero }
    }
}

impl NamedOptions for GpgConfig {
    fn problems(&self) -> Vec<String> {
        let good = self.norm.is_finite() && self.norm > 0.0;
        (!good).then(|| format!("norm is {}, must be above 0", self.norm)).into_iter().collect()
    }
}

/// Group policy gradient (arXiv 2504.02546, in verl's form).
///
/// `A_i = alpha (R_i - mean R) / norm`, `alpha` being the trajectories of the batch over those of them whose return is not 0, at
/// least one; the same for every step. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct Gpg {
    config: GpgConfig,
}

impl Gpg {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GpgConfig) -> Result<Self, CreditError> {
        refuse("gpg", config.problems())?;
        Ok(Self { config })
    }
}

impl AdvantageEstimator for Gpg {
    fn name(&self) -> &'static str {
        "gpg"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let returns: Vec<Vec<f64>> = batch.groups().iter().map(|group| group.returns()).collect();
        let finite = || returns.iter().flatten().filter(|value| value.is_finite());
        let nonzero = finite().filter(|value| **value != 0.0).count().max(1);
        let alpha = finite().count() as f64 / nonzero as f64;
        let advantages = returns.iter().flat_map(|group| {
            let moments = Moments::of(group.iter().copied());
            let GpgConfig { norm, singleton } = self.config;
            group.iter().map(move |value| {
                alpha * moments.advantage(*value, Normalization::MeanNorm, singleton, 0.0) / norm
            })
        });
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{Rows, cases, check_rows, number};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_gpg", |case, near| {
            let config =
                GpgConfig { norm: number(&case.params, "f_norm"), singleton: Singleton::Raw };
            check_rows(case, near, &Gpg::new(config).unwrap(), Rows::Whole);
        });
    }
}
