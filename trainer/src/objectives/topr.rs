//! Tapered off-policy REINFORCE.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::not_negative;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Topr`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToprOptions {
    /// Advantages above it are positive. Default 0.
    pub threshold: f64,
    /// What positive ones weigh; 0 or more. Default 1.
    pub positive_weight: f64,
    /// What the others weigh; 0 or more. Default 1.
    pub negative_weight: f64,
}

impl Default for ToprOptions {
    fn default() -> Self {
        Self { threshold: 0.0, positive_weight: 1.0, negative_weight: 1.0 }
    }
}

impl NamedOptions for ToprOptions {
    fn problems(&self) -> Vec<String> {
        let weights =
            [("positive_weight", self.positive_weight), ("negative_weight", self.negative_weight)];
        let mut problems: Vec<String> =
            weights.into_iter().filter_map(|(name, value)| not_negative(name, value)).collect();
        if !self.threshold.is_finite() {
            problems.push(format!("`threshold` {} must be finite", self.threshold));
        }
        problems
    }
}

/// REINFORCE on what others sampled: what was good is imitated, what was bad is unlearned as far as the policy still does
/// it.
///
/// `l = -w A log pi` for tokens with a positive advantage, and `l = -w sg[min(r, 1)] A log pi` for the others, with
/// `r = pi / pi_old` (TOPR, arXiv 2503.14286, equation 8; by tokens, as in Trinity-RFT and ROLL, where the paper has the
/// ratio of whole sequences).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topr {
    options: ToprOptions,
}

impl Topr {
    /// The objective with these options.
    pub fn new(options: ToprOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Topr {
    fn name(&self) -> &'static str {
        "topr"
    }

    /// What a token weighs goes by the advantage's sign.
    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let ToprOptions { threshold, positive_weight, negative_weight } = self.options;
        PolicyLosses::by_token(tokens, |_, token| {
            let taper = match token.advantage <= threshold {
                true => negative_weight * token.detached_ratio().min(1.0),
                false => positive_weight,
            };
            tally.add_mean("taper_mean", taper);
            let slope = -taper * token.advantage;
            (slope * token.logprob, slope)
        })
    }
}
