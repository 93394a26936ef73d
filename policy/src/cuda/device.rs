//! A device and the memory on it.
#![expect(unsafe_code, reason = "buffers hand their own bytes to the driver")]

use std::sync::Arc;

use super::DeviceError;
use super::driver::{Driver, Number};

/// A GPU, ready for work; clones are the same device.
#[derive(Debug, Clone)]
pub struct Device {
    pub(super) driver: Arc<dyn Driver>,
    info: Arc<DeviceInfo>,
    /// Whether work that comes over and over is recorded.
    pub(super) has_graphs: bool,
}

/// What is told of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// As its maker calls it.
    pub name: String,
    /// Compute capability, as in `9.0`.
    pub capability: String,
    /// All of its memory.
    pub memory_bytes: usize,
    /// Version of the compiler of kernels, as in `13.0`.
    pub compiler: String,
    /// Version of CUDA that the driver supports, as in `13.0`.
    pub driver_version: String,
}

impl Device {
    /// Opens the first GPU of the machine.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] tells which part is missing: the driver, a device, NVRTC, or cuBLASLt.
    pub fn open() -> Result<Self, DeviceError> {
        Self::open_at(0)
    }

    /// Opens a GPU of the machine by its place, from 0 on.
    ///
    /// # Errors
    ///
    /// As [`Device::open`], and when there are fewer.
    pub fn open_at(ordinal: usize) -> Result<Self, DeviceError> {
        #[cfg(feature = "cuda")]
        {
            let (driver, info) = super::cuda_driver::CudaDriver::open(ordinal)?;
            Ok(Self { driver: Arc::new(driver), info: Arc::new(info), has_graphs: true })
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(DeviceError::NotBuiltIn)
        }
    }

    /// Version of NCCL, by which several GPUs of a machine train together.
    ///
    /// # Errors
    ///
    /// When it is missing.
    pub fn nccl_version() -> Result<String, DeviceError> {
        #[cfg(feature = "cuda")]
        {
            super::nccl::version()
        }
        #[cfg(not(feature = "cuda"))]
        Err(DeviceError::NotBuiltIn)
    }

    /// The same device, which is told every kernel of every step of generation one by one; otherwise
    /// steps are recorded as graphs, of which each is launched as one.
    #[must_use]
    pub fn without_graphs(&self) -> Self {
        Self { has_graphs: false, ..self.clone() }
    }

    /// What is told of it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Waits until all that was asked for is done.
    ///
    /// # Errors
    ///
    /// When some of it failed.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.driver.wait()
    }

    /// A device that the host imitates: the kernels are compiled by its C++ compiler and run one
    /// thread after the other. For tests.
    #[cfg(any(test, feature = "emulator"))]
    pub fn emulated() -> Self {
        Self::with_driver(Arc::new(super::emulator::Emulator::default()))
    }

    #[cfg(any(test, feature = "emulator"))]
    pub(super) fn is_emulated(&self) -> bool {
        self.driver.is_emulated()
    }

    #[cfg(any(test, feature = "emulator"))]
    pub(super) fn with_driver(driver: Arc<dyn Driver>) -> Self {
        let info = DeviceInfo {
            name: "emulated".to_owned(),
            capability: String::new(),
            memory_bytes: 0,
            compiler: String::new(),
            driver_version: String::new(),
        };
        Self { driver, info: Arc::new(info), has_graphs: true }
    }

    /// Bytes of its memory that nobody has.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn free_bytes(&self) -> Result<usize, DeviceError> {
        self.driver.free_bytes()
    }

    /// Memory that holds anything.
    pub(super) fn allocate(&self, kind: Kind, len: usize) -> Result<Buffer, DeviceError> {
        let bytes = len * kind.bytes();
        // No address would be one of its own.
        let address = self.driver.allocate(bytes.max(16))?;
        let memory = Memory { driver: self.driver.clone(), address, bytes: bytes.max(16) };
        Ok(Buffer { memory: Arc::new(memory), kind, start: 0, len })
    }

    pub(super) fn zeros(&self, kind: Kind, len: usize) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(kind, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    pub(super) fn upload_u32(&self, values: &[u32]) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(Kind::U32, values.len())?;
        buffer.write_u32(values)?;
        Ok(buffer)
    }

    pub(super) fn upload_f32(&self, values: &[f32]) -> Result<Buffer, DeviceError> {
        self.upload_numbers(Number::F32, values)
    }

    /// The values, rounded where the numbers are narrower.
    pub(super) fn upload_numbers(
        &self,
        number: Number,
        values: &[f32],
    ) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(Kind::Number(number), values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }
}

/// What lies in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number(Number),
    U32,
}

impl Kind {
    pub(super) const F32: Self = Self::Number(Number::F32);

