//! RMSNorm of rows.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{PIECE_ROWS, expect, kernel_of, number, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

impl Device {
    /// As [`spar_ops::elementwise::rms_norm`].
    pub(in crate::cuda) fn rms_norm(
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

    /// As [`spar_ops::elementwise::rms_norm_backward`].
    pub(in crate::cuda) fn rms_norm_backward(
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
}
