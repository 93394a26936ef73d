//! Clip-Cov: tokens whose covariance is high are left out.

use rand::seq::index::sample as choose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Sample, Seed};

use super::{Clip, ClipOptions, Needs, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

/// Options of [`ClipCov`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClipCovOptions {
    /// As of the objective `clip`. Default 0.2.
    pub clip_low: f64,
    /// As of the objective `clip`. Default 0.2.
    pub clip_high: f64,
    /// The share of the update's tokens that are left out, of those between the bounds; above 0 up to 1. At least one
    /// is. Default 2e-4, the paper's.
    pub share: f64,
    /// Covariances above it and below `cov_high` are those of tokens that may be left out. Default 1, the paper's.
    pub cov_low: f64,
    /// See `cov_low`. Default 5, the paper's.
    pub cov_high: f64,
}

impl Default for ClipCovOptions {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.2, share: 2e-4, cov_low: 1.0, cov_high: 5.0 }
    }
}

impl NamedOptions for ClipCovOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.clip().problems();
        if !(self.share > 0.0 && self.share <= 1.0) {
            problems.push(format!("`share` {} is outside 0 to 1, or 0", self.share));
        }
        let is_below = self.cov_low.partial_cmp(&self.cov_high) == Some(std::cmp::Ordering::Less);
        if !is_below {
            let (low, high) = (self.cov_low, self.cov_high);
            problems.push(format!("`cov_low` {low} must be below `cov_high` {high}"));
        }
        problems
    }
}

impl ClipCovOptions {
    fn clip(&self) -> ClipOptions {
        let Self { clip_low, clip_high, .. } = *self;
        ClipOptions { clip_low, clip_high, ..ClipOptions::default() }
    }
}

/// The clipped objective without some of the tokens that would lower the entropy most.
///
/// A token's covariance is `(A_t - mean A) (log pi_t - mean log pi)`, the means over all tokens of the update that carry
/// weight, at the weights before the update. Of the tokens whose covariance is between the bounds and that the ratio does
/// not clip, a random share has no gradient (arXiv 2505.22617, equations 9 to 11). Which ones follows from the seed
/// of the update. As in verl's code, their loss is 0 as well.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipCov {
    options: ClipCovOptions,
    clip: Clip,
}

impl Default for ClipCov {
    fn default() -> Self {
        Self::new(ClipCovOptions::default())
    }
}

/// A token that carries weight, before the update.
#[derive(Debug, Clone, Copy)]
struct Token {
    logprob: f64,
    behavior_logprob: f64,
    advantage: f64,
}

impl ClipCov {
    /// The objective with these options.
    pub fn new(options: ClipCovOptions) -> Self {
        let clip = Clip::new(options.clip());
        Self { options, clip }
    }

    /// Which tokens are left out.
    fn left_out(&self, tokens: &[Token], seed: Seed) -> Vec<bool> {
        let count = tokens.len() as f64;
        let mean = |value: fn(&Token) -> f64| tokens.iter().map(value).sum::<f64>() / count;
        let (advantage, logprob) = (mean(|token| token.advantage), mean(|token| token.logprob));
        let ClipCovOptions { share, cov_low, cov_high, .. } = self.options;
        let may_be = |token: &Token| {
            let cov = (token.advantage - advantage) * (token.logprob - logprob);
            let Token { logprob, behavior_logprob, advantage } = *token;
            cov > cov_low
                && cov < cov_high
                && !self.clip.token_loss(logprob, behavior_logprob, advantage).is_clipped
        };
        let candidates: Vec<usize> =
            (0..tokens.len()).filter(|index| may_be(&tokens[*index])).collect();
        let wanted = ((share * count) as usize).max(1).min(candidates.len());
        let mut left_out = vec![false; tokens.len()];
        for index in choose(&mut seed.rng(), candidates.len(), wanted) {
            left_out[candidates[index]] = true;
        }
        left_out
    }
}

impl Objective for ClipCov {
    fn name(&self) -> &'static str {
        "clip_cov"
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.num_weighed() as f64
    }

    /// Every token takes part in the means.
    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn needs(&self) -> Needs {
        Needs { present: true, ..Needs::default() }
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        let present = update.present.expect("it was asked for");
        let mut tokens = Vec::new();
        let mut starts = Vec::with_capacity(update.samples.len());
        for (sample, logprobs) in update.samples.iter().zip(present) {
            starts.push(tokens.len());
            let weighs = |t: &usize| sample.policy_weights[*t] != 0.0;
            tokens.extend((0..sample.len()).filter(weighs).map(|t| Token {
                logprob: logprobs[t].into(),
                behavior_logprob: sample.behavior_logprobs[t].into(),
                advantage: sample.advantages[t].into(),
            }));
        }
        let left_out = self.left_out(&tokens, update.seed.derive("clip_cov", 0));
        Box::new(Prepared { clip: &self.clip, samples: update.samples, starts, left_out })
    }
}

/// An update of which it is known what is left out.
struct Prepared<'a> {
    clip: &'a Clip,
    samples: &'a [&'a Sample],
    /// Where the tokens of each sample begin in `left_out`.
    starts: Vec<usize>,
    /// By the tokens that carry weight.
    left_out: Vec<bool>,
}

