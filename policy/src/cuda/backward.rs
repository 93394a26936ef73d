//! The decoder's backward on a device; `decoder` has the same for the CPU.

use super::DeviceError;
use super::batch::BackwardBatch;
use super::device::Buffer;
use super::forward::{DeviceTape, LayerTape, Scratch, Work};
use super::operations::SeenPages;
use super::placement::Placement;
use crate::Weights;
use crate::decoder::batch::Batch;
use crate::ops::page::PAGE;

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

/// Adds to `gradient`, in the layout of the parameters, the gradients of all parameters, given those of
/// the final hidden states `[t, hidden]`.
///
/// The caller has the placement's turn.
pub(super) fn backward(
    weights: &Weights,
    placement: &Placement,
    batch: &Batch,
    tape: &DeviceTape,
    dhidden: &Buffer,
    gradient: &Buffer,
) -> Result<(), DeviceError> {
    let device = placement.device();
    let work = Work::new(weights, placement, &tape.weights, &tape.batch);
    let lists = BackwardBatch::new(device, weights, batch)?;
    let config = &weights.config;
    let (total, d) = (tape.batch.rows, config.hidden_size);
    let of = |range: &std::ops::Range<usize>| gradient.slice(range.clone());
    let layout = &weights.layout;

    // 1. Final norm: gradient of the last residual state [t, d], carried through all layers.
    let dstates = device.zeros(super::device::Kind::F32, total * d)?;
    let gain = work.weight(&layout.final_norm);
    let dgain = of(&layout.final_norm);
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
        gradient: &Buffer,
    ) -> Result<(), DeviceError> {
        let (config, device, total) = (&self.weights.config, self.device, self.batch.rows);
        let layout = &self.weights.layout.layers[index];
        let of = |range: &std::ops::Range<usize>| gradient.slice(range.clone());
        let (d, f, eps) = (config.hidden_size, config.intermediate_size, config.rms_norm_eps);
        let (q, k, w) = (config.query_width(), config.key_width(), self.qkv_width());
        let inverse = self.floats(total)?;

        // 1. Feed-forward.
        device.convert(dstates, &buffers.states_td)?;
        let (dout, dactive) = (&buffers.states_td, &buffers.active_tf);
        device.linear_backward(dout, &self.weight(&layout.down), dactive, (total, d), false)?;
        device.swiglu(&tape.gate_up_tf, f, &again.active_tf)?;
        device.linear_gradient(dout, &again.active_tf, &of(&layout.down), (total, d))?;
        device.swiglu_backward(dactive, &tape.gate_up_tf, f, &buffers.gate_up_tf)?;
        let gain = self.weight(&layout.feed_norm);
        device.rms_norm(&tape.middle_td, &gain, eps, &again.normed_td, &inverse)?;
        let (dgate_up, dnormed) = (&buffers.gate_up_tf, &buffers.normed_td);
        device.linear_gradient(dgate_up, &again.normed_td, &of(&layout.gate_up), (total, 2 * f))?;
        let weight = self.weight(&layout.gate_up);
        device.linear_backward(dgate_up, &weight, dnormed, (total, 2 * f), false)?;
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
        device.linear_gradient(dout, &tape.attended_tq, &of(&layout.output), (total, d))?;
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
        device.linear_gradient(dqkv, &again.normed_td, &of(&layout.qkv), (total, w))?;
        device.linear_backward(dqkv, &self.weight(&layout.qkv), dnormed, (total, w), false)?;
        let dgain = of(&layout.input_norm);
        device.rms_norm_backward(dnormed, input, &gain, &tape.input_inverse_t, dstates, &dgain)
    }
}
