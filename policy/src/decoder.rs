//! The decoder: one forward for rollout and training, and its backward.

use crate::Weights;
use crate::ops::attention::{
    AttentionGradients, AttentionShape, HeadCache, MatchTokens, SoftmaxStatistics, attend,
    attend_backward,
};
use crate::ops::elementwise::{
    add_product, add_scaled, rms_norm, rms_norm_backward, swiglu, swiglu_backward,
};
use crate::ops::matmul::{Output, Panels, multiply, multiply_left_transposed};
use crate::ops::rotary::Turn;

/// What a decoder remembers of a sequence: its tokens, and the keys and values of every layer.
#[derive(Debug, Clone)]
pub struct SequenceCache {
    tokens: Vec<u32>,
    matches: MatchTokens,
    /// `[layer][key head]`.
    layers: Vec<Vec<HeadCache>>,
}

impl SequenceCache {
    /// The memory of an empty sequence.
    pub fn new(weights: &Weights) -> Self {
        let config = &weights.config;
        let heads = vec![HeadCache::new(config.head_dim); config.num_key_value_heads];
        Self {
            tokens: Vec::new(),
            matches: MatchTokens::default(),
            layers: vec![heads; config.num_hidden_layers],
        }
    }

    /// The tokens read so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Forgets the tokens from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.matches.truncate(len);
        self.layers.iter_mut().flatten().for_each(|cache| cache.truncate(len));
    }
}

/// Tokens that continue one sequence in a batch.
pub struct Segment<'a> {
    /// What the decoder remembers of the sequence; the tokens are added to it.
    pub cache: &'a mut SequenceCache,
    /// The tokens to read.
    pub tokens: &'a [u32],
}

/// What backward needs of a layer's forward, `t` running over all tokens of the batch.
#[derive(Debug, Default)]
struct LayerTape {
    input_td: Vec<f32>,
    input_inverse_t: Vec<f32>,
    normed_td: Vec<f32>,
    /// Before the norms of query and key heads.
    qkv_tw: Vec<f32>,
    query_inverse_th: Vec<f32>,
    key_inverse_th: Vec<f32>,
    queries_tq: Vec<f32>,
    statistics: Vec<SoftmaxStatistics>,
    attended_tq: Vec<f32>,
    middle_td: Vec<f32>,
    middle_inverse_t: Vec<f32>,
    fed_td: Vec<f32>,
    gate_up_tf: Vec<f32>,
    active_tf: Vec<f32>,
}

/// What backward needs of a forward.
#[derive(Debug, Default)]
pub struct Tape {
    layers: Vec<LayerTape>,
    last_td: Vec<f32>,
    last_inverse_t: Vec<f32>,
}

