//! Keys and values on a device.

use std::sync::{Arc, Mutex, PoisonError};

use super::device::{Buffer, Device, Kind};
use super::driver::Number;
use super::{DeviceError, ModelShape};
use spar_ops::page::PAGE;

/// Pages that the first call makes room for.
const FIRST_PAGES: usize = 64;

/// Memory for keys and values in pages of 32 tokens; it grows when it is full.
///
/// Whoever works with the buffers keeps others from growing it: it is done in the decoder's turn.
#[derive(Debug)]
pub(super) struct PagePool {
    device: Device,
    number: Number,
    shape: ModelShape,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `[page, layer, keys and values, key_head, token, head_dim]`.
    pages: Buffer,
    /// `[page, token]`.
    tokens: Buffer,
    capacity: usize,
    free: Vec<u32>,
}

/// A page of a pool; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct DevicePage {
    pool: Arc<PagePool>,
    slot: u32,
}

impl PagePool {
    pub(super) fn new(
        device: &Device,
        number: Number,
        shape: ModelShape,
    ) -> Result<Self, DeviceError> {
        let state = State {
            pages: device.allocate(Kind::Number(number), 0)?,
            tokens: device.allocate(Kind::U32, 0)?,
            capacity: 0,
            free: Vec::new(),
        };
        Ok(Self { device: device.clone(), number, shape, state: Mutex::new(state) })
    }

    /// Elements of a page.
    pub(super) fn page_stride(&self) -> usize {
        self.shape.layers * self.layer_len()
    }

    /// Elements of a layer in a page.
    pub(super) fn layer_len(&self) -> usize {
        2 * self.shape.key_heads * PAGE * self.shape.head_dim
    }

    /// All pages and their tokens, as they are until the pool grows.
    pub(super) fn buffers(&self) -> (Buffer, Buffer) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.pages.clone(), state.tokens.clone())
    }

    pub(super) fn take(self: &Arc<Self>) -> Result<DevicePage, DeviceError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        let slot = state.free.pop().expect("a pool has grown");
        Ok(DevicePage { pool: self.clone(), slot })
    }

    /// Makes room for as many pages again, or for as many more as the device has memory for.
    fn grow(&self, state: &mut State) -> Result<(), DeviceError> {
        let capacity = state.capacity;
        let grown = self.grow_to(state, (2 * capacity).max(FIRST_PAGES));
        match grown {
            // The old and the new ones are there at the same time.
            Err(DeviceError::OutOfMemory { .. }) if capacity > FIRST_PAGES => {
                self.grow_to(state, capacity + (capacity / 8).max(1))
            }
            other => other,
        }
    }

    fn grow_to(&self, state: &mut State, new: usize) -> Result<(), DeviceError> {
        let old = state.capacity;
        let stride = self.page_stride();
        let pages = self.device.allocate(Kind::Number(self.number), new * stride)?;
        let tokens = self.device.allocate(Kind::U32, new * PAGE)?;
        if old > 0 {
            pages.slice(0..old * stride).copy_from(&state.pages)?;
            tokens.slice(0..old * PAGE).copy_from(&state.tokens)?;
        }
        state.pages = pages;
        state.tokens = tokens;
        state.capacity = new;
        // The lowest is taken first.
        state.free.extend((old as u32..new as u32).rev());
        Ok(())
    }

    fn copy(&self, from: u32, to: u32) -> Result<(), DeviceError> {
        let (pages, tokens) = self.buffers();
        let (from, to) = (from as usize, to as usize);
        let of =
            |buffer: &Buffer, slot: usize, len: usize| buffer.slice(slot * len..(slot + 1) * len);
        let stride = self.page_stride();
        of(&pages, to, stride).copy_from(&of(&pages, from, stride))?;
        of(&tokens, to, PAGE).copy_from(&of(&tokens, from, PAGE))
    }
}

impl DevicePage {
    /// Its place in the pool.
    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    /// A page of its own with the same content.
    pub(crate) fn copied(&self) -> Result<Self, DeviceError> {
        let page = self.pool.take()?;
        self.pool.copy(self.slot, page.slot)?;
        Ok(page)
    }

    /// Takes over what `from` holds.
    pub(super) fn copy_from(&self, from: &Self) -> Result<(), DeviceError> {
        self.pool.copy(from.slot, self.slot)
    }
}

impl Drop for DevicePage {
    fn drop(&mut self) {
        // Work on the page that has been asked for is done before any that its next owner asks for.
        let mut state = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free.push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::emulator::Emulator;

    #[test]
    fn a_pool_grows_as_far_as_there_is_memory() {
        // Room for about 700 pages of 4 KiB; twice as many as before need room for three times as many.
        let device = Device::with_driver(Arc::new(Emulator::with_memory_bytes(3 << 20)));
        let shape = ModelShape { layers: 1, key_heads: 1, head_dim: 16 };
        let pool = Arc::new(PagePool::new(&device, Number::F32, shape).unwrap());
        let mut pages = Vec::new();
        let error = loop {
            match pool.take() {
                Ok(page) => pages.push(page),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
        assert!(pages.len() > 320, "{} pages", pages.len());
        // Those that there are can be used still.
        pages.pop();
        pool.take().unwrap();
    }
}
