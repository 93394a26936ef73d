//! The mirror descent of Kimi k1.5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Kimi`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KimiOptions {
    /// How strongly the policy is held to the one that sampled; positive. Default 0.1.
    pub tau: f64,
    /// Whether the square is that of each token's log-ratio, as in ROLL, and not that of the whole sequence's. Default
    /// false.
    pub by_token: bool,
}

impl Default for KimiOptions {
    fn default() -> Self {
        Self { tau: 0.1, by_token: false }
    }
}

impl NamedOptions for KimiOptions {
    fn problems(&self) -> Vec<String> {
        positive("tau", self.tau).into_iter().collect()
    }
}

/// Online mirror descent: the policy gradient with a square that holds the policy to the one that sampled.
///
/// With `X = sum_t log pi(y_t) / pi_old(y_t)`, the derivative of a sequence's loss is that of
/// `-A log pi(y) + tau / 2 X^2` (Kimi k1.5, arXiv 2501.12599, equation 3, `A = r - mean r`). Over all answers, and with
/// `tau log Z` for a baseline, which the mean approximates, the optimum is `pi_old exp(r / tau) / Z`. With `by_token` the square is that of every token's own
/// log-ratio. `aggregation = { sample_sum = { constant = 1.0 } }` is the paper's sum over a sequence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kimi {
    options: KimiOptions,
}

impl Kimi {
    /// The objective with these options.
    pub fn new(options: KimiOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Kimi {
    fn name(&self) -> &'static str {
        "kimi"
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        self.options.by_token
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], _: &mut Tally) -> PolicyLosses {
        let KimiOptions { tau, by_token } = self.options;
        let whole: f64 = tokens.log_ratios().sum();
        let length = tokens.len() as f64;
        PolicyLosses::by_token(tokens, |_, token| {
            let apart = if by_token { token.logprob - token.old } else { whole };
            // A sequence's square is told in equal parts by its tokens.
            let square = if by_token { apart * apart } else { apart * apart / length };
            let loss = -token.advantage * token.logprob + 0.5 * tau * square;
            (loss, -token.advantage + tau * apart)
        })
    }
}
