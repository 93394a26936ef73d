//! Draws of tokens from scores.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{expect, kernel, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

/// How a token is drawn from scores over the whole vocabulary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawing {
    /// 0: the first of the most probable tokens is taken.
    pub(crate) temperature: f32,
    /// Between 0 and 1; the draw is the token in whose part of the unit interval it falls.
    pub(crate) uniform: f32,
    /// Whether the log-probability at temperature 1 is wanted, too.
    pub(crate) raw: bool,
}

impl Drawing {
    /// The most probable token.
    pub(crate) const BEST: Self = Self { temperature: 0.0, uniform: 0.0, raw: false };
    /// Numbers of a drawing on a device.
    pub(in crate::cuda) const WORDS: usize = 3;

    /// As `Drawing` in `kernels/head.cu`.
    pub(in crate::cuda) fn words(self) -> [u32; Self::WORDS] {
        let is_best = self.temperature == 0.0;
        let inverse = if is_best { 1.0 } else { 1.0 / self.temperature };
        let flags = u32::from(is_best) | u32::from(self.raw) << 1;
        [inverse.to_bits(), self.uniform.to_bits(), flags]
    }
}

/// A token that was drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) token: u32,
    /// In what it was drawn from; of the most probable one at temperature 1.
    pub(crate) logprob: f32,
    /// Of what it was drawn from, in nats.
    pub(crate) entropy: f32,
    /// At temperature 1; 0 where nobody asked for it.
    pub(crate) raw_logprob: f32,
}

impl Drawn {
    pub(in crate::cuda) const WORDS: usize = 4;

    pub(in crate::cuda) fn of_words(words: [u32; Self::WORDS]) -> Self {
        let [token, logprob, entropy, raw] = words;
        let [logprob, entropy, raw_logprob] = [logprob, entropy, raw].map(f32::from_bits);
        Self { token, logprob, entropy, raw_logprob }
    }
}

impl Device {
    /// Draws a token for each row of `scores[row, width]`, by `drawings[row]` into `out[row]`; log-sums
    /// are those of [`Device::head_absorb`] over tiles of `tile` tokens.
    pub(in crate::cuda) fn draw(
        &self,
        scores: &Buffer,
        (width, tile): (usize, usize),
        drawings: &Buffer,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        let rows = scores.len() / width;
        expect(scores, Kind::F32, rows * width);
        expect(drawings, Kind::U32, rows * Drawing::WORDS);
        expect(out, Kind::U32, rows * Drawn::WORDS);
        let arguments = Arguments::default().buffer(out).buffer(scores).buffer(drawings);
        let block = threads(tile.min(width));
        let launch = Launch { grid: [rows as u32, 1, 1], block, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel("head", "head_draw"), launch, arguments.int(width).int(tile)) }
    }
}
