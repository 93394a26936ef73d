//! Objectives: advantages and log-probabilities become a loss and its gradient.
//!
//! An objective sees one sample at a time and returns the gradient with respect to the sample's
//! log-probabilities; the model carries it on to the weights. A batch is split over samples, shards
//! and micro-batches, so what the loss is divided by comes from outside, as a scale per sample: see
//! [`LossAggregation`]. Which samples count in it is the objective's word, and is settled before any sample
//! is left out: one that has no gradient, such as one without advantage, is not computed but counts.

mod aggregation;
mod clip;
mod kl;
mod objective_config;
mod supervised;
mod tally;

use spar_core::Sample;

pub use aggregation::{BatchWeight, LossAggregation};
pub use clip::{Clip, ClipOptions};
pub use kl::KlEstimator;
pub(crate) use objective_config::read_options;
pub use objective_config::{ObjectiveConfig, objective_names};
pub use supervised::Supervised;
pub use tally::Tally;

/// A loss over the tokens of samples.
///
/// With `w` a token's weight and `l` its loss, the loss of a batch is
/// `sum over samples i of scale_i * sum over tokens t of w_it * l_it`.
pub trait Objective: Send + Sync + std::fmt::Debug {
    /// The name in configs and metrics.
    fn name(&self) -> &'static str;

    /// What the sample adds to the denominator of the loss; 0 leaves the sample out of it.
    fn weight(&self, sample: &Sample) -> f64;

    /// Whether the sample's part of the loss can have a gradient. A sample of which none is to be
    /// expected is not computed, and counts in the denominator all the same. Default: whether it
    /// has weight.
    fn has_gradient(&self, sample: &Sample) -> bool {
        self.weight(sample) > 0.0
    }

    /// Whether samples need log-probabilities under a reference model. Default no.
    fn needs_reference(&self) -> bool {
        false
    }

    /// The sample's part of the loss, given one log-probability per token.
    ///
    /// Entry 0 of `logprobs` is not read where its weight is 0, which [`Sample`] promises; the same
    /// holds for every token without weight, so that those may be anything, even not finite.
    /// `logprobs` is as long as the sample, and the streams of the sample are as long as its tokens.
    fn sample_loss(&self, sample: &Sample, logprobs: &[f32], scale: f64) -> SampleLoss;
}

/// A sample's part of the loss of a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleLoss {
    /// The loss, scaled; the loss of the batch is the sum over its samples.
    pub loss: f64,
    /// Derivative of `loss` by each token's log-probability; one entry per token, 0 for tokens
    /// without weight.
    pub gradient: Vec<f32>,
    /// What is worth knowing about the sample, not scaled.
    pub tally: Tally,
}
