//! A device that the host imitates, for tests.
#![expect(unsafe_code, reason = "memory and kernels of an imitated device")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use libloading::Library;
use sha2::{Digest, Sha256};

use super::DeviceError;
use super::arguments::Arguments;
use super::driver::{Driver, Kernel, Launch, Number, Product};
use super::kernels::KernelFile;
use super::recorder::{GivenBack, Recorder};

/// Bytes behind every allocation that nobody may write to.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;
/// What memory holds that nobody has written: no number, in either type.
const UNWRITTEN: u8 = 0xff;

/// A device that the host imitates: kernels are compiled by its C++ compiler and run by
/// `kernels/emulation.hpp`. Its memory is the host's; it starts as no numbers, and writing behind an
/// allocation is found when that is freed.
#[derive(Debug)]
pub(super) struct Emulator {
    /// Threads of a block take turns in descending order.
    descends: bool,
    /// Shared memory that a block gets at the most.
    shared_bytes: usize,
    /// Memory that there is; nothing is refused up to so much.
    memory_bytes: usize,
    allocated: AtomicUsize,
    /// Products come out wrong.
    errs: bool,
    recorder: Recorder<Vec<Noted>>,
    /// What is being recorded.
    noted: Mutex<Vec<Noted>>,
    /// How often each kind of work was asked for.
    pub(super) counts: Counts,
}

/// How often each kind of work was done at once, and how often recorded work was.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) launches: AtomicUsize,
    pub(super) replays: AtomicUsize,
    /// Bytes that went to the device, and that came back.
    pub(super) uploaded: AtomicUsize,
    pub(super) downloaded: AtomicUsize,
}

/// Work that was noted down.
#[derive(Debug, Clone)]
enum Noted {
    Copy { from: u64, to: u64, bytes: usize },
    Clear { address: u64, bytes: usize },
    Launch { kernel: Kernel, launch: Launch, arguments: Arguments },
    Multiply(Product),
}

static LIBRARIES: LazyLock<Mutex<HashMap<(&'static str, usize), &'static Library>>> =
    LazyLock::new(Mutex::default);

#[repr(C)]
struct EmulatedLaunch {
    grid: [u32; 3],
    block: u32,
    shared_bytes: u32,
    descending: u32,
}

impl Default for Emulator {
    /// A device like those of compute capability 9.0.
    fn default() -> Self {
        Self {
            descends: false,
            shared_bytes: 227 << 10,
            memory_bytes: 4 << 30,
            allocated: AtomicUsize::new(0),
            errs: false,
            recorder: Recorder::default(),
            noted: Mutex::default(),
            counts: Counts::default(),
        }
    }
}

#[cfg(test)]
impl Emulator {
    /// A device whose blocks get so much shared memory.
    pub(super) fn with_shared_bytes(shared_bytes: usize) -> Self {
        Self { shared_bytes, ..Self::default() }
    }

    /// A device that has so much memory.
    pub(super) fn with_memory_bytes(memory_bytes: usize) -> Self {
        Self { memory_bytes, ..Self::default() }
    }

    /// A device whose products are wrong.
    pub(super) fn erring() -> Self {
        Self { errs: true, ..Self::default() }
    }
}

impl Emulator {
    /// A device of which the threads of a block take turns in descending order.
    #[cfg(test)]
    pub(super) fn descending() -> Self {
        Self { descends: true, ..Self::default() }
    }

    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes + GUARD, 256).expect("sizes of tests are small")
    }

    fn noted(&self) -> MutexGuard<'_, Vec<Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the work down where this thread records, and else does it.
    ///
    /// # Safety
    ///
    /// As that of the driver's functions.
    unsafe fn ask(&self, work: Noted) {
        let _entered = self.recorder.enter();
        if self.recorder.is_recording() {
            self.noted().push(work);
        } else {
            if matches!(work, Noted::Launch { .. }) {
                self.counts.launches.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: as this function's.
            unsafe { self.perform(&work) };
        }
    }

    /// # Safety
    ///
    /// As [`Emulator::ask`].
    unsafe fn perform(&self, work: &Noted) {
        // SAFETY: the caller owns the bytes at the addresses.
        unsafe {
            match work {
                Noted::Copy { from, to, bytes } => {
                    std::ptr::copy_nonoverlapping(*from as *const u8, *to as *mut u8, *bytes);
                }
                Noted::Clear { address, bytes } => {
                    std::ptr::write_bytes(*address as *mut u8, 0, *bytes);
                }
                Noted::Launch { kernel, launch, arguments } => {
                    self.run(kernel, *launch, arguments);
                }
                Noted::Multiply(product) if self.errs => {
                    multiply(&Product { scale: 1.01 * product.scale, ..*product });
                }
                Noted::Multiply(product) => multiply(product),
            }
        }
    }

    /// # Safety
    ///
    /// As [`Driver::launch`].
    unsafe fn run(&self, kernel: &Kernel, launch: Launch, arguments: &Arguments) {
        let launch = EmulatedLaunch {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            descending: u32::from(self.descends),
        };
        let name = format!("launch_{}", kernel.name);
        // SAFETY: `EXPORT` makes functions of this type; the caller has the arguments right.
        unsafe {
            type Run = unsafe extern "C" fn(*const EmulatedLaunch, *mut *mut c_void);
            let run = Self::library(kernel).get::<Run>(name.as_bytes());
            run.expect("the kernel is exported")(
                &raw const launch,
                arguments.pointers().as_mut_ptr(),
            );
        }
    }

    fn new_memory(bytes: usize) -> u64 {
        // SAFETY: the layout has a size; what is written is inside it.
        unsafe {
            let start = std::alloc::alloc(Self::layout(bytes));
            assert!(!start.is_null());
            std::ptr::write_bytes(start, UNWRITTEN, bytes);
            std::ptr::write_bytes(start.add(bytes), GUARD_BYTE, GUARD);
            start as u64
        }
    }

    /// Memory of so many bytes that [`Emulator::new_memory`] made.
    fn drop_memory(&self, address: u64, bytes: usize) {
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
        let start = address as *mut u8;
        // SAFETY: `new_memory` gave this address for so many bytes.
        unsafe {
            let guard = std::slice::from_raw_parts(start.add(bytes), GUARD);
            let is_whole = guard.iter().all(|byte| *byte == GUARD_BYTE);
            std::alloc::dealloc(start, Self::layout(bytes));
            assert!(is_whole || std::thread::panicking(), "a kernel wrote behind {bytes} bytes");
        }
    }

    fn library(kernel: &Kernel) -> &'static Library {
        let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        let head_dim = kernel.heads.map_or(0, |heads| heads.width);
        libraries.entry((kernel.file, head_dim)).or_insert_with(|| {
            let file = KernelFile::find(kernel.file);
            assert_eq!(file.is_by_heads, kernel.heads.is_some(), "some are for one kind of heads");
            let path = compile(file, head_dim);
            // SAFETY: the library has no code that runs when it is opened or closed.
            let library = unsafe { Library::new(&path) }.expect("the compiler wrote a library");
            Box::leak(Box::new(library))
        })
    }
}

