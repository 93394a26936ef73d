//! The decoder as the trainer sees it.

use std::error::Error;
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::cuda::{DeviceChoice, DeviceError, DeviceGroup, DeviceLearner};
use spar_policy::decoder::Tape;
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::head::learn;
use spar_policy::{
    GrammarCache, HalfType, LoraModel, Parameters, RoundedModel, WeightGradient, Weights,
};

use crate::grammar_replay::Replayed;
use crate::reading::{Asked, Reading, SampleRefused, read, read_states};
use crate::{
    DeviceModel, FixedModel, HeadGradient, MeasureRequest, MeasuredTokens, Measures, PreparedModel,
    SampleGradient, SampleLossFn, TrainerError, WeightPrecision,
};

/// The decoder as the trainer sees it: the same forward as in generation, and its backward.
///
/// Rows given together are merged into a tree, in which what several of them begin with is read and
/// differentiated once; tokens drawn there are judged once as well.
pub struct DecoderGradient {
    trained: Trained,
    temperature: f32,
    activation_bytes: usize,
    grammars: Option<Arc<GrammarCache>>,
    rule: Option<Arc<LoadedDrawRule>>,
}

/// What the trainer's parameters are.
#[derive(Debug, Clone)]
pub enum Trained {
    /// All weights of the decoder; any version of them gives the shape.
    Weights(Arc<Weights>),
    /// Master weights, all of the decoder computing with their roundings.
    Rounded(Arc<RoundedModel>),
    /// The factors of an adapter on frozen weights.
    Adapter(Arc<LoraModel>),
}

impl Trained {
    /// The decoder's weights at `parameters`.
    ///
    /// # Errors
    ///
    /// When the decoder is on a device that has no room.
    pub fn weights(&self, parameters: &Parameters) -> Result<Arc<Weights>, DeviceError> {
        match self {
            Self::Weights(base) => Ok(Arc::new(base.with_parameters(parameters.clone()))),
            Self::Rounded(model) => Ok(model.rounded(parameters)),
            Self::Adapter(model) => model.weights(parameters),
        }
    }

    /// The same, computing with the weights in another precision; on a GPU, which computes in bf16 by
    /// itself, nothing changes.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Config`] for an adapter, which is trained in f32.
    pub fn computing_in(self, precision: WeightPrecision) -> Result<Self, TrainerError> {
        match (self, precision) {
            (Self::Rounded(model), WeightPrecision::F32) => Ok(Self::Weights(model.base().clone())),
            (Self::Weights(base), WeightPrecision::Bf16) if base.device().is_none() => {
                Ok(Self::Rounded(Arc::new(RoundedModel::new(base, HalfType::Bf16))))
            }
            (Self::Adapter(_), WeightPrecision::Bf16) => {
                let problem = "`weights` is bf16: an adapter is trained in f32".to_owned();
                Err(TrainerError::Config { problems: vec![problem] })
            }
            (same, _) => Ok(same),
        }
    }

    /// The same with the decoder where it was asked for.
    ///
    /// # Errors
    ///
    /// When `device` is `cuda` and there is no GPU, or none that can be used for this decoder.
    pub fn placed(self, device: DeviceChoice) -> Result<Self, DeviceError> {
        self.placed_by(|weights| device.place(weights))
    }

    /// The same with the decoder where `place` puts it.
    pub(crate) fn placed_by(
        self,
        place: impl FnOnce(Weights) -> Result<Weights, DeviceError>,
    ) -> Result<Self, DeviceError> {
        Ok(match self {
            Self::Weights(base) => Self::Weights(Arc::new(place((*base).clone())?)),
            Self::Rounded(model) => Self::Weights(Arc::new(place((**model.base()).clone())?)),
            Self::Adapter(model) => Self::Adapter(Arc::new(model.placed(place)?)),
        })
    }

    /// The decoder, or that below the adapter.
    pub fn decoder(&self) -> &Arc<Weights> {
        match self {
            Self::Weights(base) => base,
            Self::Rounded(model) => model.base(),
            Self::Adapter(model) => model.base(),
        }
    }

