//! What the decoder reads of samples, and how a loss changes with it.

use std::collections::HashMap;

use spar_core::Sample;
use spar_policy::Weights;
use spar_policy::cuda::DeviceError;
use spar_policy::decoder::{HiddenStates, Tape, TokenTree};
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::head::{Draw, DrawGradient, DrawLoss, DrawStatistics, try_judge, try_sum_squares};
use spar_policy::state_heads::{HeadWeights, ValueHistogram};

use crate::grammar_replay::{ReplayFailed, Replayed};
use crate::{
    HeadGradient, Histograms, MeasureRequest, Measured, MeasuredTokens, Measures, SampleLossFn,
    Slopes,
};

/// A sample cannot be read by the decoder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SampleRefused {
    #[error("read a sample of {tokens} tokens: the model reads up to {limit}")]
    TooLong { tokens: usize, limit: usize },
    #[error("read token {token}: the vocabulary has {vocabulary}")]
    UnknownToken { token: u32, vocabulary: usize },
    #[error("judge token {token}: it is not among those allowed in its place")]
    NotAllowed { token: u32 },
    #[error(transparent)]
    Replay(#[from] ReplayFailed),
    #[error("learn what was drawn by a draw rule on a GPU: that is done on the CPU (device `cpu`)")]
    RuleOnDevice,
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// The result of reading samples: the states, what was drawn behind them, and what a head says of them.
pub(crate) struct Reading<'a> {
    pub(crate) hidden: HiddenStates,
    /// The states of the models of a draw rule.
    pub(crate) beside: Vec<HiddenStates>,
    draws: Vec<Draw<'a>>,
    /// What is asked for: a sample, a place in it, and the draw that was made there.
    places: Vec<(usize, usize, usize)>,
    judged: Vec<DrawStatistics>,
    head: Option<HeadReading>,
}

/// What a head says of the states that something was drawn behind.
struct HeadReading {
    /// Rows of these states, each once.
    rows: Vec<usize>,
    /// Of every draw, the place of its state among them.
    of_draw: Vec<usize>,
    /// The states, `[rows, hidden]`.
    states_rd: Vec<f32>,
    /// The head's numbers of each.
    outputs: Vec<f32>,
    /// The value that they tell.
    values: Vec<f32>,
    /// How they tell it, where they are more than one.
    bins: Option<ValueHistogram>,
    /// Numbers of all hidden states together.
    num_numbers: usize,
}

impl HeadReading {
    fn of(
        head: &HeadWeights,
        hidden: &HiddenStates,
        draws: &[Draw<'_>],
        width: usize,
    ) -> Result<Self, DeviceError> {
        let mut rows = Vec::new();
        let mut known = HashMap::new();
        let of_draw = draws.iter().map(|draw| {
            *known.entry(draw.row).or_insert_with(|| {
                rows.push(draw.row);
                rows.len() - 1
            })
        });
        let of_draw = of_draw.collect();
        let hidden_td = hidden.read()?;
        let states_rd: Vec<f32> =
            rows.iter().flat_map(|row| &hidden_td[row * width..][..width]).copied().collect();
        let outputs = head.forward(&states_rd);
        let (values, bins) = (head.values(&outputs), head.histogram().cloned());
        let num_numbers = hidden_td.len();
        Ok(Self { rows, of_draw, states_rd, outputs, values, bins, num_numbers })
    }

    /// Numbers of a state.
    fn num_outputs(&self) -> usize {
        self.bins.as_ref().map_or(1, ValueHistogram::bins)
    }
}

/// The derivatives of a loss by what was read.
pub(crate) struct Derivatives {
    draws: Vec<DrawGradient>,
    /// By the head's numbers, row by row in the order of its rows; empty where the loss does not depend on them.
    values: Vec<f32>,
}

/// What is to be read.
pub(crate) struct Asked<'s, 'a> {
    pub(crate) samples: &'s [&'a Sample],
    pub(crate) tokens: MeasuredTokens,
    /// What grammars allowed in the places of these tokens.
    pub(crate) replayed: &'a Replayed,
    /// Whose values are asked for.
    pub(crate) head: Option<&'s HeadWeights>,
    /// What tokens were drawn by.
    pub(crate) rule: Option<&'s LoadedDrawRule>,
}

