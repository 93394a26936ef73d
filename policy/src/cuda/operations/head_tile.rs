//! Tiles of the vocabulary.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{expect, kernel, kernel_of, number, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

/// A tile of the vocabulary and what is asked about it; see `kernels/head.cu`.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct HeadTile<'a> {
    /// `[row, width]`.
    pub(in crate::cuda) logits: &'a Buffer,
    pub(in crate::cuda) first: usize,
    pub(in crate::cuda) width: usize,
    pub(in crate::cuda) inverse_temperature: f32,
    /// Where what each row allows begins, and it.
    pub(in crate::cuda) allowed: (&'a Buffer, &'a Buffer),
    /// Where the draws of each row begin, and they.
    pub(in crate::cuda) draws: (&'a Buffer, &'a Buffer),
}

impl HeadTile<'_> {
    fn rows(&self) -> usize {
        self.allowed.0.len() - 1
    }

    fn check(&self, running: &Buffer) {
        let rows = self.rows();
        expect(self.logits, Kind::F32, rows * self.width);
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
    /// Takes a tile up into `running`, four numbers per row, and the logits of draws into `drawn`.
    pub(in crate::cuda) fn head_absorb(
        &self,
        tile: &HeadTile<'_>,
        running: &Buffer,
        drawn: &Buffer,
        is_last: bool,
    ) -> Result<(), DeviceError> {
        tile.check(running);
        expect(drawn, Kind::F32, tile.draws.1.len());
        let arguments = Arguments::default().buffer(running).buffer(drawn).buffer(tile.logits);
        let arguments = tile.arguments(arguments).int(usize::from(is_last));
        let block = threads(tile.width);
        let launch = Launch { grid: [tile.rows() as u32, 1, 1], block, shared_bytes: 0 };
        // SAFETY: lengths have been checked; the caller's lists are ascending and inside.
        unsafe { self.launch(&kernel("head", "head_absorb"), launch, arguments) }
    }

    /// The derivatives by the logits of a tile from those of the draws, two each.
    pub(in crate::cuda) fn head_gradient(
        &self,
        tile: &HeadTile<'_>,
        running: &Buffer,
        derivatives: &Buffer,
        dlogits: &Buffer,
    ) -> Result<(), DeviceError> {
        tile.check(running);
        expect(derivatives, Kind::F32, 2 * tile.draws.1.len());
        expect(dlogits, dlogits.kind(), tile.logits.len());
        let arguments = Arguments::default().buffer(dlogits).buffer(running).buffer(tile.logits);
        let arguments = tile.arguments(arguments).buffer(derivatives);
        let block = threads(tile.width);
        let launch = Launch { grid: [tile.rows() as u32, 1, 1], block, shared_bytes: 0 };
        let kernel = kernel_of("head", "head_gradient", number(dlogits));
        // SAFETY: lengths have been checked; the caller's lists are ascending and inside.
        unsafe { self.launch(&kernel, launch, arguments) }
    }
}
