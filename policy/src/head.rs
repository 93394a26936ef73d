//! Log-probabilities and entropies of draws from hidden states, and their gradient.
//!
//! Logits over the vocabulary are never in memory as a whole: the vocabulary is worked off in tiles
//! with fixed borders, between which a running maximum and sum are kept, so that memory does not
//! grow with it and a draw's result does not depend on the other draws, to the bit.

use rayon::prelude::*;

use crate::Weights;
use crate::cuda::DeviceError;
use crate::decoder::{HiddenStates, Segment, Tape, try_forward};
use crate::sampling::most_probable;
use crate::weight_gradient::WeightGradient;
use spar_ops::Matrix;
use spar_ops::elementwise::{absorb_scores, add_scaled, dot, exp_scores_with, scale, scale_all};
use spar_ops::matmul::{Output, Weight, linear_backward, linear_by, linear_gradient};
use spar_ops::parallel;

/// Hidden states whose logits are in memory at a time.
const ROWS: usize = 256;

/// Hidden states whose logits over the whole vocabulary are in memory at a time.
pub(crate) const WHOLE_ROWS: usize = 16;

/// Tokens of the vocabulary whose logits are in memory at a time; fixed, because it takes part in
/// the rounding.
const TILE: usize = 4096;

/// A token to be judged: what was drawn behind a hidden state, out of what.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Row of the hidden state.
    pub row: usize,
    /// The token that was drawn.
    pub token: u32,
    /// What could be drawn, ascending; empty means the whole vocabulary.
    pub allowed: &'a [u32],
}

/// Logits of the allowed tokens behind a hidden state, in the order of `allowed`.
///
/// # Panics
///
/// When the decoder is on a device, which fails; [`try_logits`] tells.
pub fn logits(weights: &Weights, hidden: &[f32], allowed: &[u32], out: &mut Vec<f32>) {
    try_logits(weights, hidden, allowed, out).expect("the device works");
}

/// As [`logits`].
///
/// # Errors
///
/// When the decoder is on a device, which fails.
pub fn try_logits(
    weights: &Weights,
    hidden: &[f32],
    allowed: &[u32],
    out: &mut Vec<f32>,
) -> Result<(), DeviceError> {
    if allowed.is_empty() {
        weights.backend.logits(weights, hidden, out)
    } else {
        weights.backend.logits_of(weights, hidden, allowed, out)
    }
}

/// As [`try_logits`] of some tokens on the CPU.
pub(crate) fn logits_of_here(
    weights: &Weights,
    hidden: &[f32],
    allowed: &[u32],
    out: &mut Vec<f32>,
) {
    let (head, vocabulary) = (weight(weights), weights.config.vocab_size);
    let mut buffer = Vec::new();
    out.clear();
    out.extend(allowed.iter().map(|token| {
        let row = head.row(*token as usize, vocabulary, &mut buffer);
        dot(hidden, row)
    }));
}

/// Logits of the whole vocabulary behind several hidden states, row by row.
///
/// # Panics
///
/// When the decoder is on a device, which fails; [`try_batch_logits`] tells.
pub fn batch_logits(weights: &Weights, hidden_rd: &[f32], out_rv: &mut Vec<f32>) {
    try_batch_logits(weights, hidden_rd, out_rv).expect("the device works");
}

/// As [`batch_logits`].
///
/// # Errors
///
/// When the decoder is on a device, which fails.
pub fn try_batch_logits(
    weights: &Weights,
    hidden_rd: &[f32],
    out_rv: &mut Vec<f32>,
) -> Result<(), DeviceError> {
    weights.backend.logits(weights, hidden_rd, out_rv)
}

/// As [`batch_logits`] on the CPU.
pub(crate) fn batch_logits_here(weights: &Weights, hidden_rd: &[f32], out_rv: &mut Vec<f32>) {
    let (d, v) = (weights.config.hidden_size, weights.config.vocab_size);
    let rows = hidden_rd.len() / d;
    out_rv.clear();
    out_rv.resize(rows * v, 0.0);
    linear_by(hidden_rd, weight(weights), out_rv, rows, v, Output::Set);
}