/// Reads samples by the decoder at `weights`. Rows given together are merged into a tree.
pub(crate) fn read<'a>(
    weights: &Weights,
    asked: &Asked<'_, 'a>,
    tape: Option<&mut Tape>,
    temperature: f32,
) -> Result<Reading<'a>, SampleRefused> {
    let Asked { samples, tokens, replayed, head, rule } = *asked;
    let config = weights.config();
    check_samples(weights, rule, samples)?;
    let sequences: Vec<&[u32]> = samples.iter().map(|sample| &sample.tokens[..]).collect();
    let tree = TokenTree::new(&sequences);
    let (mut draws, mut places) = (Vec::new(), Vec::new());
    // Rows that share a prefix share what was drawn in it.
    let mut known = HashMap::new();
    for (index, sample) in samples.iter().enumerate() {
        let states = tree.rows(index);
        for (t, token) in sample.tokens.iter().enumerate().skip(1) {
            if !tokens.has(sample, t) {
                continue;
            }
            let allowed = replayed.get(index, t).unwrap_or(sample.allowed.get(t));
            if !allowed.is_empty() && allowed.binary_search(token).is_err() {
                return Err(SampleRefused::NotAllowed { token: *token });
            }
            let state = states[t - 1];
            let draw = *known.entry((state, *token, allowed)).or_insert_with(|| {
                draws.push(Draw { row: state, token: *token, allowed });
                draws.len() - 1
            });
            places.push((index, t, draw));
        }
    }
    let hidden = tree.try_read(weights, tape)?;
    let beside = rule.map(|rule| rule.read(&tree)).transpose()?.unwrap_or_default();
    let judged = match rule {
        Some(rule) => rule.judge(weights, &hidden, &beside, &draws, temperature)?,
        None => try_judge(weights, &hidden, &draws, temperature)?,
    };
    let of_head = |head| HeadReading::of(head, &hidden, &draws, config.hidden_size);
    let head = head.map(of_head).transpose()?;
    Ok(Reading { hidden, beside, draws, places, judged, head })
}

/// Refuses samples that the decoder, or a model of the rule, cannot read.
fn check_samples(
    weights: &Weights,
    rule: Option<&LoadedDrawRule>,
    samples: &[&Sample],
) -> Result<(), SampleRefused> {
    let config = weights.config();
    let (limit, vocabulary) = (config.max_position_embeddings, config.vocab_size);
    let limit = rule.map_or(limit, |rule| rule.context(limit));
    for sample in samples {
        if sample.len() > limit {
            return Err(SampleRefused::TooLong { tokens: sample.len(), limit });
        }
        if let Some(token) = sample.tokens.iter().find(|token| **token as usize >= vocabulary) {
            return Err(SampleRefused::UnknownToken { token: *token, vocabulary });
        }
    }
    Ok(())
}

/// The final hidden states of samples behind tokens at these places, `[places, hidden]` of each. Samples given together
/// are merged into a tree.
pub(crate) fn read_states(
    weights: &Weights,
    samples: &[&Sample],
    places: &[&[usize]],
) -> Result<Vec<Vec<f32>>, SampleRefused> {
    check_samples(weights, None, samples)?;
    let sequences: Vec<&[u32]> = samples.iter().map(|sample| &sample.tokens[..]).collect();
    let tree = TokenTree::new(&sequences);
    let (states, width) = (tree.try_read(weights, None)?, weights.config().hidden_size);
    let states_td = states.read()?;
    let of_sample = |(index, places): (usize, &&[usize])| {
        let rows = tree.rows(index);
        let states = places.iter().flat_map(|place| &states_td[rows[*place] * width..][..width]);
        states.copied().collect()
    };
    Ok(places.iter().enumerate().map(of_sample).collect())
}

