//! The decoder's forward on a device; `decoder` has the same for the CPU.

use std::ops::Range;

use super::DeviceError;
use super::batch::DeviceBatch;
use super::device::{Buffer, Device, Kind};
use super::driver::Number;
use super::learner::{DeviceAdapter, Live, LiveWeights};
use super::operations::{Columns, DeviceAttention, HeadsShape, LayerPages, LowRank, TokenMatch};
use super::placement::Placement;
use crate::Weights;
use crate::decoder::batch::Batch;

/// What backward needs of a forward, besides the batch.
#[derive(Debug)]
pub(crate) struct DeviceTape {
    pub(super) batch: DeviceBatch,
    pub(super) weights: Buffer,
    /// What goes into each layer, `[t, hidden]`.
    pub(super) inputs: Vec<Buffer>,
    /// Empty where layers are computed once more.
    pub(super) layers: Vec<LayerTape>,
    pub(super) last: Buffer,
    pub(super) last_inverse: Buffer,
}

/// What backward needs of a layer besides its input; the letters are those of the CPU's.
#[derive(Debug)]
pub(super) struct LayerTape {
    pub(super) input_inverse_t: Buffer,
    /// Before the norms of query and key heads.
    pub(super) qkv_tw: Buffer,
    /// Absent in families without these norms.
    pub(super) query_inverse_th: Option<Buffer>,
    pub(super) key_inverse_th: Option<Buffer>,
    pub(super) log_sums_th: Buffer,
    pub(super) attended_tq: Buffer,
    pub(super) middle_td: Buffer,
    pub(super) middle_inverse_t: Buffer,
    pub(super) gate_up_tf: Buffer,
}

/// What no backward needs, or what it computes once more.
#[derive(Debug)]
pub(super) struct Scratch {
    /// What went into a product, `[t, hidden]`.
    pub(super) normed_td: Buffer,
    pub(super) queries_tq: Buffer,
    pub(super) keys_tk: Buffer,
    pub(super) active_tf: Buffer,
}

impl LayerTape {
    /// The first rows of a tape for `all` of them.
    pub(super) fn first(&self, rows: usize, all: usize) -> Self {
        let first = |buffer: &Buffer| buffer.first_rows(rows, all);
        Self {
            input_inverse_t: first(&self.input_inverse_t),
            qkv_tw: first(&self.qkv_tw),
            query_inverse_th: self.query_inverse_th.as_ref().map(first),
            key_inverse_th: self.key_inverse_th.as_ref().map(first),
            log_sums_th: first(&self.log_sums_th),
            attended_tq: first(&self.attended_tq),
            middle_td: first(&self.middle_td),
            middle_inverse_t: first(&self.middle_inverse_t),
            gate_up_tf: first(&self.gate_up_tf),
        }
    }
}

impl Scratch {
    /// The first rows of buffers for `all` of them.
    pub(super) fn first(&self, rows: usize, all: usize) -> Self {
        Self {
            normed_td: self.normed_td.first_rows(rows, all),
            queries_tq: self.queries_tq.first_rows(rows, all),
            keys_tk: self.keys_tk.first_rows(rows, all),
            active_tf: self.active_tf.first_rows(rows, all),
        }
    }
}

/// One call's work on a device.
pub(super) struct Work<'a> {
    pub(super) weights: &'a Weights,
    pub(super) placement: &'a Placement,
    pub(super) device: &'a Device,
    pub(super) number: Number,
    /// In the layout of the parameters.
    pub(super) data: &'a Buffer,
    pub(super) batch: &'a DeviceBatch,
    /// Of all pages, and their tokens.
    pub(super) pages: Buffer,
    pub(super) page_tokens: Buffer,
}