/// Reads the segments' tokens and returns the most probable token behind each, with its
/// log-probability. On a device this is one step of its graphs.
///
/// # Errors
///
/// When the decoder is on a device, which fails; the caches are not to be used any more.
///
/// # Panics
///
/// As [`crate::decoder::forward`], and when a segment has no tokens.
pub fn try_best(
    weights: &Weights,
    segments: &mut [Segment<'_>],
) -> Result<Vec<(u32, f32)>, DeviceError> {
    weights.backend.best(weights, segments)
}

/// As [`try_best`] on the CPU.
pub(crate) fn best_here(
    weights: &Weights,
    segments: &mut [Segment<'_>],
) -> Result<Vec<(u32, f32)>, DeviceError> {
    let d = weights.config.hidden_size;
    let lens: Vec<usize> = segments.iter().map(|segment| segment.tokens.len()).collect();
    let states = try_forward(weights, segments, None)?;
    let (mut end, mut logits, mut best) = (0, Vec::new(), Vec::new());
    for len in lens {
        assert!(len > 0, "every segment has tokens");
        end += len;
        try_batch_logits(weights, &states[(end - 1) * d..end * d], &mut logits)?;
        log_softmax(&mut logits, 1.0);
        let place = most_probable(&logits);
        best.push((place as u32, logits[place]));
    }
    Ok(best)
}

/// Turns logits into log-probabilities at `temperature`, in place.
pub fn log_softmax(logits: &mut [f32], temperature: f32) {
    scale(logits, 1.0 / temperature);
    let mut softmax = RunningSoftmax::default();
    softmax.absorb_all(logits);
    let log_sum = softmax.log_sum();
    for logit in logits {
        *logit -= log_sum;
    }
}

/// What is told of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DrawStatistics {
    /// Log-probability of the token that was drawn.
    pub logprob: f32,
    /// Entropy of what it was drawn from, in nats.
    pub entropy: f32,
    /// Logarithm of the sum of the exponentials of all logits.
    pub(crate) log_sum: f32,
}

/// The derivative of a loss by what is told of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DrawGradient {
    /// By the log-probability.
    pub logprob: f32,
    /// By the entropy.
    pub entropy: f32,
}

/// Draws that were judged, and how a loss changes with what was told of them.
#[derive(Debug, Clone, Copy)]
pub struct DrawLoss<'a> {
    /// The draws.
    pub draws: &'a [Draw<'a>],
    /// The temperature at which they were judged.
    pub temperature: f32,
    /// What [`judge`] told of each.
    pub told: &'a [DrawStatistics],
    /// The derivative of the loss by it.
    pub derivatives: &'a [DrawGradient],
    /// The derivative of the loss by the decoder's final states, `[tokens, hidden]`, on ways that do not lead through the
    /// draws: that of [other heads](crate::state_heads). Absent where there is none.
    pub dstates_td: Option<&'a [f32]>,
}

/// The log-probability of every draw; `hidden_td` are the decoder's final states.
///
/// A draw's result does not depend on the other draws, to the bit.
pub fn log_probabilities(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    temperature: f32,
) -> Vec<f32> {
    let judged = judge(weights, hidden_td, draws, temperature);
    judged.into_iter().map(|judged| judged.logprob).collect()
}

/// Log-probability and entropy of every draw; `hidden_td` are the decoder's final states.
///
/// A draw's result does not depend on the other draws, to the bit.
///
/// # Panics
///
/// When the decoder is on a device, which fails; [`try_judge`] tells.
pub fn judge(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    temperature: f32,
) -> Vec<DrawStatistics> {
    weights.backend.judge(weights, hidden_td, draws, temperature).expect("the device works")
}

