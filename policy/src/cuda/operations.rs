//! The kernels as functions on buffers.
//!
//! Every function checks the lengths that its kernel relies on; what indices point at is the caller's
//! to get right.
#![expect(unsafe_code, reason = "launches of kernels")]

use std::ffi::c_void;

use super::DeviceError;
use super::device::{Buffer, Device, Kind};
use super::driver::{Kernel, Launch, Number, Product};

/// Rows whose sums are added up first; fixed, because it takes part in the rounding.
const PIECE_ROWS: usize = 64;
/// Queries of a tile, the heads of a key head counted.
pub(super) const TILE: usize = 64;
/// Keys of a tile.
const KEY_TILE: usize = 64;
/// Keys after which a softmax is begun anew.
pub(super) const CHUNK: usize = 512;
/// Tokens of a page.
const PAGE: usize = crate::ops::page::PAGE;

/// Arguments of a kernel.
#[derive(Default)]
struct Arguments {
    /// Each begins at a multiple of 8 bytes.
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Arguments {
    fn buffer(mut self, buffer: &Buffer) -> Self {
        self.starts.push(self.words.len());
        self.words.push(buffer.address());
        self
    }

    fn buffer_or_null(mut self, buffer: Option<&Buffer>) -> Self {
        self.starts.push(self.words.len());
        self.words.push(buffer.map_or(0, Buffer::address));
        self
    }

    fn int(mut self, value: usize) -> Self {
        self.starts.push(self.words.len());
        self.words.push(u64::from(value as u32));
        self
    }

    fn long(mut self, value: usize) -> Self {
        self.starts.push(self.words.len());
        self.words.push(value as u64);
        self
    }

    fn float(mut self, value: f32) -> Self {
        self.starts.push(self.words.len());
        self.words.push(u64::from(value.to_bits()));
        self
    }

    /// A struct of numbers of 4 bytes.
    fn words(mut self, values: &[u32]) -> Self {
        self.starts.push(self.words.len());
        let pairs = values.chunks(2);
        self.words.extend(pairs.map(|pair| {
            let high = pair.get(1).copied().unwrap_or(0);
            u64::from(pair[0]) | u64::from(high) << 32
        }));
        self
    }

    /// A struct of numbers of 8 bytes.
    fn longs(mut self, values: &[u64]) -> Self {
        self.starts.push(self.words.len());
        self.words.extend_from_slice(values);
        self
    }
}

fn kernel(file: &'static str, name: &str) -> Kernel {
    Kernel { file, head_dim: None, name: name.to_owned() }
}

fn kernel_of(file: &'static str, name: &str, number: Number) -> Kernel {
    kernel(file, &format!("{name}_{}", number.suffix()))
}

/// The number type of a buffer.
fn number(buffer: &Buffer) -> Number {
    match buffer.kind() {
        Kind::Number(number) => number,
        Kind::U32 => panic!("a buffer of numbers holds indices"),
    }
}

fn expect(buffer: &Buffer, kind: Kind, len: usize) {
    assert_eq!((buffer.kind(), buffer.len()), (kind, len), "what a kernel relies on");
}

/// Threads for a row, whole warps of them.
fn threads(width: usize) -> u32 {
    width.next_multiple_of(32).clamp(32, 256) as u32
}

fn blocks(count: usize, of: usize) -> u32 {
    count.div_ceil(of) as u32
}

/// Heads in the rows of a projection.
#[derive(Clone, Copy)]
pub(super) struct HeadsShape<'a> {
    pub(super) rows: usize,
    /// Width of the projection's rows.
    pub(super) stride: usize,
    /// Where the heads begin in a row.
    pub(super) start: usize,
    pub(super) heads: usize,
    pub(super) head_dim: usize,
    /// Of the norm of a head, in families that have it.
    pub(super) gain: Option<&'a Buffer>,
    pub(super) eps: f32,
    /// Cosines and sines, `[position, rotary_dim / 2, 2]`.
    pub(super) angles: &'a Buffer,
    pub(super) positions: &'a Buffer,
    pub(super) rotary_dim: usize,
}

/// The pages of a layer.
#[derive(Clone, Copy)]
pub(super) struct LayerPages<'a> {
    /// Of all pages and layers.
    pub(super) pages: &'a Buffer,
    /// Elements of a page.
    pub(super) page_stride: usize,
    /// Where the layer begins in a page.
    pub(super) layer_start: usize,
}

/// Which tokens are matched.
#[derive(Clone, Copy)]
pub(super) struct TokenMatch<'a> {
    /// `[heads, 2]`.
    pub(super) bias: &'a Buffer,
    /// `[row]`.
    pub(super) row_tokens: &'a Buffer,
    /// `[page, 32]`.
    pub(super) page_tokens: &'a Buffer,
}

