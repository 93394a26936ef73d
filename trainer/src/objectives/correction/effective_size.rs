//! How many samples of the present policy an update's samples are worth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many samples of the present policy weighted samples are worth (Kish): `(sum w)^2 / sum w^2`, and its share of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EffectiveSize {
    sum: f64,
    sum_squares: f64,
    count: f64,
}

impl EffectiveSize {
    /// That of samples with these weights.
    pub fn of(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut size = Self::default();
        for weight in weights {
            size.sum += weight;
            size.sum_squares += weight * weight;
            size.count += 1.0;
        }
        size
    }

    /// The number of samples that they are worth; 0 without any.
    pub fn samples(&self) -> f64 {
        self.sum * self.sum / (self.sum_squares + 1e-8)
    }

    /// The same as a share of all samples, 0 to 1; 0 without any.
    pub fn fraction(&self) -> f64 {
        if self.count > 0.0 { self.samples() / self.count } else { 0.0 }
    }
}

/// Options of the learning rate's dependence on the effective sample size.
///
/// With `rho` the effective share of the samples, their weights being `prod_t pi_train / pi_roll`, the update's learning
/// rate is multiplied by `min(1, rho / base)^p`, where `p` is 1/2 for `sqrt` and 1 for `linear` (VCPO, released code).
///
/// Metrics: `effective_sample_fraction`, `learning_rate_of_effective_samples`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LearningRateOptions {
    /// How the learning rate follows. Default `sqrt`.
    pub rule: LearningRateRule,
    /// The share from which on steps are whole; above 0 up to 1. Default 1; the released recipe for several turns has
    /// 0.55.
    pub base: f64,
}

/// How the learning rate follows the effective sample size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LearningRateRule {
    /// By its square root.
    #[default]
    Sqrt,
    /// In proportion.
    Linear,
}

impl Default for LearningRateOptions {
    fn default() -> Self {
        Self { rule: LearningRateRule::default(), base: 1.0 }
    }
}

impl LearningRateOptions {
    pub(super) fn problems(&self) -> Vec<String> {
        let is_share = self.base > 0.0 && self.base <= 1.0;
        let tell = || format!("`learning_rate.base` {} is outside 0 to 1, or 0", self.base);
        (!is_share).then(tell).into_iter().collect()
    }

    /// The factor of the learning rate, where samples are worth this share of them.
    pub fn scale(&self, fraction: f64) -> f64 {
        let share = f64::min(1.0, fraction / self.base);
        match self.rule {
            LearningRateRule::Sqrt => share.sqrt(),
            LearningRateRule::Linear => share,
        }
    }
}
