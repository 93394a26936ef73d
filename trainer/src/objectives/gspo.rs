//! Group sequence policy optimisation: one ratio per sequence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::clip_problems;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Beyond this the logarithm of a ratio is cut off, as in verl's code: the token has no gradient then.
const MAX_LOG_RATIO: f64 = 10.0;

/// Options of [`Gspo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GspoOptions {
    /// How far the ratio of a sequence may fall below 1; 0 to 1. Default 3e-4, the paper's.
    pub clip_low: f64,
    /// How far it may rise above 1; 0 or more. Default 4e-4, the paper's.
    pub clip_high: f64,
    /// Whether every token has the mean advantage of its sample, as in AReaL. Default false.
    pub mean_advantages: bool,
}

impl Default for GspoOptions {
    fn default() -> Self {
        Self { clip_low: 3e-4, clip_high: 4e-4, mean_advantages: false }
    }
}

impl NamedOptions for GspoOptions {
    fn problems(&self) -> Vec<String> {
        clip_problems(self.clip_low, self.clip_high)
    }
}

/// The clipped objective with the ratio of the whole sequence in place of each token's.
///
/// `s_i = exp(1/|y_i| sum_t (log pi(y_it) - log pi_old(y_it)))`, and the loss of a token is
/// `max(-A_it s_it, -A_it clip(s_it, 1 - clip_low, 1 + clip_high))` with
/// `s_it = sg[s_i] pi(y_it) / sg[pi(y_it)]`, `sg` stopping gradients (GSPO-token: arXiv 2507.18071, equations 7, 13 and
/// 14; with one advantage per sequence it is equation 5). A sequence is a sample's tokens that carry weight. The paper's
/// loss is the mean over sequences of the mean over their tokens: `aggregation = "sample_mean"`. With `{ sample_sum = {
/// constant = 1.0 } }` it is LUSPO, length-unbiased (arXiv 2602.05261, as in TRL).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gspo {
    options: GspoOptions,
}

/// A token's part of the loss.
struct TokenLoss {
    loss: f64,
    slope: f64,
    is_clipped: bool,
}

impl Gspo {
    /// The objective with these options.
    pub fn new(options: GspoOptions) -> Self {
        Self { options }
    }

    fn token_loss(&self, log_ratio: f64, advantage: f64) -> TokenLoss {
        let ratio = log_ratio.min(MAX_LOG_RATIO).exp();
        let (low, high) = (1.0 - self.options.clip_low, 1.0 + self.options.clip_high);
        let free = -advantage * ratio;
        let clipped = -advantage * ratio.clamp(low, high);
        let is_clipped = clipped > free;
        let has_slope = !is_clipped && log_ratio <= MAX_LOG_RATIO;
        let slope = if has_slope { free } else { 0.0 };
        // NaN must not hide behind a comparison that is false.
        let slope = if log_ratio.is_nan() { f64::NAN } else { slope };
        TokenLoss { loss: f64::max(free, clipped), slope, is_clipped }
    }
}

impl PolicyLoss for Gspo {
    fn name(&self) -> &'static str {
        "gspo"
    }

    /// The ratio is that of whole sequences.
    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let log_ratio = tokens.mean(tokens.log_ratios());
        let mean = tokens.mean_advantage();
        PolicyLosses::by_token(tokens, |_, token| {
            let advantage = if self.options.mean_advantages { mean } else { token.advantage };
            let token = self.token_loss(log_ratio, advantage);
            tally.add_mean("clip_fraction", token.is_clipped.into());
            tally.add_mean("sequence_ratio", log_ratio.exp());
            (token.loss, token.slope)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measured;
    use crate::testing::{assert_close, policy_sample, sample_loss};

    #[test]
    fn a_sample_has_the_ratio_of_its_drawn_tokens() {
        let gspo =
            Gspo::new(GspoOptions { clip_low: 0.5, clip_high: 0.5, ..GspoOptions::default() });
        let sample = policy_sample(&[(false, 0.0, 0.0), (true, 2.0, -1.0), (true, 2.0, -2.0)]);
        let measured =
            |logprobs| Measured { logprobs, entropies: &[0.0; 4], ..Measured::default() };
        let logprobs = [f32::NAN, f32::NAN, -0.8, -2.0];
        let found = sample_loss(&gspo, &sample, measured(&logprobs), 0.5);
        let ratio = 0.1_f64.exp();
        assert_close(found.loss, -2.0 * ratio, 1e-6);
        assert_eq!(found.slopes.logprobs[..2], [0.0, 0.0]);
        for slope in &found.slopes.logprobs[2..] {
            assert_close(f64::from(*slope), -ratio, 1e-6);
        }
        // Moving every token by as much moves the loss by the sum of the slopes.
        let shifted = logprobs.map(|logprob| logprob + 1e-3);
        let above = sample_loss(&gspo, &sample, measured(&shifted), 0.5).loss;
        assert_close((above - found.loss) / 1e-3, -2.0 * ratio, 1e-2);
    }
}
