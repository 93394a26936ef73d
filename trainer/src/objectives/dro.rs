//! Direct reward optimisation, token by token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Dro`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DroOptions {
    /// How strongly the policy is held to the one that sampled; positive. Default 0.1.
    pub beta: f64,
}

impl Default for DroOptions {
    fn default() -> Self {
        Self { beta: 0.1 }
    }
}

impl NamedOptions for DroOptions {
    fn problems(&self) -> Vec<String> {
        positive("beta", self.beta).into_iter().collect()
    }
}

/// The policy gradient with a square that holds the policy to the one that sampled.
///
/// `l = -A log pi + beta / 2 (log pi - log pi_old)^2` (the policy's part of DRO, arXiv 2405.19107, with the advantage in
/// place of `r - V`; verl's `compute_policy_loss_dro`). Ratios are neither clipped nor exponentiated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dro {
    options: DroOptions,
}

impl Dro {
    /// The objective with these options.
    pub fn new(options: DroOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Dro {
    fn name(&self) -> &'static str {
        "dro"
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], _: &mut Tally) -> PolicyLosses {
        let beta = self.options.beta;
        PolicyLosses::by_token(tokens, |_, token| {
            let apart = token.logprob - token.old;
            let loss = -token.advantage * token.logprob + 0.5 * beta * apart * apart;
            (loss, -token.advantage + beta * apart)
        })
    }
}