/// Compiles a file of kernels for the host, once per source.
fn compile(file: &KernelFile, head_dim: usize) -> PathBuf {
    let source = file.emulated_source();
    let options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC"];
    let mut hash = Sha256::new();
    hash.update(&source);
    hash.update(format!("{options:?} {head_dim}"));
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let folder = std::env::temp_dir().join("spar-emulated-kernels");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}-{head_dim}-{hash}.so", file.name));
    if !path.exists() {
        let stem = format!("{}-{head_dim}-{hash}.{}", file.name, std::process::id());
        let (text, partial) = (folder.join(stem.clone() + ".cpp"), folder.join(stem + ".so"));
        std::fs::write(&text, source).unwrap();
        let compiled = Command::new("c++")
            .args(options)
            .arg(format!("-DHEAD_DIM={head_dim}"))
            .arg(&text)
            .arg("-o")
            .arg(&partial)
            .output()
            .expect("there is a C++ compiler");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        std::fs::rename(&partial, Path::new(&path)).unwrap();
        std::fs::remove_file(&text).unwrap();
    }
    path
}

impl Driver for Emulator {
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let new = |bytes| {
            let allocated = self.allocated.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if allocated > self.memory_bytes {
                self.allocated.fetch_sub(bytes, Ordering::Relaxed);
                return Err(DeviceError::OutOfMemory { bytes });
            }
            Ok(Self::new_memory(bytes))
        };
        if self.recorder.is_recording() { self.recorder.allocate(bytes, new) } else { new(bytes) }
    }

    fn free(&self, address: u64, bytes: usize) {
        if self.recorder.give_back(address, bytes) == GivenBack::Free {
            self.drop_memory(address, bytes);
        }
    }

    unsafe fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.recorder.refuse("upload")?;
        let _entered = self.recorder.enter();
        self.counts.uploaded.fetch_add(bytes.len(), Ordering::Relaxed);
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }

    unsafe fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.recorder.refuse("download")?;
        let _entered = self.recorder.enter();
        self.counts.downloaded.fetch_add(bytes.len(), Ordering::Relaxed);
        let (from, len) = (address as *const u8, bytes.len());
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as this function's.
        unsafe { self.ask(Noted::Copy { from, to, bytes }) };
        Ok(())
    }

    unsafe fn clear(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as this function's.
        unsafe { self.ask(Noted::Clear { address, bytes }) };
        Ok(())
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: &Arguments,
    ) -> Result<(), DeviceError> {
        if launch.shared_bytes as usize > self.shared_bytes {
            let detail = format!("`{}` needs more shared memory than a block gets", kernel.name);
            return Err(DeviceError::Unsupported { detail });
        }
        let (kernel, arguments) = (kernel.clone(), arguments.clone());
        // SAFETY: as this function's.
        unsafe { self.ask(Noted::Launch { kernel, launch, arguments }) };
        Ok(())
    }

    unsafe fn multiply(&self, product: &Product) -> Result<(), DeviceError> {
        // SAFETY: as this function's.
        unsafe { self.ask(Noted::Multiply(*product)) };
        Ok(())
    }

    fn record(
        &self,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<u64, DeviceError> {
        let end = || Ok(std::mem::take(&mut *self.noted()));
        let recorded = self.recorder.record(|| Ok(()), work, end);
        for (address, bytes) in self.recorder.take_late() {
            self.drop_memory(address, bytes);
        }
        recorded
    }

    unsafe fn replay(&self, recording: u64) -> Result<(), DeviceError> {
        self.recorder.refuse("do recorded work")?;
        let _entered = self.recorder.enter();
        self.counts.replays.fetch_add(1, Ordering::Relaxed);
        let noted = self.recorder.with(recording, Vec::clone);
        // SAFETY: as this function's.
        noted.iter().for_each(|work| unsafe { self.perform(work) });
        Ok(())
    }

    fn forget(&self, recording: u64) {
        let (_, memory) = self.recorder.forget(recording);
        memory.into_iter().for_each(|(address, bytes)| self.drop_memory(address, bytes));
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.recorder.refuse("finish the work")
    }

    fn processors(&self) -> usize {
        4
    }

    fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    fn free_bytes(&self) -> Result<usize, DeviceError> {
        Ok(self.memory_bytes.saturating_sub(self.allocated.load(Ordering::Relaxed)))
    }

    #[cfg(feature = "cuda")]
    fn is_idle(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }

    #[cfg(feature = "cuda")]
    fn on_stream(
        &self,
        _add: &mut dyn FnMut(*mut c_void) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let detail = "an emulated device has no stream".to_owned();
        Err(DeviceError::Unsupported { detail })
    }

    fn is_emulated(&self) -> bool {
        true
    }
}

