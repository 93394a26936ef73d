//! Sums over rows and over everything, each in a fixed order.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{PIECE_ROWS, blocks, expect, kernel, kernel_of, number};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::{Kernel, Launch};

impl Device {
    /// Sums over rows piece by piece, by a kernel whose blocks have 128 columns of a piece.
    pub(super) fn add_up(
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
    pub(in crate::cuda) fn add_pieces(
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
    pub(in crate::cuda) fn add_column_sums(
        &self,
        rows: &Buffer,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        let width = out.len();
        let num_rows = rows.len() / width;
        expect(rows, rows.kind(), num_rows * width);
        self.add_up(num_rows, width, out, |pieces| {
            let arguments = Arguments::default().buffer(pieces).buffer(rows);
            let arguments = arguments.int(num_rows).int(width).int(PIECE_ROWS);
            (kernel_of("elementwise", "column_sums", number(rows)), arguments)
        })
    }

    /// The sum of the squares, as parts `[256]`.
    pub(in crate::cuda) fn square_sums(&self, x: &Buffer) -> Result<Buffer, DeviceError> {
        expect(x, Kind::F32, x.len());
        let sums = self.allocate(Kind::F32, 256)?;
        let arguments = Arguments::default().buffer(&sums).buffer(x).long(x.len());
        let launch = Launch { grid: [256, 1, 1], block: 256, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel("elementwise", "square_sums"), launch, arguments)? };
        Ok(sums)
    }
}
