//! Log-probabilities of draws that were made by a rule, and their gradient.

use std::borrow::Cow;

use super::LoadedDrawRule;
use crate::Weights;
use crate::cuda::DeviceError;
use crate::decoder::{HiddenStates, Tape};
use crate::head::{
    Draw, DrawGradient, DrawLoss, DrawStatistics, WHOLE_ROWS, by_row, log_softmax, matrix,
    sum_squares, try_batch_logits, try_logits,
};
use crate::sampling::entropy;
use crate::weight_gradient::WeightGradient;
use spar_ops::elementwise::add_scaled;
use spar_ops::matmul::{Output, linear_backward, linear_gradient};

/// The logits of all models of one draw's tokens, or of all draws' behind a state.
struct Logits<'a> {
    main: &'a [f32],
    others: Vec<&'a [f32]>,
}

impl LoadedDrawRule {
    /// Log-probability and entropy of every draw, as [`try_judge`](crate::head::try_judge) of a main model alone; `others` are
    /// the states that the rule's models [read](Self::read) of the same tokens.
    ///
    /// What it tells equals what was told when the token was drawn, to the bit, and does not depend on the other draws.
    ///
    /// # Errors
    ///
    /// When a decoder is on a device, which fails.
    pub fn judge(
        &self,
        weights: &Weights,
        hidden: &HiddenStates,
        others: &[HiddenStates],
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        let mut judged = vec![DrawStatistics::default(); draws.len()];
        self.for_each(weights, (hidden, others), draws, |_, rows| {
            for (of_row, logits) in rows {
                let mut logprobs = self.combined(logits);
                log_softmax(&mut logprobs, temperature);
                let entropy = entropy(&logprobs);
                for index in *of_row {
                    let logprob = logprobs[place(&draws[*index])];
                    judged[*index] = DrawStatistics { logprob, entropy, log_sum: 0.0 };
                }
            }
        })?;
        Ok(judged)
    }

