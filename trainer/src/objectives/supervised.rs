//! The cross-entropy objective.

use spar_core::Sample;

use super::{BySample, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

/// The cross-entropy objective: `l = -logprob`, weighted by `cross_entropy_weights`.
///
/// A sample weighs the sum of its weights, so that with
/// [`LossAggregation::TokenMean`](super::LossAggregation::TokenMean) the loss is the weighted mean
/// of the negative log-likelihood, `-sum w logprob / sum w`.
///
/// On demonstrations it imitates all of them. In reinforcement learning the samples of a group carry
/// weight where the advantage is positive, and only those tokens count: behaviour cloning with the
/// binary filter `1[A > 0]` of CRR (arXiv 2006.15134).
///
/// Metrics: `logprob_mean` over the tokens with the greatest weight of the sample (the tokens that
/// are to be imitated, where observations weigh less), and `above_half_fraction`, the share of those
/// tokens whose probability is above one half, which greedy decoding therefore takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Supervised;

impl Objective for Supervised {
    fn name(&self) -> &'static str {
        "supervised"
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.cross_entropy_weights.iter().map(|weight| f64::from(*weight)).sum()
    }

    fn takes_value_loss(&self) -> bool {
        false
    }

    /// What is imitated is what was good on its own path.
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

impl Supervised {
    fn sample_loss(&self, sample: &Sample, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let logprobs = measured.logprobs;
        let mut tally = Tally::default();
        let mut loss = 0.0;
        let mut gradient = vec![0.0; sample.len()];
        let greatest = sample.cross_entropy_weights.iter().copied().fold(0.0, f32::max);
        for (t, &weight) in sample.cross_entropy_weights.iter().enumerate() {
            if weight == 0.0 {
                continue;
            }
            let factor = scale * f64::from(weight);
            let logprob = f64::from(logprobs[t]);
            loss -= factor * logprob;
            gradient[t] = if logprob.is_nan() { f32::NAN } else { -factor as f32 };
            if weight == greatest {
                tally.add_mean("logprob_mean", logprob);
                tally.add_mean("above_half_fraction", (logprob > 0.5_f64.ln()).into());
            }
        }
        SampleLoss { loss, slopes: Slopes::from(gradient), tally }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a model told; entropies are not looked at.
    fn told(logprobs: &[f32]) -> Measured<'_> {
        Measured { logprobs, ..Measured::default() }
    }

    proptest! {
        #[test]
        fn the_gradient_is_the_derivative_of_the_loss(
            tokens in prop::collection::vec((0f32..1.0, any::<bool>(), -5f32..-0.01), 1..12),
        ) {
            let mut sample = Sample::default();
            for (weight, has_weight, _) in &tokens {
                sample.push_observed(0, if *has_weight { *weight } else { 0.0 });
            }
            let mut logprobs: Vec<f32> = tokens.iter().map(|token| token.2).collect();
            let found = Supervised.sample_loss(&sample, told(&logprobs), 0.5);
            for t in 0..sample.len() {
                let middle = logprobs[t];
                logprobs[t] = middle + 0.125;
                let above = Supervised.sample_loss(&sample, told(&logprobs), 0.5).loss;
                logprobs[t] = middle - 0.125;
                let below = Supervised.sample_loss(&sample, told(&logprobs), 0.5).loss;
                logprobs[t] = middle;
                prop_assert!(((above - below) * 4.0 - f64::from(found.slopes.logprobs[t])).abs() < 1e-5);
                prop_assert!(sample.cross_entropy_weights[t] != 0.0 || found.slopes.logprobs[t] == 0.0);
            }
        }
    }

    #[test]
    fn tokens_without_weight_are_not_read() {
        let mut sample = Sample::default();
        sample.push_observed(0, 0.0);
        sample.push_observed(1, 0.5);
        let found = Supervised.sample_loss(&sample, told(&[f32::NEG_INFINITY, -2.0]), 2.0);
        assert_eq!((found.loss, found.slopes.logprobs), (2.0, vec![0.0, -1.0]));
        assert_eq!(Supervised.weight(&sample), 0.5);
    }
}
