//! The decoder's backward on a device; `decoder` has the same for the CPU.

use std::ops::Range;

use super::DeviceError;
use super::batch::BackwardBatch;
use super::device::{Buffer, Device, Kind};
use super::forward::{DeviceTape, LayerTape, Scratch, Work};
use super::learner::{Live, LiveWeights};
use super::operations::{Columns, LowRank, SeenPages};
use super::placement::Placement;
use crate::decoder::batch::Batch;
use crate::{ParameterKind, ParameterSpec, Weights};
use spar_ops::page::PAGE;

/// Memory of a layer's backward, kept for the next layer.
struct Gradients {
    /// The gradient of the residual states as the products take it.
    states_td: Buffer,
    active_tf: Buffer,
    gate_up_tf: Buffer,
    normed_td: Buffer,
    attended_tq: Buffer,
    queries_tq: Buffer,
    /// `[page, token, key_head, head_dim]`.
    page_keys: Buffer,
    page_values: Buffer,
    keys_tk: Buffer,
    values_tk: Buffer,
    qkv_tw: Buffer,
}

/// Where the gradients go, in f32.
pub(super) enum Target<'a> {
    /// Of all weights, in their layout.
    Whole(&'a Buffer),
    /// Of an adapter's factors, in theirs.
    Adapter {
        gradient: &'a Buffer,
        /// Takes the gradients of vectors that are frozen.
        frozen: Buffer,
    },
}

impl<'a> Target<'a> {
    /// That for the decoder `weights`, `gradient` being in the layout of what of it is trained.
    pub(super) fn new(
        device: &Device,
        weights: &Weights,
        gradient: &'a Buffer,
    ) -> Result<Self, DeviceError> {
        let Some(LiveWeights(Live::Adapter(_))) = &weights.live else {
            return Ok(Self::Whole(gradient));
        };
        let specs = weights.parameters.specs.iter();
        let vectors = specs.filter(|spec| spec.kind == ParameterKind::Vector);
        // Biases of queries, keys and values are one vector.
        let longest = vectors.map(ParameterSpec::len).max().unwrap_or(0) * 3;
        Ok(Self::Adapter { gradient, frozen: device.zeros(Kind::F32, longest)? })
    }

    /// All of it, where all weights are trained.
    pub(super) fn whole(&self) -> Option<&'a Buffer> {
        match self {
            Self::Whole(gradient) => Some(gradient),
            Self::Adapter { .. } => None,
        }
    }

    fn vector(&self, range: &Range<usize>) -> Buffer {
        match self {
            Self::Whole(gradient) => gradient.slice(range.clone()),
            Self::Adapter { frozen, .. } => frozen.slice(0..range.len()),
        }
    }
}

/// Adds to `gradient` the gradients of what is trained, given those of the final hidden states
/// `[t, hidden]`.
///
/// The caller has the placement's turn.
pub(super) fn backward(
    weights: &Weights,
    placement: &Placement,
    batch: &Batch,
    tape: &DeviceTape,
    dhidden: &Buffer,
    gradient: &Target<'_>,
) -> Result<(), DeviceError> {
    let device = placement.device();
    let work = Work::new(weights, placement, &tape.weights, &tape.batch);
    let lists = BackwardBatch::new(device, weights, batch)?;
    let config = &weights.config;
    let (total, d) = (tape.batch.rows, config.hidden_size);
    let layout = &weights.layout;

    // 1. Final norm: gradient of the last residual state [t, d], carried through all layers.
    let dstates = device.zeros(Kind::F32, total * d)?;
    let gain = work.weight(&layout.final_norm);
    let dgain = gradient.vector(&layout.final_norm);
    device.rms_norm_backward(dhidden, &tape.last, &gain, &tape.last_inverse, &dstates, &dgain)?;

    // 2. Layers.
    let buffers = work.gradients(batch.pages.len())?;
    let scratch = work.scratch()?;
    let mut recomputed = None;
    for index in (0..config.num_hidden_layers).rev() {
        let input = &tape.inputs[index];
        let layer = match tape.layers.get(index) {
            Some(layer) => layer,
            None => {
                if recomputed.is_none() {
                    recomputed = Some((work.layer_tape()?, work.floats(total * d)?));
                }
                let (layer, states) = recomputed.as_ref().expect("it has just been made");
                states.copy_from(input)?;
                work.layer(index, states, layer, &scratch, false)?;
                layer
            }
        };
        work.layer_backward(index, input, layer, &lists, &scratch, &buffers, &dstates, gradient)?;
    }

    // 3. Embeddings.
    let Some(gradient) = gradient.whole() else { return Ok(()) };
    let of = |range: &Range<usize>| gradient.slice(range.clone());
    let smear = work.weight(&layout.smear);
    device.embed_backward(&dstates, &smear, lists.embedded.parts(), d, &of(&layout.embedding))?;
    if !layout.smear.is_empty() {
        let embedding = work.weight(&layout.embedding);
        let dsmear = of(&layout.smear);
        device.smear_gradient(&dstates, &embedding, &tape.batch.before, d, &dsmear)?;
    }
    Ok(())
}

