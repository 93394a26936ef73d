//! Embeddings of tokens.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{PIECE_ROWS, expect, kernel_of, number, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

impl Device {
    /// Embeddings of the tokens with those before mixed in, `[t, width]`.
    pub(in crate::cuda) fn embed(
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
    pub(in crate::cuda) fn embed_backward(
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
    pub(in crate::cuda) fn smear_gradient(
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
}
