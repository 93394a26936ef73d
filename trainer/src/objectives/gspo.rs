//! Group sequence policy optimisation: one ratio per sequence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::{BySample, LossAggregation, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

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
}

impl Default for GspoOptions {
    fn default() -> Self {
        Self { clip_low: 3e-4, clip_high: 4e-4 }
    }
}

impl NamedOptions for GspoOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&self.clip_low) {
            problems.push(format!("`clip_low` {} is outside 0 to 1", self.clip_low));
        }
        if !(self.clip_high.is_finite() && self.clip_high >= 0.0) {
            problems.push(format!("`clip_high` {} must not be negative", self.clip_high));
        }
        problems
    }
}

/// The clipped objective with the ratio of the whole sequence in place of each token's.
///
/// `s_i = exp(1/|y_i| sum_t (log pi(y_it) - log pi_old(y_it)))`, and the loss of a token is
/// `max(-A_it s_it, -A_it clip(s_it, 1 - clip_low, 1 + clip_high))` with
/// `s_it = sg[s_i] pi(y_it) / sg[pi(y_it)]`, `sg` stopping gradients (GSPO-token: arXiv 2507.18071, equations 7, 13 and
/// 14; with one advantage per sequence it is equation 5). A sequence is a sample's tokens that carry weight. The paper's
/// loss is the mean over sequences of the mean over their tokens: `aggregation = "sample_mean"`, and no other is taken.
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

    /// The logarithm of a sequence's ratio, by the tokens that carry weight.
    fn log_ratio(tokens: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (sum, count) = tokens
            .fold((0.0, 0.0), |(sum, count), (logprob, old)| (sum + logprob - old, count + 1.0));
        sum / f64::max(count, 1.0)
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

    fn sample_loss(&self, sample: &Sample, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let weighs = |t: &usize| sample.policy_weights[*t] != 0.0;
        let places = || (0..sample.len()).filter(weighs);
        let log_ratio = Self::log_ratio(
            places().map(|t| (measured.logprobs[t].into(), sample.behavior_logprobs[t].into())),
        );
        let (mut loss, mut tally) = (0.0, Tally::default());
        let mut slopes = vec![0.0; sample.len()];
        for t in places() {
            let token = self.token_loss(log_ratio, sample.advantages[t].into());
            let factor = scale * f64::from(sample.policy_weights[t]);
            loss += factor * token.loss;
            slopes[t] = (factor * token.slope) as f32;
            tally.add_mean("clip_fraction", token.is_clipped.into());
            tally.add_mean("sequence_ratio", log_ratio.exp());
        }
        SampleLoss { loss, slopes: Slopes::from(slopes), tally }
    }
}

impl Objective for Gspo {
    fn name(&self) -> &'static str {
        "gspo"
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        // Its ratio is one of the sequence, and so is the mean.
        let is_other = aggregation != LossAggregation::SampleMean;
        let tell = || "it is used with aggregation = \"sample_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.num_weighed() as f64
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.has_advantage()
    }

    /// The ratio is that of whole sequences.
    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        let loss = |sample: &Sample, measured: Measured<'_>, scale| {
            self.sample_loss(sample, measured, scale)
        };
        Box::new(BySample { samples: update.samples, loss })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objectives::{BatchWeight, LossAggregation};
    use crate::testing::{assert_close, golden, matrix, number, policy_sample};

    #[test]
    fn losses_and_gradients_equal_the_golden_numbers() {
        let cases = golden("loss_gspo");
        assert_eq!(cases.len(), 14);
        for case in cases {
            let params = &case["params"];
            let both = params["clip_ratio"].as_f64();
            let side = |name: &str| params[name].as_f64().or(both).unwrap();
            let gspo = Gspo::new(GspoOptions {
                clip_low: side("clip_ratio_low"),
                clip_high: side("clip_ratio_high"),
            });
            let input = |name: &str| matrix(&case["inputs"][name]);
            let (logprobs, old) = (input("log_prob"), input("old_log_prob"));
            let (advantages, mask) = (input("advantages"), input("response_mask"));
            let importance = case["inputs"].get("rollout_is_weights").map(matrix);
            let wanted = matrix(&case["outputs"]["grad_log_prob"]);
            let weights: Vec<f64> = mask.iter().map(|row| row.iter().sum()).collect();
            let batch = BatchWeight {
                tokens: weights.iter().sum(),
                samples: weights.iter().filter(|weight| **weight > 0.0).count() as f64,
            };
            let mut loss = 0.0;
            for (i, weight) in weights.iter().enumerate() {
                let scale = LossAggregation::SampleMean.scale(*weight, batch);
                let weighed = (0..mask[i].len()).filter(|t| mask[i][*t] > 0.0);
                let ratio = Gspo::log_ratio(weighed.map(|t| (logprobs[i][t], old[i][t])));
                for t in 0..mask[i].len() {
                    let token = gspo.token_loss(ratio, advantages[i][t]);
                    let factor = importance.as_ref().map_or(1.0, |matrix| matrix[i][t]);
                    let factor = scale * mask[i][t] * factor;
                    assert_close(factor * token.slope, wanted[i][t], 1e-8);
                    loss += factor * token.loss;
                }
            }
            assert_close(loss, number(&case["outputs"]["loss"]), 1e-8);
        }
    }

    #[test]
    fn a_sample_has_the_ratio_of_its_drawn_tokens() {
        let gspo = Gspo::new(GspoOptions { clip_low: 0.5, clip_high: 0.5 });
        let sample = policy_sample(&[(false, 0.0, 0.0), (true, 2.0, -1.0), (true, 2.0, -2.0)]);
        let measured = |logprobs| Measured { logprobs, entropies: &[0.0; 4], values: &[] };
        let logprobs = [f32::NAN, f32::NAN, -0.8, -2.0];
        let found = gspo.sample_loss(&sample, measured(&logprobs), 0.5);
        let ratio = 0.1_f64.exp();
        assert_close(found.loss, -2.0 * ratio, 1e-6);
        assert_eq!(found.slopes.logprobs[..2], [0.0, 0.0]);
        for slope in &found.slopes.logprobs[2..] {
            assert_close(f64::from(*slope), -ratio, 1e-6);
        }
        // Moving every token by as much moves the loss by the sum of the slopes.
        let shifted = logprobs.map(|logprob| logprob + 1e-3);
        let above = gspo.sample_loss(&sample, measured(&shifted), 0.5).loss;
        assert_close((above - found.loss) / 1e-3, -2.0 * ratio, 1e-2);
    }
}
