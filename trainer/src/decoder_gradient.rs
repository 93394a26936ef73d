//! The decoder as the trainer sees it.

use std::error::Error;
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::cuda::{DeviceChoice, DeviceError, DeviceGroup, DeviceLearner};
use spar_policy::decoder::Tape;
use spar_policy::head::learn;
use spar_policy::{
    GrammarCache, HalfType, LoraModel, Parameters, RoundedModel, WeightGradient, Weights,
};

use crate::grammar_replay::Replayed;
use crate::reading::{Asked, Reading, SampleRefused, read};
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
        Self { trained, temperature, activation_bytes: usize::MAX, grammars: None }
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
        let grammars = self.grammars.clone();
        PreparedDecoder { weights, adapter, temperature, activation_bytes, grammars }
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
}

impl DeviceModel for LearningDecoder {
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
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
        let asked = Asked { samples, tokens, replayed, head };
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
        let asked = Asked { samples, tokens, replayed, head };
        let reading = read(weights, &asked, None, temperature)?;
        Ok(reading.requested(weights, samples, request, temperature)?)
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
        learn(self.weights()?, &tape, &reading.hidden, &loss, gradient)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{PolicyVersion, Seed};
    use spar_policy::decoder::{Segment, SequenceCache, forward};
    use spar_policy::state_heads::{HeadWeights, StateHeadConfig, state_head_registry};
    use spar_policy::{LoraConfig, ModelConfig, initial_parameters};

    use super::*;
    use crate::testing::assert_close;
    use crate::{
        Clip, LossAggregation, Measured, OptimizerConfig, Slopes, Supervised, Trainer,
        TrainerConfig,
    };