/// Reads the segments' tokens and returns the final hidden states, `[tokens, hidden]` in the order
/// of the segments.
///
/// With a tape, what [`backward`] needs is kept on it. A token's state depends on nothing but the
/// tokens before it in its own sequence, to the bit.
///
/// # Panics
///
/// When a token is outside the vocabulary or a sequence outgrows `max_position_embeddings`; callers
/// check both.
pub fn forward(
    weights: &Weights,
    segments: &mut [Segment<'_>],
    mut kept: Option<&mut Tape>,
) -> Vec<f32> {
    let config = &weights.config;
    let data = &weights.parameters.data;
    let (d, f, dim) = (config.hidden_size, config.intermediate_size, config.head_dim);
    let (q, k) = (config.query_width(), config.key_width());
    let w = q + 2 * k;
    let shape = attention_shape(weights);
    let total: usize = segments.iter().map(|segment| segment.tokens.len()).sum();

    // 1. Embeddings [t, d], with those of the tokens before mixed in.
    let embedding = &data[weights.layout.embedding.clone()];
    let smear = &data[weights.layout.smear.clone()];
    let mut states = vec![0.0; total * d];
    let mut rows = states.chunks_exact_mut(d);
    for segment in segments.iter_mut() {
        for token in segment.tokens {
            let row = rows.next().expect("one row per token");
            row.copy_from_slice(&embedding[*token as usize * d..][..d]);
            let before = segment.cache.tokens.iter().rev();
            for (weight, previous) in smear.chunks_exact(d).zip(before) {
                add_product(row, weight, &embedding[*previous as usize * d..][..d]);
            }
            segment.cache.tokens.push(*token);
            segment.cache.matches.push(*token);
        }
    }
    let positions: Vec<usize> = segments
        .iter()
        .flat_map(|s| s.cache.tokens.len() - s.tokens.len()..s.cache.tokens.len())
        .collect();

    // 2. Layers; buffers serve every layer in turn unless a tape keeps them.
    let mut buffers = LayerTape::default();
    for (index, layer) in weights.layers.iter().enumerate() {
        let layout = &weights.layout.layers[index];
        let gains = |range: &std::ops::Range<usize>| &data[range.clone()];
        let taped = kept.is_some();
        let tape = &mut buffers;
        resize(&mut tape.normed_td, total * d);
        resize(&mut tape.input_inverse_t, total);
        let eps = config.rms_norm_eps;
        let (normed, inverse) = (&mut tape.normed_td, &mut tape.input_inverse_t);
        rms_norm(&states, gains(&layout.input_norm), eps, normed, inverse);
        resize(&mut tape.qkv_tw, total * w);
        multiply(&tape.normed_td, &layer.qkv.forward, &mut tape.qkv_tw, total, Output::Set);
        if !layout.qkv_bias.is_empty() {
            let bias = gains(&layout.qkv_bias);
            tape.qkv_tw.chunks_exact_mut(w).for_each(|row| add_scaled(row, 1.0, bias));
        }

        // 2a. Norms and positions of queries and keys; keys and values go to the caches.
        resize(&mut tape.queries_tq, total * q);
        let has_norm = config.family.has_query_key_norm();
        if has_norm {
            resize(&mut tape.query_inverse_th, total * config.num_attention_heads);
            resize(&mut tape.key_inverse_th, total * config.num_key_value_heads);
        }
        let mut keys = vec![0.0; k];
        let mut row = 0;
        for segment in segments.iter_mut() {
            let caches = &mut segment.cache.layers[index];
            for _ in segment.tokens {
                let qkv = &tape.qkv_tw[row * w..(row + 1) * w];
                let queries = &mut tape.queries_tq[row * q..(row + 1) * q];
                if has_norm {
                    let heads = config.num_attention_heads;
                    let inverse = &mut tape.query_inverse_th[row * heads..(row + 1) * heads];
                    rms_norm(&qkv[..q], gains(&layout.query_norm), eps, queries, inverse);
                    let heads = config.num_key_value_heads;
                    let inverse = &mut tape.key_inverse_th[row * heads..(row + 1) * heads];
                    rms_norm(&qkv[q..q + k], gains(&layout.key_norm), eps, &mut keys, inverse);
                } else {
                    queries.copy_from_slice(&qkv[..q]);
                    keys.copy_from_slice(&qkv[q..q + k]);
                }
                weights.rotary.apply(queries, dim, positions[row], Turn::Forward);
                weights.rotary.apply(&mut keys, dim, positions[row], Turn::Forward);
                let heads = keys.chunks_exact(dim).zip(qkv[q + k..].chunks_exact(dim));
                for (cache, (key, value)) in caches.iter_mut().zip(heads) {
                    cache.push(key, value);
                }
                row += 1;
            }
        }

        // 2b. Attention within each sequence.
        resize(&mut tape.attended_tq, total * q);
        tape.statistics.clear();
        let mut row = 0;
        for segment in segments.iter() {
            let count = segment.tokens.len();
            let range = row * q..(row + count) * q;
            let mut statistics = Vec::new();
            attend(
                shape,
                &tape.queries_tq[range.clone()],
                &segment.cache.layers[index],
                &segment.cache.matches,
                gains(&layout.match_bias),
                &mut tape.attended_tq[range],
                taped.then_some(&mut statistics),
            );
            tape.statistics.push(statistics);
            row += count;
        }
        if taped {
            tape.input_td.clone_from(&states);
        }
        multiply(&tape.attended_tq, &layer.output.forward, &mut states, total, Output::Add);

        // 2c. Feed-forward.
        resize(&mut tape.fed_td, total * d);
        resize(&mut tape.middle_inverse_t, total);
        let (fed, inverse) = (&mut tape.fed_td, &mut tape.middle_inverse_t);
        rms_norm(&states, gains(&layout.feed_norm), eps, fed, inverse);
        resize(&mut tape.gate_up_tf, total * 2 * f);
        multiply(&tape.fed_td, &layer.gate_up.forward, &mut tape.gate_up_tf, total, Output::Set);
        resize(&mut tape.active_tf, total * f);
        swiglu(&tape.gate_up_tf, f, &mut tape.active_tf);
        if taped {
            tape.middle_td.clone_from(&states);
        }
        multiply(&tape.active_tf, &layer.down.forward, &mut states, total, Output::Add);
        if let Some(kept) = kept.as_deref_mut() {
            kept.layers.push(std::mem::take(&mut buffers));
        }
    }

    // 3. Final norm.
    let mut hidden = vec![0.0; total * d];
    let mut inverse = vec![0.0; total];
    let gain = &data[weights.layout.final_norm.clone()];
    rms_norm(&states, gain, config.rms_norm_eps, &mut hidden, &mut inverse);
    if let Some(tape) = kept {
        tape.last_td = states;
        tape.last_inverse_t = inverse;
    }
    hidden
}

/// Adds to `gradient` the gradients of all parameters, given those of the final hidden states.
///
/// `caches` are those of the forward's segments, which must have been empty before it; `dhidden`
/// has the shape of its result; `gradient` has the layout of the parameters.
pub fn backward(
    weights: &Weights,
    caches: &[SequenceCache],
    tape: &Tape,
    dhidden_td: &[f32],
    gradient: &mut [f32],
) {
    let config = &weights.config;
    let data = &weights.parameters.data;
    let (d, f, dim) = (config.hidden_size, config.intermediate_size, config.head_dim);
    let (q, k) = (config.query_width(), config.key_width());
    let w = q + 2 * k;
    let shape = attention_shape(weights);
    let total = dhidden_td.len() / d;
    let mut panels = Panels::default();

    // 1. Final norm: gradient of the last residual state [t, d], carried through all layers.
    let mut dstates = vec![0.0; total * d];
    let range = weights.layout.final_norm.clone();
    rms_norm_backward(
        dhidden_td,
        &tape.last_td,
        &data[range.clone()],
        &tape.last_inverse_t,
        &mut dstates,
        &mut gradient[range],
    );

    let (mut dactive, mut dgate_up) = (vec![0.0; total * f], vec![0.0; total * 2 * f]);
    let mut dnormed = vec![0.0; total * d];
    let mut dattended = vec![0.0; total * q];
    for (index, layer) in weights.layers.iter().enumerate().rev() {
        let layout = &weights.layout.layers[index];
        let tape = &tape.layers[index];

        // 2. Feed-forward.
        multiply(&dstates, &layer.down.backward, &mut dactive, total, Output::Set);
        panels.pack_rows(&tape.active_tf, total, f, f);
        let target = &mut gradient[layout.down.clone()];
        multiply_left_transposed(&dstates, &panels, target, d, Output::Add);
        swiglu_backward(&dactive, &tape.gate_up_tf, f, &mut dgate_up);
        panels.pack_rows(&tape.fed_td, total, d, d);
        let target = &mut gradient[layout.gate_up.clone()];
        multiply_left_transposed(&dgate_up, &panels, target, 2 * f, Output::Add);
        multiply(&dgate_up, &layer.gate_up.backward, &mut dnormed, total, Output::Set);
        let range = layout.feed_norm.clone();
        let (gain, dgain) = (&data[range.clone()], &mut gradient[range]);
        let inverse = &tape.middle_inverse_t;
        rms_norm_backward(&dnormed, &tape.middle_td, gain, inverse, &mut dstates, dgain);

        // 3. Attention.
        multiply(&dstates, &layer.output.backward, &mut dattended, total, Output::Set);
        panels.pack_rows(&tape.attended_tq, total, q, q);
        let target = &mut gradient[layout.output.clone()];
        multiply_left_transposed(&dstates, &panels, target, d, Output::Add);
        let mut dqueries = vec![0.0; total * q];
        let (mut dkeys, mut dvalues) = (vec![0.0; total * k], vec![0.0; total * k]);
        let mut row = 0;
        for (cache, statistics) in caches.iter().zip(&tape.statistics) {
            let count = cache.tokens.len();
            let (of_q, of_k) = (row * q..(row + count) * q, row * k..(row + count) * k);
            attend_backward(
                shape,
                &tape.queries_tq[of_q.clone()],
                &cache.layers[index],
                &cache.matches,
                &data[layout.match_bias.clone()],
                statistics,
                &tape.attended_tq[of_q.clone()],
                &dattended[of_q.clone()],
                AttentionGradients {
                    queries: &mut dqueries[of_q],
                    keys: &mut dkeys[of_k.clone()],
                    values: &mut dvalues[of_k],
                    match_bias: &mut gradient[layout.match_bias.clone()],
                },
            );
            for position in 0..count {
                let queries = &mut dqueries[(row + position) * q..][..q];
                weights.rotary.apply(queries, dim, position, Turn::Backward);
                let keys = &mut dkeys[(row + position) * k..][..k];
                weights.rotary.apply(keys, dim, position, Turn::Backward);
            }
            row += count;
        }

        // 4. Projections of queries, keys and values.
        let mut dqkv = vec![0.0; total * w];
        for (row, (dqkv, qkv)) in
            dqkv.chunks_exact_mut(w).zip(tape.qkv_tw.chunks_exact(w)).enumerate()
        {
            if config.family.has_query_key_norm() {
                let heads = config.num_attention_heads;
                let range = layout.query_norm.clone();
                rms_norm_backward(
                    &dqueries[row * q..(row + 1) * q],
                    &qkv[..q],
                    &data[range.clone()],
                    &tape.query_inverse_th[row * heads..(row + 1) * heads],
                    &mut dqkv[..q],
                    &mut gradient[range],
                );
                let heads = config.num_key_value_heads;
                let range = layout.key_norm.clone();
                rms_norm_backward(
                    &dkeys[row * k..(row + 1) * k],
                    &qkv[q..q + k],
                    &data[range.clone()],
                    &tape.key_inverse_th[row * heads..(row + 1) * heads],
                    &mut dqkv[q..q + k],
                    &mut gradient[range],
                );
            } else {
                dqkv[..q].copy_from_slice(&dqueries[row * q..(row + 1) * q]);
                dqkv[q..q + k].copy_from_slice(&dkeys[row * k..(row + 1) * k]);
            }
            dqkv[q + k..].copy_from_slice(&dvalues[row * k..(row + 1) * k]);
            // Empty in families without a bias.
            add_scaled(&mut gradient[layout.qkv_bias.clone()], 1.0, dqkv);
        }
        panels.pack_rows(&tape.normed_td, total, d, d);
        let target = &mut gradient[layout.qkv.clone()];
        multiply_left_transposed(&dqkv, &panels, target, w, Output::Add);
        multiply(&dqkv, &layer.qkv.backward, &mut dnormed, total, Output::Set);
        let range = layout.input_norm.clone();
        let (gain, dgain) = (&data[range.clone()], &mut gradient[range]);
        let inverse = &tape.input_inverse_t;
        rms_norm_backward(&dnormed, &tape.input_td, gain, inverse, &mut dstates, dgain);
    }

    // 5. Embeddings.
    let embedding = weights.layout.embedding.clone();
    let smear = weights.layout.smear.clone();
    let row_of = |token: u32| {
        embedding.start + token as usize * d..embedding.start + (token as usize + 1) * d
    };
    let mut rows = dstates.chunks_exact(d);
    for cache in caches {
        for (position, token) in cache.tokens.iter().enumerate() {
            let drow = rows.next().expect("one row per token");
            add_scaled(&mut gradient[row_of(*token)], 1.0, drow);
            let before = cache.tokens[..position].iter().rev();
            for (mixed, previous) in (smear.start..smear.end).step_by(d).zip(before) {
                let mixed = mixed..mixed + d;
                add_product(&mut gradient[mixed.clone()], drow, &data[row_of(*previous)]);
                add_product(&mut gradient[row_of(*previous)], drow, &data[mixed]);
            }
        }
    }
}

fn attention_shape(weights: &Weights) -> AttentionShape {
    AttentionShape {
        heads: weights.config.num_attention_heads,
        key_heads: weights.config.num_key_value_heads,
        head_dim: weights.config.head_dim,
        window: weights.config.sliding_window.unwrap_or(usize::MAX),
    }
}

/// Sets the length; what was there before may remain, all of it will be written.
fn resize(buffer: &mut Vec<f32>, len: usize) {
    buffer.resize(len, 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Draw, log_probabilities, log_probabilities_backward};
    use crate::{Family, ModelConfig, RopeScaling, initial_parameters};

    fn config() -> ModelConfig {
        ModelConfig {
            vocab_size: 11,
            hidden_size: 16,
            intermediate_size: 12,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 6,
            max_position_embeddings: 128,
            tie_word_embeddings: false,
            ..ModelConfig::default()
        }
    }

    /// Every family, with and without extensions, a window and scaled positions.
    fn variants() -> Vec<ModelConfig> {
        let mut variants = vec![
            config(),
            ModelConfig { tie_word_embeddings: true, ..config() },
            ModelConfig { sliding_window: Some(4), family: Family::Qwen2, ..config() },
        ];
        variants.extend(Family::ALL.map(|family| ModelConfig {
            family,
            sliding_window: (family == Family::Mistral).then_some(3),
            rope_scaling: if family == Family::Llama {
                RopeScaling::Linear { factor: 2.0 }
            } else {
                RopeScaling::None
            },
            partial_rotary_factor: 1.0,
            smear_tokens: 0,
            token_match_bias: false,
            ..config()
        }));
        variants
    }

    /// Fresh weights, larger than usual so that every parameter matters to the loss.
    fn weights(config: &ModelConfig) -> Weights {
        let mut parameters = initial_parameters(config, spar_core::Seed::from_u64(1));
        for (i, value) in parameters.data.iter_mut().enumerate() {
            *value += (i as f32 * 1.3).sin() * 0.2;
        }
        Weights::new(config, parameters)
    }

    const SEQUENCES: [&[u32]; 2] = [&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], &[2, 7, 1, 8, 2, 8]];
    const ALLOWED: &[u32] = &[1, 2, 5, 8];

    fn draws() -> Vec<Draw<'static>> {
        let mut draws = Vec::new();
        let mut row = 0;
        for tokens in SEQUENCES {
            for (t, token) in tokens.iter().enumerate().skip(1) {
                let allowed: &[u32] = if ALLOWED.contains(token) { ALLOWED } else { &[] };
                draws.push(Draw { row: row + t - 1, token: *token, allowed });
            }
            row += tokens.len();
        }
        draws
    }

    fn run(weights: &Weights, tape: Option<&mut Tape>) -> (Vec<SequenceCache>, Vec<f32>) {
        let mut caches = vec![SequenceCache::new(weights); 2];
        let mut segments: Vec<_> = caches
            .iter_mut()
            .zip(SEQUENCES)
            .map(|(cache, tokens)| Segment { cache, tokens })
            .collect();
        let hidden = forward(weights, &mut segments, tape);
        (caches, hidden)
    }

    fn loss(weights: &Weights) -> f64 {
        let (_, hidden) = run(weights, None);
        let logprobs = log_probabilities(weights, &hidden, &draws(), 0.7);
        logprobs.iter().enumerate().map(|(i, l)| f64::from(*l) * (i as f64 * 0.9).cos()).sum()
    }

    #[test]
    fn gradient_of_every_parameter() {
        for config in variants() {
            let weights = weights(&config);
            let mut tape = Tape::default();
            let (caches, hidden) = run(&weights, Some(&mut tape));
            let mut gradient = vec![0.0; weights.parameters().data.len()];
            let mut dhidden = vec![0.0; hidden.len()];
            let draws = draws();
            let dlogprobs: Vec<f32> = (0..draws.len()).map(|i| (i as f32 * 0.9).cos()).collect();
            let (h, g) = (&mut dhidden, &mut gradient);
            log_probabilities_backward(&weights, &hidden, &draws, 0.7, &dlogprobs, h, g);
            backward(&weights, &caches, &tape, &dhidden, &mut gradient);
            for spec in weights.parameters().specs.iter() {
                let found = &gradient[spec.range()];
                let scale = found.iter().fold(0.0_f32, |a, g| a.max(g.abs()));
                assert!(scale > 0.0, "{} gets no gradient", spec.name);
                let picks = [0, spec.len() / 3, spec.len() / 2, spec.len() - 1];
                for pick in picks {
                    let shifted = |by: f32| {
                        let mut parameters = weights.parameters().clone();
                        parameters.data[spec.offset + pick] += by;
                        loss(&weights.with_parameters(parameters))
                    };
                    let difference = |h: f32| (shifted(h) - shifted(-h)) / (2.0 * f64::from(h));
                    let expected = (4.0 * difference(5e-3) - difference(1e-2)) / 3.0;
                    let error = (f64::from(found[pick]) - expected).abs() / f64::from(scale);
                    assert!(error < 2e-2, "{}[{pick}]: {} {expected}", spec.name, found[pick]);
                }
            }
        }
    }

    #[test]
    fn decoding_and_training_agree_to_the_bit() {
        for weights in variants().iter().map(weights) {
            let (_, hidden) = run(&weights, None);
            let d = weights.config().hidden_size;
            let mut first_row = 0;
            for tokens in SEQUENCES {
                let mut cache = SequenceCache::new(&weights);
                let mut read = 0;
                for chunk in [4, 1, 1] {
                    let tokens = &tokens[read..read + chunk];
                    let mut segments = [Segment { cache: &mut cache, tokens }];
                    let found = forward(&weights, &mut segments, None);
                    let range = (first_row + read) * d..(first_row + read + chunk) * d;
                    assert_eq!(found, hidden[range]);
                    read += chunk;
                }
                first_row += tokens.len();
            }
        }
    }

    #[test]
    fn log_probabilities_add_up_to_one() {
        let weights = weights(&config());
        let (_, hidden) = run(&weights, None);
        for allowed in [&[] as &[u32], ALLOWED] {
            let all: Vec<u32> =
                (0..11).filter(|v| allowed.is_empty() || allowed.contains(v)).collect();
            let draws: Vec<_> =
                all.iter().map(|token| Draw { row: 5, token: *token, allowed }).collect();
            let logprobs = log_probabilities(&weights, &hidden, &draws, 1.3);
            let sum: f32 = logprobs.iter().map(|l| l.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
}