/// The attention of a layer; see `kernels/attention.cuh`.
#[derive(Clone, Copy)]
pub(super) struct DeviceAttention<'a> {
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    pub(super) head_dim: usize,
    pub(super) window: usize,
    pub(super) rows: usize,
    pub(super) keys: LayerPages<'a>,
    pub(super) token_match: Option<TokenMatch<'a>>,
    /// Pages of the sequences.
    pub(super) tables: &'a Buffer,
    /// Four numbers each: first row, rows, position, start in the table.
    pub(super) tiles: &'a Buffer,
    /// The largest number of keys that a query has before it, itself included.
    pub(super) longest: usize,
}

/// Who sees the keys of a page; see `kernels/attention_backward.cu`.
#[derive(Clone, Copy)]
pub(super) struct SeenPages<'a> {
    /// Where each page lies.
    pub(super) slots: &'a Buffer,
    /// Four numbers each: position, token before, range of `ranges`.
    pub(super) pages: &'a Buffer,
    /// Three numbers each: first row, rows, position.
    pub(super) ranges: &'a Buffer,
}

impl DeviceAttention<'_> {
    fn shape(&self) -> [u32; 4] {
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        let window = u32::try_from(self.window).unwrap_or(u32::MAX);
        [self.heads as u32, self.key_heads as u32, window, scale.to_bits()]
    }

    fn layer(&self) -> [u64; 2] {
        [self.keys.page_stride as u64, self.keys.layer_start as u64]
    }

    fn match_addresses(&self) -> [u64; 3] {
        let addresses = |tokens: TokenMatch<'_>| {
            [tokens.bias.address(), tokens.row_tokens.address(), tokens.page_tokens.address()]
        };
        self.token_match.map_or([0; 3], addresses)
    }

    fn num_tiles(&self) -> usize {
        self.tiles.len() / 4
    }

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn kernel(&self, file: &'static str, name: &str, number: Number) -> Kernel {
        Kernel { head_dim: Some(self.head_dim), ..kernel_of(file, name, number) }
    }

    /// Elements of a row in shared memory.
    fn stride(&self, number: Number) -> usize {
        self.head_dim.next_multiple_of(16) + 16 / number.bytes()
    }
}

/// What AdamW does in one update; see [`crate::ops::elementwise::AdamWStep`].
pub(super) type AdamWStep = crate::ops::elementwise::AdamWStep;

