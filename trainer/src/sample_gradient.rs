//! The seam between the trainer and the model.

use std::error::Error;
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::Parameters;
use spar_policy::cuda::DeviceLearner;
use spar_policy::state_heads::{HeadWeights, ValueHistogram};

/// Gives the derivatives of the loss by what is told of a sample.
///
/// Arguments are the sample's index among the samples given to [`PreparedModel::accumulate`] and what was told of its
/// tokens; the answer has one entry per token. Entry 0 belongs to the
/// first token, which nothing precedes: its log-probability is not read and its derivative is 0.
pub type SampleLossFn<'a> = dyn Fn(usize, Measured<'_>) -> Slopes + Sync + 'a;

/// What a model tells of the tokens of a sample, one entry per token in each. Entries of tokens without weight may
/// be anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured<'a> {
    /// The log-probability of each token.
    pub logprobs: &'a [f32],
    /// The entropy of what each was drawn from, in nats.
    pub entropies: &'a [f32],
    /// What the value head expected before each was drawn; empty where the objective needs no returns.
    pub values: &'a [f32],
    /// What these values are the means of, where the head tells histograms.
    pub histograms: Option<Histograms<'a>>,
}

/// What a value head that tells histograms says of the tokens of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Histograms<'a> {
    /// Its bins.
    pub bins: &'a ValueHistogram,
    /// Its logits, `[tokens, bins]`.
    pub logits: &'a [f32],
}

impl<'a> Histograms<'a> {
    /// The logits of token `t`.
    pub fn of_token(self, t: usize) -> &'a [f32] {
        let bins = self.bins.bins();
        &self.logits[t * bins..][..bins]
    }
}

/// The derivatives of a loss by what a model told of the tokens of a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slopes {
    /// By the log-probabilities, one per token.
    pub logprobs: Vec<f32>,
    /// By the entropies, one per token; empty where the loss does not depend on them.
    pub entropies: Vec<f32>,
    /// By the values, one per token, or by the [logits](Histograms::logits) of a head that tells histograms; empty where the
    /// loss does not depend on them.
    pub values: Vec<f32>,
}

impl From<Vec<f32>> for Slopes {
    /// By the log-probabilities alone.
    fn from(logprobs: Vec<f32>) -> Self {
        Self { logprobs, ..Self::default() }
    }
}

/// What a model measured on the tokens of a sample, one entry per token in each list; 0 where none was asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measures {
    /// The log-probability of each token.
    pub logprobs: Vec<f32>,
    /// The entropy of what each was drawn from, in nats.
    pub entropies: Vec<f32>,
    /// The sum of the squared probabilities of that; empty unless asked for.
    pub sum_squares: Vec<f32>,
    /// What the value head expected before each was drawn; empty without a head.
    pub values: Vec<f32>,
}

/// The tokens of samples that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MeasuredTokens {
    /// Those that weigh in one of the terms of a loss.
    #[default]
    Weighed,
    /// Those that were sampled, as the stream `turns` tells, whatever they weigh.
    Sampled,
}

impl MeasuredTokens {
    /// Whether token `t` of a sample is one of them.
    pub fn has(self, sample: &Sample, t: usize) -> bool {
        match self {
            Self::Weighed => {
                sample.policy_weights[t] != 0.0 || sample.cross_entropy_weights[t] != 0.0
            }
            Self::Sampled => sample.turns.get(t).is_some_and(|turn| *turn != Sample::OBSERVED),
        }
    }
}

/// What is to be measured; by default log-probabilities and entropies of tokens that weigh.
#[derive(Debug, Clone, Copy, Default)]
pub struct MeasureRequest<'a> {
    /// On which tokens.
    pub tokens: MeasuredTokens,
    /// Whether sums of squared probabilities are asked for, which takes one more product by the output matrix.
    pub sum_squares: bool,
    /// The head whose values are asked for.
    pub head: Option<&'a HeadWeights>,
}

/// A head whose values a loss depends on, and where its gradient goes.
#[derive(Debug)]
pub struct HeadGradient<'a> {
    /// The head.
    pub head: &'a HeadWeights,
    /// In the layout of its weights.
    pub gradient: &'a mut [f32],
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

/// A model at fixed weights.
///
/// Entry `t` of what is measured on a sample is that of drawing `tokens[t]` behind `tokens[..t]` among
/// `allowed.get(t)`, or among the whole vocabulary where that is empty.
pub trait FixedModel: Send + Sync {
    /// Measures samples.
    ///
    /// # Errors
    ///
    /// What the model says when it cannot be run on a sample, such as one that is too long, or cannot have a head.
    fn measure(
        &self,
        samples: &[&Sample],
        request: &MeasureRequest<'_>,
    ) -> Result<Vec<Measures>, Box<dyn Error + Send + Sync>>;

    /// The final hidden states behind tokens of each sample, by their places in it, `[places, hidden]`.
    ///
    /// # Errors
    ///
    /// As [`FixedModel::measure`], and for a model that has none, which is the default.
    fn states(
        &self,
        samples: &[&Sample],
        places: &[&[usize]],
    ) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        let _ = (samples, places);
        Err("it has no hidden states".into())
    }

    /// The log-probabilities of the tokens of each sample that weigh.
    ///
    /// # Errors
    ///
    /// As [`FixedModel::measure`].
    fn logprobs(&self, samples: &[&Sample]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        let measures = self.measure(samples, &MeasureRequest::default())?;
        Ok(measures.into_iter().map(|measures| measures.logprobs).collect())
    }
}

/// A model at weights that are trained on a device.
pub trait DeviceModel: FixedModel {
    /// As [`PreparedModel::accumulate`], into the gradient of the learner; that of a head stays with the host.
    ///
    /// # Errors
    ///
    /// What the model or the device says; the gradient is then thrown away.
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// A model at weights in the host's memory.
pub trait PreparedModel: FixedModel {
    /// Runs each sample forward once, by the same forward pass as [`FixedModel::measure`], asks `loss` once per sample
    /// for the derivatives, runs backward, and adds the derivative by the weights to `gradient`, which has their layout,
    /// and that by the weights of a head, where there is one, to its own.
    ///
    /// The result must be the same to the bit on any number of threads. The trainer calls this for
    /// several shards at the same time.
    ///
    /// # Errors
    ///
    /// What the model says when it cannot be run on a sample, or cannot have a head; `gradient` is then thrown away.
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        gradient: &mut [f32],
        head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}