    fn model() -> (DecoderGradient, Parameters) {
        let config = ModelConfig {
            vocab_size: 11,
            hidden_size: 16,
            intermediate_size: 24,
            head_dim: 8,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let parameters = initial_parameters(&config, Seed::from_u64(5));
        let weights = Arc::new(Weights::new(&config, parameters.clone()));
        (DecoderGradient::new(weights, 1.0), parameters)
    }

    fn samples(number: u32) -> Vec<Sample> {
        let sample = |start: u32| {
            let mut sample = Sample::default();
            sample.push_observed(start % 11, 0.0);
            for t in 1..=8 + start % 5 {
                let token = (start + 3 * t) % 11;
                sample.push(
                    token,
                    1.0,
                    if t % 3 == 0 { -1.0 } else { 0.5 },
                    1.0,
                    0.0,
                    PolicyVersion(0),
                    if t % 2 == 0 { &[] } else { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
                );
            }
            sample
        };
        (0..number).map(sample).collect()
    }

    #[test]
    fn the_gradient_is_the_derivative_of_the_loss() {
        let (model, mut parameters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        // Any fixed slopes do: the loss is then their product with the log-probabilities.
        let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
        let slopes = |sample: usize, found: Measured<'_>| -> Slopes {
            let logprobs = found.logprobs;
            (0..logprobs.len()).map(|t| slope(sample, t)).collect::<Vec<f32>>().into()
        };
        let mut gradient = vec![0.0; parameters.data.len()];
        model.prepare(&parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        let loss = |parameters: &Parameters| -> f64 {
            let logprobs = model.prepare(parameters).logprobs(&samples).unwrap();
            let of_sample = |(sample, logprobs): (usize, &Vec<f32>)| {
                (1..logprobs.len()).map(|t| f64::from(slope(sample, t) * logprobs[t])).sum::<f64>()
            };
            logprobs.iter().enumerate().map(of_sample).sum()
        };
        for spec in parameters.specs.clone().iter() {
            for place in [0, spec.len() / 2, spec.len() - 1] {
                let index = spec.offset + place;
                let middle = parameters.data[index];
                parameters.data[index] = middle + 1e-2;
                let above = loss(&parameters);
                parameters.data[index] = middle - 1e-2;
                let below = loss(&parameters);
                parameters.data[index] = middle;
                assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
            }
        }
    }

    #[test]
    fn entropies_have_the_gradient_of_their_sum() {
        let (model, mut parameters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        let run = |parameters: &Parameters| {
            let sum = std::sync::Mutex::new(0.0);
            let slopes = |_: usize, found: Measured<'_>| {
                *sum.lock().unwrap() += found.entropies.iter().map(|e| f64::from(*e)).sum::<f64>();
                let len = found.entropies.len();
                Slopes { logprobs: vec![0.0; len], entropies: vec![1.0; len], ..Slopes::default() }
            };
            let mut gradient = vec![0.0; parameters.data.len()];
            model.prepare(parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
            (sum.into_inner().unwrap(), gradient)
        };
        let (_, gradient) = run(&parameters);
        for spec in parameters.specs.clone().iter() {
            for place in [0, spec.len() / 2, spec.len() - 1] {
                let index = spec.offset + place;
                let middle = parameters.data[index];
                parameters.data[index] = middle + 1e-2;
                let (above, _) = run(&parameters);
                parameters.data[index] = middle - 1e-2;
                let (below, _) = run(&parameters);
                parameters.data[index] = middle;
                assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
            }
        }
    }

    /// A head whose weights are not 0, so that its gradient goes on into the decoder.
    fn head(kind: &str, trunk_gradient: bool) -> HeadWeights {
        let kind = kind.to_owned();
        let config = StateHeadConfig { kind, trunk_gradient, ..StateHeadConfig::default() };
        let mut head = HeadWeights::fresh(&config, 16, Seed::from_u64(2)).unwrap();
        let weights = head.parameters_mut().data.iter_mut();
        weights.zip(0..).for_each(|(weight, n)| *weight += ((n * 5 % 11) as f32 - 5.0) / 20.0);
        head
    }

    /// A loss that no part of what is measured can be changed without: weighted sums of log-probabilities, entropies and
    /// squares of values.
    fn mixed(sample: usize, found: Measured<'_>, sum: &std::sync::Mutex<f64>) -> Slopes {
        let slope = |t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
        let len = found.logprobs.len();
        let mut slopes = Slopes::from(vec![0.0; len]);
        (slopes.entropies, slopes.values) = (vec![0.0; len], vec![0.0; len]);
        let mut total = 0.0;
        for t in 1..len {
            let (by, entropy, value) = (slope(t), found.entropies[t], found.values[t]);
            total += f64::from(by * found.logprobs[t] + 0.3 * entropy)
                + 0.5 * f64::from(value - by).powi(2);
            (slopes.logprobs[t], slopes.entropies[t], slopes.values[t]) = (by, 0.3, value - by);
        }
        *sum.lock().unwrap() += total;
        slopes
    }

    #[test]
    fn policy_entropies_and_values_have_one_gradient_through_the_trunk() {
        let (model, mut parameters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        let run = |parameters: &Parameters, head: &HeadWeights| {
            let sum = std::sync::Mutex::new(0.0);
            let loss = |sample: usize, found: Measured<'_>| mixed(sample, found, &sum);
            let mut gradient = vec![0.0; parameters.data.len()];
            let mut of_head = vec![0.0; head.parameters().data.len()];
            let into = Some(HeadGradient { head, gradient: &mut of_head });
            model.prepare(parameters).accumulate(&samples, &loss, &mut gradient, into).unwrap();
            (sum.into_inner().unwrap(), gradient, of_head)
        };
        for entry in state_head_registry() {
            let mut head = head(entry.name, true);
            let (_, gradient, of_head) = run(&parameters, &head);
            for spec in parameters.specs.clone().iter() {
                for place in [0, spec.len() / 2, spec.len() - 1] {
                    let index = spec.offset + place;
                    let middle = parameters.data[index];
                    parameters.data[index] = middle + 3e-3;
                    let (above, ..) = run(&parameters, &head);
                    parameters.data[index] = middle - 3e-3;
                    let (below, ..) = run(&parameters, &head);
                    parameters.data[index] = middle;
                    assert_close(gradient[index].into(), (above - below) / 6e-3, 1e-2);
                }
            }
            for index in (0..of_head.len()).step_by(7) {
                let middle = head.parameters().data[index];
                head.parameters_mut().data[index] = middle + 3e-3;
                let (above, ..) = run(&parameters, &head);
                head.parameters_mut().data[index] = middle - 3e-3;
                let (below, ..) = run(&parameters, &head);
                head.parameters_mut().data[index] = middle;
                assert_close(of_head[index].into(), (above - below) / 6e-3, 1e-2);
            }
        }
    }

    #[test]
    fn a_stopped_head_leaves_the_trunk_to_the_others() {
        let (model, parameters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        let sum = std::sync::Mutex::new(0.0);
        let run = |head: &HeadWeights, has_values: bool| {
            let loss = |sample: usize, found: Measured<'_>| {
                let slopes = mixed(sample, found, &sum);
                if has_values { slopes } else { Slopes { values: Vec::new(), ..slopes } }
            };
            let mut gradient = vec![0.0; parameters.data.len()];
            let mut of_head = vec![0.0; head.parameters().data.len()];
            let into = Some(HeadGradient { head, gradient: &mut of_head });
            model.prepare(&parameters).accumulate(&samples, &loss, &mut gradient, into).unwrap();
            (gradient, of_head)
        };
        for entry in state_head_registry() {
            let (stopped, open) = (head(entry.name, false), head(entry.name, true));
            let (without, nothing) = run(&open, false);
            assert!(nothing.iter().all(|value| *value == 0.0));
            let (of_stopped, own) = run(&stopped, true);
            assert_eq!(of_stopped, without, "to the bit");
            let (of_open, same) = run(&open, true);
            assert_eq!(own, same);
            assert_ne!(of_open, of_stopped);
        }
    }

    #[test]
    fn an_adapter_takes_the_gradient_of_values_that_its_factors_have() {
        let (model, parameters) = model();
        let base = model.trained.decoder().with_parameters(parameters);
        let lora = LoraConfig { rank: 3, alpha: 5.0, ..LoraConfig::default() };
        let adapted = Arc::new(LoraModel::new(Arc::new(base), &lora));
        let mut factors = adapted.initial(Seed::from_u64(3));
        // `B` is 0 to start with, where the gradient of `A` is as well.
        factors.data.iter_mut().zip(0..).for_each(|(f, n)| *f += (n % 5) as f32 / 50.0);
        let model = DecoderGradient::of(Trained::Adapter(adapted), 1.0);
        let (samples, head) = (samples(2), head("linear", true));
        let samples: Vec<&Sample> = samples.iter().collect();
        let run = |factors: &Parameters| {
            let sum = std::sync::Mutex::new(0.0);
            let loss = |sample: usize, found: Measured<'_>| {
                let slopes = mixed(sample, found, &sum);
                let len = found.logprobs.len();
                Slopes { values: slopes.values, ..Slopes::from(vec![0.0; len]) }
            };
            let mut gradient = vec![0.0; factors.data.len()];
            let mut of_head = vec![0.0; head.parameters().data.len()];
            let into = Some(HeadGradient { head: &head, gradient: &mut of_head });
            model.prepare(factors).accumulate(&samples, &loss, &mut gradient, into).unwrap();
            gradient
        };
        let values = |factors: &Parameters| -> f64 {
            let request = MeasureRequest { head: Some(&head), ..MeasureRequest::default() };
            let measures = model.prepare(factors).measure(&samples, &request).unwrap();
            let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
            let of = |(sample, measures): (usize, &Measures)| -> f64 {
                let values = &measures.values;
                let squares = (1..values.len()).map(|t| f64::from(values[t] - slope(sample, t)));
                squares.map(|error| 0.5 * error * error).sum()
            };
            measures.iter().enumerate().map(of).sum()
        };
        let gradient = run(&factors);
        assert!(gradient.iter().any(|value| value.abs() > 1e-3));
        for index in (0..gradient.len()).step_by(41) {
            let middle = factors.data[index];
            factors.data[index] = middle + 1e-2;
            let above = values(&factors);
            factors.data[index] = middle - 1e-2;
            let below = values(&factors);
            factors.data[index] = middle;
            assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
        }
    }

    #[test]
    fn what_is_measured_of_sampled_tokens_is_that_of_the_definition() {
        let (model, parameters) = model();
        let mut samples = samples(3);
        for sample in &mut samples {
            // Nothing weighs yet, and some tokens were observed.
            let turn = |t: usize| if t.is_multiple_of(4) { Sample::OBSERVED } else { 0 };
            sample.turns = (0..sample.len()).map(turn).collect();
            sample.policy_weights.fill(0.0);
            sample.cross_entropy_weights.fill(0.0);
        }
        let given: Vec<&Sample> = samples.iter().collect();
        let head = head("hidden_layer", true);
        let tokens = MeasuredTokens::Sampled;
        let request = MeasureRequest { tokens, sum_squares: true, head: Some(&head) };
        let prepared = model.prepare(&parameters);
        let measures = prepared.measure(&given, &request).unwrap();
        assert!(prepared.logprobs(&given).unwrap()[0].iter().all(|logprob| *logprob == 0.0));
        let weights = model.trained.weights(&parameters).unwrap();
        for (sample, measures) in samples.iter().zip(&measures) {
            // Alone it measures the same, to the bit.
            assert_eq!(&prepared.measure(&[sample], &request).unwrap()[0], measures);
            let mut cache = SequenceCache::new(&weights);
            let states = forward(&weights, &mut [Segment::new(&mut cache, &sample.tokens)], None);
            for t in 0..sample.len() {
                let found = [
                    measures.logprobs[t],
                    measures.entropies[t],
                    measures.sum_squares[t],
                    measures.values[t],
                ];
                if sample.turns[t] == Sample::OBSERVED {
                    assert_eq!(found, [0.0; 4]);
                    continue;
                }
                let state = &states[(t - 1) * 16..t * 16];
                let mut logits = Vec::new();
                spar_policy::head::logits(&weights, state, &[], &mut logits);
                let all: Vec<f64> = logits.iter().map(|logit| f64::from(*logit).exp()).collect();
                let sum: f64 = all.iter().sum();
                let p: Vec<f64> = all.iter().map(|value| value / sum).collect();
                let wanted = [
                    p[sample.tokens[t] as usize].ln(),
                    p.iter().map(|p| -p * p.ln()).sum(),
                    p.iter().map(|p| p * p).sum(),
                    head.forward(state)[0].into(),
                ];
                found.iter().zip(wanted).for_each(|(a, b)| assert_close((*a).into(), b, 1e-5));
            }
        }
    }

    #[test]
    fn little_memory_for_activations_changes_no_bit() {
        let (model, parameters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        let slopes = |_: usize, found: Measured<'_>| Slopes::from(found.logprobs.to_vec());
        let gradient = |model: &DecoderGradient| {
            let mut gradient = vec![0.0; parameters.data.len()];
            model.prepare(&parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
            gradient
        };
        let expected = gradient(&model);
        assert_eq!(gradient(&model.with_activation_bytes(1 << 10)), expected);
    }

    #[test]
    fn rounded_weights_give_the_gradient_that_their_numbers_do() {
        let (model, masters) = model();
        let samples = samples(3);
        let samples: Vec<&Sample> = samples.iter().collect();
        let slopes = |_: usize, found: Measured<'_>| Slopes::from(found.logprobs.to_vec());
        let run = |model: &DecoderGradient, parameters: &Parameters| {
            let mut gradient = vec![0.0; parameters.data.len()];
            let prepared = model.prepare(parameters);
            let logprobs = prepared.logprobs(&samples).unwrap();
            prepared.accumulate(&samples, &slopes, &mut gradient, None).unwrap();
            (logprobs, gradient)
        };
        let rounded = model.trained.clone().computing_in(WeightPrecision::Bf16).unwrap();
        let numbers = rounded.weights(&masters).unwrap().to_parameters();
        assert_ne!(numbers, masters);
        let expected = run(&model, &numbers);
        assert_eq!(run(&DecoderGradient::of(rounded.clone(), 1.0), &masters), expected);
        let back = rounded.computing_in(WeightPrecision::F32).unwrap();
        assert_eq!(back.weights(&masters).unwrap().to_parameters(), masters);
    }

    #[test]
    fn masters_learn_from_steps_that_roundings_would_lose() {
        let (model, start) = model();
        let rounded = model.trained.computing_in(WeightPrecision::Bf16).unwrap();
        let model = DecoderGradient::of(rounded, 1.0);
        let mut options = toml::Table::new();
        // A bf16 number of the size of these weights is 2^-8 of itself away from the next.
        options.insert("learning_rate".to_owned(), 1e-6.into());
        let optimizer = OptimizerConfig { options, ..OptimizerConfig::default() };
        let config =
            TrainerConfig { optimizer, weights: WeightPrecision::Bf16, ..TrainerConfig::default() };
        let mut trainer = Trainer::new(config, start).unwrap();
        let samples = samples(2);
        let samples: Vec<&Sample> = samples.iter().collect();
        let mut losses = Vec::new();
        for _ in 0..60 {
            let mode = LossAggregation::TokenMean;
            let metrics = trainer.update(&samples, &Supervised, mode, &model, 0.0).unwrap();
            losses.push(metrics.loss);
        }
        assert!(losses[59] < losses[0], "{losses:?}");
    }

    #[test]
    fn samples_with_shared_prefixes_have_the_gradient_of_each_alone() {
        let (model, parameters) = model();
        // Prefixes of each other and forks of them, one of them twice.
        let all = samples(2);
        let cut = |sample: &Sample, len: usize, fork: Option<u32>| {
            let mut cut = Sample::default();
            for t in 0..len {
                let token =
                    if t + 1 == len { fork.unwrap_or(sample.tokens[t]) } else { sample.tokens[t] };
                let (policy, advantage) = (sample.policy_weights[t], sample.advantages[t]);
                let weight = sample.cross_entropy_weights[t];
                let allowed = sample.allowed.get(t);
                cut.push(token, policy, advantage, weight, 0.0, PolicyVersion(0), allowed);
            }
            cut
        };
        let samples = [
            cut(&all[0], 9, None),
            cut(&all[1], 4, None),
            cut(&all[0], 5, Some(10)),
            cut(&all[0], 3, None),
            cut(&all[1], 8, Some(1)),
            cut(&all[0], 9, None),
        ];
        let samples: Vec<&Sample> = samples.iter().collect();
        let prepared = model.prepare(&parameters);
        let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
        let slopes = |sample: usize, found: Measured<'_>| -> Slopes {
            let logprobs = found.logprobs;
            (0..logprobs.len()).map(|t| slope(sample, t)).collect::<Vec<f32>>().into()
        };
        let mut together = vec![0.0; parameters.data.len()];
        prepared.accumulate(&samples, &slopes, &mut together, None).unwrap();
        let mut alone = vec![0.0; parameters.data.len()];
        let logprobs = prepared.logprobs(&samples).unwrap();
        for (index, sample) in samples.iter().enumerate() {
            let slopes = |_: usize, found: Measured<'_>| slopes(index, found);
            prepared.accumulate(&[sample], &slopes, &mut alone, None).unwrap();
            // What is recomputed does not depend on what stands beside it, to the bit.
            assert_eq!(prepared.logprobs(&[sample]).unwrap()[0], logprobs[index]);
        }
        for spec in parameters.specs.iter() {
            let scale = alone[spec.range()].iter().fold(0.0_f32, |scale, g| scale.max(g.abs()));
            for (found, expected) in together[spec.range()].iter().zip(&alone[spec.range()]) {
                assert!((found - expected).abs() <= 1e-5 * scale, "{}", spec.name);
            }
        }
    }

    #[test]
    fn the_decoder_learns_and_recomputes_what_was_sampled_to_the_bit() {
        let (model, parameters) = model();
        let optimizer = OptimizerConfig { name: "muon".to_owned(), ..OptimizerConfig::default() };
        let config = TrainerConfig { optimizer, ..TrainerConfig::default() };
        let mut trainer = Trainer::new(config, parameters).unwrap();
        let mut samples = samples(11);
        let mode = LossAggregation::TokenMean;
        let mut losses = Vec::new();
        for iteration in 0..60 {
            let seed = Seed::from_u64(iteration);
            let metrics = trainer.iterate(&samples, &Supervised, mode, &model, seed, 0.0).unwrap();
            losses.push(metrics[0].loss);
        }
        assert!(losses[0] > 2.0 && losses[59] < 0.1, "{} -> {}", losses[0], losses[59]);
        // One sample at a time, as in no update.
        let prepared = model.prepare(&trainer.parameters().unwrap());
        for sample in &mut samples {
            sample.behavior_logprobs = prepared.logprobs(&[&*sample]).unwrap().remove(0);
            sample.versions.fill(trainer.version());
        }
        let seed = Seed::from_u64(0);
        let metrics = trainer.iterate(&samples, &Clip::default(), mode, &model, seed, 0.0).unwrap();
        let drift = metrics[0].drift.current;
        assert!(drift.tokens > 80);
        assert_eq!(drift.max, 0.0);
    }
}
