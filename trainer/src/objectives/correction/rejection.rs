//! Tokens and samples that are left out because two policies are too far apart on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objectives::MAX_LOG_RATIO;

/// Options of what is left out.
///
/// With `x_t = log pi_train(y_t) - log pi_roll(y_t)`, held within 20, and `r = exp(x)`, a token, or all tokens of a sample,
/// stay where a statistic is within bounds. Sources: verl's `compute_rollout_rejection_mask` (`k1`, `k2`, `k3`), AReaL's
/// `apply_rejection_sampling` (`ratio`, `log_ratio`, `k2`, `k3_reverse`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RejectionOptions {
    /// What is measured on tokens. Default `k1`.
    pub statistic: Statistic,
    /// How a sample's tokens are put together, to judge them as one: `sum`, `mean` or `max`. Default absent: each token is
    /// judged by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_sample: Option<SampleStatistic>,
    /// The most that stays. Default 2.
    pub upper: f64,
    /// The least that stays. Default absent: none; of `k1`, `1 / upper`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// What becomes of what is out of bounds. Default `drop`.
    pub action: Rejected,
}

impl Default for RejectionOptions {
    fn default() -> Self {
        Self {
            statistic: Statistic::default(),
            of_sample: None,
            upper: 2.0,
            lower: None,
            action: Rejected::default(),
        }
    }
}

/// What is measured on a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// `-x`, with bounds that are given as ratios: `log lower <= -x <= log upper`.
    #[default]
    K1,
    /// `x^2 / 2`.
    K2,
    /// `r - 1 - x`.
    K3,
    /// `r`; of samples, its geometric mean, product or maximum.
    Ratio,
    /// `x`.
    LogRatio,
    /// `1 / r - 1 + x`.
    K3Reverse,
}

/// How the statistics of a sample's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleStatistic {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
}

/// What becomes of what is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rejected {
    /// It is left out.
    #[default]
    Drop,
    /// Its importance weights are moved to these bounds.
    Truncate,
}

impl RejectionOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_positive = self.upper.is_finite() && self.upper > 0.0;
        if !is_positive {
            problems.push(format!("`reject.upper` {} must be positive", self.upper));
        }
        if let Some(lower) = self.lower {
            let is_ratio = matches!(self.statistic, Statistic::K1);
            if !(lower.is_finite() && lower <= self.upper) || (is_ratio && lower <= 0.0) {
                problems
                    .push(format!("`reject.lower` {lower} must be up to `upper`, of `k1` above 0"));
            }
        }
        problems
    }

    /// The statistic of a token, ratios as their logarithms.
    fn of_token(&self, gap: f64) -> f64 {
        let x = gap.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        match self.statistic {
            Statistic::K1 => -x,
            Statistic::K2 => 0.5 * x * x,
            Statistic::K3 => x.exp_m1() - x,
            Statistic::Ratio | Statistic::LogRatio => x,
            Statistic::K3Reverse => (-x).exp_m1() + x,
        }
    }

    fn is_within(&self, value: f64) -> bool {
        let (value, lower, upper) = match self.statistic {
            Statistic::K1 => {
                let lower = self.lower.unwrap_or(1.0 / self.upper);
                (value, lower.ln(), self.upper.ln())
            }
            Statistic::Ratio => (value.exp(), self.lower.unwrap_or(f64::MIN), self.upper),
            _ => (value, self.lower.unwrap_or(f64::MIN), self.upper),
        };
        (lower..=upper).contains(&value)
    }

    /// Whether each token of a sample is within bounds.
    pub(super) fn within(&self, gaps: &[f64]) -> Vec<bool> {
        let values = gaps.iter().map(|gap| self.of_token(*gap));
        let of_sample = match self.of_sample {
            None => return values.map(|value| self.is_within(value)).collect(),
            Some(SampleStatistic::Sum) => values.sum(),
            Some(SampleStatistic::Mean) => values.sum::<f64>() / gaps.len().max(1) as f64,
            Some(SampleStatistic::Max) => values.fold(f64::NEG_INFINITY, f64::max),
        };
        vec![self.is_within(of_sample); gaps.len()]
    }

    /// A weight within these bounds.
    pub(super) fn truncated(&self, weight: f64) -> f64 {
        weight.clamp(self.lower.unwrap_or(0.0).min(self.upper), self.upper)
    }
}
