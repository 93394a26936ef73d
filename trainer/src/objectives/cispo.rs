//! CISPO: importance weights are clipped, tokens are not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::not_negative;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Cispo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CispoOptions {
    /// How far the weight may fall below 1; 0 to 1. Default absent: there is no lower bound, as in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_low: Option<f64>,
    /// How far the weight may rise above 1; 0 or more. Default 4: a weight of 5 at most, TRL's and ScaleRL's.
    pub clip_high: f64,
    /// Whether tokens that the clipped objective of PPO would not train are left out (the paper's equation 7, ROLL's
    /// unified mask). Default false.
    pub masked: bool,
}

impl Default for CispoOptions {
    fn default() -> Self {
        Self { clip_low: None, clip_high: 4.0, masked: false }
    }
}

impl NamedOptions for CispoOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            not_negative("clip_high", self.clip_high).into_iter().collect();
        if let Some(low) = self.clip_low.filter(|low| !(0.0..=1.0).contains(low)) {
            problems.push(format!("`clip_low` {low} is outside 0 to 1"));
        }
        problems
    }
}

/// The policy gradient with clipped importance weights, through which no derivative goes.
///
/// `l = -sg[clip(r, 1 - clip_low, 1 + clip_high)] A log pi` with `r = pi / pi_old` (MiniMax-M1, arXiv 2506.13585,
/// equations 4, 5 and 7). With `clip_low = 1` and `clip_high = 0` it is the truncated importance sampling of ROLL.
///
/// Metric: `clip_fraction`, the share of tokens with a clipped weight.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cispo {
    options: CispoOptions,
}

impl Cispo {
    /// The objective with these options.
    pub fn new(options: CispoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Cispo {
    fn name(&self) -> &'static str {
        "cispo"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let CispoOptions { clip_low, clip_high, masked } = self.options;
        let (low, high) = (clip_low.map_or(0.0, |low| 1.0 - low), 1.0 + clip_high);
        PolicyLosses::by_token(tokens, |_, token| {
            let (ratio, advantage) = (token.detached_ratio(), token.advantage);
            let is_high = ratio > high;
            let is_low = ratio < low;
            tally.add_mean("clip_fraction", (is_high || is_low).into());
            if masked && ((advantage > 0.0 && is_high) || (advantage < 0.0 && is_low)) {
                return (0.0, 0.0);
            }
            let weight = ratio.clamp(low, high) * advantage;
            (-weight * token.logprob, -weight)
        })
    }
}