    /// A learner on the decoder's device, and one on every other device of the group, that start at
    /// `parameters`; none for the CPU.
    pub(crate) fn learners(
        &self,
        parameters: &Parameters,
        group: Option<&DeviceGroup>,
    ) -> Result<Vec<DeviceLearner>, DeviceError> {
        let Some(number) = self.decoder().device_number() else { return Ok(Vec::new()) };
        let mut learners = vec![self.learner(parameters)?];
        for device in group.iter().flat_map(|group| &group.devices()[1..]) {
            let there = self.clone().placed_by(|weights| weights.on_device(device, number))?;
            learners.push(there.learner(parameters)?);
        }
        Ok(learners)
    }

    fn learner(&self, parameters: &Parameters) -> Result<DeviceLearner, DeviceError> {
        match self {
            Self::Adapter(model) => DeviceLearner::of_adapter(model, parameters),
            _ => DeviceLearner::new(self.decoder(), parameters),
        }
    }
}

impl DecoderGradient {
    /// The decoder that `base` belongs to, all of it trained; `temperature` is the one tokens are
    /// sampled with, which the log-probabilities of a sample refer to, and must be positive.
    pub fn new(base: Arc<Weights>, temperature: f32) -> Self {
        Self::of(Trained::Weights(base), temperature)
    }

    /// As [`DecoderGradient::new`], all of the decoder or an adapter being trained.
    pub fn of(trained: Trained, temperature: f32) -> Self {
        let activation_bytes = usize::MAX;
        Self { trained, temperature, activation_bytes, grammars: None, rule: None }
    }

    /// Keeps at most so many bytes of what layers compute for their backward, for samples that are
    /// read together; layers are computed once more where that is not enough. This changes time and
    /// memory, no result. Default: no limit.
    pub fn with_activation_bytes(self, activation_bytes: usize) -> Self {
        Self { activation_bytes, ..self }
    }

    /// Finds again by these what could be drawn where answers were held to a grammar. Without them, samples of such
    /// answers are refused.
    pub fn with_grammars(self, grammars: Arc<GrammarCache>) -> Self {
        Self { grammars: Some(grammars), ..self }
    }

    /// Judges draws as this rule made them, where there is one: log-probabilities are those behind the rule, and the gradient goes
    /// through the trained model's logits within it. The other models are constants. Without it, samples that were drawn by a
    /// rule would be judged as if they had been drawn without. On a GPU nothing is learned by a rule.
    pub fn with_draw_rule(self, rule: Option<Arc<LoadedDrawRule>>) -> Self {
        Self { rule, ..self }
    }

    /// The decoder as it was given, or below its adapter.
    pub fn at_base(&self) -> Box<dyn PreparedModel> {
        Box::new(self.prepared(Ok(self.trained.decoder().clone()), None))
    }

    fn prepared(
        &self,
        weights: Result<Arc<Weights>, DeviceError>,
        adapter: Option<(Arc<LoraModel>, Parameters)>,
    ) -> PreparedDecoder {
        let Self { temperature, activation_bytes, .. } = *self;
        let (grammars, rule) = (self.grammars.clone(), self.rule.clone());
        PreparedDecoder { weights, adapter, temperature, activation_bytes, grammars, rule }
    }
}

impl SampleGradient for DecoderGradient {
    fn prepare(&self, parameters: &Parameters) -> Box<dyn PreparedModel> {
        let weights = self.trained.weights(parameters);
        let adapter = match &self.trained {
            Trained::Weights(_) | Trained::Rounded(_) => None,
            Trained::Adapter(model) => Some((model.clone(), parameters.clone())),
        };
        Box::new(self.prepared(weights, adapter))
    }

    fn prepare_on_device(&self, learner: &Arc<DeviceLearner>) -> Option<Box<dyn DeviceModel>> {
        let decoder = self.prepared(Ok(learner.weights()), None);
        Some(Box::new(LearningDecoder { decoder, learner: learner.clone() }))
    }
}

/// The decoder at weights that are trained on its device.
struct LearningDecoder {
    decoder: PreparedDecoder,
    learner: Arc<DeviceLearner>,
}

impl FixedModel for LearningDecoder {
    fn measure(
        &self,
        samples: &[&Sample],
        request: &MeasureRequest<'_>,
    ) -> Result<Vec<Measures>, Box<dyn Error + Send + Sync>> {
        self.decoder.measure(samples, request)
    }