/// As [`judge`] for states wherever they are.
///
/// # Errors
///
/// When the decoder is on a device, which fails.
pub fn try_judge(
    weights: &Weights,
    hidden: &HiddenStates,
    draws: &[Draw<'_>],
    temperature: f32,
) -> Result<Vec<DrawStatistics>, DeviceError> {
    weights.backend.judge_states(weights, hidden, draws, temperature)
}

/// Sum of the squared probabilities of what every draw was from; the logits are computed once more.
///
/// A draw's result does not depend on the other draws, to the bit.
///
/// # Errors
///
/// When the decoder is on a device, which fails.
pub fn try_sum_squares(
    weights: &Weights,
    hidden: &HiddenStates,
    draws: &[Draw<'_>],
    temperature: f32,
) -> Result<Vec<f32>, DeviceError> {
    let hidden_td = hidden.read()?;
    let (d, v) = (weights.config.hidden_size, weights.config.vocab_size);
    let state = |row: usize| &hidden_td[row * d..][..d];
    let mut found = vec![0.0; draws.len()];
    let mut logits = Vec::new();

    // 1. Draws out of a few tokens.
    for (found, draw) in found.iter_mut().zip(draws).filter(|(_, draw)| !draw.allowed.is_empty()) {
        try_logits(weights, state(draw.row), draw.allowed, &mut logits)?;
        *found = sum_squares(&mut logits, temperature);
    }

    // 2. Draws out of the whole vocabulary, the logits of some states at a time.
    let rows = by_row(draws);
    let rows: Vec<&[usize]> = rows.chunk_by(|a, b| draws[*a].row == draws[*b].row).collect();
    let mut states = Vec::new();
    for chunk in rows.chunks(WHOLE_ROWS) {
        states.clear();
        chunk.iter().for_each(|of_row| states.extend_from_slice(state(draws[of_row[0]].row)));
        try_batch_logits(weights, &states, &mut logits)?;
        for (of_row, logits) in chunk.iter().zip(logits.chunks_exact_mut(v)) {
            let sum = sum_squares(logits, temperature);
            of_row.iter().for_each(|index| found[*index] = sum);
        }
    }
    Ok(found)
}

/// Sum of the squared probabilities at `temperature`; the logits are used up.
pub(crate) fn sum_squares(logits: &mut [f32], temperature: f32) -> f32 {
    log_softmax(logits, temperature);
    exp_scores_with(logits, 0.0, 1.0);
    dot(logits, logits)
}

/// Adds to `gradient` what the parameters have to do with a loss: [`judge_backward`] and
/// [`crate::decoder::backward`] in one. States that a device has stay there.
///
/// # Errors
///
/// When the decoder is on a device, which fails.
pub fn learn(
    weights: &Weights,
    tape: &Tape,
    hidden: &HiddenStates,
    loss: &DrawLoss<'_>,
    gradient: &mut WeightGradient<'_>,
) -> Result<(), DeviceError> {
    weights.backend.learn(weights, tape, hidden, loss, gradient)
}

/// As [`judge`] on the CPU.
pub(crate) fn judge_here(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    temperature: f32,
) -> Vec<DrawStatistics> {
    let inverse = 1.0 / temperature;
    let mut judged = vec![DrawStatistics::default(); draws.len()];

    // 1. Draws out of a few tokens.
    let mut some = Vec::new();
    for (judged, draw) in judged.iter_mut().zip(draws).filter(|(_, draw)| !draw.allowed.is_empty())
    {
        let place = restricted_logits(weights, hidden_td, draw, inverse, &mut some);
        let mut softmax = RunningSoftmax::default();
        softmax.absorb_all(&some);
        *judged = softmax.judge(some[place]);
    }

    // 2. Draws out of the whole vocabulary, first their logits.
    let mut softmaxes = Vec::new();
    for_each_tile(weights, hidden_td, draws, inverse, |tile, logits, chunk| {
        if tile.first == 0 {
            softmaxes.clear();
            softmaxes.resize(chunk.len(), RunningSoftmax::default());
        }
        parallel::run(
            logits.par_chunks_exact(tile.width).zip(softmaxes.par_iter_mut()),
            |(logits, softmax)| softmax.absorb(logits),
        );
        let rows = logits.chunks_exact(tile.width);
        for ((logits, of_row), softmax) in rows.zip(chunk).zip(&softmaxes) {
            for index in of_row.draws {
                if let Some(place) = tile.place(draws[*index].token) {
                    judged[*index].logprob = logits[place];
                }
            }
            if tile.is_last {
                for index in of_row.draws {
                    judged[*index] = softmax.judge(judged[*index].logprob);
                }
            }
        }
    });
    judged
}

/// As [`judge_backward`] for log-probabilities alone, the draws being judged once more.
pub fn log_probabilities_backward(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    temperature: f32,
    dlogprobs: &[f32],
    dhidden_td: &mut [f32],
    gradient: &mut [f32],
) {
    let told = judge(weights, hidden_td, draws, temperature);
    let by_draw = |logprob: &f32| DrawGradient { logprob: *logprob, entropy: 0.0 };
    let derivatives: Vec<DrawGradient> = dlogprobs.iter().map(by_draw).collect();
    let loss =
        DrawLoss { draws, temperature, told: &told, derivatives: &derivatives, dstates_td: None };
    judge_backward(weights, hidden_td, &loss, dhidden_td, &mut WeightGradient::Full(gradient));
}

/// Adds to `dhidden_td` and to the head's part of `gradient`, unless the head is frozen, the gradient
/// of a loss; the logits are computed once more.
///
/// `d logprob / d logit_v = ([v = drawn] - p_v) / temperature` and
/// `d entropy / d logit_v = -p_v (ln p_v + entropy) / temperature`.
///
/// # Panics
///
/// When the decoder is on a device; [`learn`] is for both.
pub fn judge_backward(
    weights: &Weights,
    hidden_td: &[f32],
    loss: &DrawLoss<'_>,
    dhidden_td: &mut [f32],
    gradient: &mut WeightGradient<'_>,
) {
    assert!(weights.device().is_none(), "the decoder is on the CPU");
    let head = weights.layout.head.clone();
    let gradient = gradient.full().map(|gradient| &mut gradient[head]);
    parallel::in_pool(|| judge_backward_here(weights, hidden_td, loss, dhidden_td, gradient));
}

fn judge_backward_here(
    weights: &Weights,
    hidden_td: &[f32],
    loss: &DrawLoss<'_>,
    dhidden_td: &mut [f32],
    mut gradient: Option<&mut [f32]>,
) {
    let DrawLoss { draws, temperature, told, derivatives, .. } = *loss;
    let d = weights.config.hidden_size;
    let inverse = 1.0 / temperature;
    let matrix = matrix(weights);

    // 1. Draws out of a few tokens.
    let (mut some, mut buffer) = (Vec::new(), Vec::new());
    for (index, draw) in draws.iter().enumerate().filter(|(_, draw)| !draw.allowed.is_empty()) {
        if derivatives[index] == DrawGradient::default() {
            continue;
        }
        let place = restricted_logits(weights, hidden_td, draw, inverse, &mut some);
        logit_gradients(&mut some, &told[index], derivatives[index], inverse);
        some[place] += derivatives[index].logprob * inverse;
        let hidden = &hidden_td[draw.row * d..][..d];
        let dhidden = &mut dhidden_td[draw.row * d..][..d];
        for (token, dlogit) in draw.allowed.iter().zip(&some) {
            let at = *token as usize * d;
            add_scaled(dhidden, *dlogit, matrix.part(at..at + d).widened(&mut buffer));
            if let Some(gradient) = &mut gradient {
                add_scaled(&mut gradient[at..at + d], *dlogit, hidden);
            }
        }
    }

    // 2. Draws out of the whole vocabulary: one product per tile for all states together.
    let mut dinputs = Vec::new();
    for_each_tile(weights, hidden_td, draws, inverse, |tile, logits, chunk| {
        if tile.first == 0 {
            dinputs.clear();
            dinputs.resize(chunk.len() * d, 0.0);
        }
        let rows = logits.par_chunks_exact_mut(tile.width).zip(chunk.par_iter());
        parallel::run(rows, |(logits, of_row)| {
            // All draws behind a state are from the same distribution.
            let mut sum = DrawGradient::default();
            for index in of_row.draws {
                sum.logprob += derivatives[*index].logprob;
                sum.entropy += derivatives[*index].entropy;
            }
            logit_gradients(logits, &told[of_row.draws[0]], sum, inverse);
            for index in of_row.draws {
                if let Some(place) = tile.place(draws[*index].token) {
                    logits[place] += derivatives[*index].logprob * inverse;
                }
            }
        });
        let part = tile.first * d..(tile.first + tile.width) * d;
        let (rows, width) = (chunk.len(), tile.width);
        linear_backward(logits, matrix.part(part.clone()), &mut dinputs, rows, width, Output::Add);
        if let Some(gradient) = &mut gradient {
            linear_gradient(logits, tile.inputs, &mut gradient[part], rows, width);
        }
        if tile.is_last {
            for (of_row, dinput) in chunk.iter().zip(dinputs.chunks_exact(d)) {
                add_scaled(&mut dhidden_td[of_row.row * d..][..d], 1.0, dinput);
            }
        }
    });
}

/// A softmax that takes up its logits piece by piece.
#[derive(Debug, Clone)]
struct RunningSoftmax {
    maximum: f32,
    sum: f32,
    /// Sum of the exponentials, each times its logit.
    weighted: f32,
    /// Memory for exponentials.
    exponentials: Vec<f32>,
}

impl Default for RunningSoftmax {
    fn default() -> Self {
        Self { maximum: f32::NEG_INFINITY, sum: 0.0, weighted: 0.0, exponentials: Vec::new() }
    }
}

impl RunningSoftmax {
    /// Takes up a tile.
    fn absorb(&mut self, logits: &[f32]) {
        self.exponentials.clear();
        self.exponentials.extend_from_slice(logits);
        let factor = absorb_scores(&mut self.exponentials, &mut self.maximum, &mut self.sum);
        self.weighted = self.weighted.mul_add(factor, dot(&self.exponentials, logits));
    }

    /// Takes up logits tile by tile.
    fn absorb_all(&mut self, logits: &[f32]) {
        logits.chunks(TILE).for_each(|tile| self.absorb(tile));
    }

    fn log_sum(&self) -> f32 {
        self.maximum + self.sum.ln()
    }

    /// What is told of a draw that had the given logit.
    fn judge(&self, logit: f32) -> DrawStatistics {
        let log_sum = self.log_sum();
        let entropy = log_sum - self.weighted / self.sum;
        DrawStatistics { logprob: logit - log_sum, entropy, log_sum }
    }
}

/// Some states and a part of the vocabulary.
struct Tile<'a> {
    /// First token.
    first: usize,
    /// Tokens.
    width: usize,
    is_last: bool,
    /// The states, `[row, hidden]`.
    inputs: &'a [f32],
}

impl Tile<'_> {
    fn place(&self, token: u32) -> Option<usize> {
        (token as usize).checked_sub(self.first).filter(|place| *place < self.width)
    }
}