impl Device {
    /// # Safety
    ///
    /// The arguments are those of the kernel, and its buffers are as long as it reads and writes.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        mut arguments: Arguments,
    ) -> Result<(), DeviceError> {
        if launch.grid.contains(&0) {
            return Ok(());
        }
        let words = arguments.words.as_mut_ptr();
        let starts = arguments.starts.iter();
        // SAFETY: every start is inside the words.
        let mut pointers: Vec<*mut c_void> =
            starts.map(|start| unsafe { words.add(*start) }.cast()).collect();
        // SAFETY: as this function's.
        unsafe { self.driver.launch(kernel, launch, &mut pointers) }
    }

    /// `out[rows, columns] = left * right`, added to what is there with `adds`.
    #[expect(clippy::too_many_arguments, reason = "a product has two operands and three lengths")]
    pub(super) fn multiply(
        &self,
        (left, left_transposed): (&Buffer, bool),
        (right, right_transposed): (&Buffer, bool),
        out: &Buffer,
        rows: usize,
        columns: usize,
        depth: usize,
        adds: bool,
    ) -> Result<(), DeviceError> {
        if rows * columns * depth == 0 {
            return if adds { Ok(()) } else { out.clear() };
        }
        expect(left, right.kind(), rows * depth);
        assert_eq!((right.len(), out.len()), (depth * columns, rows * columns));
        let product = Product {
            left: left.address(),
            left_transposed,
            right: right.address(),
            right_transposed,
            inputs: number(left),
            out: out.address(),
            output: number(out),
            rows,
            columns,
            depth,
            adds,
        };
        // SAFETY: the buffers have the operands' lengths.
        unsafe { self.driver.multiply(&product) }
    }

    /// `out[t, n] = x[t, k] * weight[n, k]^T`.
    pub(super) fn linear(
        &self,
        x: &Buffer,
        weight: &Buffer,
        out: &Buffer,
        (rows, width): (usize, usize),
        adds: bool,
    ) -> Result<(), DeviceError> {
        let depth = weight.len() / width;
        self.multiply((x, false), (weight, true), out, rows, width, depth, adds)
    }

    /// `dx[t, k] = dout[t, n] * weight[n, k]`.
    pub(super) fn linear_backward(
        &self,
        dout: &Buffer,
        weight: &Buffer,
        dx: &Buffer,
        (rows, width): (usize, usize),
        adds: bool,
    ) -> Result<(), DeviceError> {
        let columns = weight.len() / width;
        self.multiply((dout, false), (weight, false), dx, rows, columns, width, adds)
    }

    /// `dweight[n, k] += dout[t, n]^T * x[t, k]`.
    pub(super) fn linear_gradient(
        &self,
        dout: &Buffer,
        x: &Buffer,
        dweight: &Buffer,
        (rows, width): (usize, usize),
    ) -> Result<(), DeviceError> {
        let columns = dweight.len() / width;
        self.multiply((dout, true), (x, false), dweight, width, columns, rows, true)
    }

    /// As [`crate::ops::elementwise::rms_norm`].
    pub(super) fn rms_norm(
        &self,
        x: &Buffer,
        gain: &Buffer,
        eps: f32,
        out: &Buffer,
        inverse: &Buffer,
    ) -> Result<(), DeviceError> {
        let (width, rows) = (gain.len(), inverse.len());
        expect(x, Kind::F32, rows * width);
        expect(out, gain.kind(), rows * width);
        expect(inverse, Kind::F32, rows);
        let arguments =
            Arguments::default().buffer(out).buffer(inverse).buffer(x).buffer(gain).int(width);
        let launch = Launch { grid: [rows as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe {
            self.launch(
                &kernel_of("rms_norm", "rms_norm", number(gain)),
                launch,
                arguments.float(eps),
            )
        }
    }

    /// As [`crate::ops::elementwise::rms_norm_backward`].
    pub(super) fn rms_norm_backward(
        &self,
        dy: &Buffer,
        x: &Buffer,
        gain: &Buffer,
        inverse: &Buffer,
        dx: &Buffer,
        dgain: &Buffer,
    ) -> Result<(), DeviceError> {
        let (width, rows, number) = (gain.len(), inverse.len(), number(gain));
        expect(dy, gain.kind(), rows * width);
        expect(x, Kind::F32, rows * width);
        expect(dx, Kind::F32, rows * width);
        expect(dgain, Kind::F32, width);
        let arguments = Arguments::default();
        let arguments = arguments.buffer(dx).buffer(dy).buffer(x).buffer(gain).buffer(inverse);
        let launch = Launch { grid: [rows as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        let backward = kernel_of("rms_norm", "rms_norm_backward", number);
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&backward, launch, arguments.int(width))? };
        self.add_up(rows, width, dgain, |pieces| {
            let arguments = Arguments::default().buffer(pieces).buffer(dy).buffer(x);
            let arguments = arguments.buffer(inverse).int(rows).int(width).int(PIECE_ROWS);
            (kernel_of("rms_norm", "gain_gradient", number), arguments)
        })
    }

    /// Sums over rows piece by piece, by a kernel whose blocks have 128 columns of a piece.
    fn add_up(
        &self,
        rows: usize,
        width: usize,
        out: &Buffer,
        by: impl FnOnce(&Buffer) -> (Kernel, Arguments),
    ) -> Result<(), DeviceError> {
        let num_pieces = rows.div_ceil(PIECE_ROWS);
        let pieces = self.allocate(Kind::F32, num_pieces * width)?;
        let (kernel, arguments) = by(&pieces);
        let grid = [blocks(width, 128), num_pieces as u32, 1];
        // SAFETY: the caller has checked lengths.
        unsafe { self.launch(&kernel, Launch { grid, block: 128, shared_bytes: 0 }, arguments)? };
        self.add_pieces(out, &pieces, num_pieces)
    }

    /// Adds the rows of `pieces` to `out`.
    pub(super) fn add_pieces(
        &self,
        out: &Buffer,
        pieces: &Buffer,
        num_pieces: usize,
    ) -> Result<(), DeviceError> {
        expect(out, Kind::F32, out.len());
        expect(pieces, Kind::F32, num_pieces * out.len());
        let arguments = Arguments::default().buffer(out).buffer(pieces).int(num_pieces);
        let launch = Launch { grid: [blocks(out.len(), 256), 1, 1], block: 256, shared_bytes: 0 };
        let kernel = kernel("elementwise", "add_pieces");
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel, launch, arguments.int(out.len())) }
    }

    /// `out[width] += ` the sum of the rows.
    pub(super) fn add_column_sums(&self, rows: &Buffer, out: &Buffer) -> Result<(), DeviceError> {
        let width = out.len();
        let num_rows = rows.len() / width;
        expect(rows, rows.kind(), num_rows * width);
        self.add_up(num_rows, width, out, |pieces| {
            let arguments = Arguments::default().buffer(pieces).buffer(rows);
            let arguments = arguments.int(num_rows).int(width).int(PIECE_ROWS);
            (kernel_of("elementwise", "column_sums", number(rows)), arguments)
        })
    }

    /// A kernel of `elementwise` with one thread per element, its arguments ending in their number
    /// and what `rest` adds.
    fn each(
        &self,
        name: &str,
        of: Number,
        count: usize,
        arguments: Arguments,
    ) -> Result<(), DeviceError> {
        let launch = Launch { grid: [blocks(count, 256), 1, 1], block: 256, shared_bytes: 0 };
        // SAFETY: the callers have checked lengths.
        unsafe { self.launch(&kernel_of("elementwise", name, of), launch, arguments) }
    }

    /// As [`crate::ops::elementwise::swiglu`].
    pub(super) fn swiglu(
        &self,
        gate_up: &Buffer,
        width: usize,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(gate_up, out.kind(), 2 * out.len());
        let arguments = Arguments::default().buffer(out).buffer(gate_up).long(out.len()).int(width);
        self.each("swiglu", number(out), out.len(), arguments)
    }

    /// As [`crate::ops::elementwise::swiglu_backward`].
    pub(super) fn swiglu_backward(
        &self,
        dout: &Buffer,
        gate_up: &Buffer,
        width: usize,
        dgate_up: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(gate_up, dout.kind(), 2 * dout.len());
        expect(dgate_up, dout.kind(), 2 * dout.len());
        let arguments = Arguments::default().buffer(dgate_up).buffer(dout).buffer(gate_up);
        let arguments = arguments.long(dout.len()).int(width);
        self.each("swiglu_backward", number(dout), dout.len(), arguments)
    }

    /// Adds the bias to every row.
    pub(super) fn add_bias(&self, rows: &Buffer, bias: &Buffer) -> Result<(), DeviceError> {
        expect(bias, rows.kind(), bias.len());
        assert!(rows.len().is_multiple_of(bias.len()));
        let arguments = Arguments::default().buffer(rows).buffer(bias).long(rows.len());
        self.each("add_bias", number(rows), rows.len(), arguments.int(bias.len()))
    }

    /// The numbers in the type of `out`.
    pub(super) fn convert(&self, x: &Buffer, out: &Buffer) -> Result<(), DeviceError> {
        expect(x, Kind::F32, out.len());
        let arguments = Arguments::default().buffer(out).buffer(x).long(out.len());
        self.each("convert", number(out), out.len(), arguments)
    }

    /// Writes `values[row, width]` to the columns from `start` on of rows of `stride`.
    pub(super) fn put_columns(
        &self,
        values: &Buffer,
        width: usize,
        rows: &Buffer,
        stride: usize,
        start: usize,
    ) -> Result<(), DeviceError> {
        expect(values, Kind::F32, rows.len() / stride * width);
        assert!(start + width <= stride);
        let arguments = Arguments::default().buffer(rows).buffer(values).long(values.len());
        let arguments = arguments.int(width).int(stride).int(start);
        self.each("put_columns", number(rows), values.len(), arguments)
    }

    /// Rows of `x` by their indices.
    pub(super) fn gather_rows(
        &self,
        x: &Buffer,
        rows: &Buffer,
        width: usize,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(x, out.kind(), x.len());
        expect(rows, Kind::U32, out.len() / width);
        let arguments = Arguments::default().buffer(out).buffer(x).buffer(rows).int(width);
        let launch =
            Launch { grid: [rows.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        let kernel = kernel_of("elementwise", "gather_rows", number(out));
        // SAFETY: lengths have been checked; the caller's indices are inside.
        unsafe { self.launch(&kernel, launch, arguments) }
    }

    /// Adds to row `targets[i]` of `out` the rows `entries[starts[i]..starts[i + 1]]` of `x`.
    pub(super) fn collect_rows(
        &self,
        x: &Buffer,
        width: usize,
        (targets, starts, entries): (&Buffer, &Buffer, &Buffer),
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(x, Kind::F32, x.len());
        expect(out, Kind::F32, out.len());
        expect(targets, Kind::U32, targets.len());
        expect(starts, Kind::U32, targets.len() + 1);
        expect(entries, Kind::U32, entries.len());
        let arguments = Arguments::default().buffer(out).buffer(targets).buffer(starts);
        let arguments = arguments.buffer(entries).buffer(x).int(width);
        let launch =
            Launch { grid: [targets.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        // SAFETY: lengths have been checked; the caller's indices are inside.
        unsafe { self.launch(&kernel("elementwise", "collect_rows"), launch, arguments) }
    }

    /// The sum of the squares, as parts `[256]`.
    pub(super) fn square_sums(&self, x: &Buffer) -> Result<Buffer, DeviceError> {
        expect(x, Kind::F32, x.len());
        let sums = self.allocate(Kind::F32, 256)?;
        let arguments = Arguments::default().buffer(&sums).buffer(x).long(x.len());
        let launch = Launch { grid: [256, 1, 1], block: 256, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel("elementwise", "square_sums"), launch, arguments)? };
        Ok(sums)
    }

    /// Embeddings of the tokens with those before mixed in, `[t, width]`.
    pub(super) fn embed(
        &self,
        embedding: &Buffer,
        smear: &Buffer,
        tokens: &Buffer,
        before: &Buffer,
        states: &Buffer,
    ) -> Result<(), DeviceError> {
        let width = states.len() / tokens.len().max(1);
        let smeared = smear.len() / width.max(1);
        expect(states, Kind::F32, tokens.len() * width);
        expect(before, Kind::U32, tokens.len() * smeared);
        expect(smear, embedding.kind(), smeared * width);
        let arguments = Arguments::default().buffer(states).buffer(embedding).buffer(smear);
        let arguments = arguments.buffer(tokens).buffer(before).int(smeared).int(width);
        let launch =
            Launch { grid: [tokens.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        let kernel = kernel_of("embedding", "embed", number(embedding));
        // SAFETY: lengths have been checked; tokens are in the vocabulary.
        unsafe { self.launch(&kernel, launch, arguments) }
    }

    /// Adds the gradient of the embeddings; entries are pairs of a row and 0, or 1 plus the distance
    /// to the token that the embedding was mixed into.
    pub(super) fn embed_backward(
        &self,
        dstates: &Buffer,
        smear: &Buffer,
        (targets, starts, entries): (&Buffer, &Buffer, &Buffer),
        width: usize,
        gradient: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(dstates, Kind::F32, dstates.len());
        expect(gradient, Kind::F32, gradient.len());
        expect(starts, Kind::U32, targets.len() + 1);
        let arguments = Arguments::default().buffer(gradient).buffer(targets).buffer(starts);
        let arguments = arguments.buffer(entries).buffer(dstates).buffer(smear).int(width);
        let launch =
            Launch { grid: [targets.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        let kernel = kernel_of("embedding", "embed_backward", number(smear));
        // SAFETY: lengths have been checked; the caller's indices are inside.
        unsafe { self.launch(&kernel, launch, arguments) }
    }

    /// Adds the gradient of the weights of the tokens before.
    pub(super) fn smear_gradient(
        &self,
        dstates: &Buffer,
        embedding: &Buffer,
        before: &Buffer,
        width: usize,
        gradient: &Buffer,
    ) -> Result<(), DeviceError> {
        let (rows, smeared) = (dstates.len() / width, gradient.len() / width);
        expect(dstates, Kind::F32, rows * width);
        expect(before, Kind::U32, rows * smeared);
        expect(gradient, Kind::F32, smeared * width);
        self.add_up(rows, smeared * width, gradient, |pieces| {
            let arguments = Arguments::default().buffer(pieces).buffer(dstates).buffer(embedding);
            let arguments = arguments.buffer(before).int(rows).int(smeared).int(width);
            (kernel_of("embedding", "smear_gradient", number(embedding)), arguments.int(PIECE_ROWS))
        })
    }

    /// Heads, normed where there is a gain, and turned; `out` is `[row, heads, head_dim]`, `inverse`
    /// `[row, heads]`.
    pub(super) fn heads_forward(
        &self,
        rows: &Buffer,
        shape: HeadsShape<'_>,
        out: &Buffer,
        inverse: Option<&Buffer>,
    ) -> Result<(), DeviceError> {
        let count = shape.rows * shape.heads;
        expect(rows, out.kind(), shape.rows * shape.stride);
        expect(out, out.kind(), count * shape.head_dim);
        expect(shape.positions, Kind::U32, shape.rows);
        assert_eq!(shape.gain.is_some(), inverse.is_some(), "a norm has inverses");
        if let (Some(gain), Some(inverse)) = (shape.gain, inverse) {
            expect(gain, out.kind(), shape.head_dim);
            expect(inverse, Kind::F32, count);
        }
        let arguments = Arguments::default().buffer(out).buffer_or_null(inverse).buffer(rows);
        let arguments = arguments.int(shape.rows).int(shape.stride).int(shape.start);
        let arguments = arguments.int(shape.heads).int(shape.head_dim).buffer_or_null(shape.gain);
        let arguments = arguments.float(shape.eps).buffer(shape.angles).buffer(shape.positions);
        let launch = Launch { grid: [blocks(count, 4), 1, 1], block: 128, shared_bytes: 0 };
        let kernel = kernel_of("heads", "heads_forward", number(out));
        // SAFETY: lengths have been checked; positions are inside the table of angles.
        unsafe { self.launch(&kernel, launch, arguments.int(shape.rotary_dim / 2)) }
    }

    /// The gradient of [`Device::heads_forward`]; `dout` is turned back in place, the gradient of the
    /// gain is added to `dgain`.
    pub(super) fn heads_backward(
        &self,
        dout: &Buffer,
        rows: &Buffer,
        inverse: Option<&Buffer>,
        shape: HeadsShape<'_>,
        drows: &Buffer,
        dgain: Option<&Buffer>,
    ) -> Result<(), DeviceError> {
        let count = shape.rows * shape.heads;
        let number = number(rows);
        expect(rows, drows.kind(), shape.rows * shape.stride);
        expect(drows, drows.kind(), shape.rows * shape.stride);
        expect(dout, Kind::F32, count * shape.head_dim);
        let arguments = Arguments::default().buffer(drows).buffer(dout).buffer(rows);
        let arguments = arguments.buffer_or_null(inverse).int(shape.rows).int(shape.stride);
        let arguments = arguments.int(shape.start).int(shape.heads).int(shape.head_dim);
        let arguments = arguments.buffer_or_null(shape.gain).buffer(shape.angles);
        let arguments = arguments.buffer(shape.positions).int(shape.rotary_dim / 2);
        let launch = Launch { grid: [blocks(count, 4), 1, 1], block: 128, shared_bytes: 0 };
        let backward = kernel_of("heads", "heads_backward", number);
        // SAFETY: lengths have been checked; positions are inside the table of angles.
        unsafe { self.launch(&backward, launch, arguments)? };
        let (Some(inverse), Some(dgain)) = (inverse, dgain) else { return Ok(()) };
        expect(inverse, Kind::F32, count);
        expect(dgain, Kind::F32, shape.head_dim);
        self.add_up(count, shape.head_dim, dgain, |pieces| {
            let arguments = Arguments::default().buffer(pieces).buffer(dout).buffer(rows);
            let arguments = arguments.buffer(inverse).int(count).int(shape.head_dim);
            let arguments = arguments.int(shape.stride).int(shape.start).int(shape.heads);
            (kernel_of("rms_norm", "head_gain_gradient", number), arguments.int(PIECE_ROWS))
        })
    }

    /// Keys `[row, width]`, and the values behind `value_start` in the rows of the projection, go to
    /// their places: pairs of a place and a row.
    pub(super) fn write_pages(
        &self,
        to: LayerPages<'_>,
        entries: &Buffer,
        keys: &Buffer,
        rows: &Buffer,
        (width, head_dim, stride, value_start): (usize, usize, usize, usize),
    ) -> Result<(), DeviceError> {
        expect(keys, to.pages.kind(), rows.len() / stride * width);
        expect(rows, to.pages.kind(), rows.len());
        assert!(
            value_start + width <= stride && to.layer_start + 2 * width * PAGE <= to.page_stride
        );
        let arguments = Arguments::default().buffer(to.pages).buffer(entries).buffer(keys);
        let arguments = arguments.buffer(rows).long(to.page_stride).long(to.layer_start);
        let arguments = arguments.int(width).int(head_dim).int(stride).int(value_start);
        let grid = [(entries.len() / 2) as u32, 1, 1];
        let kernel = kernel_of("heads", "write_pages", number(keys));
        // SAFETY: lengths have been checked; the caller's places and rows are inside.
        unsafe { self.launch(&kernel, Launch { grid, block: 128, shared_bytes: 0 }, arguments) }
    }

    /// The tokens of a call go to their places: pairs of a place and a row.
    pub(super) fn write_tokens(
        &self,
        entries: &Buffer,
        tokens: &Buffer,
        page_tokens: &Buffer,
    ) -> Result<(), DeviceError> {
        let count = entries.len() / 2;
        let arguments = Arguments::default().buffer(page_tokens).buffer(entries).buffer(tokens);
        let launch = Launch { grid: [blocks(count, 128), 1, 1], block: 128, shared_bytes: 0 };
        // SAFETY: the caller's places and rows are inside.
        unsafe { self.launch(&kernel("heads", "write_tokens"), launch, arguments.int(count)) }
    }

    /// Attention: `out` is `[row, heads, head_dim]`, `log_sums` `[row, heads]`.
    pub(super) fn attention(
        &self,
        attention: &DeviceAttention<'_>,
        queries: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
    ) -> Result<(), DeviceError> {
        let number = number(queries);
        expect(queries, attention.keys.pages.kind(), attention.rows * attention.width());
        expect(out, queries.kind(), queries.len());
        expect(log_sums, Kind::F32, attention.rows * attention.heads);
        let (tiles, key_heads) = (attention.num_tiles(), attention.key_heads);
        let chunks = attention.longest.div_ceil(CHUNK);
        // Several blocks share the keys of few queries.
        let parts = if chunks > 1 && tiles * key_heads < 2 * self.driver.processors() {
            let len = tiles * key_heads * chunks * TILE * (attention.head_dim + 2);
            Some(self.allocate(Kind::F32, len)?)
        } else {
            None
        };
        let stages = if number == Number::Bf16 { 4 } else { 2 };
        let depth = attention.head_dim.next_multiple_of(16);
        let totals = if chunks > 1 { TILE * depth * 4 } else { 0 };
        let shared = stages * KEY_TILE * attention.stride(number) * number.bytes() + totals;
        let arguments = Arguments::default().buffer(out).buffer(log_sums);
        let arguments = arguments.buffer_or_null(parts.as_ref()).buffer(queries);
        let arguments = arguments.buffer(attention.keys.pages).buffer(attention.tables);
        let arguments = arguments.buffer(attention.tiles).longs(&attention.layer());
        let arguments = arguments.words(&attention.shape()).longs(&attention.match_addresses());
        let along = if parts.is_some() { chunks } else { 1 };
        let grid = [tiles as u32, key_heads as u32, along as u32];
        let launch = Launch { grid, block: 128, shared_bytes: shared as u32 };
        let forward = attention.kernel("attention_forward", "attention_forward", number);
        // SAFETY: lengths have been checked; tiles and tables are the caller's to get right.
        unsafe { self.launch(&forward, launch, arguments)? };
        let Some(parts) = parts else { return Ok(()) };
        let arguments = Arguments::default().buffer(out).buffer(log_sums).buffer(&parts);
        let arguments = arguments.buffer(attention.tiles).words(&attention.shape()).int(chunks);
        let grid = [tiles as u32, key_heads as u32, 1];
        let merge = attention.kernel("attention_forward", "attention_merge", number);
        // SAFETY: as above.
        unsafe { self.launch(&merge, Launch { grid, block: 128, shared_bytes: 0 }, arguments) }
    }

    /// The gradients of [`Device::attention`]: of queries `[row, heads, head_dim]`, of keys and values
    /// `[page, 32, key_heads, head_dim]`, and added to `dbias` that of the bias.
    #[expect(clippy::too_many_arguments, reason = "a backward takes all that its forward took")]
    pub(super) fn attention_backward(
        &self,
        attention: &DeviceAttention<'_>,
        seen: SeenPages<'_>,
        queries: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
        dout: &Buffer,
        dqueries: &Buffer,
        (dkeys, dvalues): (&Buffer, &Buffer),
        dbias: Option<&Buffer>,
    ) -> Result<(), DeviceError> {
        let number = number(queries);
        let (rows, heads, key_heads) = (attention.rows, attention.heads, attention.key_heads);
        for buffer in [queries, out, dout] {
            expect(buffer, queries.kind(), rows * attention.width());
        }
        expect(dqueries, Kind::F32, rows * attention.width());
        expect(log_sums, Kind::F32, rows * heads);
        let pages = seen.slots.len();
        for buffer in [dkeys, dvalues] {
            expect(buffer, Kind::F32, pages * PAGE * key_heads * attention.head_dim);
        }
        expect(seen.pages, Kind::U32, 4 * pages);
        assert_eq!(attention.token_match.is_some(), dbias.is_some(), "a bias has a gradient");

        let deltas = self.allocate(Kind::F32, rows * heads)?;
        let arguments = Arguments::default().buffer(&deltas).buffer(out).buffer(dout);
        let grid = [blocks(rows * heads, 4), 1, 1];
        let kernel = attention.kernel("attention_backward", "attention_deltas", number);
        let launch = Launch { grid, block: 128, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel, launch, arguments.int(rows * heads))? };

        let row_bias = match dbias {
            Some(_) => Some(self.allocate(Kind::F32, rows * heads * 2)?),
            None => None,
        };
        let row_bytes = attention.stride(number) * number.bytes();
        let arguments = Arguments::default().buffer(dqueries).buffer_or_null(row_bias.as_ref());
        let arguments = arguments.buffer(queries).buffer(dout).buffer(log_sums).buffer(&deltas);
        let arguments = arguments.buffer(attention.keys.pages).buffer(attention.tables);
        let arguments = arguments.buffer(attention.tiles).longs(&attention.layer());
        let arguments = arguments.words(&attention.shape()).longs(&attention.match_addresses());
        let grid = [attention.num_tiles() as u32, key_heads as u32, 1];
        let shared_bytes = (4 * TILE * row_bytes) as u32;
        let kernel = attention.kernel("attention_backward", "attention_backward_queries", number);
        // SAFETY: lengths have been checked; tiles and tables are the caller's to get right.
        unsafe { self.launch(&kernel, Launch { grid, block: 128, shared_bytes }, arguments)? };
        if let (Some(row_bias), Some(dbias)) = (row_bias, dbias) {
            self.add_column_sums(&row_bias, dbias)?;
        }

        let arguments = Arguments::default().buffer(dkeys).buffer(dvalues).buffer(queries);
        let arguments = arguments.buffer(dout).buffer(log_sums).buffer(&deltas);
        let arguments = arguments.buffer(attention.keys.pages).buffer(seen.slots);
        let arguments = arguments.buffer(seen.pages).buffer(seen.ranges);
        let arguments = arguments.longs(&attention.layer()).words(&attention.shape());
        let arguments = arguments.longs(&attention.match_addresses());
        let grid = [pages as u32, key_heads as u32, 1];
        // Keys, values, and as many queries and their gradients.
        let shared_bytes = (4 * PAGE * row_bytes) as u32;
        let kernel = attention.kernel("attention_backward", "attention_backward_keys", number);
        // SAFETY: lengths have been checked; ranges and slots are the caller's to get right.
        unsafe { self.launch(&kernel, Launch { grid, block: 64, shared_bytes }, arguments) }
    }

    /// One update of AdamW, as [`crate::ops::elementwise::adamw`]; the gradient is scaled first, and
    /// `copy` gets the weights in its own numbers.
    pub(super) fn adamw(
        &self,
        (weights, copy): (&Buffer, &Buffer),
        (first, second): (&Buffer, &Buffer),
        gradient: &Buffer,
        step: &AdamWStep,
        scale: f32,
    ) -> Result<(), DeviceError> {
        let len = weights.len();
        for buffer in [weights, first, second, gradient] {
            expect(buffer, Kind::F32, len);
        }
        expect(copy, copy.kind(), len);
        let values = [step.beta1, step.beta2, step.epsilon, step.keep, step.step, step.root, scale];
        let arguments = Arguments::default().buffer(weights).buffer(copy).buffer(first);
        let arguments = arguments.buffer(second).buffer(gradient).long(len);
        let arguments = arguments.words(&values.map(f32::to_bits));
        let launch = Launch { grid: [blocks(len, 256), 1, 1], block: 256, shared_bytes: 0 };
        let kernel = kernel_of("adamw", "adamw", number(copy));
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel, launch, arguments) }
    }
}

/// A tile of the vocabulary and what is asked about it; see `kernels/head.cu`.
#[derive(Clone, Copy)]
pub(super) struct HeadTile<'a> {
    /// `[row, width]`.
    pub(super) scores: &'a Buffer,
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) inverse_temperature: f32,
    /// Where what each row allows begins, and it.
    pub(super) allowed: (&'a Buffer, &'a Buffer),
    /// Where the draws of each row begin, and they.
    pub(super) draws: (&'a Buffer, &'a Buffer),
}

impl HeadTile<'_> {
    fn rows(&self) -> usize {
        self.allowed.0.len() - 1
    }

    fn check(&self, running: &Buffer) {
        let rows = self.rows();
        expect(self.scores, Kind::F32, rows * self.width);
        expect(running, Kind::F32, 4 * rows);
        expect(self.allowed.0, Kind::U32, rows + 1);
        expect(self.draws.0, Kind::U32, rows + 1);
    }

    fn arguments(&self, arguments: Arguments) -> Arguments {
        let arguments = arguments.int(self.first).int(self.width).float(self.inverse_temperature);
        let arguments = arguments.buffer(self.allowed.0).buffer(self.allowed.1);
        arguments.buffer(self.draws.0).buffer(self.draws.1)
    }
}

