//! VESPO: weights that are a smooth function of a sequence's ratio.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::{not_negative, positive};
use super::{MAX_LOG_RATIO, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Vespo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VespoOptions {
    /// The power of the ratio where the advantage is 0 or more; 0 or more. Default 2, TRL's.
    pub k_positive: f64,
    /// How fast the weight of large ratios falls there; positive. Default 3, TRL's.
    pub lambda_positive: f64,
    /// As `k_positive`, for negative advantages. Default 3, TRL's.
    pub k_negative: f64,
    /// As `lambda_positive`, for negative advantages. Default 2, TRL's.
    pub lambda_negative: f64,
}

impl Default for VespoOptions {
    fn default() -> Self {
        Self { k_positive: 2.0, lambda_positive: 3.0, k_negative: 3.0, lambda_negative: 2.0 }
    }
}

impl NamedOptions for VespoOptions {
    fn problems(&self) -> Vec<String> {
        let powers = [("k_positive", self.k_positive), ("k_negative", self.k_negative)];
        let rates =
            [("lambda_positive", self.lambda_positive), ("lambda_negative", self.lambda_negative)];
        let powers = powers.into_iter().filter_map(|(name, value)| not_negative(name, value));
        powers.chain(rates.into_iter().filter_map(|(name, value)| positive(name, value))).collect()
    }
}

/// The policy gradient with a smooth weight by the ratio of the whole sequence.
///
/// `l = -sg[w^k exp(lambda (1 - w))] A log pi` with `w = prod_t pi(y_t) / pi_old(y_t)`, `k` and `lambda` by the advantage's
/// sign; the weight of `w = 1` is 1 (VESPO, as in TRL's `get_gamma_weights`). Importance weights of tokens by a correction
/// are not part of `w`; they multiply the loss, as everywhere.
///
/// Metric: `sequence_weight`, the mean over tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vespo {
    options: VespoOptions,
}

impl Vespo {
    /// The objective with these options.
    pub fn new(options: VespoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Vespo {
    fn name(&self) -> &'static str {
        "vespo"
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let held = |x: f64| x.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        let apart = tokens.detached.iter().zip(&tokens.old).map(|(now, old)| held(now - old));
        let whole = apart.sum::<f64>().clamp(1e-8_f64.ln(), MAX_LOG_RATIO);
        PolicyLosses::by_token(tokens, |_, token| {
            let options = &self.options;
            let (k, lambda) = match token.advantage >= 0.0 {
                true => (options.k_positive, options.lambda_positive),
                false => (options.k_negative, options.lambda_negative),
            };
            let weight = (lambda + k * whole - lambda * whole.exp()).exp();
            tally.add_mean("sequence_weight", weight);
            let slope = -weight * token.advantage;
            (slope * token.logprob, slope)
        })
    }
}