/// The draws out of the whole vocabulary behind a state.
struct RowDraws<'a> {
    row: usize,
    draws: &'a [usize],
}

/// The draws out of the whole vocabulary, those behind a state side by side.
pub(crate) fn by_row(draws: &[Draw<'_>]) -> Vec<usize> {
    let mut free: Vec<usize> =
        (0..draws.len()).filter(|index| draws[*index].allowed.is_empty()).collect();
    free.sort_by_key(|index| draws[*index].row);
    free
}

/// Calls `visit` with every tile of the vocabulary and its logits `[row, width]`, divided by the
/// temperature, for every chunk of states behind which something was drawn out of all of it.
fn for_each_tile(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    inverse: f32,
    mut visit: impl FnMut(Tile<'_>, &mut [f32], &[RowDraws<'_>]),
) {
    let (d, v) = (weights.config.hidden_size, weights.config.vocab_size);
    let free = by_row(draws);
    let rows: Vec<RowDraws<'_>> = free
        .chunk_by(|a, b| draws[*a].row == draws[*b].row)
        .map(|of_row| RowDraws { row: draws[of_row[0]].row, draws: of_row })
        .collect();
    let (mut inputs, mut logits) = (Vec::new(), Vec::new());
    for chunk in rows.chunks(ROWS) {
        inputs.clear();
        for of_row in chunk {
            inputs.extend_from_slice(&hidden_td[of_row.row * d..][..d]);
        }
        for first in (0..v).step_by(TILE) {
            let width = TILE.min(v - first);
            logits.resize(chunk.len() * width, 0.0);
            let Weight { numbers, order } = weight(weights);
            let part = Weight { numbers: numbers.part(first * d..(first + width) * d), order };
            linear_by(&inputs, part, &mut logits, chunk.len(), width, Output::Set);
            scale_all(&mut logits, inverse);
            let is_last = first + width == v;
            let tile = Tile { first, width, is_last, inputs: &inputs };
            visit(tile, &mut logits, chunk);
        }
    }
}