/// Reads the batch and returns the final hidden states `[t, hidden]` on the device, and with `keeps`
/// what backward needs; `recomputes` keeps the inputs of the layers alone.
///
/// The caller has the placement's turn.
pub(super) fn forward(
    weights: &Weights,
    placement: &Placement,
    batch: &Batch,
    keeps: bool,
    recomputes: bool,
) -> Result<(Buffer, Option<DeviceTape>), DeviceError> {
    let device = placement.device();
    let data = placement.weights(weights)?;
    let device_batch = DeviceBatch::new(device, weights, batch)?;
    for copy in &batch.copies {
        let page = |page: u32| batch.pages[page as usize].device.as_ref();
        let (from, to) = (page(copy.from), page(copy.to));
        to.expect("pages are on the device").copy_from(from.expect("pages are on the device"))?;
    }
    let work = Work::new(weights, placement, &data, &device_batch);
    let config = &weights.config;
    let (total, d) = (device_batch.rows, config.hidden_size);
    let states = work.floats(total * d)?;
    work.embed(&states)?;

    let scratch = work.scratch()?;
    let (mut inputs, mut layers) = (Vec::new(), Vec::new());
    let mut tape = work.layer_tape()?;
    for index in 0..config.num_hidden_layers {
        if keeps {
            let input = device.allocate(Kind::F32, total * d)?;
            input.copy_from(&states)?;
            inputs.push(input);
        }
        work.layer(index, &states, &tape, &scratch, true)?;
        if keeps && !recomputes {
            layers.push(std::mem::replace(&mut tape, work.layer_tape()?));
        }
    }
    let (hidden, inverse) = (work.numbers(total * d)?, work.floats(total)?);
    work.final_norm(&states, &hidden, &inverse)?;
    let tape = keeps.then_some(DeviceTape {
        weights: data,
        batch: device_batch,
        inputs,
        layers,
        last: states,
        last_inverse: inverse,
    });
    Ok((hidden, tape))
}

impl<'a> Work<'a> {
    pub(super) fn new(
        weights: &'a Weights,
        placement: &'a Placement,
        data: &'a Buffer,
        batch: &'a DeviceBatch,
    ) -> Self {
        let (pages, page_tokens) = placement.pool().buffers();
        let (device, number) = (placement.device(), placement.number());
        Self { weights, placement, device, number, data, batch, pages, page_tokens }
    }

    pub(super) fn weight(&self, range: &Range<usize>) -> Buffer {
        self.data.slice(range.clone())
    }

    pub(super) fn numbers(&self, len: usize) -> Result<Buffer, DeviceError> {
        self.device.allocate(Kind::Number(self.number), len)
    }

    pub(super) fn floats(&self, len: usize) -> Result<Buffer, DeviceError> {
        self.device.allocate(Kind::F32, len)
    }

    /// Width of the projection of queries, keys and values.
    pub(super) fn qkv_width(&self) -> usize {
        self.weights.config.query_width() + 2 * self.weights.config.key_width()
    }

    /// Writes what goes into the first layer; tokens go to their pages where they are matched.
    pub(super) fn embed(&self, states: &Buffer) -> Result<(), DeviceError> {
        let (batch, layout) = (self.batch, &self.weights.layout);
        if self.weights.config.token_match_bias {
            self.device.write_tokens(&batch.entries, &batch.tokens, &self.page_tokens)?;
        }
        let (embedding, smear) = (self.weight(&layout.embedding), self.weight(&layout.smear));
        self.device.embed(&embedding, &smear, &batch.tokens, &batch.before, states)
    }

    /// The final hidden states from what came out of the last layer.
    pub(super) fn final_norm(
        &self,
        states: &Buffer,
        hidden: &Buffer,
        inverse: &Buffer,
    ) -> Result<(), DeviceError> {
        let gain = self.weight(&self.weights.layout.final_norm);
        self.device.rms_norm(states, &gain, self.weights.config.rms_norm_eps, hidden, inverse)
    }

    pub(super) fn scratch(&self) -> Result<Scratch, DeviceError> {
        let (config, total) = (&self.weights.config, self.batch.rows);
        Ok(Scratch {
            normed_td: self.numbers(total * config.hidden_size)?,
            queries_tq: self.numbers(total * config.query_width())?,
            keys_tk: self.numbers(total * config.key_width())?,
            active_tf: self.numbers(total * config.intermediate_size)?,
        })
    }