impl Reading<'_> {
    /// What a draw gives, by sample and token; 0 where nothing was asked for.
    fn by_sample(&self, samples: &[&Sample], of_draw: impl Fn(usize) -> f32) -> Vec<Vec<f32>> {
        let mut by_sample: Vec<Vec<f32>> =
            samples.iter().map(|sample| vec![0.0; sample.len()]).collect();
        for (sample, t, draw) in &self.places {
            by_sample[*sample][*t] = of_draw(*draw);
        }
        by_sample
    }

    /// Log-probabilities and entropies by sample and token, and values where there is a head.
    fn measures(&self, samples: &[&Sample]) -> Vec<Measures> {
        let logprobs = self.by_sample(samples, |draw| self.judged[draw].logprob);
        let entropies = self.by_sample(samples, |draw| self.judged[draw].entropy);
        let with = |(logprobs, entropies)| Measures { logprobs, entropies, ..Measures::default() };
        let mut measures: Vec<Measures> = logprobs.into_iter().zip(entropies).map(with).collect();
        if let Some(head) = &self.head {
            let values = self.by_sample(samples, |draw| head.values[head.of_draw[draw]]);
            measures.iter_mut().zip(values).for_each(|(measures, of)| measures.values = of);
        }
        measures
    }

    /// All that a request asks for.
    pub(crate) fn requested(
        &self,
        weights: &Weights,
        samples: &[&Sample],
        request: &MeasureRequest<'_>,
        rule: Option<&LoadedDrawRule>,
        temperature: f32,
    ) -> Result<Vec<Measures>, DeviceError> {
        let mut measures = self.measures(samples);
        if request.sum_squares {
            let Self { hidden, beside, draws, .. } = self;
            let sums = match rule {
                Some(rule) => rule.sum_squares(weights, hidden, beside, draws, temperature)?,
                None => try_sum_squares(weights, hidden, draws, temperature)?,
            };
            let sums = self.by_sample(samples, |draw| sums[draw]);
            measures.iter_mut().zip(sums).for_each(|(measures, of)| measures.sum_squares = of);
        }
        Ok(measures)
    }

    /// The logits of a head that tells histograms, `[tokens, bins]` of each sample; empty where there is none.
    fn logits(&self, samples: &[&Sample]) -> Vec<Vec<f32>> {
        let Some(head @ HeadReading { bins: Some(bins), .. }) = &self.head else {
            return Vec::new();
        };
        let bins = bins.bins();
        let mut by_sample: Vec<Vec<f32>> =
            samples.iter().map(|sample| vec![0.0; sample.len() * bins]).collect();
        for (sample, t, draw) in &self.places {
            let row = &head.outputs[head.of_draw[*draw] * bins..][..bins];
            by_sample[*sample][t * bins..][..bins].copy_from_slice(row);
        }
        by_sample
    }

    /// How the loss changes with what was told of the draws.
    pub(crate) fn derivatives(&self, samples: &[&Sample], loss: &SampleLossFn<'_>) -> Derivatives {
        let logits = self.logits(samples);
        let bins = self.head.as_ref().and_then(|head| head.bins.as_ref());
        let histograms =
            |index: usize| bins.map(|bins| Histograms { bins, logits: &logits[index] });
        let slopes: Vec<Slopes> = self
            .measures(samples)
            .iter()
            .enumerate()
            .map(|(index, Measures { logprobs, entropies, values, .. })| {
                let histograms = histograms(index);
                loss(index, Measured { logprobs, entropies, values, histograms })
            })
            .collect();
        let mut draws = vec![DrawGradient::default(); self.draws.len()];
        let mut values = Vec::new();
        let outputs = self.head.as_ref().map_or(1, HeadReading::num_outputs);
        if let Some(head) = &self.head
            && slopes.iter().any(|slopes| !slopes.values.is_empty())
        {
            values.resize(head.rows.len() * outputs, 0.0);
        }
        for (sample, slopes) in samples.iter().zip(&slopes) {
            let found = slopes.values.len();
            let is_whole = found == 0 || found == sample.len() * outputs;
            assert!(is_whole, "an objective gives slopes by all numbers of a head: {found}");
        }
        for (sample, t, draw) in &self.places {
            let slopes = &slopes[*sample];
            draws[*draw].logprob += slopes.logprobs[*t];
            if let Some(slope) = slopes.entropies.get(*t) {
                draws[*draw].entropy += slope;
            }
            let own = slopes.values.get(t * outputs..(t + 1) * outputs);
            if let (Some(head), Some(own)) = (&self.head, own) {
                let sums = &mut values[head.of_draw[*draw] * outputs..][..outputs];
                sums.iter_mut().zip(own).for_each(|(sum, slope)| *sum += slope);
            }
        }
        Derivatives { draws, values }
    }

    /// Adds the gradient of the head, and returns that by all hidden states, `[tokens, hidden]`, where the head's goes on
    /// into the decoder.
    pub(crate) fn head_backward(
        &self,
        derivatives: &Derivatives,
        head: Option<HeadGradient<'_>>,
    ) -> Option<Vec<f32>> {
        let (HeadGradient { head, gradient }, read) = head.zip(self.head.as_ref())?;
        if derivatives.values.is_empty() {
            return None;
        }
        let dstates_rd = head.backward(&read.states_rd, &derivatives.values, gradient)?;
        let width = read.states_rd.len() / read.rows.len().max(1);
        let mut dstates_td = vec![0.0; read.num_numbers];
        for (row, dstate) in read.rows.iter().zip(dstates_rd.chunks_exact(width.max(1))) {
            dstates_td[row * width..][..width].copy_from_slice(dstate);
        }
        Some(dstates_td)
    }

    /// The loss as the vocabulary's head takes it.
    pub(crate) fn loss<'a>(
        &'a self,
        temperature: f32,
        derivatives: &'a Derivatives,
        dstates_td: Option<&'a [f32]>,
    ) -> DrawLoss<'a> {
        let (draws, told, derivatives) = (&self.draws, &self.judged, &derivatives.draws);
        DrawLoss { draws, temperature, told, derivatives, dstates_td }
    }
}
