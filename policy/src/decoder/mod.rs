//! The decoder: one forward for rollout and training, and its backward.

pub(crate) mod batch;
mod cache_page;
pub(crate) mod hidden_states;
mod layer;
mod sequence_cache;
#[cfg(test)]
mod tests;
mod token_tree;

use std::sync::Arc;

pub(crate) use cache_page::CachePage;
pub use hidden_states::HiddenStates;
pub use sequence_cache::SequenceCache;
pub(crate) use sequence_cache::page_shape;
pub use token_tree::{TokenTree, shared_prefix};

use self::batch::{Batch, find_blocks};
use self::layer::{LayerGradients, LayerTape, layer_backward, layer_forward};
use crate::cuda::{DeviceError, DeviceTape};
use crate::weight_gradient::WeightGradient;
use crate::{Adapter, Weights};
use spar_ops::elementwise::{add_product, add_scaled, rms_norm, rms_norm_backward};
use spar_ops::page::NO_TOKEN;

/// Tokens that continue one sequence in a batch.
pub struct Segment<'a> {
    /// What the decoder remembers of the sequence; the tokens are added to it.
    pub cache: &'a mut SequenceCache,
    /// The tokens to read.
    pub tokens: &'a [u32],
    /// The segment of the same call, by its index, whose sequence this one continues; it stands
    /// earlier, and the cache is empty. Absent: the sequence that the cache remembers.
    pub parent: Option<usize>,
    /// The adapter that its tokens are read with, on the CPU. Absent: that of the weights, if they have one.
    pub adapter: Option<Arc<Adapter>>,
}

impl<'a> Segment<'a> {
    /// Tokens that continue the sequence of `cache`.
    pub fn new(cache: &'a mut SequenceCache, tokens: &'a [u32]) -> Self {
        Self { cache, tokens, parent: None, adapter: None }
    }

    /// Tokens that continue the sequence of an earlier segment in the same call; `cache` is empty.
    pub fn child(cache: &'a mut SequenceCache, tokens: &'a [u32], parent: usize) -> Self {
        Self { cache, tokens, parent: Some(parent), adapter: None }
    }

    /// The same, read with this adapter on the CPU.
    #[must_use]
    pub fn with(self, adapter: Option<Arc<Adapter>>) -> Self {
        Self { adapter, ..self }
    }
}

/// What backward needs of a forward.
#[derive(Debug)]
pub struct Tape {
    /// What the layers' tapes may take.
    bytes: usize,
    pub(crate) recomputes: bool,
    pub(crate) batch: Option<Batch>,
    /// All but the batch, where the decoder is on a device.
    pub(crate) device: Option<DeviceTape>,
    /// What goes into each layer, `[t, hidden]`.
    inputs: Vec<Vec<f32>>,
    /// Empty where layers are computed once more.
    layers: Vec<LayerTape>,
    last_td: Vec<f32>,
    last_inverse_t: Vec<f32>,
}

impl Tape {
    /// A tape that keeps the input, the keys and the values of every layer alone; the rest of a
    /// layer is computed once more in backward, to the same bits. It takes about a third more time
    /// and a fraction of the memory.
    pub fn recomputing() -> Self {
        Self::within(0)
    }

    /// A tape that keeps everything where that takes no more than so many bytes, and is
    /// [`recomputing`](Self::recomputing) where it takes more.
    pub fn within(bytes: usize) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Whether layers are computed once more, for so many tokens.
    pub(crate) fn choose(&mut self, weights: &Weights, tokens: usize) {
        let of_layer = LayerTape::len_per_token(&weights.config) * size_of::<f32>();
        let bytes = tokens * weights.config.num_hidden_layers * of_layer;
        self.recomputes = bytes > self.bytes;
    }
}

impl Default for Tape {
    /// One that keeps everything.
    fn default() -> Self {
        Self {
            bytes: usize::MAX,
            recomputes: false,
            batch: None,
            device: None,
            inputs: Vec::new(),
            layers: Vec::new(),
            last_td: Vec::new(),
            last_inverse_t: Vec::new(),
        }
    }
}