    pub(super) fn layer_tape(&self) -> Result<LayerTape, DeviceError> {
        let (config, total) = (&self.weights.config, self.batch.rows);
        let has_norm = config.family.has_query_key_norm();
        let inverse = |heads: usize| -> Result<Option<Buffer>, DeviceError> {
            if has_norm { Ok(Some(self.floats(total * heads)?)) } else { Ok(None) }
        };
        Ok(LayerTape {
            input_inverse_t: self.floats(total)?,
            qkv_tw: self.numbers(total * self.qkv_width())?,
            query_inverse_th: inverse(config.num_attention_heads)?,
            key_inverse_th: inverse(config.num_key_value_heads)?,
            log_sums_th: self.floats(total * config.num_attention_heads)?,
            attended_tq: self.numbers(total * config.query_width())?,
            middle_td: self.floats(total * config.hidden_size)?,
            middle_inverse_t: self.floats(total)?,
            gate_up_tf: self.numbers(total * 2 * config.intermediate_size)?,
        })
    }

    /// Sends the residual states through a layer; keys and values are written unless they have been.
    pub(super) fn layer(
        &self,
        index: usize,
        states: &Buffer,
        tape: &LayerTape,
        scratch: &Scratch,
        writes: bool,
    ) -> Result<(), DeviceError> {
        let (config, device, total) = (&self.weights.config, self.device, self.batch.rows);
        let layout = &self.weights.layout.layers[index];
        let (d, f, eps) = (config.hidden_size, config.intermediate_size, config.rms_norm_eps);
        let (q, k, w) = (config.query_width(), config.key_width(), self.qkv_width());

        // 1. Queries, keys and values.
        let (gain, normed) = (self.weight(&layout.input_norm), &scratch.normed_td);
        device.rms_norm(states, &gain, eps, normed, &tape.input_inverse_t)?;
        device.linear(normed, &self.weight(&layout.qkv), &tape.qkv_tw, (total, w), false)?;
        self.adapt(&layout.qkv, normed, &tape.qkv_tw, w)?;
        if !layout.qkv_bias.is_empty() {
            device.add_bias(&tape.qkv_tw, &self.weight(&layout.qkv_bias))?;
        }
        self.queries(index, tape, &scratch.queries_tq)?;
        let gain = self.key_gain(index);
        let inverse = tape.key_inverse_th.as_ref();
        device.heads_forward(
            &tape.qkv_tw,
            self.key_heads(gain.as_ref()),
            &scratch.keys_tk,
            inverse,
        )?;
        if writes {
            let shape = (k, config.head_dim, w, q + k);
            let (entries, keys) = (&self.batch.entries, &scratch.keys_tk);
            device.write_pages(self.layer_pages(index), entries, keys, &tape.qkv_tw, shape)?;
        }

        // 2. Attention.
        let bias = self.match_bias(index);
        let attention = self.attention(index, bias.as_ref());
        device.attention(&attention, &scratch.queries_tq, &tape.attended_tq, &tape.log_sums_th)?;
        device.linear(&tape.attended_tq, &self.weight(&layout.output), states, (total, d), true)?;
        self.adapt(&layout.output, &tape.attended_tq, states, d)?;

        // 3. Feed-forward.
        let gain = self.weight(&layout.feed_norm);
        tape.middle_td.copy_from(states)?;
        device.rms_norm(states, &gain, eps, normed, &tape.middle_inverse_t)?;
        device.linear(
            normed,
            &self.weight(&layout.gate_up),
            &tape.gate_up_tf,
            (total, 2 * f),
            false,
        )?;
        self.adapt(&layout.gate_up, normed, &tape.gate_up_tf, 2 * f)?;
        device.swiglu(&tape.gate_up_tf, f, &scratch.active_tf)?;
        device.linear(&scratch.active_tf, &self.weight(&layout.down), states, (total, d), true)?;
        self.adapt(&layout.down, &scratch.active_tf, states, d)
    }

