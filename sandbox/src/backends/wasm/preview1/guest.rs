//! Access to the memory of the calling instance.

use super::Context;
use crate::backends::wasm::errno::Errno;
use crate::backends::wasm::host::GuestState;
use crate::backends::wasm::tree::MAX_PATH;

/// At most this much is moved by one call; guests go on with the rest.
const MAX_TRANSFER: usize = 16 << 20;

/// The calling instance's memory. Every access is checked: a pointer that leads out is
/// [`Errno::Fault`] for the guest.
pub(super) struct Memory<'a>(&'a mut [u8]);

/// Runs `body` on the guest's memory and the host's data: the number that preview 1 returns.
pub(super) fn with_guest(
    context: &mut Context<'_>,
    body: impl FnOnce(Memory<'_>, &mut GuestState) -> Result<(), Errno>,
) -> wasmtime::Result<i32> {
    let memory = context
        .get_export("memory")
        .and_then(wasmtime::Extern::into_memory)
        .ok_or_else(|| wasmtime::format_err!("the module exports no memory named `memory`"))?;
    let (bytes, host) = memory.data_and_store_mut(context);
    Ok(match body(Memory(bytes), host) {
        Ok(()) => 0,
        Err(errno) => errno.preview1(),
    })
}

impl Memory<'_> {
    pub(super) fn bytes(&mut self, at: i32, len: i32) -> Result<&mut [u8], Errno> {
        let (at, len) = (at as u32 as usize, len as u32 as usize);
        self.0.get_mut(at..at + len).ok_or(Errno::Fault)
    }

    /// A path or the target of a link. A longer one is refused before it is looked at or copied.
    pub(super) fn text(&mut self, at: i32, len: i32) -> Result<String, Errno> {
        if len as u32 as usize > MAX_PATH {
            return Err(Errno::NameTooLong);
        }
        std::str::from_utf8(self.bytes(at, len)?).map(str::to_owned).map_err(|_| Errno::NotUtf8)
    }

    pub(super) fn u8(&mut self, at: i32) -> Result<u8, Errno> {
        Ok(self.bytes(at, 1)?[0])
    }

    pub(super) fn u16(&mut self, at: i32) -> Result<u16, Errno> {
        Ok(u16::from_le_bytes(self.array(at)?))
    }

    pub(super) fn u32(&mut self, at: i32) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    pub(super) fn u64(&mut self, at: i32) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.array(at)?))
    }

    fn array<const N: usize>(&mut self, at: i32) -> Result<[u8; N], Errno> {
        Ok(self.bytes(at, N as i32)?.try_into().expect("a slice of N bytes is an array of N"))
    }

    pub(super) fn put(&mut self, at: i32, bytes: &[u8]) -> Result<(), Errno> {
        self.bytes(at, bytes.len() as i32)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn put_u32(&mut self, at: i32, value: u32) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    pub(super) fn put_u64(&mut self, at: i32, value: u64) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    /// The buffers of a scattered read or write: pointer and length each, at most
    /// [`MAX_TRANSFER`] bytes together.
    pub(super) fn buffers(&mut self, at: i32, count: i32) -> Result<Vec<(i32, i32)>, Errno> {
        if !(0..=1024).contains(&count) {
            return Err(Errno::Invalid);
        }
        let mut left = MAX_TRANSFER;
        let mut buffers = Vec::with_capacity(count as usize);
        for index in 0..count {
            let entry = at.wrapping_add(index * 8);
            let (pointer, len) = (self.u32(entry)?, self.u32(entry.wrapping_add(4))? as usize);
            let len = len.min(left);
            left -= len;
            self.bytes(pointer as i32, len as i32)?;
            buffers.push((pointer as i32, len as i32));
        }
        Ok(buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_refused_before_it_is_looked_at() {
        // No part of it is UTF-8, which whoever looked at it would have to say.
        let mut bytes = vec![0xff; 1 << 20];
        let mut memory = Memory(&mut bytes);
        for len in [MAX_PATH as i32 + 1, 1 << 20, -1] {
            assert_eq!(memory.text(0, len), Err(Errno::NameTooLong), "{len}");
        }
        assert_eq!(memory.text(0, MAX_PATH as i32), Err(Errno::NotUtf8));
        assert_eq!(memory.text(1 << 20, 1), Err(Errno::Fault));
        memory.0[..4].copy_from_slice(b"path");
        assert_eq!(memory.text(0, 4).as_deref(), Ok("path"));
    }
}
