//! One layer of the decoder, forward and backward.

use super::batch::Batch;
use crate::weight_gradient::WeightGradient;
use crate::{ModelConfig, Weights};
use spar_ops::attention::{Attention, AttentionGradients, AttentionShape, SoftmaxStatistics};
use spar_ops::elementwise::{add_scaled, rms_norm, rms_norm_backward, swiglu, swiglu_backward};
use spar_ops::heads::Heads;
use spar_ops::matmul::{Output, linear_backward, linear_by};
use spar_ops::page::PAGE;

/// What backward needs of a layer's forward besides its input, `t` running over all tokens of the
/// batch.
#[derive(Debug, Default)]
pub(super) struct LayerTape {
    input_inverse_t: Vec<f32>,
    normed_td: Vec<f32>,
    /// Before the norms of query and key heads.
    qkv_tw: Vec<f32>,
    /// Empty in families without these norms.
    query_inverse_th: Vec<f32>,
    /// Empty in families without these norms.
    key_inverse_th: Vec<f32>,
    queries_tq: Vec<f32>,
    statistics_th: SoftmaxStatistics,
    attended_tq: Vec<f32>,
    middle_td: Vec<f32>,
    middle_inverse_t: Vec<f32>,
    fed_td: Vec<f32>,
    gate_up_tf: Vec<f32>,
    active_tf: Vec<f32>,
}

impl LayerTape {
    /// Numbers that are kept of every token.
    pub(super) fn len_per_token(config: &ModelConfig) -> usize {
        let (d, f, q) = (config.hidden_size, config.intermediate_size, config.query_width());
        let heads = config.num_attention_heads + config.num_key_value_heads;
        // States, projections and attention, their statistics, and the gates.
        d + 2 * q + 2 * config.key_width() + 2 + heads + 2 * config.num_attention_heads + 2 * f
    }

    /// What a backward needs and cannot compute quickly; the rest stays as memory for the next
    /// layer.
    pub(super) fn take_kept(&mut self) -> Self {
        let rest = Self {
            normed_td: std::mem::take(&mut self.normed_td),
            queries_tq: std::mem::take(&mut self.queries_tq),
            fed_td: std::mem::take(&mut self.fed_td),
            active_tf: std::mem::take(&mut self.active_tf),
            ..Self::default()
        };
        std::mem::replace(self, rest)
    }
}

/// Memory of a layer's backward, kept for the next layer.
#[derive(Debug, Default)]
pub(super) struct LayerGradients {
    /// What went into a product, computed once more.
    again_td: Vec<f32>,
    again_tf: Vec<f32>,
    again_tq: Vec<f32>,
    again_inverse: Vec<f32>,
    active_tf: Vec<f32>,
    gate_up_tf: Vec<f32>,
    normed_td: Vec<f32>,
    attended_tq: Vec<f32>,
    queries_tq: Vec<f32>,
    /// `[key_head, page, PAGE, head_dim]`.
    page_keys: Vec<f32>,
    page_values: Vec<f32>,
    keys_tk: Vec<f32>,
    values_tk: Vec<f32>,
    qkv_tw: Vec<f32>,
}

/// Sends the residual states `[t, hidden]` through a layer and writes its keys and values.
///
/// `keeps` says whether the tape is for a backward; without one, parts of it stay unwritten.
pub(super) fn layer_forward(
    weights: &Weights,
    index: usize,
    batch: &mut Batch,
    states: &mut [f32],
    tape: &mut LayerTape,
    keeps: bool,
) {
    let (q, k) = (weights.config.query_width(), weights.config.key_width());
    let mut keys = Vec::new();
    project(weights, index, batch, states, tape, &mut keys);
    batch.write(index, |row| {
        (&keys[row * k..][..k], &tape.qkv_tw[row * (q + 2 * k) + q + k..][..k])
    });
    drop(keys);
    attend_and_feed(weights, index, batch, states, tape, keeps);
}

/// The tape of a layer whose keys and values have been written.
pub(super) fn recompute(
    weights: &Weights,
    index: usize,
    batch: &Batch,
    input_td: &[f32],
    tape: &mut LayerTape,
) {
    let mut states = input_td.to_vec();
    project(weights, index, batch, &states, tape, &mut Vec::new());
    attend_and_feed(weights, index, batch, &mut states, tape, true);
}

