//! A device that the host imitates, for tests.
#![expect(unsafe_code, reason = "memory and kernels of an imitated device")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use libloading::Library;
use sha2::{Digest, Sha256};

use super::DeviceError;
use super::arguments::Arguments;
use super::driver::{Driver, Kernel, Launch, Number, Product};
use super::kernels::KernelFile;

/// Bytes behind every allocation that nobody may write to.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;
/// What memory holds that nobody has written: no number, in either type.
const UNWRITTEN: u8 = 0xff;

/// A device that the host imitates: kernels are compiled by its C++ compiler and run by
/// `kernels/emulation.hpp`. Its memory is the host's; it starts as no numbers, and writing behind an
/// allocation is found when that is freed.
#[derive(Debug, Default)]
pub(super) struct Emulator {
    /// Threads of a block take turns in descending order.
    pub(super) descends: bool,
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

impl Emulator {
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes + GUARD, 256).expect("sizes of tests are small")
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
        // SAFETY: the layout has a size; what is written is inside it.
        unsafe {
            let start = std::alloc::alloc(Self::layout(bytes));
            assert!(!start.is_null());
            std::ptr::write_bytes(start, UNWRITTEN, bytes);
            std::ptr::write_bytes(start.add(bytes), GUARD_BYTE, GUARD);
            Ok(start as u64)
        }
    }

    fn free(&self, address: u64, bytes: usize) {
        let start = address as *mut u8;
        // SAFETY: `allocate` gave this address for so many bytes.
        unsafe {
            let guard = std::slice::from_raw_parts(start.add(bytes), GUARD);
            let is_whole = guard.iter().all(|byte| *byte == GUARD_BYTE);
            std::alloc::dealloc(start, Self::layout(bytes));
            assert!(is_whole || std::thread::panicking(), "a kernel wrote behind {bytes} bytes");
        }
    }

    unsafe fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }

    unsafe fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let (from, len) = (address as *const u8, bytes.len());
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn clear(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller owns the bytes.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(())
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: &Arguments,
    ) -> Result<(), DeviceError> {
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
        Ok(())
    }

    unsafe fn multiply(&self, product: &Product) -> Result<(), DeviceError> {
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
        Ok(())
    }

    fn wait(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn processors(&self) -> usize {
        4
    }

    #[cfg(feature = "cuda")]
    fn is_idle(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }

    #[cfg(feature = "cuda")]
    fn stream(&self) -> Result<*mut c_void, DeviceError> {
        let detail = "an emulated device has no stream".to_owned();
        Err(DeviceError::Unsupported { detail })
    }

    fn is_emulated(&self) -> bool {
        true
    }
}
