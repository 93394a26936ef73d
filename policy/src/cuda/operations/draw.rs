//! Draws of tokens from logits.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{expect, kernel, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Launch;

/// Candidates that a device lists at the most.
pub(in crate::cuda) const ROOM: usize = 512;
/// What rounding may take from a log-probability, with room to spare.
const SLACK: f32 = 1e-3;

/// How a token is drawn from logits over the whole vocabulary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawing {
    /// 0: the first of the most probable tokens is taken.
    pub(crate) temperature: f32,
    /// Between 0 and 1; the draw is the token in whose part of the unit interval it falls.
    pub(crate) uniform: f32,
    /// Whether the log-probability at temperature 1 is wanted, too.
    pub(crate) raw: bool,
}

/// Which tokens may be drawn, as [`SamplingOptions`](crate::sampling::SamplingOptions) say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Truncation {
    /// Positive.
    pub(crate) temperature: f32,
    /// Less than there are tokens.
    pub(crate) top_k: Option<usize>,
    pub(crate) top_p: f32,
    pub(crate) min_p: f32,
    /// Whether the log-sum at temperature 1 is wanted, too.
    pub(crate) raw: bool,
}

/// All tokens that may be drawn, and where `log_sum` tells what the others have, some more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidates {
    /// Ascending.
    pub(crate) ids: Vec<u32>,
    pub(crate) logits: Vec<f32>,
    /// Logarithm of the sum of the exponentials of all logits over the temperature; absent where the
    /// candidates are all that is left by top-k.
    pub(crate) log_sum: Option<f32>,
    /// At temperature 1; 0 where nobody asked for it.
    pub(crate) raw_log_sum: f32,
}

impl Drawing {
    /// The most probable token.
    pub(crate) const BEST: Self = Self { temperature: 0.0, uniform: 0.0, raw: false };
    /// Numbers of a drawing on a device.
    pub(in crate::cuda) const WORDS: usize = 6;

    /// As `Drawing` in `kernels/head.cu`.
    pub(in crate::cuda) fn words(self) -> [u32; Self::WORDS] {
        let is_best = self.temperature == 0.0;
        let inverse = if is_best { 1.0 } else { 1.0 / self.temperature };
        let flags = u32::from(is_best) | u32::from(self.raw) << 1;
        [inverse.to_bits(), self.uniform.to_bits(), flags, 0, 0, 0]
    }
}

impl Truncation {
    /// Asks for the log-sum at temperature 1, and for little else.
    pub(in crate::cuda) const RAW_LOG_SUM: Self =
        Self { temperature: 1.0, top_k: Some(1), top_p: 1.0, min_p: 0.0, raw: true };

    /// Whether a device lists the candidates.
    pub(crate) fn is_listed(&self) -> bool {
        self.top_k.is_none_or(|k| k <= ROOM)
    }

    /// As `Drawing` in `kernels/head.cu`.
    ///
    /// Without top-k, a token whose probability is below `(1 - top_p) / vocabulary` is in no set of the
    /// best tokens that has `top_p` just so: all such tokens together have less than what that set leaves
    /// out.
    pub(in crate::cuda) fn words(self, vocabulary: usize) -> [u32; Drawing::WORDS] {
        let least = ((1.0 - self.top_p) / vocabulary as f32).ln() - SLACK;
        let below_best = self.min_p.ln() - SLACK;
        let flags = 4 | u32::from(self.raw) << 1;
        let top_k = self.top_k.unwrap_or(0) as u32;
        let inverse = 1.0 / self.temperature;
        [inverse.to_bits(), 0, flags, top_k, least.to_bits(), below_best.to_bits()]
    }

    /// What a device has told of a row; `None` where the list has no room for all.
    pub(in crate::cuda) fn found(
        self,
        words: [u32; Drawn::WORDS],
        list: &[u32],
    ) -> Option<Candidates> {
        let [count, log_sum, _, raw_log_sum] = words;
        let (pairs, _) = list.as_chunks::<2>();
        let pairs = pairs.get(..count as usize)?;
        Some(Candidates {
            ids: pairs.iter().map(|[id, _]| *id).collect(),
            logits: pairs.iter().map(|[_, logit]| f32::from_bits(*logit)).collect(),
            log_sum: self.top_k.is_none().then_some(f32::from_bits(log_sum)),
            raw_log_sum: f32::from_bits(raw_log_sum),
        })
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
    /// Draws a token for each row of `logits[row, width]`, by `drawings[row]` into `out[row]`, or lists the
    /// candidates in `lists[row, ROOM, 2]`; log-sums are those of [`Device::head_absorb`] over tiles of
    /// `tile` tokens.
    pub(in crate::cuda) fn draw(
        &self,
        logits: &Buffer,
        (width, tile): (usize, usize),
        drawings: &Buffer,
        (out, lists): (&Buffer, &Buffer),
    ) -> Result<(), DeviceError> {
        let rows = logits.len() / width;
        expect(logits, Kind::F32, rows * width);
        expect(drawings, Kind::U32, rows * Drawing::WORDS);
        expect(out, Kind::U32, rows * Drawn::WORDS);
        expect(lists, Kind::U32, rows * 2 * ROOM);
        let arguments = Arguments::default().buffer(out).buffer(lists).buffer(logits);
        let arguments = arguments.buffer(drawings).int(width).int(tile).int(ROOM);
        let block = threads(tile.min(width));
        let launch = Launch { grid: [rows as u32, 1, 1], block, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel("head", "head_draw"), launch, arguments) }
    }
}
