//! What a device has to be able to do.
#![expect(unsafe_code, reason = "devices run what they are given")]

use std::fmt::Debug;

use super::DeviceError;
use super::arguments::Arguments;

/// How numbers lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// 32 bits.
    F32,
    /// The upper half of them.
    Bf16,
}

impl Number {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }

    /// The end of the names of kernels for these numbers.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}

/// What heads a file of kernels is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct HeadKind {
    /// Channels.
    pub(super) width: usize,
    pub(super) number: Number,
}

/// A kernel of one of the files in `kernels/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kernel {
    /// Name of the file without its ending.
    pub(super) file: &'static str,
    /// For files that are compiled for one shape of heads.
    pub(super) heads: Option<HeadKind>,
    pub(super) name: String,
}

/// How many blocks and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) grid: [u32; 3],
    pub(super) block: u32,
    /// Dynamic shared memory of a block.
    pub(super) shared_bytes: u32,
}

/// `out[rows, columns] = scale * left * right`, added to what is there with `adds`.
///
/// All lie row by row, those of `left` and `out` as far apart as their strides say, in elements; an
/// operand that is transposed lies `[depth, rows]` or `[columns, depth]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Product {
    pub(super) left: u64,
    pub(super) left_transposed: bool,
    pub(super) left_stride: usize,
    pub(super) right: u64,
    pub(super) right_transposed: bool,
    pub(super) inputs: Number,
    pub(super) out: u64,
    pub(super) out_stride: usize,
    pub(super) output: Number,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    pub(super) scale: f32,
    pub(super) adds: bool,
}

/// What a device has to be able to do. Work is done in the order in which it was asked for; only
/// `download` and `wait` wait for it.
///
/// Addresses are those of the device.
pub(super) trait Driver: Debug + Send + Sync {
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;

    /// Memory that was allocated, once the work that was asked for before is done.
    fn free(&self, address: u64, bytes: usize);

    /// # Safety
    ///
    /// The bytes at the address belong to the caller.
    unsafe fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// # Safety
    ///
    /// The bytes at the address belong to the caller.
    unsafe fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// # Safety
    ///
    /// The bytes at both addresses belong to the caller and do not overlap.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError>;

    /// # Safety
    ///
    /// The bytes at the address belong to the caller.
    unsafe fn clear(&self, address: u64, bytes: usize) -> Result<(), DeviceError>;

    /// # Safety
    ///
    /// The arguments are those that the kernel has, and what it reads and writes belongs to the caller.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: &Arguments,
    ) -> Result<(), DeviceError>;

    /// # Safety
    ///
    /// The operands belong to the caller.
    unsafe fn multiply(&self, product: &Product) -> Result<(), DeviceError>;

    fn wait(&self) -> Result<(), DeviceError>;

    /// Notes down what `work` asks for in this thread, without doing it; other threads wait. It can
    /// neither bring numbers nor wait for any, and has to give back what it allocates.
    fn record(&self, work: &mut dyn FnMut() -> Result<(), DeviceError>)
    -> Result<u64, DeviceError>;

    /// Does what was recorded.
    ///
    /// # Safety
    ///
    /// What lies at the addresses of the recorded work belongs to the caller.
    unsafe fn replay(&self, recording: u64) -> Result<(), DeviceError>;

    /// Nobody needs the recording any more.
    fn forget(&self, recording: u64);

    /// Streaming multiprocessors.
    fn processors(&self) -> usize;

    /// Shared memory that a block gets at the most.
    fn shared_bytes(&self) -> usize;

    /// Bytes of memory that nobody has.
    fn free_bytes(&self) -> Result<usize, DeviceError>;

    /// Whether all that was asked for is done.
    #[cfg(feature = "cuda")]
    fn is_idle(&self) -> Result<bool, DeviceError>;

    /// Has another library add work to the stream that it is given.
    #[cfg(feature = "cuda")]
    fn on_stream(
        &self,
        add: &mut dyn FnMut(*mut std::ffi::c_void) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError>;

    #[cfg(any(test, feature = "emulator"))]
    fn is_emulated(&self) -> bool {
        false
    }
}
