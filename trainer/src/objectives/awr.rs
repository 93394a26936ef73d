//! Advantage-weighted regression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Awr`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AwrOptions {
    /// How strongly the policy is held to the one that sampled; positive. Default 1, the paper's for its benchmarks.
    pub beta: f64,
    /// The largest weight; positive. Default 20, the paper's.
    pub max_weight: f64,
}

impl Default for AwrOptions {
    fn default() -> Self {
        Self { beta: 1.0, max_weight: 20.0 }
    }
}

impl NamedOptions for AwrOptions {
    fn problems(&self) -> Vec<String> {
        let first = positive("beta", self.beta);
        first.into_iter().chain(positive("max_weight", self.max_weight)).collect()
    }
}

/// Imitation of everything that was sampled, what was good more: `l = -min(exp(A / beta), max_weight) log pi`.
///
/// Advantage-weighted regression (arXiv 1910.00177, equation 8, and section 5 for the bound). Where all actions are seen as
/// often as the policy that sampled draws them, the optimum is `pi_old exp(A / beta) / Z`. The sample's rewards are never
/// unlearned: bad ones are imitated less. Tokens without advantage are imitated with weight 1.
///
/// Metric: `weight_mean`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Awr {
    options: AwrOptions,
}

impl Awr {
    /// The objective with these options.
    pub fn new(options: AwrOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Awr {
    fn name(&self) -> &'static str {
        "awr"
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let AwrOptions { beta, max_weight } = self.options;
        PolicyLosses::by_token(tokens, |_, token| {
            let power = token.advantage / beta;
            // `min` would hide NaN.
            let weight = if power.is_nan() { power } else { power.exp().min(max_weight) };
            tally.add_mean("weight_mean", weight);
            (-weight * token.logprob, -weight)
        })
    }
}