/// Queries, keys `[t, key_width]` and values from the residual states.
fn project(
    weights: &Weights,
    index: usize,
    batch: &Batch,
    states: &[f32],
    tape: &mut LayerTape,
    keys_tk: &mut Vec<f32>,
) {
    let config = &weights.config;
    let layout = &weights.layout.layers[index];
    let (d, eps) = (config.hidden_size, config.rms_norm_eps);
    let (q, k) = (config.query_width(), config.key_width());
    let w = q + 2 * k;
    let total = batch.tokens.len();

    resize(&mut tape.normed_td, total * d);
    resize(&mut tape.input_inverse_t, total);
    let (normed, inverse) = (&mut tape.normed_td, &mut tape.input_inverse_t);
    rms_norm(states, weights.vector(&layout.input_norm), eps, normed, inverse);
    resize(&mut tape.qkv_tw, total * w);
    let weight = weights.weight(&layout.qkv);
    linear_by(&tape.normed_td, weight, &mut tape.qkv_tw, total, w, Output::Set);
    batch.adapt(&layout.qkv, &tape.normed_td, &mut tape.qkv_tw, w);
    if !layout.qkv_bias.is_empty() {
        let bias = weights.vector(&layout.qkv_bias);
        tape.qkv_tw.chunks_exact_mut(w).for_each(|row| add_scaled(row, 1.0, bias));
    }

    let (query_heads, key_heads) = (config.num_attention_heads, config.num_key_value_heads);
    let has_norm = config.family.has_query_key_norm();
    resize(&mut tape.queries_tq, total * q);
    resize(keys_tk, total * k);
    if has_norm {
        resize(&mut tape.query_inverse_th, total * query_heads);
        resize(&mut tape.key_inverse_th, total * key_heads);
    }
    let (of_queries, of_keys) = heads(weights, batch);
    if has_norm {
        let (out, inverse) = (&mut tape.queries_tq, &mut tape.query_inverse_th);
        of_queries.norm_and_turn(
            &tape.qkv_tw,
            weights.vector(&layout.query_norm),
            eps,
            out,
            inverse,
        );
        let inverse = &mut tape.key_inverse_th;
        of_keys.norm_and_turn(
            &tape.qkv_tw,
            weights.vector(&layout.key_norm),
            eps,
            keys_tk,
            inverse,
        );
    } else {
        of_queries.turn(&tape.qkv_tw, &mut tape.queries_tq);
        of_keys.turn(&tape.qkv_tw, keys_tk);
    }
}

/// The heads of the queries and of the keys in the rows of their projection.
fn heads<'a>(weights: &'a Weights, batch: &'a Batch) -> (Heads<'a>, Heads<'a>) {
    let config = &weights.config;
    let (q, k) = (config.query_width(), config.key_width());
    let queries = Heads {
        stride: q + 2 * k,
        start: 0,
        width: q,
        head_dim: config.head_dim,
        rotary: &weights.rotary,
        positions: &batch.positions,
    };
    (queries, Heads { start: q, width: k, ..queries })
}

/// Attention and feed-forward part, each added to the residual states.
fn attend_and_feed(
    weights: &Weights,
    index: usize,
    batch: &Batch,
    states: &mut [f32],
    tape: &mut LayerTape,
    keeps: bool,
) {
    let config = &weights.config;
    let layout = &weights.layout.layers[index];
    let (d, f, q) = (config.hidden_size, config.intermediate_size, config.query_width());
    let total = batch.tokens.len();

    resize(&mut tape.attended_tq, total * q);
    let attention = attention(weights, index, batch, &tape.queries_tq);
    attention.forward(&mut tape.attended_tq, &mut tape.statistics_th);
    linear_by(&tape.attended_tq, weights.weight(&layout.output), states, total, d, Output::Add);
    batch.adapt(&layout.output, &tape.attended_tq, states, d);

    resize(&mut tape.fed_td, total * d);
    resize(&mut tape.middle_inverse_t, total);
    let (fed, inverse) = (&mut tape.fed_td, &mut tape.middle_inverse_t);
    rms_norm(states, weights.vector(&layout.feed_norm), config.rms_norm_eps, fed, inverse);
    resize(&mut tape.gate_up_tf, total * 2 * f);
    let weight = weights.weight(&layout.gate_up);
    linear_by(&tape.fed_td, weight, &mut tape.gate_up_tf, total, 2 * f, Output::Set);
    batch.adapt(&layout.gate_up, &tape.fed_td, &mut tape.gate_up_tf, 2 * f);
    resize(&mut tape.active_tf, total * f);
    swiglu(&tape.gate_up_tf, f, &mut tape.active_tf);
    if keeps {
        tape.middle_td.clear();
        tape.middle_td.extend_from_slice(states);
    }
    linear_by(&tape.active_tf, weights.weight(&layout.down), states, total, d, Output::Add);
    batch.adapt(&layout.down, &tape.active_tf, states, d);
}

