//! Clip-Cov: tokens whose covariance is high are left out.

use rand::seq::index::sample as choose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::covariance::covariances;
use super::questions::num_tokens;
use super::{Clip, ClipOptions, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

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

impl ClipCov {
    /// The objective with these options.
    pub fn new(options: ClipCovOptions) -> Self {
        let clip = Clip::new(options.clip());
        Self { options, clip }
    }
}

impl PolicyLoss for ClipCov {
    fn name(&self) -> &'static str {
        "clip_cov"
    }

    /// Every token takes part in the means.
    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn needs(&self) -> Needs {
        Needs { present: true, ..Needs::default() }
    }

    /// 1 for tokens that are left out.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let ClipCovOptions { share, cov_low, cov_high, .. } = self.options;
        let covariances = covariances(batch.samples);
        let mut candidates = Vec::new();
        for (index, (row, covariances)) in batch.samples.iter().zip(&covariances).enumerate() {
            for (t, cov) in covariances.iter().enumerate() {
                let token = row.token(t);
                let is_clipped =
                    self.clip.token_loss(token.detached, token.old, token.advantage).is_clipped;
                if *cov > cov_low && *cov < cov_high && !is_clipped {
                    candidates.push((index, t));
                }
            }
        }
        let wanted = ((share * num_tokens(batch.samples)) as usize).max(1).min(candidates.len());
        let mut left_out: Vec<Vec<f64>> =
            batch.samples.iter().map(|row| vec![0.0; row.len()]).collect();
        let seed = batch.seed.derive("clip_cov", 0);
        for place in choose(&mut seed.rng(), candidates.len(), wanted) {
            let (index, t) = candidates[place];
            left_out[index][t] = 1.0;
        }
        left_out
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        PolicyLosses::by_token(tokens, |index, token| {
            let is_left_out = notes[index] != 0.0;
            tally.add_mean("left_out_fraction", is_left_out.into());
            if is_left_out {
                return (0.0, 0.0);
            }
            let token = self.clip.token_loss(token.logprob, token.old, token.advantage);
            tally.add_mean("clip_fraction", token.is_clipped.into());
            (token.loss, token.gradient)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measured;
    use crate::objectives::{LossAggregation, Objective, Update};
    use crate::testing::policy_sample;
    use spar_core::Seed;

    #[test]
    fn a_share_of_the_candidates_is_left_out_by_chance() {
        let objective = ClipCov::new(ClipCovOptions { share: 0.1, ..ClipCovOptions::default() });
        // Half of the tokens are probable and good, half improbable and bad: all covary.
        let tokens: Vec<(bool, f32, f32)> = (0..100)
            .map(|index| if index % 2 == 0 { (true, 1.0, -0.5) } else { (true, -1.0, -3.5) })
            .collect();
        let sample = policy_sample(&tokens);
        let rows = [PolicyTokens::of(&sample, &sample.behavior_logprobs, &[])];
        let left_out = |seed| {
            let seed = Seed::from_u64(seed);
            objective.notes(&PolicyBatch { samples: &rows, groups: &[], seed }).remove(0)
        };
        assert_eq!(left_out(1).iter().sum::<f64>(), 10.0);
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
        let (seed, aggregation) = (Seed::from_u64(0), LossAggregation::TokenMean);
        let present = Some(&present[..]);
        let update = Update { samples: &samples, present, seed, aggregation, state: &[] };
        let prepared = objective.begin(&update);
        let measured = Measured {
            logprobs: &sample.behavior_logprobs,
            entropies: &[0.0; 3],
            ..Measured::default()
        };
        let found = prepared.loss(0, measured, 1.0);
        assert_eq!((found.loss, found.slopes.logprobs), (0.0, vec![0.0; 3]));
        assert_eq!(found.tally.values()["left_out_fraction"], 1.0);
    }
}
