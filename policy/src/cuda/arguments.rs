//! What kernels are given.

#[cfg(any(test, feature = "cuda", feature = "emulator"))]
use std::ffi::c_void;

use super::device::Buffer;

/// Arguments of a kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    /// Each begins at a multiple of 8 bytes.
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Arguments {
    pub(super) fn buffer(mut self, buffer: &Buffer) -> Self {
        self.starts.push(self.words.len());
        self.words.push(buffer.address());
        self
    }

    pub(super) fn buffer_or_null(mut self, buffer: Option<&Buffer>) -> Self {
        self.starts.push(self.words.len());
        self.words.push(buffer.map_or(0, Buffer::address));
        self
    }

    pub(super) fn int(mut self, value: usize) -> Self {
        self.starts.push(self.words.len());
        self.words.push(u64::from(value as u32));
        self
    }

    pub(super) fn long(mut self, value: usize) -> Self {
        self.starts.push(self.words.len());
        self.words.push(value as u64);
        self
    }

    pub(super) fn float(mut self, value: f32) -> Self {
        self.starts.push(self.words.len());
        self.words.push(u64::from(value.to_bits()));
        self
    }

    /// A struct of numbers of 4 bytes.
    pub(super) fn words(mut self, values: &[u32]) -> Self {
        self.starts.push(self.words.len());
        let pairs = values.chunks(2);
        self.words.extend(pairs.map(|pair| {
            let high = pair.get(1).copied().unwrap_or(0);
            u64::from(pair[0]) | u64::from(high) << 32
        }));
        self
    }

    /// A struct of numbers of 8 bytes.
    pub(super) fn longs(mut self, values: &[u64]) -> Self {
        self.starts.push(self.words.len());
        self.words.extend_from_slice(values);
        self
    }

    /// Where each of them is, as drivers take them; good as long as these arguments are.
    #[cfg(any(test, feature = "cuda", feature = "emulator"))]
    pub(super) fn pointers(&self) -> Vec<*mut c_void> {
        let at = |start: &usize| std::ptr::from_ref(&self.words[*start]).cast_mut().cast();
        self.starts.iter().map(at).collect()
    }
}