impl Work<'_> {
    fn gradients(&self, pages: usize) -> Result<Gradients, DeviceError> {
        let (config, total) = (&self.weights.config, self.batch.rows);
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let (q, k) = (config.query_width(), config.key_width());
        Ok(Gradients {
            states_td: self.numbers(total * d)?,
            active_tf: self.numbers(total * f)?,
            gate_up_tf: self.numbers(total * 2 * f)?,
            normed_td: self.numbers(total * d)?,
            attended_tq: self.numbers(total * q)?,
            queries_tq: self.floats(total * q)?,
            page_keys: self.floats(pages * PAGE * k)?,
            page_values: self.floats(pages * PAGE * k)?,
            keys_tk: self.floats(total * k)?,
            values_tk: self.floats(total * k)?,
            qkv_tw: self.numbers(total * self.qkv_width())?,
        })
    }

    /// Turns the gradients of a layer's output, `dstates`, into those of its input, and adds those of
    /// its parameters to `gradient`.
    #[expect(clippy::too_many_arguments, reason = "a backward takes all that its forward took")]
    fn layer_backward(
        &self,
        index: usize,
        input: &Buffer,
        tape: &LayerTape,
        lists: &BackwardBatch,
        again: &Scratch,
        buffers: &Gradients,
        dstates: &Buffer,
        gradient: &Target<'_>,
    ) -> Result<(), DeviceError> {
        let (config, device, total) = (&self.weights.config, self.device, self.batch.rows);
        let layout = &self.weights.layout.layers[index];
        let of = |range: &Range<usize>| gradient.vector(range);
        let (d, f, eps) = (config.hidden_size, config.intermediate_size, config.rms_norm_eps);
        let (q, k, w) = (config.query_width(), config.key_width(), self.qkv_width());
        let inverse = self.floats(total)?;

        // 1. Feed-forward.
        device.convert(dstates, &buffers.states_td)?;
        let (dout, dactive) = (&buffers.states_td, &buffers.active_tf);
        device.linear_backward(dout, &self.weight(&layout.down), dactive, (total, d), false)?;
        device.swiglu(&tape.gate_up_tf, f, &again.active_tf)?;
        self.matrix_gradient(&layout.down, dout, &again.active_tf, gradient, (d, dactive))?;
        device.swiglu_backward(dactive, &tape.gate_up_tf, f, &buffers.gate_up_tf)?;
        let gain = self.weight(&layout.feed_norm);
        device.rms_norm(&tape.middle_td, &gain, eps, &again.normed_td, &inverse)?;
        let (dgate_up, dnormed) = (&buffers.gate_up_tf, &buffers.normed_td);
        let weight = self.weight(&layout.gate_up);
        device.linear_backward(dgate_up, &weight, dnormed, (total, 2 * f), false)?;
        let (x, out) = (&again.normed_td, (2 * f, dnormed));
        self.matrix_gradient(&layout.gate_up, dgate_up, x, gradient, out)?;
        let (middle, dgain) = (&tape.middle_td, of(&layout.feed_norm));
        device.rms_norm_backward(
            dnormed,
            middle,
            &gain,
            &tape.middle_inverse_t,
            dstates,
            &dgain,
        )?;

        // 2. Attention.
        device.convert(dstates, &buffers.states_td)?;
        let dattended = &buffers.attended_tq;
        let weight = self.weight(&layout.output);
        device.linear_backward(dout, &weight, dattended, (total, d), false)?;
        let x = &tape.attended_tq;
        self.matrix_gradient(&layout.output, dout, x, gradient, (d, dattended))?;
        self.queries(index, tape, &again.queries_tq)?;
        let bias = self.match_bias(index);
        let dbias = bias.as_ref().map(|_| of(&layout.match_bias));
        device.attention_backward(
            &self.attention(index, bias.as_ref()),
            SeenPages { slots: &lists.slots, pages: &lists.pages, ranges: &lists.ranges },
            &again.queries_tq,
            &tape.attended_tq,
            &tape.log_sums_th,
            dattended,
            &buffers.queries_tq,
            (&buffers.page_keys, &buffers.page_values),
            dbias.as_ref(),
        )?;
        for (pages, rows) in
            [(&buffers.page_keys, &buffers.keys_tk), (&buffers.page_values, &buffers.values_tk)]
        {
            rows.clear()?;
            device.collect_rows(pages, k, lists.places.parts(), rows)?;
        }

        // 3. Positions and norms of queries and keys.
        let (dqkv, qkv) = (&buffers.qkv_tw, &tape.qkv_tw);
        let (gain, inverses) = (self.query_gain(index), tape.query_inverse_th.as_ref());
        let dgain = gain.as_ref().map(|_| of(&layout.query_norm));
        let shape = self.query_heads(gain.as_ref());
        device.heads_backward(&buffers.queries_tq, qkv, inverses, shape, dqkv, dgain.as_ref())?;
        let (gain, inverses) = (self.key_gain(index), tape.key_inverse_th.as_ref());
        let dgain = gain.as_ref().map(|_| of(&layout.key_norm));
        let shape = self.key_heads(gain.as_ref());
        device.heads_backward(&buffers.keys_tk, qkv, inverses, shape, dqkv, dgain.as_ref())?;
        device.put_columns(&buffers.values_tk, k, dqkv, w, q + k)?;
        if !layout.qkv_bias.is_empty() {
            device.add_column_sums(dqkv, &of(&layout.qkv_bias))?;
        }

        // 4. Projections of queries, keys and values.
        let gain = self.weight(&layout.input_norm);
        device.rms_norm(input, &gain, eps, &again.normed_td, &inverse)?;
        device.linear_backward(dqkv, &self.weight(&layout.qkv), dnormed, (total, w), false)?;
        self.matrix_gradient(&layout.qkv, dqkv, &again.normed_td, gradient, (w, dnormed))?;
        let dgain = of(&layout.input_norm);
        device.rms_norm_backward(dnormed, input, &gain, &tape.input_inverse_t, dstates, &dgain)
    }

    /// Adds the gradient of the matrices that lie in `range`, whose outputs are `width` together, or
    /// of the factors that change them; what these add to the gradient of `x` is added to `dx`.
    fn matrix_gradient(
        &self,
        range: &Range<usize>,
        dout: &Buffer,
        x: &Buffer,
        gradient: &Target<'_>,
        (width, dx): (usize, &Buffer),
    ) -> Result<(), DeviceError> {
        let gradient = match gradient {
            Target::Whole(gradient) => {
                let dweight = gradient.slice(range.clone());
                return self.device.linear_gradient(dout, x, &dweight, (self.batch.rows, width));
            }
            Target::Adapter { gradient, .. } => gradient,
        };
        let adapter = self.adapter().expect("the gradient is an adapter's");
        for (matrix, start) in adapter.inside(range) {
            let (a, b) = adapter.factors_of(matrix);
            let factors = LowRank { a: &a, b: &b, rank: adapter.rank, scale: adapter.scale };
            let dout = Columns { matrix: dout, stride: width, start, width: matrix.outputs };
            let into = [&matrix.a, &matrix.b].map(|range| gradient.slice(range.clone()));
            self.device.low_rank_backward(dout, x, factors, (&into[0], &into[1]), dx)?;
        }
        Ok(())
    }
}
