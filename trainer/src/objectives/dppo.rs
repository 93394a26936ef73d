//! Divergence proximal policy optimisation: what is trained is decided by a divergence, not by a ratio.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::{not_negative, positive};
use super::{PolicyLoss, PolicyLosses, PolicyToken, PolicyTokens, Tally};

/// Guards the logarithms of the divergence of two coins, as verl does.
const GUARD: f64 = 1e-8;

/// Options of [`Dppo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DppoOptions {
    /// What is bounded. Default `tv`.
    pub divergence: Divergence,
    /// The bound for tokens that become less likely; 0 or more. Default 0.2.
    pub bound_low: f64,
    /// The bound for tokens that become likelier; 0 or more. Default 0.2.
    pub bound_high: f64,
    /// The largest importance weight; positive. Default 20.
    pub max_ratio: f64,
}

/// The divergence of the sampled token's coin: whether that token is drawn or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Divergence {
    /// The total variation, `|pi - pi_old|`.
    #[default]
    Tv,
    /// The Kullback-Leibler divergence from `pi_old` to `pi`, in nats.
    Kl,
}

impl Default for DppoOptions {
    fn default() -> Self {
        Self { divergence: Divergence::default(), bound_low: 0.2, bound_high: 0.2, max_ratio: 20.0 }
    }
}

impl NamedOptions for DppoOptions {
    fn problems(&self) -> Vec<String> {
        let bounds = [("bound_low", self.bound_low), ("bound_high", self.bound_high)];
        let bounds = bounds.into_iter().filter_map(|(name, value)| not_negative(name, value));
        bounds.chain(positive("max_ratio", self.max_ratio)).collect()
    }
}

/// The policy gradient on tokens whose probability has not moved too far in the direction of their advantage.
///
/// `l = -A sg[min(r, max_ratio)] log pi` with `r = pi / pi_old`, and 0 where the divergence is above its bound and the
/// token has moved to where its advantage sends it: `pi > pi_old` for `A > 0`, `pi < pi_old` otherwise (DPPO with binary
/// divergences, arXiv 2602.04879, sections 4 and 5.4, as in verl).
///
/// Metric: `clip_fraction`, the share of tokens that are not trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dppo {
    options: DppoOptions,
}

impl Dppo {
    /// The objective with these options.
    pub fn new(options: DppoOptions) -> Self {
        Self { options }
    }

    fn is_trained(&self, token: &PolicyToken) -> bool {
        let DppoOptions { divergence, bound_low, bound_high, .. } = self.options;
        let (now, old) = (token.detached.exp(), token.old.exp());
        let is_positive = token.advantage > 0.0;
        match divergence {
            Divergence::Tv if is_positive => now - old <= bound_high,
            Divergence::Tv => now - old >= -bound_low,
            Divergence::Kl => {
                let others = ((1.0 - old + GUARD) / (1.0 - now + GUARD)).ln();
                let kl = old * (token.old - token.detached) + (1.0 - old) * others;
                match is_positive {
                    true => kl <= bound_high || now <= old,
                    false => kl <= bound_low || now >= old,
                }
            }
        }
    }
}

impl PolicyLoss for Dppo {
    fn name(&self) -> &'static str {
        "dppo"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        PolicyLosses::by_token(tokens, |_, token| {
            let is_trained = self.is_trained(&token);
            tally.add_mean("clip_fraction", (!is_trained).into());
            if !is_trained && token.detached.is_finite() && token.old.is_finite() {
                return (0.0, 0.0);
            }
            let weight = token.advantage * token.detached_ratio().min(self.options.max_ratio);
            (-weight * token.logprob, -weight)
        })
    }
}