    fn bytes(self) -> usize {
        match self {
            Self::Number(number) => number.bytes(),
            Self::U32 => 4,
        }
    }
}

/// Memory of a device; freed with the last clone.
#[derive(Debug)]
struct Memory {
    driver: Arc<dyn Driver>,
    address: u64,
    bytes: usize,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.driver.free(self.address, self.bytes);
    }
}

/// A part of a device's memory; clones are the same part.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    memory: Arc<Memory>,
    kind: Kind,
    /// In elements.
    start: usize,
    len: usize,
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.address + (self.start * self.kind.bytes()) as u64
    }

    fn bytes(&self) -> usize {
        self.len * self.kind.bytes()
    }

    /// Memory of the same kind and length, that holds anything.
    pub(super) fn alike(&self) -> Result<Self, DeviceError> {
        let driver = self.memory.driver.clone();
        let bytes = self.bytes().max(16);
        let address = driver.allocate(bytes)?;
        let memory = Arc::new(Memory { driver, address, bytes });
        Ok(Self { memory, kind: self.kind, start: 0, len: self.len })
    }

    /// How many buffers there are on this memory, with this one.
    pub(super) fn num_holders(&self) -> usize {
        Arc::strong_count(&self.memory)
    }

    /// # Panics
    ///
    /// When the range is outside.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "a slice is inside its buffer");
        Self { start: self.start + range.start, len: range.len(), ..self.clone() }
    }

    /// The first of `all` rows of equal length.
    pub(super) fn first_rows(&self, rows: usize, all: usize) -> Self {
        assert!(self.len.is_multiple_of(all), "rows are whole");
        self.slice(0..self.len / all * rows)
    }

    pub(super) fn clear(&self) -> Result<(), DeviceError> {
        // SAFETY: these are the bytes of this buffer.
        unsafe { self.memory.driver.clear(self.address(), self.bytes()) }
    }

    /// Takes over what `from` holds.
    pub(super) fn copy_from(&self, from: &Self) -> Result<(), DeviceError> {
        assert_eq!((self.kind, self.len), (from.kind, from.len), "buffers are alike");
        // SAFETY: these are the bytes of the two buffers.
        unsafe { self.memory.driver.copy(from.address(), self.address(), self.bytes()) }
    }

    pub(super) fn upload(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        assert_eq!(bytes.len(), self.bytes(), "as many bytes as the buffer has");
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: these are the bytes of this buffer.
        unsafe { self.memory.driver.upload(self.address(), bytes) }
    }

    /// Writes the values, rounded where the numbers are narrower.
    pub(super) fn write(&self, values: &[f32]) -> Result<(), DeviceError> {
        assert_eq!(values.len(), self.len, "as many values as the buffer has");
        let width = self.kind.bytes();
        // Large buffers pass through the host's memory in parts.
        for (index, part) in values.chunks(1 << 24).enumerate() {
            let bytes: Vec<u8> = match self.kind {
                Kind::Number(Number::Bf16) => {
                    part.iter().flat_map(|value| to_bf16(*value).to_ne_bytes()).collect()
                }
                _ => part.iter().flat_map(|value| value.to_ne_bytes()).collect(),
            };
            debug_assert_eq!(bytes.len(), part.len() * width);
            let start = index << 24;
            self.slice(start..start + part.len()).upload(&bytes)?;
        }
        Ok(())
    }

    fn read_bytes(&self) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; self.bytes()];
        if !bytes.is_empty() {
            // SAFETY: these are the bytes of this buffer.
            unsafe { self.memory.driver.download(self.address(), &mut bytes)? };
        }
        Ok(bytes)
    }

    pub(super) fn read(&self) -> Result<Vec<f32>, DeviceError> {
        let bytes = self.read_bytes()?;
        Ok(match self.kind {
            Kind::Number(Number::Bf16) => {
                let (pairs, _) = bytes.as_chunks::<2>();
                let widen = |pair: &[u8; 2]| u32::from(u16::from_ne_bytes(*pair)) << 16;
                pairs.iter().map(|pair| f32::from_bits(widen(pair))).collect()
            }
            _ => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_ne_bytes(*four)).collect(),
        })
    }

    /// What a buffer holds that is no numbers but words.
    pub(super) fn read_u32(&self) -> Result<Vec<u32>, DeviceError> {
        assert_eq!(self.kind, Kind::U32, "the buffer holds words");
        let bytes = self.read_bytes()?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|four| u32::from_ne_bytes(*four)).collect())
    }

    pub(super) fn write_u32(&self, values: &[u32]) -> Result<(), DeviceError> {
        assert_eq!(self.kind, Kind::U32, "the buffer holds words");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.upload(&bytes)
    }
}

/// Rounded to the nearest, ties to even.
fn to_bf16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let bits = value.to_bits();
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}