/// Reads the segments' tokens and returns the final hidden states, `[tokens, hidden]` in the order
/// of the segments.
///
/// Segments form trees: what several sequences begin with can be a segment of its own, which is
/// read once, and its children go on from it. With a tape, what [`backward`] needs is kept on it.
/// A token's state depends on nothing but the tokens before it in its own sequence, to the bit.
///
/// # Panics
///
/// When a token is outside the vocabulary or a sequence outgrows `max_position_embeddings`; callers
/// check both. When a parent does not stand earlier, or the cache of its child is not empty. When the
/// decoder is on a device, which fails; [`try_forward`] tells.
pub fn forward(
    weights: &Weights,
    segments: &mut [Segment<'_>],
    kept: Option<&mut Tape>,
) -> Vec<f32> {
    try_forward(weights, segments, kept).expect("the device works")
}

/// As [`forward`].
///
/// # Errors
///
/// When the decoder is on a device, which fails; the caches are not to be used any more.
///
/// # Panics
///
/// As [`forward`].
pub fn try_forward(
    weights: &Weights,
    segments: &mut [Segment<'_>],
    kept: Option<&mut Tape>,
) -> Result<Vec<f32>, DeviceError> {
    Ok(forward_states(weights, segments, kept)?.read()?.into_owned())
}

/// As [`try_forward`]; the states stay where they are computed.
///
/// # Errors
///
/// As [`try_forward`].
///
/// # Panics
///
/// As [`forward`].
pub fn forward_states(
    weights: &Weights,
    segments: &mut [Segment<'_>],
    kept: Option<&mut Tape>,
) -> Result<HiddenStates, DeviceError> {
    weights.backend.forward(weights, segments, kept)
}

/// As [`forward_states`] on the CPU, in whatever pool this is called.
pub(crate) fn forward_here(
    weights: &Weights,
    segments: &mut [Segment<'_>],
    mut kept: Option<&mut Tape>,
) -> Result<Vec<f32>, DeviceError> {
    let d = weights.config.hidden_size;
    let mut batch = Batch::new(weights, segments)?;
    batch.blocks = find_blocks(weights, &batch);
    let mut states = embed(weights, &batch);

    if let Some(tape) = kept.as_deref_mut() {
        tape.choose(weights, batch.tokens.len());
    }

    // Buffers serve every layer in turn unless a tape keeps them.
    let mut buffers = LayerTape::default();
    for index in 0..weights.config.num_hidden_layers {
        if let Some(tape) = kept.as_deref_mut() {
            tape.inputs.push(states.clone());
        }
        let keeps = kept.as_ref().is_some_and(|tape| !tape.recomputes);
        layer_forward(weights, index, &mut batch, &mut states, &mut buffers, keeps);
        if let Some(tape) = kept.as_deref_mut()
            && keeps
        {
            tape.layers.push(buffers.take_kept());
        }
    }
    batch.close(segments);

    let total = batch.tokens.len();
    let (mut hidden, mut inverse) = (vec![0.0; total * d], vec![0.0; total]);
    let gain = weights.vector(&weights.layout.final_norm);
    rms_norm(&states, gain, weights.config.rms_norm_eps, &mut hidden, &mut inverse);
    if let Some(tape) = kept {
        tape.last_td = states;
        tape.last_inverse_t = inverse;
        tape.batch = Some(batch);
    }
    Ok(hidden)
}

/// Adds to `gradient` the gradients of all parameters, given those of the final hidden states of
/// the forward that wrote the tape.
///
/// A token that several sequences begin with collects from all of them. `dhidden` has the shape of
/// the forward's result; `gradient` has the layout of the parameters.
///
/// # Panics
///
/// When nothing is on the tape, or a sequence was not empty before the forward. When the decoder is on
/// a device, which fails; [`try_backward`] tells.
pub fn backward(weights: &Weights, tape: &Tape, dhidden_td: &[f32], gradient: &mut [f32]) {
    try_backward(weights, tape, dhidden_td, gradient).expect("the device works");
}

/// As [`backward`].
///
/// # Errors
///
/// When the decoder is on a device, which fails.
///
/// # Panics
///
/// When nothing is on the tape, or a sequence was not empty before the forward.
pub fn try_backward(
    weights: &Weights,
    tape: &Tape,
    dhidden_td: &[f32],
    gradient: &mut [f32],
) -> Result<(), DeviceError> {
    weights.backend.backward(weights, tape, dhidden_td, &mut WeightGradient::Full(gradient))
}

/// As [`backward`] on the CPU, with the gradients of all weights or of an adapter's alone, in whatever
/// pool this is called.
pub(crate) fn backward_here(
    weights: &Weights,
    tape: &Tape,
    dhidden_td: &[f32],
    gradient: &mut WeightGradient<'_>,
) {
    let batch = tape.batch.as_ref().expect("a forward has been kept on the tape");
    assert!(batch.is_whole(), "a sequence is differentiated from its first token on");

    // 1. Final norm: gradient of the last residual state [t, d], carried through all layers.
    let mut dstates = vec![0.0; dhidden_td.len()];
    let range = weights.layout.final_norm.clone();
    rms_norm_backward(
        dhidden_td,
        &tape.last_td,
        weights.vector(&range),
        &tape.last_inverse_t,
        &mut dstates,
        gradient.vector(&range),
    );

    // 2. Layers.
    let mut gradients = LayerGradients::default();
    let mut recomputed = LayerTape::default();
    for index in (0..weights.config.num_hidden_layers).rev() {
        let input = &tape.inputs[index];
        let layer = if tape.recomputes {
            layer::recompute(weights, index, batch, input, &mut recomputed);
            &recomputed
        } else {
            &tape.layers[index]
        };
        layer_backward(weights, index, batch, input, layer, &mut gradients, &mut dstates, gradient);
    }

    // 3. Embeddings.
    if let Some(gradient) = gradient.full() {
        embed_backward(weights, batch, &dstates, gradient);
    }
}

/// Embeddings `[t, d]`, with those of the tokens before mixed in.
fn embed(weights: &Weights, batch: &Batch) -> Vec<f32> {
    let d = weights.config.hidden_size;
    let (embedding, vocabulary) = (weights.embedding(), weights.config.vocab_size);
    let smear = weights.vector(&weights.layout.smear);
    let mut buffer = Vec::new();
    let mut states = vec![0.0; batch.tokens.len() * d];
    for (row, (state, token)) in states.chunks_exact_mut(d).zip(&batch.tokens).enumerate() {
        state.copy_from_slice(embedding.row(*token as usize, vocabulary, &mut buffer));
        for (weight, previous) in smear.chunks_exact(d).zip(batch.before(row)) {
            if *previous != NO_TOKEN {
                let of_previous = embedding.row(*previous as usize, vocabulary, &mut buffer);
                add_product(state, weight, of_previous);
            }
        }
    }
    states
}

fn embed_backward(weights: &Weights, batch: &Batch, dstates: &[f32], gradient: &mut [f32]) {
    let d = weights.config.hidden_size;
    let mut buffer = Vec::new();
    let (embedding, smear) = (weights.layout.embedding.clone(), weights.layout.smear.clone());
    let row_of = |token: u32| {
        embedding.start + token as usize * d..embedding.start + (token as usize + 1) * d
    };
    for (row, (dstate, token)) in dstates.chunks_exact(d).zip(&batch.tokens).enumerate() {
        add_scaled(&mut gradient[row_of(*token)], 1.0, dstate);
        for (place, previous) in (0..smear.len()).step_by(d).zip(batch.before(row)) {
            if *previous != NO_TOKEN {
                let mixed = smear.start + place..smear.start + place + d;
                let of_previous = weights.matrix(&row_of(*previous)).widened(&mut buffer);
                add_product(&mut gradient[mixed.clone()], dstate, of_previous);
                let weight = &weights.vector(&weights.layout.smear)[place..place + d];
                add_product(&mut gradient[row_of(*previous)], dstate, weight);
            }
        }
    }
}