    /// Sum of the squared probabilities of what every draw was from.
    ///
    /// # Errors
    ///
    /// As [`judge`](Self::judge).
    pub fn sum_squares(
        &self,
        weights: &Weights,
        hidden: &HiddenStates,
        others: &[HiddenStates],
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<f32>, DeviceError> {
        let mut found = vec![0.0; draws.len()];
        self.for_each(weights, (hidden, others), draws, |_, rows| {
            for (of_row, logits) in rows {
                let sum = sum_squares(&mut self.combined(logits), temperature);
                of_row.iter().for_each(|index| found[*index] = sum);
            }
        })?;
        Ok(found)
    }

    /// Adds to `gradient` what the main model's parameters have to do with a loss, through its logits within the rule;
    /// the other models' are constants. Only on the CPU.
    ///
    /// With `g` the gradient by the logits that were drawn from, as [`judge_backward`](crate::head::judge_backward) has it, that
    /// by the main model's logits is the rule's `J^T g`.
    ///
    /// # Errors
    ///
    /// When a decoder of the others is on a device, which fails.
    ///
    /// # Panics
    ///
    /// When the main decoder is on a device.
    pub fn learn(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        others: &[HiddenStates],
        loss: &DrawLoss<'_>,
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        assert!(weights.device().is_none(), "the decoder is on the CPU");
        let DrawLoss { draws, temperature, derivatives, dstates_td, .. } = *loss;
        let d = weights.config().hidden_size;
        let hidden_td = hidden.read()?;
        let mut dhidden = match dstates_td {
            Some(dstates_td) => dstates_td.to_vec(),
            None => vec![0.0; hidden_td.len()],
        };
        let head = weights.layout.head.clone();
        let mut of_head = gradient.full().map(|gradient| &mut gradient[head]);
        let (matrix, mut buffer) = (matrix(weights), Vec::new());
        self.for_each(weights, (hidden, others), draws, |allowed, rows| {
            // 1. The gradient by the main model's logits, `[rows, tokens]`.
            let mut dlogits = Vec::new();
            for (of_row, logits) in rows {
                let mut slopes = self.combined(logits);
                log_softmax(&mut slopes, temperature);
                slope(&mut slopes, draws, of_row, derivatives, temperature);
                self.rule().backward(logits.main, &logits.others, &mut slopes);
                dlogits.extend(slopes);
            }

            // 2. Through the output matrix.
            let state = |of_row: &[usize]| {
                let row = draws[of_row[0]].row;
                row * d..(row + 1) * d
            };
            if allowed.is_empty() {
                let width = weights.config().vocab_size;
                let mut dinputs = vec![0.0; rows.len() * d];
                linear_backward(&dlogits, matrix, &mut dinputs, rows.len(), width, Output::Set);
                for ((of_row, _), dinput) in rows.iter().zip(dinputs.chunks_exact(d)) {
                    add_scaled(&mut dhidden[state(of_row)], 1.0, dinput);
                }
                if let Some(gradient) = &mut of_head {
                    let inputs: Vec<f32> = rows
                        .iter()
                        .flat_map(|(of_row, _)| &hidden_td[state(of_row)])
                        .copied()
                        .collect();
                    linear_gradient(&dlogits, &inputs, gradient, rows.len(), width);
                }
                return;
            }
            for ((of_row, _), dlogits) in rows.iter().zip(dlogits.chunks_exact(allowed.len())) {
                for (token, dlogit) in allowed.iter().zip(dlogits) {
                    let at = *token as usize * d;
                    let row = matrix.part(at..at + d).widened(&mut buffer);
                    add_scaled(&mut dhidden[state(of_row)], *dlogit, row);
                    if let Some(gradient) = &mut of_head {
                        add_scaled(&mut gradient[at..at + d], *dlogit, &hidden_td[state(of_row)]);
                    }
                }
            }
        })?;
        weights.backend.backward(weights, tape, &dhidden, gradient)
    }

    /// What the rule makes of logits.
    fn combined(&self, logits: &Logits<'_>) -> Vec<f32> {
        let mut combined = logits.main.to_vec();
        self.rule().combine(&mut combined, &logits.others);
        combined
    }

    /// Calls `visit` with the logits behind some states at a time: those of the allowed tokens for each draw out of a few,
    /// then those of the whole vocabulary, the draws behind a state together.
    fn for_each(
        &self,
        weights: &Weights,
        (hidden, others): (&HiddenStates, &[HiddenStates]),
        draws: &[Draw<'_>],
        mut visit: impl FnMut(&[u32], &[(&[usize], Logits<'_>)]),
    ) -> Result<(), DeviceError> {
        let hidden_td = hidden.read()?;
        let others_td: Vec<Cow<'_, [f32]>> =
            others.iter().map(HiddenStates::read).collect::<Result<_, _>>()?;
        let (d, v) = (weights.config().hidden_size, weights.config().vocab_size);
        let widths: Vec<usize> =
            self.models().iter().map(|model| model.config().hidden_size).collect();
        let of_other = |model: usize, row: usize| {
            let width = widths[model];
            &others_td[model][row * width..][..width]
        };
        let (mut main, mut beside) = (Vec::new(), Vec::new());

        // 1. Draws out of a few tokens.
        for (index, draw) in draws.iter().enumerate().filter(|(_, it)| !it.allowed.is_empty()) {
            try_logits(weights, &hidden_td[draw.row * d..][..d], draw.allowed, &mut main)?;
            let states: Vec<&[f32]> =
                (0..widths.len()).map(|model| of_other(model, draw.row)).collect();
            self.logits_of(&states, draw.allowed, &mut beside)?;
            let others = beside.iter().map(Vec::as_slice).collect();
            visit(draw.allowed, &[(&[index], Logits { main: &main, others })]);
        }

        // 2. Draws out of the whole vocabulary, the logits of some states at a time.
        let rows = by_row(draws);
        let rows: Vec<&[usize]> = rows.chunk_by(|a, b| draws[*a].row == draws[*b].row).collect();
        for chunk in rows.chunks(WHOLE_ROWS) {
            let row = |of_row: &&[usize]| draws[of_row[0]].row;
            let states: Vec<f32> =
                chunk.iter().flat_map(|it| &hidden_td[row(it) * d..][..d]).copied().collect();
            try_batch_logits(weights, &states, &mut main)?;
            let states: Vec<Vec<f32>> = (0..widths.len())
                .map(|model| {
                    chunk.iter().flat_map(|it| of_other(model, row(it))).copied().collect()
                })
                .collect();
            self.batch_logits(&states, &mut beside)?;
            let rows: Vec<(&[usize], Logits<'_>)> = chunk
                .iter()
                .enumerate()
                .map(|(at, of_row)| {
                    let others = beside.iter().map(|logits| &logits[at * v..][..v]).collect();
                    (*of_row, Logits { main: &main[at * v..][..v], others })
                })
                .collect();
            visit(&[], &rows);
        }
        Ok(())
    }
}

/// Where a draw's token stands among those that could come.
fn place(draw: &Draw<'_>) -> usize {
    match draw.allowed {
        [] => draw.token as usize,
        allowed => {
            allowed.binary_search(&draw.token).expect("what was drawn is among what was allowed")
        }
    }
}

/// Turns log-probabilities into the gradient of a loss by the logits that they are of.
fn slope(
    logprobs: &mut [f32],
    draws: &[Draw<'_>],
    of_row: &[usize],
    derivatives: &[DrawGradient],
    temperature: f32,
) {
    let entropy = entropy(logprobs);
    let (mut by_logprob, mut by_entropy) = (0.0, 0.0);
    for index in of_row {
        by_logprob += derivatives[*index].logprob;
        by_entropy += derivatives[*index].entropy;
    }
    let inverse = 1.0 / temperature;
    for logprob in logprobs.iter_mut() {
        let p = logprob.exp();
        // What has no probability has no part in the entropy.
        let of_entropy = if p > 0.0 { by_entropy * (*logprob + entropy) } else { 0.0 };
        *logprob = -p * (by_logprob + of_entropy) * inverse;
    }
    for index in of_row {
        logprobs[place(&draws[*index])] += derivatives[*index].logprob * inverse;
    }
}
