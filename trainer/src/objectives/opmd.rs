//! Online policy mirror descent, as Trinity-RFT has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::not_negative;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Opmd`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpmdOptions {
    /// How strongly steps are held back; 0 or more. Default 1, Trinity-RFT's.
    pub tau: f64,
}

impl Default for OpmdOptions {
    fn default() -> Self {
        Self { tau: 1.0 }
    }
}

impl NamedOptions for OpmdOptions {
    fn problems(&self) -> Vec<String> {
        not_negative("tau", self.tau).into_iter().collect()
    }
}

/// The policy gradient, divided by `1 + tau`: `l = -A log pi / (1 + tau)` (the simple form of OPMD in Trinity-RFT, arXiv
/// 2505.17826, appendix; the loss of R3L). Divergences from the policy that sampled are left to the division.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Opmd {
    options: OpmdOptions,
}

impl Opmd {
    /// The objective with these options.
    pub fn new(options: OpmdOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Opmd {
    fn name(&self) -> &'static str {
        "opmd"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], _: &mut Tally) -> PolicyLosses {
        let share = 1.0 / (1.0 + self.options.tau);
        PolicyLosses::by_token(tokens, |_, token| {
            let slope = -token.advantage * share;
            (slope * token.logprob, slope)
        })
    }
}
