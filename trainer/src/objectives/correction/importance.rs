//! Importance weights: how likely tokens are under the policy that is trained, beside the one that sampled them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objectives::MAX_LOG_RATIO;

/// Options of importance weights.
///
/// With `x_t = log pi_train(y_t) - log pi_roll(y_t)`, held within 20, the weight of a token is
///
/// - `token`: `exp(x_t)`, of little variance and biased,
/// - `sequence`: `exp(sum_t x_t)`, without bias,
/// - `geometric`: `exp(mean_t x_t)`, as in GSPO and AReaL,
///
/// and what is out of bounds is truncated (TIS) or weighs nothing (IcePop). They are constants: no derivative goes through
/// them. Sources: truncated importance sampling between rollout and training, verl's
/// `compute_rollout_correction_weights`; IcePop, Ling team 2025.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ImportanceOptions {
    /// What is compared. Default `token`.
    pub level: ImportanceLevel,
    /// The largest weight; positive. Default absent: none; verl has 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// The smallest weight; 0 or more, up to `upper`. Default absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// What becomes of weights out of bounds. Default `truncate`.
    pub outside: Outside,
    /// Whether weights are divided by their mean over an update: that of tokens, or of samples where `level` is not
    /// `token`. Default false.
    pub normalize: bool,
}

/// What importance weights compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportanceLevel {
    /// Each token.
    #[default]
    Token,
    /// Whole samples.
    Sequence,
    /// The geometric mean over the tokens of a sample.
    Geometric,
}

/// What becomes of importance weights out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// They are moved to the bound.
    #[default]
    Truncate,
    /// They become 0.
    Zero,
}

impl ImportanceOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(upper) = self.upper
            && !(upper.is_finite() && upper > 0.0)
        {
            problems.push(format!("`importance.upper` {upper} must be positive"));
        }
        if let Some(lower) = self.lower
            && !(0.0..=self.upper.unwrap_or(f64::MAX)).contains(&lower)
        {
            problems.push(format!("`importance.lower` {lower} must be 0 up to `upper`"));
        }
        if self.outside == Outside::Zero && self.upper.is_none() && self.lower.is_none() {
            problems.push("`importance.outside` has no effect: there are no bounds".to_owned());
        }
        problems
    }

    /// The weights of a sample's tokens, before bounds.
    pub(super) fn raw(&self, gaps: &[f64]) -> Vec<f64> {
        let weight = |gap: f64| gap.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp();
        let sum = || gaps.iter().sum::<f64>();
        match self.level {
            ImportanceLevel::Token => gaps.iter().map(|gap| weight(*gap)).collect(),
            ImportanceLevel::Sequence => vec![weight(sum()); gaps.len()],
            ImportanceLevel::Geometric => {
                vec![weight(sum() / gaps.len().max(1) as f64); gaps.len()]
            }
        }
    }

    /// A weight within bounds.
    pub(super) fn bounded(&self, weight: f64) -> f64 {
        let (lower, upper) = (self.lower.unwrap_or(0.0), self.upper.unwrap_or(f64::INFINITY));
        match self.outside {
            // NaN stays what it is.
            Outside::Truncate => weight.clamp(lower, upper),
            Outside::Zero if weight.is_nan() || (lower..=upper).contains(&weight) => weight,
            Outside::Zero => 0.0,
        }
    }

    /// The mean weight of an update, by which weights are divided; 1 where they are not, or all are 0.
    pub(super) fn mean(&self, rows: &[Vec<f64>]) -> f64 {
        if !self.normalize {
            return 1.0;
        }
        let (mut sum, mut count) = (0.0, 0.0);
        for gaps in rows.iter().filter(|gaps| !gaps.is_empty()) {
            let weights = self.raw(gaps);
            let total: f64 = weights.iter().map(|weight| self.bounded(*weight)).sum();
            match self.level {
                ImportanceLevel::Token => {
                    sum += total;
                    count += gaps.len() as f64;
                }
                ImportanceLevel::Sequence | ImportanceLevel::Geometric => {
                    sum += total / gaps.len() as f64;
                    count += 1.0;
                }
            }
        }
        let mean = sum / f64::max(count, 1.0);
        if mean > 1e-8 { mean } else { 1.0 }
    }
}