/// Turns the gradients of a layer's output, `dstates`, into those of its input, and adds those of
/// its parameters to `gradient`.
#[expect(clippy::too_many_arguments, reason = "a backward takes all that its forward took")]
pub(super) fn layer_backward(
    weights: &Weights,
    index: usize,
    batch: &Batch,
    input_td: &[f32],
    tape: &LayerTape,
    buffers: &mut LayerGradients,
    dstates: &mut [f32],
    gradient: &mut WeightGradient<'_>,
) {
    let config = &weights.config;
    let layout = &weights.layout.layers[index];
    let (d, f, eps) = (config.hidden_size, config.intermediate_size, config.rms_norm_eps);
    let (q, k) = (config.query_width(), config.key_width());
    let w = q + 2 * k;
    let total = batch.tokens.len();

    // 1. Feed-forward.
    let dactive = &mut buffers.active_tf;
    resize(dactive, total * f);
    linear_backward(dstates, weights.matrix(&layout.down), dactive, total, d, Output::Set);
    batch.adapt_backward(&layout.down, dstates, dactive, d);
    resize(&mut buffers.again_tf, total * f);
    swiglu(&tape.gate_up_tf, f, &mut buffers.again_tf);
    gradient.add_product(&layout.down, dstates, &buffers.again_tf, total, d);
    let dgate_up = &mut buffers.gate_up_tf;
    resize(dgate_up, total * 2 * f);
    swiglu_backward(dactive, &tape.gate_up_tf, f, dgate_up);
    let (again, inverse) = (&mut buffers.again_td, &mut buffers.again_inverse);
    resize(again, total * d);
    resize(inverse, total);
    rms_norm(&tape.middle_td, weights.vector(&layout.feed_norm), eps, again, inverse);
    gradient.add_product(&layout.gate_up, dgate_up, again, total, 2 * f);
    let dnormed = &mut buffers.normed_td;
    resize(dnormed, total * d);
    linear_backward(dgate_up, weights.matrix(&layout.gate_up), dnormed, total, 2 * f, Output::Set);
    batch.adapt_backward(&layout.gate_up, dgate_up, dnormed, 2 * f);
    let (gain, dgain) = (weights.vector(&layout.feed_norm), gradient.vector(&layout.feed_norm));
    rms_norm_backward(dnormed, &tape.middle_td, gain, &tape.middle_inverse_t, dstates, dgain);

    // 2. Attention.
    let dattended = &mut buffers.attended_tq;
    resize(dattended, total * q);
    linear_backward(dstates, weights.matrix(&layout.output), dattended, total, d, Output::Set);
    batch.adapt_backward(&layout.output, dstates, dattended, d);
    gradient.add_product(&layout.output, dstates, &tape.attended_tq, total, d);
    zero(&mut buffers.queries_tq, total * q);
    zero(&mut buffers.page_keys, batch.pages.len() * PAGE * k);
    zero(&mut buffers.page_values, batch.pages.len() * PAGE * k);
    let (of_queries, of_keys) = heads(weights, batch);
    resize(&mut buffers.again_tq, total * q);
    let has_norm = config.family.has_query_key_norm();
    if has_norm {
        let (out, inverse) = (&mut buffers.again_tq, &mut buffers.again_inverse);
        resize(inverse, tape.query_inverse_th.len());
        of_queries.norm_and_turn(
            &tape.qkv_tw,
            weights.vector(&layout.query_norm),
            eps,
            out,
            inverse,
        );
    } else {
        of_queries.turn(&tape.qkv_tw, &mut buffers.again_tq);
    }
    let mut gradients = AttentionGradients {
        queries: &mut buffers.queries_tq,
        keys: &mut buffers.page_keys,
        values: &mut buffers.page_values,
        match_bias: gradient.vector(&layout.match_bias),
    };
    attention(weights, index, batch, &buffers.again_tq).backward(
        &tape.statistics_th,
        &tape.attended_tq,
        dattended,
        &mut gradients,
    );
    zero(&mut buffers.keys_tk, total * k);
    zero(&mut buffers.values_tk, total * k);
    batch.collect(&buffers.page_keys, config.head_dim, &mut buffers.keys_tk);
    batch.collect(&buffers.page_values, config.head_dim, &mut buffers.values_tk);

    // 3. Positions and norms of queries and keys.
    resize(&mut buffers.qkv_tw, total * w);
    let dqkv = &mut buffers.qkv_tw;
    let (dqueries, dkeys) = (&mut buffers.queries_tq, &mut buffers.keys_tk);
    if has_norm {
        let (gain, dgain) =
            (weights.vector(&layout.query_norm), gradient.vector(&layout.query_norm));
        let (qkv, inverse) = (&tape.qkv_tw, &tape.query_inverse_th);
        of_queries.norm_and_turn_backward(dqueries, qkv, gain, inverse, dqkv, dgain);
        let (gain, dgain) = (weights.vector(&layout.key_norm), gradient.vector(&layout.key_norm));
        let inverse = &tape.key_inverse_th;
        of_keys.norm_and_turn_backward(dkeys, qkv, gain, inverse, dqkv, dgain);
    } else {
        of_queries.turn_backward(dqueries, dqkv);
        of_keys.turn_backward(dkeys, dqkv);
    }
    for (dqkv, dvalue) in dqkv.chunks_exact_mut(w).zip(buffers.values_tk.chunks_exact(k)) {
        dqkv[q + k..].copy_from_slice(dvalue);
    }
    if !layout.qkv_bias.is_empty() {
        let dbias = gradient.vector(&layout.qkv_bias);
        dqkv.chunks_exact(w).for_each(|dqkv| add_scaled(dbias, 1.0, dqkv));
    }

    // 4. Projections of queries, keys and values.
    let (again, inverse) = (&mut buffers.again_td, &mut buffers.again_inverse);
    resize(inverse, total);
    rms_norm(input_td, weights.vector(&layout.input_norm), eps, again, inverse);
    gradient.add_product(&layout.qkv, &buffers.qkv_tw, again, total, w);
    linear_backward(&buffers.qkv_tw, weights.matrix(&layout.qkv), dnormed, total, w, Output::Set);
    batch.adapt_backward(&layout.qkv, &buffers.qkv_tw, dnormed, w);
    let (gain, dgain) = (weights.vector(&layout.input_norm), gradient.vector(&layout.input_norm));
    rms_norm_backward(dnormed, input_td, gain, &tape.input_inverse_t, dstates, dgain);
}

fn attention<'a>(
    weights: &'a Weights,
    layer: usize,
    batch: &'a Batch,
    queries: &'a [f32],
) -> Attention<'a> {
    let config = &weights.config;
    Attention {
        shape: AttentionShape {
            heads: config.num_attention_heads,
            key_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            window: config.sliding_window.unwrap_or(usize::MAX),
        },
        layer,
        blocks: &batch.blocks,
        pages: batch.pages.iter().map(|page| page.host()).collect(),
        positions: &batch.positions,
        tokens: &batch.tokens,
        queries,
        match_bias: weights.vector(&weights.layout.layers[layer].match_bias),
    }
}

/// Sets the length; what was there before may remain, all of it will be written.
fn resize(buffer: &mut Vec<f32>, len: usize) {
    buffer.resize(len, 0.0);
}

/// Sets the length and all to zero.
fn zero(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}
