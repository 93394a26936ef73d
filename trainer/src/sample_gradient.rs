//! The seam between the trainer and the model.

use std::error::Error;
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::Parameters;
use spar_policy::cuda::DeviceLearner;

/// Gives the derivatives of the loss by what is told of a sample.
///
/// Arguments are the sample's index among the samples given to [`PreparedModel::accumulate`] and what was told of its
/// tokens; the answer has one entry per token. Entry 0 belongs to the
/// first token, which nothing precedes: its log-probability is not read and its derivative is 0.
pub type SampleLossFn<'a> = dyn Fn(usize, Measured<'_>) -> Slopes + Sync + 'a;

/// What a model tells of the tokens of a sample, one entry per token in each. Entries of tokens without weight may
/// be anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured<'a> {
    /// The log-probability of each token.
    pub logprobs: &'a [f32],
    /// The entropy of what each was drawn from, in nats.
    pub entropies: &'a [f32],
}

/// The derivatives of a loss by what a model told of the tokens of a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slopes {
    /// By the log-probabilities, one per token.
    pub logprobs: Vec<f32>,
    /// By the entropies, one per token; empty where the loss does not depend on them.
    pub entropies: Vec<f32>,
}

impl From<Vec<f32>> for Slopes {
    /// By the log-probabilities alone.
    fn from(logprobs: Vec<f32>) -> Self {
        Self { logprobs, entropies: Vec::new() }
    }
}

/// A model that can be differentiated over samples.
pub trait SampleGradient: Send + Sync {
    /// The model at `parameters`, ready to be run; made once per update, whatever the shards.
    fn prepare(&self, parameters: &Parameters) -> Box<dyn PreparedModel>;

    /// The model at the weights of a learner, on its device; `None` where the model cannot be there.
    fn prepare_on_device(&self, learner: &Arc<DeviceLearner>) -> Option<Box<dyn DeviceModel>> {
        let _ = learner;
        None
    }
}

/// A model at weights that are trained on a device.
pub trait DeviceModel: Send + Sync {
    /// As [`PreparedModel::logprobs`].
    ///
    /// # Errors
    ///
    /// What the model or the device says.
    fn logprobs(&self, samples: &[&Sample]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>>;

    /// As [`PreparedModel::accumulate`], into the gradient of the learner.
    ///
    /// # Errors
    ///
    /// What the model or the device says; the gradient is then thrown away.
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// A model at fixed weights.
///
/// Both functions use the same forward pass. Entry `t` of a sample's log-probabilities is that of
/// drawing `tokens[t]` behind `tokens[..t]` among `allowed.get(t)`, or among the whole vocabulary
/// where that is empty; it may be 0 where the sample gives the token no weight.
pub trait PreparedModel: Send + Sync {
    /// The log-probabilities of each sample, one per token.
    ///
    /// # Errors
    ///
    /// What the model says when it cannot be run on a sample, such as one that is too long.
    fn logprobs(&self, samples: &[&Sample]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>>;

    /// Runs each sample forward once, asks `loss` once per sample for the derivatives, runs backward,
    /// and adds the derivative by the weights to `gradient`, which has their layout.
    ///
    /// The result must be the same to the bit on any number of threads. The trainer calls this for
    /// several shards at the same time.
    ///
    /// # Errors
    ///
    /// What the model says when it cannot be run on a sample; `gradient` is then thrown away.
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        gradient: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}
