//! KL-Cov: tokens whose covariance is highest are held back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::not_negative;
use super::covariance::covariances;
use super::{Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Beyond this a log-ratio is not exponentiated: the numbers of an update would not fit into single precision.
const MAX_UNCLIPPED_LOG_RATIO: f64 = 80.0;

/// Options of [`KlCov`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KlCovOptions {
    /// The share of the update's tokens that are held back, those with the highest covariance; above 0 up to 1. At least
    /// one is. Default 2e-4, the paper's for a small model.
    pub share: f64,
    /// What their divergence weighs; 0 or more. Default 1, the paper's; verl's config has 0.1.
    pub weight: f64,
}

impl Default for KlCovOptions {
    fn default() -> Self {
        Self { share: 2e-4, weight: 1.0 }
    }
}

impl NamedOptions for KlCovOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = not_negative("weight", self.weight).into_iter().collect();
        if !(self.share > 0.0 && self.share <= 1.0) {
            problems.push(format!("`share` {} is outside 0 to 1, or 0", self.share));
        }
        problems
    }
}

/// The policy gradient by ratios, without clipping, where the tokens that would lower the entropy most are held back.
///
/// `l = -A r`, plus `weight |log r|` for the share of the update's tokens with the highest
/// `(A_t - mean A) (log pi_t - mean log pi)`, at the weights before the update (arXiv 2505.22617, equations 9 and 12, as
/// in verl). Of equal covariances the first are taken. A log-ratio above 80 has no gradient, for lack of anything else
/// that bounds it.
///
/// Metric: `held_back_fraction`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KlCov {
    options: KlCovOptions,
}

impl KlCov {
    /// The objective with these options.
    pub fn new(options: KlCovOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for KlCov {
    fn name(&self) -> &'static str {
        "kl_cov"
    }

    fn needs(&self) -> Needs {
        Needs { present: true, ..Needs::default() }
    }

    /// Every token takes part in the means.
    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    /// 1 for tokens that are held back.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let covariances = covariances(batch.samples);
        let mut all: Vec<(f64, usize, usize)> = Vec::new();
        for (index, row) in covariances.iter().enumerate() {
            all.extend(row.iter().enumerate().map(|(t, value)| (*value, index, t)));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let count = ((self.options.share * all.len() as f64) as usize).max(1);
        let mut held: Vec<Vec<f64>> = covariances.iter().map(|row| vec![0.0; row.len()]).collect();
        all.iter().take(count).for_each(|(_, index, t)| held[*index][*t] = 1.0);
        held
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        PolicyLosses::by_token(tokens, |index, token| {
            let free = token.logprob - token.old;
            let is_beyond = free > MAX_UNCLIPPED_LOG_RATIO;
            let of_ratio = -token.advantage * free.min(MAX_UNCLIPPED_LOG_RATIO).exp();
            let of_ratio = if free.is_nan() { free } else { of_ratio };
            let held = notes[index];
            tally.add_mean("held_back_fraction", held);
            let sign = if free == 0.0 { 0.0 } else { free.signum() };
            let weight = held * self.options.weight;
            let slope = if is_beyond { 0.0 } else { of_ratio };
            (of_ratio + weight * free.abs(), slope + weight * sign)
        })
    }
}
