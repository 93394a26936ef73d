//! REFUEL: differences of log-ratios are regressed onto differences of returns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::questions::num_tokens;
use super::{LossAggregation, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Refuel`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RefuelOptions {
    /// How far the policy moves for a return; positive. Default 1, the released code's.
    pub eta: f64,
}

impl Default for RefuelOptions {
    fn default() -> Self {
        Self { eta: 1.0 }
    }
}

impl NamedOptions for RefuelOptions {
    fn problems(&self) -> Vec<String> {
        positive("eta", self.eta).into_iter().collect()
    }
}

/// Differences of log-ratios are regressed onto differences of returns.
///
/// With `X_i = sum_t log pi(y_it) / pi_old(y_it)`, the loss is the mean over pairs of answers to one prompt of
/// `(X_i - X_j - eta (R_i - R_j))^2` (REFUEL, arXiv 2410.04612, equation 4, and its released code; REBEL, arXiv 2404.16767,
/// where there is one turn). Returns are taken from advantages, which may be less any baseline of the prompt; an estimator
/// that divides them changes `eta`. All pairs of a prompt count, and every pair the same. The optimum over all answers is
/// `pi_old exp(eta R) / Z`.
///
/// Metric: `regression_error`, the loss of a sample's pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refuel {
    options: RefuelOptions,
}

impl Refuel {
    /// The objective with these options.
    pub fn new(options: RefuelOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Refuel {
    fn name(&self) -> &'static str {
        "refuel"
    }

    fn needs(&self) -> Needs {
        Needs { present: true, groups: true, ..Needs::default() }
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let is_other = aggregation != LossAggregation::TokenMean;
        let tell = || "it is a mean over pairs: leave `aggregation` at \"token_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    /// The share of the loss, and its derivative by the answer's log-ratio.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let mut notes = vec![vec![0.0; 2]; batch.samples.len()];
        let groups = batch.by_group();
        let of_group = |members: &Vec<usize>| members.len() * members.len().saturating_sub(1) / 2;
        let pairs: usize = groups.iter().map(of_group).sum();
        let unit = num_tokens(batch.samples) / pairs.max(1) as f64;
        let distance = |index: &usize| {
            let tokens = &batch.samples[*index];
            let both = tokens.detached.iter().zip(&tokens.old);
            let log_ratio: f64 = both.map(|(now, old)| now - old).sum();
            log_ratio - self.options.eta * tokens.mean_advantage()
        };
        for members in groups {
            let distances: Vec<f64> = members.iter().map(distance).collect();
            for (index, own) in members.iter().zip(&distances) {
                for other in &distances {
                    let apart = own - other;
                    // Half of a pair's square belongs to either of them.
                    notes[*index][0] += 0.5 * unit * apart * apart;
                    notes[*index][1] += 2.0 * unit * apart;
                }
            }
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        let [share, slope] = notes else { unreachable!("as they were noted") };
        tally.add_mean("regression_error", *share);
        PolicyLosses::linear(tokens, *share, *slope)
    }
}
