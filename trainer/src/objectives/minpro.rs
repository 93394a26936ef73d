//! MinPRO: the smallest ratio of the tokens before stands for that of the prefix.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::clip_problems;
use super::{MAX_LOG_RATIO, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`MinPro`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MinProOptions {
    /// How far below 1 the weight still has a gradient; 0 to 1. Default 0.2.
    pub clip_low: f64,
    /// How far above 1 it still has one; 0 or more. Default 0.28.
    pub clip_high: f64,
    /// Whether the prefix counts with the product of all its ratios, which the method replaces. Default false.
    pub cumulative: bool,
}

impl Default for MinProOptions {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.28, cumulative: false }
    }
}

impl NamedOptions for MinProOptions {
    fn problems(&self) -> Vec<String> {
        clip_problems(self.clip_low, self.clip_high)
    }
}

/// The clipped objective with the ratio of a token times the smallest ratio of the tokens before it.
///
/// `w_t = r_t sg[min_{s < t} r_s]`, `w_0 = r_0`, and `l = max(-A w, -A clip(w, 1 - clip_low, 1 + clip_high))` ("A Step
/// Back: Prefix Importance Ratio Stabilizes Policy Optimization", 2026). Reconstructed from the abstract: that the minimum
/// replaces the product of the prefix's ratios is the paper's; that it is a constant, and stands in PPO's clipped
/// objective, is assumed. Only tokens that weigh count, so that a prefix does not reach over observations' tokens.
///
/// Metric: `clip_fraction`, `prefix_ratio`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MinPro {
    options: MinProOptions,
}

impl MinPro {
    /// The objective with these options.
    pub fn new(options: MinProOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for MinPro {
    fn name(&self) -> &'static str {
        "minpro"
    }

    /// A token's weight depends on its prefix, which is that of every path, but what is clipped goes by the sign.
    fn takes_mean_advantages(&self) -> bool {
        true
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let MinProOptions { clip_low, clip_high, cumulative } = self.options;
        let held = |x: f64| x.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        // In logarithms; nothing stands before the first token.
        let mut prefix = 0.0_f64;
        PolicyLosses::by_token(tokens, |index, token| {
            let (log_ratio, has_slope) = token.log_ratio();
            let of_prefix = prefix;
            let own = held(token.detached - token.old);
            prefix = match (index, cumulative) {
                (0, _) => own,
                (_, false) => prefix.min(own),
                (_, true) => held(prefix + own),
            };
            let weight = (log_ratio + of_prefix).exp();
            let (low, high) = (1.0 - clip_low, 1.0 + clip_high);
            let free = -token.advantage * weight;
            let clipped = -token.advantage * weight.clamp(low, high);
            let is_clipped = clipped > free;
            tally.add_mean("clip_fraction", is_clipped.into());
            tally.add_mean("prefix_ratio", of_prefix.exp());
            let slope = if is_clipped || !has_slope { 0.0 } else { free };
            let slope = if free.is_nan() { free } else { slope };
            (if is_clipped { clipped } else { free }, slope)
        })
    }
}
