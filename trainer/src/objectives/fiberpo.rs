//! Fibration policy optimisation: gates on a sequence's ratio and on what tokens differ from it by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::clip_problems;
use super::{MAX_LOG_RATIO, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`FiberPo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FiberPoOptions {
    /// How far a sequence's ratio may be from 1 on either side; 0 to 1. Default 0.2.
    pub base: f64,
    /// How far what a token differs from it by may be from 1 on either side; 0 to 1. Default 0.2.
    pub fiber: f64,
}

impl Default for FiberPoOptions {
    fn default() -> Self {
        Self { base: 0.2, fiber: 0.2 }
    }
}

impl NamedOptions for FiberPoOptions {
    fn problems(&self) -> Vec<String> {
        let named = |name: &str, value: f64| {
            clip_problems(value, 0.0).into_iter().map(|it| it.replace("clip_low", name)).collect()
        };
        let (base, fiber): (Vec<String>, Vec<String>) =
            (named("base", self.base), named("fiber", self.fiber));
        [base, fiber].concat()
    }
}

/// The policy gradient with a gate on a sequence's ratio and one on each token's residual.
///
/// With `s = exp(mean_t log r_t)` and `u_t = r_t / s`, `l = -A clip(s, 1 +- base) clip(u_t, 1 +- fiber)` ("Fibration Policy
/// Optimization", 2026). Experimental, and reconstructed from the abstract, which says that the ratio is parted into a base
/// gate on a trajectory's aggregate and a fibre gate on tokens' residuals, that the Jacobian is block-diagonal over
/// trajectories and the identity on policy. Assumed: the geometric mean as the aggregate, plain clipping as the gates, and
/// two levels. On policy the derivative is the policy gradient's.
///
/// Metrics: `base_clip_fraction`, `fiber_clip_fraction`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FiberPo {
    options: FiberPoOptions,
}

impl FiberPo {
    /// The objective with these options.
    pub fn new(options: FiberPoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for FiberPo {
    fn name(&self) -> &'static str {
        "fiberpo"
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let FiberPoOptions { base, fiber } = self.options;
        let held = |x: f64| x.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        let mean = tokens.mean(tokens.log_ratios());
        let whole = held(mean).exp();
        let gated = whole.clamp(1.0 - base, 1.0 + base);
        let is_base_clipped = gated != whole;
        let mut sum = PolicyLosses::zero(tokens.len());
        // What falls to every token of the sequence alike.
        let mut common = 0.0;
        for index in 0..tokens.len() {
            let token = tokens.token(index);
            let residual = held(token.logprob - token.old - mean).exp();
            let shown = residual.clamp(1.0 - fiber, 1.0 + fiber);
            let is_clipped = shown != residual;
            tally.add_mean("base_clip_fraction", is_base_clipped.into());
            tally.add_mean("fiber_clip_fraction", is_clipped.into());
            let loss = -token.advantage * gated * shown;
            // d s / d log pi_k = s / n, d u_t / d log pi_k = u_t ([t = k] - 1 / n).
            let of_fiber = if is_clipped { 0.0 } else { loss };
            let of_base = if is_base_clipped { 0.0 } else { loss };
            sum.add(tokens, index, loss, of_fiber);
            common += tokens.importance[index] * (of_base - of_fiber);
        }
        let share = common / tokens.len().max(1) as f64;
        for (slope, weight) in sum.slopes.iter_mut().zip(&tokens.weights) {
            *slope += weight * share;
        }
        sum
    }
}
