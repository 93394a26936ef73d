//! Geometric-mean policy optimisation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::not_negative;
use super::{LossAggregation, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Gmpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GmpoOptions {
    /// How far the logarithm of a token's ratio may fall below 0; 0 or more. Default 0.4, the paper's.
    pub clip_low: f64,
    /// How far it may rise above 0; 0 or more. Default 0.4, the paper's.
    pub clip_high: f64,
}

impl Default for GmpoOptions {
    fn default() -> Self {
        Self { clip_low: 0.4, clip_high: 0.4 }
    }
}

impl NamedOptions for GmpoOptions {
    fn problems(&self) -> Vec<String> {
        let low = not_negative("clip_low", self.clip_low);
        low.into_iter().chain(not_negative("clip_high", self.clip_high)).collect()
    }
}

/// The policy gradient with the geometric mean of a sequence's ratios, each clipped first.
///
/// With `x_t = log pi(y_t) / pi_old(y_t)` and `s` the sign of the advantage,
/// `x'_t = s min(s x_t, s clip(x_t, -clip_low, clip_high))`, and the loss of a sequence is
/// `-mean_t(A_t) exp(mean_t x'_t)` (GMPO, arXiv 2507.20673, equation 4 and algorithm 1). The paper's loss is the mean over
/// sequences: `aggregation = "sample_mean"`. Importance weights of a correction are put together by their geometric mean, as
/// in verl.
///
/// Metrics: `clip_fraction`, the share of tokens whose log-ratio is out of bounds; `sequence_ratio`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gmpo {
    options: GmpoOptions,
}

impl Gmpo {
    /// The objective with these options.
    pub fn new(options: GmpoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Gmpo {
    fn name(&self) -> &'static str {
        "gmpo"
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let is_other = aggregation != LossAggregation::SampleMean;
        let tell = || "it is used with aggregation = \"sample_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let GmpoOptions { clip_low, clip_high } = self.options;
        let mut held = Vec::with_capacity(tokens.len());
        let mut has_slope = Vec::with_capacity(tokens.len());
        for (log_ratio, advantage) in tokens.log_ratios().zip(&tokens.advantages) {
            let clipped = log_ratio.clamp(-clip_low, clip_high);
            tally.add_mean("clip_fraction", (clipped != log_ratio).into());
            let is_clipped = match advantage.partial_cmp(&0.0) {
                Some(std::cmp::Ordering::Greater) => log_ratio > clip_high,
                Some(std::cmp::Ordering::Less) => log_ratio < -clip_low,
                // Without advantage the token takes no part in the mean.
                _ => true,
            };
            let is_zero = *advantage == 0.0;
            held.push(match (is_zero, is_clipped) {
                (true, _) => 0.0,
                (false, true) => clipped,
                (false, false) => log_ratio,
            });
            has_slope.push(!is_clipped);
        }
        let ratio = tokens.mean(held.into_iter()).exp();
        let importance = tokens.importance.iter().map(|weight| (weight + 1e-10).ln());
        let importance = match tokens.importance.iter().all(|weight| *weight == 1.0) {
            true => 1.0,
            false => tokens.mean(importance).exp(),
        };
        let loss = -tokens.mean_advantage() * ratio * importance;
        tally.add_mean("sequence_ratio", ratio);
        let mut sum = PolicyLosses::zero(tokens.len());
        for (t, has_slope) in has_slope.into_iter().enumerate() {
            sum.loss += tokens.weights[t] * loss;
            sum.slopes[t] = if has_slope { tokens.weights[t] * loss } else { 0.0 };
        }
        sum
    }
}
