//! The policy gradient as it is.

use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// The policy gradient without ratio or bounds: `l = -A log pi`.
///
/// REINFORCE (Williams 1992); the loss of GPG (arXiv 2504.02546) and, with a correction that has `bypass` and `importance`,
/// the REINFORCE of verl's bypass mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyGradient;

impl PolicyLoss for PolicyGradient {
    fn name(&self) -> &'static str {
        "policy_gradient"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], _: &mut Tally) -> PolicyLosses {
        PolicyLosses::by_token(tokens, |_, token| {
            (-token.advantage * token.logprob, -token.advantage)
        })
    }
}