/// # Safety
///
/// As [`Driver::multiply`].
unsafe fn multiply(product: &Product) {
    let Product { rows, columns, depth, .. } = *product;
    let read = |address: u64, index: usize| -> f32 {
        // SAFETY: the caller owns the operands, and the index is inside them.
        unsafe {
            match product.inputs {
                Number::F32 => *(address as *const f32).add(index),
                Number::Bf16 => {
                    f32::from_bits(u32::from(*(address as *const u16).add(index)) << 16)
                }
            }
        }
    };
    // An operand that is not transposed by its rows, one that is by its columns.
    let numbers = |address, rows: usize, columns: usize, stride, transposed| -> Vec<f32> {
        let at = |i, j| if transposed { j * stride + i } else { i * stride + j };
        (0..rows * columns).map(|i| read(address, at(i / columns, i % columns))).collect()
    };
    let left = numbers(product.left, rows, depth, product.left_stride, product.left_transposed);
    // By columns.
    let stride = if product.right_transposed { depth } else { columns };
    let right = numbers(product.right, columns, depth, stride, !product.right_transposed);
    for i in 0..rows {
        for j in 0..columns {
            let pairs = left[i * depth..][..depth].iter().zip(&right[j * depth..][..depth]);
            let sum: f32 = product.scale * pairs.map(|(a, b)| a * b).sum::<f32>();
            let index = i * product.out_stride + j;
            // SAFETY: the caller owns the result, and the index is inside it.
            unsafe {
                match product.output {
                    Number::F32 => {
                        let out = (product.out as *mut f32).add(index);
                        *out = if product.adds { *out + sum } else { sum };
                    }
                    Number::Bf16 => {
                        let out = (product.out as *mut u16).add(index);
                        let old = f32::from_bits(u32::from(*out) << 16);
                        let bits = if product.adds { old + sum } else { sum }.to_bits();
                        let rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
                        *out = rounded as u16;
                    }
                }
            }
        }
    }
}
