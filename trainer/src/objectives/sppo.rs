//! Soft-max policy optimisation, token by token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Sppo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SppoOptions {
    /// Ratios from `1 / (1 + clip)` to `1 + clip` are trained; positive. Default 0.3, Trinity-RFT's.
    pub clip: f64,
}

impl Default for SppoOptions {
    fn default() -> Self {
        Self { clip: 0.3 }
    }
}

impl NamedOptions for SppoOptions {
    fn problems(&self) -> Vec<String> {
        positive("clip", self.clip).into_iter().collect()
    }
}

/// The logarithm of the ratio in place of the ratio, where it is within bounds.
///
/// `l = -A log r` for `1 / (1 + clip) <= r <= 1 + clip`, else 0, with `r = pi / pi_old` (sPPO of arXiv 2108.05828, by
/// tokens, as in Trinity-RFT; not self-play preference optimisation, which has the same name).
///
/// Metric: `clip_fraction`, the share of tokens that are not trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sppo {
    options: SppoOptions,
}

impl Sppo {
    /// The objective with these options.
    pub fn new(options: SppoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Sppo {
    fn name(&self) -> &'static str {
        "sppo"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let high = 1.0 + self.options.clip;
        PolicyLosses::by_token(tokens, |_, token| {
            let ratio = token.detached_ratio();
            let is_out = !ratio.is_nan() && !(1.0 / high..=high).contains(&ratio);
            tally.add_mean("clip_fraction", is_out.into());
            match is_out {
                true => (0.0, 0.0),
                false => (-token.advantage * (token.logprob - token.old), -token.advantage),
            }
        })
    }
}