    /// Adds to `out`, which has rows of `width`, what the adapter changes in the products of `x` with
    /// the matrices that lie in `range`.
    fn adapt(
        &self,
        range: &Range<usize>,
        x: &Buffer,
        out: &Buffer,
        width: usize,
    ) -> Result<(), DeviceError> {
        let Some(adapter) = self.adapter() else { return Ok(()) };
        for (matrix, start) in adapter.inside(range) {
            let (a, b) = adapter.factors_of(matrix);
            let factors = LowRank { a: &a, b: &b, rank: adapter.rank, scale: adapter.scale };
            let out = Columns { matrix: out, stride: width, start, width: matrix.outputs };
            self.device.low_rank(x, factors, out)?;
        }
        Ok(())
    }

    pub(super) fn adapter(&self) -> Option<&DeviceAdapter> {
        match &self.weights.live {
            Some(LiveWeights(Live::Adapter(adapter))) => Some(adapter),
            _ => None,
        }
    }

    /// The queries of a layer from their projection.
    pub(super) fn queries(
        &self,
        index: usize,
        tape: &LayerTape,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        let gain = self.query_gain(index);
        let shape = self.query_heads(gain.as_ref());
        self.device.heads_forward(&tape.qkv_tw, shape, out, tape.query_inverse_th.as_ref())
    }

    fn gain(&self, range: &Range<usize>) -> Option<Buffer> {
        (!range.is_empty()).then(|| self.weight(range))
    }

    pub(super) fn query_gain(&self, index: usize) -> Option<Buffer> {
        self.gain(&self.weights.layout.layers[index].query_norm)
    }

    pub(super) fn key_gain(&self, index: usize) -> Option<Buffer> {
        self.gain(&self.weights.layout.layers[index].key_norm)
    }

    pub(super) fn match_bias(&self, index: usize) -> Option<Buffer> {
        self.gain(&self.weights.layout.layers[index].match_bias)
    }

    pub(super) fn query_heads<'b>(&'b self, gain: Option<&'b Buffer>) -> HeadsShape<'b> {
        let config = &self.weights.config;
        HeadsShape {
            rows: self.batch.rows,
            stride: self.qkv_width(),
            start: 0,
            heads: config.num_attention_heads,
            head_dim: config.head_dim,
            gain,
            eps: config.rms_norm_eps,
            angles: self.placement.angles(),
            positions: &self.batch.positions,
            rotary_dim: config.rotary_dim(),
        }
    }

    pub(super) fn key_heads<'b>(&'b self, gain: Option<&'b Buffer>) -> HeadsShape<'b> {
        let config = &self.weights.config;
        let heads = config.num_key_value_heads;
        HeadsShape { start: config.query_width(), heads, ..self.query_heads(gain) }
    }

    pub(super) fn layer_pages(&self, index: usize) -> LayerPages<'_> {
        let pool = self.placement.pool();
        let layer_start = index * pool.layer_len();
        LayerPages { pages: &self.pages, page_stride: pool.page_stride(), layer_start }
    }

    pub(super) fn attention<'b>(
        &'b self,
        index: usize,
        bias: Option<&'b Buffer>,
    ) -> DeviceAttention<'b> {
        let config = &self.weights.config;
        DeviceAttention {
            heads: config.num_attention_heads,
            key_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            window: config.sliding_window.unwrap_or(usize::MAX),
            rows: self.batch.rows,
            keys: self.layer_pages(index),
            token_match: bias.map(|bias| TokenMatch {
                bias,
                row_tokens: &self.batch.tokens,
                page_tokens: &self.page_tokens,
            }),
            tables: &self.batch.tables,
            tiles: &self.batch.tiles,
            longest: self.batch.longest,
        }
    }
}