    fn states(
        &self,
        samples: &[&Sample],
        places: &[&[usize]],
    ) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        self.decoder.states(samples, places)
    }
}

impl DeviceModel for LearningDecoder {
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.decoder.rule.is_some() {
            return Err(SampleRefused::RuleOnDevice.into());
        }
        let mut tape = Tape::within(self.decoder.activation_bytes);
        let replayed = self.decoder.replay(samples, MeasuredTokens::Weighed)?;
        let reading = self.decoder.read_to_learn(samples, &replayed, &mut tape, head.as_ref())?;
        let derivatives = reading.derivatives(samples, loss);
        let dstates_td = reading.head_backward(&derivatives, head);
        let loss = reading.loss(self.decoder.temperature, &derivatives, dstates_td.as_deref());
        Ok(self.learner.learn(&tape, &reading.hidden, &loss)?)
    }
}

struct PreparedDecoder {
    /// Absent where a device has no room for them.
    weights: Result<Arc<Weights>, DeviceError>,
    /// What is trained where that is not the weights themselves.
    adapter: Option<(Arc<LoraModel>, Parameters)>,
    temperature: f32,
    activation_bytes: usize,
    grammars: Option<Arc<GrammarCache>>,
    rule: Option<Arc<LoadedDrawRule>>,
}

impl PreparedDecoder {
    /// What could be drawn where that is for grammars to tell.
    fn replay(
        &self,
        samples: &[&Sample],
        tokens: MeasuredTokens,
    ) -> Result<Replayed, SampleRefused> {
        Ok(Replayed::new(samples, tokens, self.grammars.as_deref())?)
    }

    fn weights(&self) -> Result<&Weights, DeviceError> {
        self.weights.as_deref().map_err(DeviceError::clone)
    }

    /// Reads samples for a backward, which the tape is for.
    fn read_to_learn<'a>(
        &self,
        samples: &[&'a Sample],
        replayed: &'a Replayed,
        tape: &mut Tape,
        head: Option<&HeadGradient<'_>>,
    ) -> Result<Reading<'a>, SampleRefused> {
        let (tokens, head) = (MeasuredTokens::Weighed, head.map(|head| head.head));
        let asked = Asked { samples, tokens, replayed, head, rule: self.rule.as_deref() };
        read(self.weights()?, &asked, Some(tape), self.temperature)
    }
}

impl FixedModel for PreparedDecoder {
    fn measure(
        &self,
        samples: &[&Sample],
        request: &MeasureRequest<'_>,
    ) -> Result<Vec<Measures>, Box<dyn Error + Send + Sync>> {
        let (weights, temperature) = (self.weights()?, self.temperature);
        let MeasureRequest { tokens, head, .. } = *request;
        let replayed = &self.replay(samples, tokens)?;
        let rule = self.rule.as_deref();
        let asked = Asked { samples, tokens, replayed, head, rule };
        let reading = read(weights, &asked, None, temperature)?;
        Ok(reading.requested(weights, samples, request, rule, temperature)?)
    }

    fn states(
        &self,
        samples: &[&Sample],
        places: &[&[usize]],
    ) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        Ok(read_states(self.weights()?, samples, places)?)
    }
}

impl PreparedModel for PreparedDecoder {
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        gradient: &mut [f32],
        head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut tape = Tape::within(self.activation_bytes);
        let replayed = self.replay(samples, MeasuredTokens::Weighed)?;
        let reading = self.read_to_learn(samples, &replayed, &mut tape, head.as_ref())?;
        let derivatives = reading.derivatives(samples, loss);
        let dstates_td = reading.head_backward(&derivatives, head);
        let loss = reading.loss(self.temperature, &derivatives, dstates_td.as_deref());
        let gradient = &mut match &self.adapter {
            Some((model, factors)) => model.gradient(factors, gradient),
            None => WeightGradient::Full(gradient),
        };
        let (weights, Reading { hidden, beside, .. }) = (self.weights()?, &reading);
        match &self.rule {
            Some(_) if weights.device().is_some() => Err(SampleRefused::RuleOnDevice.into()),
            Some(rule) => Ok(rule.learn(weights, &tape, hidden, beside, &loss, gradient)?),
            None => Ok(learn(weights, &tape, hidden, &loss, gradient)?),
        }
    }
}

#[cfg(test)]
mod tests;
