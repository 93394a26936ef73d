//! Heads of queries and keys, and the pages that keys and values go to.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{PAGE, PIECE_ROWS, blocks, expect, kernel, kernel_of, number};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

/// Heads in the rows of a projection.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct HeadsShape<'a> {
    pub(in crate::cuda) rows: usize,
    /// Width of the projection's rows.
    pub(in crate::cuda) stride: usize,
    /// Where the heads begin in a row.
    pub(in crate::cuda) start: usize,
    pub(in crate::cuda) heads: usize,
    pub(in crate::cuda) head_dim: usize,
    /// Of the norm of a head, in families that have it.
    pub(in crate::cuda) gain: Option<&'a Buffer>,
    pub(in crate::cuda) eps: f32,
    /// Cosines and sines, `[position, rotary_dim / 2, 2]`.
    pub(in crate::cuda) angles: &'a Buffer,
    pub(in crate::cuda) positions: &'a Buffer,
    pub(in crate::cuda) rotary_dim: usize,
}

/// The pages of a layer.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct LayerPages<'a> {
    /// Of all pages and layers.
    pub(in crate::cuda) pages: &'a Buffer,
    /// Elements of a page.
    pub(in crate::cuda) page_stride: usize,
    /// Where the layer begins in a page.
    pub(in crate::cuda) layer_start: usize,
}

impl Device {
    /// Heads, normed where there is a gain, and turned; `out` is `[row, heads, head_dim]`, `inverse`
    /// `[row, heads]`.
    pub(in crate::cuda) fn heads_forward(
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
    pub(in crate::cuda) fn heads_backward(
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
    pub(in crate::cuda) fn write_pages(
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
    pub(in crate::cuda) fn write_tokens(
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
}
