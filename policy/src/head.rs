//! Log-probabilities of tokens from hidden states, and their gradient.

use crate::Weights;
use crate::ops::elementwise::{add_scaled, dot, exp_scores};
use crate::ops::matmul::{Output, Panels, multiply, multiply_left_transposed};

/// Rows whose scores over the whole vocabulary are in memory at a time.
const CHUNK: usize = 64;

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

/// Scores of the allowed tokens behind a hidden state, in the order of `allowed`.
pub fn scores(weights: &Weights, hidden: &[f32], allowed: &[u32], out: &mut Vec<f32>) {
    let d = weights.config.hidden_size;
    out.clear();
    if allowed.is_empty() {
        out.resize(weights.config.vocab_size, 0.0);
        multiply(hidden, &weights.head.forward, out, 1, Output::Set);
    } else {
        let head = &weights.parameters.data[weights.layout.head.clone()];
        out.extend(allowed.iter().map(|v| dot(hidden, &head[*v as usize * d..][..d])));
    }
}

/// Scores of the whole vocabulary behind several hidden states, row by row.
pub fn batch_scores(weights: &Weights, hidden_rd: &[f32], out_rv: &mut Vec<f32>) {
    let rows = hidden_rd.len() / weights.config.hidden_size;
    out_rv.clear();
    out_rv.resize(rows * weights.config.vocab_size, 0.0);
    if rows > 0 {
        multiply(hidden_rd, &weights.head.forward, out_rv, rows, Output::Set);
    }
}

/// Turns scores into log-probabilities at `temperature`, in place.
pub fn log_softmax(scores: &mut [f32], temperature: f32) {
    let inverse = 1.0 / temperature;
    for score in scores.iter_mut() {
        *score *= inverse;
    }
    let mut probabilities = scores.to_vec();
    let (maximum, sum) = exp_scores(&mut probabilities);
    let shift = maximum + sum.ln();
    for score in scores.iter_mut() {
        *score -= shift;
    }
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
    let mut out = vec![0.0; draws.len()];
    for_each_draw(weights, hidden_td, draws, &mut |index, place, scores| {
        log_softmax(scores, temperature);
        out[index] = scores[place];
    });
    out
}

/// Adds to `dhidden_td` and to the head's part of `gradient` the gradient of
/// `sum(dlogprobs[i] * logprob[i])`; the scores are computed once more.
///
/// `d logprob / d score_v = ([v = drawn] - p_v) / temperature`.
pub fn log_probabilities_backward(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    temperature: f32,
    dlogprobs: &[f32],
    dhidden_td: &mut [f32],
    gradient: &mut [f32],
) {
    let (d, v) = (weights.config.hidden_size, weights.config.vocab_size);
    let head = weights.layout.head.clone();
    let matrix = &weights.parameters.data[head.clone()];
    let gradient = &mut gradient[head];
    // Gradients of scores over the whole vocabulary are collected for one product per chunk.
    let (mut rows, mut dscores, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
    let mut flush = |rows: &mut Vec<usize>,
                     dscores: &mut Vec<f32>,
                     dhidden_td: &mut [f32],
                     gradient: &mut [f32]| {
        inputs.clear();
        for row in rows.iter() {
            inputs.extend_from_slice(&hidden_td[row * d..(row + 1) * d]);
        }
        let panels = Panels::from_rows(&inputs, rows.len(), d);
        multiply_left_transposed(dscores, &panels, gradient, v, Output::Add);
        let mut dinputs = vec![0.0; rows.len() * d];
        multiply(dscores, &weights.head.backward, &mut dinputs, rows.len(), Output::Set);
        for (row, dinput) in rows.iter().zip(dinputs.chunks_exact(d)) {
            add_scaled(&mut dhidden_td[row * d..(row + 1) * d], 1.0, dinput);
        }
        rows.clear();
        dscores.clear();
    };
    for_each_draw(weights, hidden_td, draws, &mut |index, place, scores| {
        let dlogprob = dlogprobs[index] / temperature;
        if dlogprob == 0.0 {
            return;
        }
        let inverse = 1.0 / temperature;
        for score in scores.iter_mut() {
            *score *= inverse;
        }
        let (_, sum) = exp_scores(scores);
        let factor = -dlogprob / sum;
        for score in scores.iter_mut() {
            *score *= factor;
        }
        scores[place] += dlogprob;
        let Draw { row, allowed, .. } = draws[index];
        if allowed.is_empty() {
            rows.push(row);
            dscores.extend_from_slice(scores);
            if rows.len() == CHUNK {
                flush(&mut rows, &mut dscores, dhidden_td, gradient);
            }
        } else {
            let hidden = &hidden_td[row * d..(row + 1) * d];
            let dhidden = &mut dhidden_td[row * d..(row + 1) * d];
            for (token, dscore) in allowed.iter().zip(scores.iter()) {
                let at = *token as usize * d;
                add_scaled(dhidden, *dscore, &matrix[at..at + d]);
                add_scaled(&mut gradient[at..at + d], *dscore, hidden);
            }
        }
    });
    if !rows.is_empty() {
        flush(&mut rows, &mut dscores, dhidden_td, gradient);
    }
}

/// Calls `visit(index, place of the drawn token, scores)` for every draw.
fn for_each_draw(
    weights: &Weights,
    hidden_td: &[f32],
    draws: &[Draw<'_>],
    visit: &mut dyn FnMut(usize, usize, &mut [f32]),
) {
    let (d, v) = (weights.config.hidden_size, weights.config.vocab_size);
    let mut restricted = Vec::new();
    for (index, draw) in draws.iter().enumerate().filter(|(_, draw)| !draw.allowed.is_empty()) {
        let place = draw.allowed.binary_search(&draw.token).expect("rows are validated");
        scores(weights, &hidden_td[draw.row * d..][..d], draw.allowed, &mut restricted);
        visit(index, place, &mut restricted);
    }
    let free: Vec<usize> =
        (0..draws.len()).filter(|index| draws[*index].allowed.is_empty()).collect();
    let mut inputs = Vec::new();
    for chunk in free.chunks(CHUNK) {
        inputs.clear();
        for index in chunk {
            inputs.extend_from_slice(&hidden_td[draws[*index].row * d..][..d]);
        }
        let mut all = vec![0.0; chunk.len() * v];
        multiply(&inputs, &weights.head.forward, &mut all, chunk.len(), Output::Set);
        for (index, scores) in chunk.iter().zip(all.chunks_exact_mut(v)) {
            visit(*index, draws[*index].token as usize, scores);
        }
    }
}