impl Device {
    /// Takes a tile up into `running`, four numbers per row, and the scores of draws into `drawn`.
    pub(super) fn head_absorb(
        &self,
        tile: &HeadTile<'_>,
        running: &Buffer,
        drawn: &Buffer,
        is_last: bool,
    ) -> Result<(), DeviceError> {
        tile.check(running);
        expect(drawn, Kind::F32, tile.draws.1.len());
        let arguments = Arguments::default().buffer(running).buffer(drawn).buffer(tile.scores);
        let arguments = tile.arguments(arguments).int(usize::from(is_last));
        let block = threads(tile.width);
        let launch = Launch { grid: [tile.rows() as u32, 1, 1], block, shared_bytes: 0 };
        // SAFETY: lengths have been checked; the caller's lists are ascending and inside.
        unsafe { self.launch(&kernel("head", "head_absorb"), launch, arguments) }
    }

    /// The derivatives by the scores of a tile from those of the draws, two each.
    pub(super) fn head_gradient(
        &self,
        tile: &HeadTile<'_>,
        running: &Buffer,
        derivatives: &Buffer,
        dscores: &Buffer,
    ) -> Result<(), DeviceError> {
        tile.check(running);
        expect(derivatives, Kind::F32, 2 * tile.draws.1.len());
        expect(dscores, dscores.kind(), tile.scores.len());
        let arguments = Arguments::default().buffer(dscores).buffer(running).buffer(tile.scores);
        let arguments = tile.arguments(arguments).buffer(derivatives);
        let block = threads(tile.width);
        let launch = Launch { grid: [tile.rows() as u32, 1, 1], block, shared_bytes: 0 };
        let kernel = kernel_of("head", "head_gradient", number(dscores));
        // SAFETY: lengths have been checked; the caller's lists are ascending and inside.
        unsafe { self.launch(&kernel, launch, arguments) }
    }
}