/// The output matrix, `[vocab, hidden]`, in whatever order it lies.
fn weight(weights: &Weights) -> Weight<'_> {
    weights.weight(&weights.layout.head)
}

/// The output matrix, `[vocab, hidden]`.
pub(crate) fn matrix(weights: &Weights) -> Matrix<'_> {
    weights.matrix(&weights.layout.head)
}

/// Logits of what could be drawn, divided by the temperature, and the place of what was.
fn restricted_logits(
    weights: &Weights,
    hidden_td: &[f32],
    draw: &Draw<'_>,
    inverse: f32,
    out: &mut Vec<f32>,
) -> usize {
    let d = weights.config.hidden_size;
    logits(weights, &hidden_td[draw.row * d..][..d], draw.allowed, out);
    scale(out, inverse);
    draw.allowed.binary_search(&draw.token).expect("what was drawn is among what was allowed")
}

/// Turns logits into derivatives by the undivided logits, except for what the drawn token adds.
fn logit_gradients(
    logits: &mut [f32],
    judged: &DrawStatistics,
    dstatistics: DrawGradient,
    inverse: f32,
) {
    if dstatistics.entropy == 0.0 {
        exp_scores_with(logits, judged.log_sum, -dstatistics.logprob * inverse);
        return;
    }
    let logs: Vec<f32> = logits.iter().map(|logit| logit - judged.log_sum).collect();
    exp_scores_with(logits, judged.log_sum, -inverse);
    for (logit, log) in logits.iter_mut().zip(logs) {
        *logit *= dstatistics.logprob + dstatistics.entropy * (log + judged.entropy);
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::{ModelConfig, initial_parameters};
    use spar_ops::gradient_check::{assert_gradient, numbers};

    /// A head over more than two tiles of the vocabulary, the last one of odd width.
    fn weights() -> Weights {
        let config = ModelConfig {
            vocab_size: 2 * TILE + 37,
            hidden_size: 8,
            intermediate_size: 8,
            num_hidden_layers: 1,
            head_dim: 8,
            num_attention_heads: 1,
            num_key_value_heads: 1,
            tie_word_embeddings: false,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(3));
        parameters.data.iter_mut().for_each(|value| *value *= 60.0);
        Weights::new(&config, parameters)
    }

    const SOME: &[u32] = &[3, 9, 5000, 8200];

    fn draws() -> Vec<Draw<'static>> {
        vec![
            Draw { row: 2, token: 8200, allowed: &[] },
            Draw { row: 0, token: 9, allowed: SOME },
            Draw { row: 2, token: 4, allowed: &[] },
            Draw { row: 1, token: 4096, allowed: &[] },
            Draw { row: 2, token: 5000, allowed: SOME },
        ]
    }

    #[test]
    fn draws_are_judged_by_the_definition_and_apart_to_the_bit() {
        let weights = weights();
        let hidden = numbers(3 * 8, 0.3);
        let judged = judge(&weights, &hidden, &draws(), 0.7);
        let mut all = Vec::new();
        for (index, (draw, judged)) in draws().iter().zip(&judged).enumerate() {
            logits(&weights, &hidden[draw.row * 8..][..8], draw.allowed, &mut all);
            let exact: Vec<f64> = all.iter().map(|logit| f64::from(*logit) / 0.7).collect();
            let sum: f64 = exact.iter().map(|logit| logit.exp()).sum();
            let place = draw.allowed.binary_search(&draw.token).unwrap_or(draw.token as usize);
            assert!((f64::from(judged.logprob) - (exact[place] - sum.ln())).abs() < 1e-5);
            let entropy: f64 =
                exact.iter().map(|logit| logit.exp() / sum * (sum.ln() - logit)).sum();
            assert!((f64::from(judged.entropy) - entropy).abs() < 1e-4);
            let squares: f64 = exact.iter().map(|logit| (logit.exp() / sum).powi(2)).sum();
            let states = HiddenStates::from(hidden.clone());
            let found = try_sum_squares(&weights, &states, &draws(), 0.7).unwrap();
            assert!((f64::from(found[index]) - squares).abs() < 1e-5 * squares);
            let alone = try_sum_squares(&weights, &states, &[*draw], 0.7).unwrap();
            assert_eq!(alone, [found[index]]);
            // As whoever sampled it saw it.
            log_softmax(&mut all, 0.7);
            assert_eq!(all[place], judged.logprob);
            assert_eq!(judge(&weights, &hidden, &[*draw], 0.7)[0], *judged);
        }
    }

    #[test]
    fn gradient_of_log_probabilities_and_entropies() {
        let weights = weights();
        let (hidden, draws) = (numbers(3 * 8, 0.3), draws());
        let slopes: Vec<DrawGradient> = (0..draws.len())
            .map(|i| DrawGradient {
                logprob: (i as f32).cos(),
                entropy: if i == 3 { 0.0 } else { (i as f32 * 0.7).sin() },
            })
            .collect();
        let loss = |weights: &Weights, hidden: &[f32]| -> f64 {
            let judged = judge(weights, hidden, &draws, 0.7);
            let sum = judged.iter().zip(&slopes).map(|(judged, slope)| {
                f64::from(judged.logprob) * f64::from(slope.logprob)
                    + f64::from(judged.entropy) * f64::from(slope.entropy)
            });
            sum.sum()
        };
        let judged = judge(&weights, &hidden, &draws, 0.7);
        let mut gradient = vec![0.0; weights.parameters.data.len()];
        let mut dhidden = vec![0.0; hidden.len()];
        let loss_of = DrawLoss {
            draws: &draws,
            temperature: 0.7,
            told: &judged,
            derivatives: &slopes,
            dstates_td: None,
        };
        let into = &mut WeightGradient::Full(&mut gradient);
        judge_backward(&weights, &hidden, &loss_of, &mut dhidden, into);
        assert_gradient(&hidden, &dhidden, |hidden| loss(&weights, hidden));
        // Some rows of the matrix, drawn and not, in all tiles.
        let head = weights.layout.head.clone();
        let rows = [3, 4, 9, 4096, 5000, 8200, 8228].map(|token| head.start + token * 8);
        let point: Vec<f32> =
            rows.iter().flat_map(|row| weights.parameters.data[*row..row + 8].to_vec()).collect();
        let found: Vec<f32> =
            rows.iter().flat_map(|row| gradient[*row..row + 8].to_vec()).collect();
        assert_gradient(&point, &found, |point| {
            let mut parameters = weights.parameters.clone();
            for (row, values) in rows.iter().zip(point.chunks_exact(8)) {
                parameters.data[*row..row + 8].copy_from_slice(values);
            }
            loss(&weights.with_parameters(parameters), &hidden)
        });
    }
}
