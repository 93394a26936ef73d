//! Updates of weights.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{blocks, expect, kernel_of, number};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;
use spar_ops::elementwise::AdamWStep;

impl Device {
    /// One update of AdamW, as [`spar_ops::elementwise::adamw`]; the gradient is scaled first, and
    /// `copy` gets the weights in its own numbers.
    pub(in crate::cuda) fn adamw(
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