impl PreparedObjective for Prepared<'_> {
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let sample = self.samples[index];
        let (mut loss, mut tally) = (0.0, Tally::default());
        let mut slopes = vec![0.0; sample.len()];
        let weighed = (0..sample.len()).filter(|t| sample.policy_weights[*t] != 0.0);
        for (t, left_out) in weighed.zip(&self.left_out[self.starts[index]..]) {
            tally.add_mean("left_out_fraction", (*left_out).into());
            if *left_out {
                continue;
            }
            let token = self.clip.token_loss(
                measured.logprobs[t].into(),
                sample.behavior_logprobs[t].into(),
                sample.advantages[t].into(),
            );
            let factor = scale * f64::from(sample.policy_weights[t]);
            loss += factor * token.loss;
            slopes[t] = (factor * token.gradient) as f32;
            tally.add_mean("clip_fraction", token.is_clipped.into());
        }
        SampleLoss { loss, slopes: Slopes::from(slopes), tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, golden, matrix, number, policy_sample};

    /// The cases leave out all candidates, since which ones a share takes is a matter of chance.
    #[test]
    fn losses_and_gradients_equal_the_golden_numbers() {
        let cases = golden("loss_clip_cov");
        assert_eq!(cases.len(), 8);
        for case in cases {
            let params = &case["params"];
            let clip = params["clip_ratio"].as_f64().unwrap();
            let side = |name: &str| params[name].as_f64().unwrap_or(clip);
            let objective = ClipCov::new(ClipCovOptions {
                clip_low: side("clip_ratio_low"),
                clip_high: side("clip_ratio_high"),
                share: params["clip_cov_ratio"].as_f64().unwrap(),
                cov_low: params["clip_cov_lb"].as_f64().unwrap(),
                cov_high: params["clip_cov_ub"].as_f64().unwrap(),
            });
            let input = |name: &str| matrix(&case["inputs"][name]);
            let (logprobs, old) = (input("log_prob"), input("old_log_prob"));
            let (advantages, mask) = (input("advantages"), input("response_mask"));
            let importance = case["inputs"].get("rollout_is_weights").map(matrix);
            let wanted = matrix(&case["outputs"]["grad_log_prob"]);
            let columns = mask[0].len();
            let places: Vec<(usize, usize)> = (0..mask.len())
                .flat_map(|i| (0..columns).map(move |t| (i, t)))
                .filter(|(i, t)| mask[*i][*t] > 0.0)
                .collect();
            let tokens: Vec<Token> = places
                .iter()
                .map(|&(i, t)| Token {
                    logprob: logprobs[i][t],
                    behavior_logprob: old[i][t],
                    advantage: advantages[i][t],
                })
                .collect();
            let left_out = objective.left_out(&tokens, Seed::from_u64(0));
            // Token mean.
            let scale = 1.0 / tokens.len() as f64;
            let mut loss = 0.0;
            for ((token, (i, t)), left_out) in tokens.iter().zip(&places).zip(left_out) {
                let factor = importance.as_ref().map_or(1.0, |matrix| matrix[*i][*t]);
                let factor = if left_out { 0.0 } else { scale * factor };
                let Token { logprob, behavior_logprob, advantage } = *token;
                let found = objective.clip.token_loss(logprob, behavior_logprob, advantage);
                assert_close(factor * found.gradient, wanted[*i][*t], 1e-8);
                loss += factor * found.loss;
            }
            assert_close(loss, number(&case["outputs"]["loss"]), 1e-8);
        }
    }

    #[test]
    fn a_share_of_the_candidates_is_left_out_by_chance() {
        let objective = ClipCov::new(ClipCovOptions { share: 0.1, ..ClipCovOptions::default() });
        // Half of the tokens are probable and good, half improbable and bad: all covary.
        let tokens: Vec<Token> = (0..100)
            .map(|index| {
                let sign = if index % 2 == 0 { 1.0 } else { -1.0 };
                let logprob = -2.0 + 1.5 * sign;
                Token { logprob, behavior_logprob: logprob, advantage: sign }
            })
            .collect();
        let left_out = |seed| objective.left_out(&tokens, Seed::from_u64(seed));
        assert_eq!(left_out(1).iter().filter(|left_out| **left_out).count(), 10);
        assert_eq!(left_out(1), left_out(1));
        assert_ne!(left_out(1), left_out(2));
    }

    #[test]
    fn what_is_left_out_has_no_gradient() {
        let sample = policy_sample(&[(true, 2.0, -0.1), (true, -2.0, -3.0)]);
        let samples = [&sample];
        let options = ClipCovOptions { share: 1.0, cov_low: 0.0, ..ClipCovOptions::default() };
        let objective = ClipCov::new(options);
        let present = [sample.behavior_logprobs.clone()];
        let seed = Seed::from_u64(0);
        let update = Update { samples: &samples, present: Some(&present), seed };
        let prepared = objective.begin(&update);
        let measured = Measured { logprobs: &present[0], entropies: &[0.0; 3], values: &[] };
        let found = prepared.loss(0, measured, 1.0);
        assert_eq!((found.loss, found.slopes.logprobs), (0.0, vec![0.0; 3]));
        assert_eq!(found.tally.values()["left_out_fraction"], 1.0);
    }
}
