//! The compiler of kernels.
#![expect(unsafe_code, reason = "calls of NVRTC")]

use std::ffi::CString;

use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;

use super::DeviceError;
use super::driver::HeadKind;
use super::kernels::KernelFile;

/// Options of every compilation.
const OPTIONS: &[&str] = &["--std=c++17", "-diag-suppress=177"];

/// What a file of kernels was compiled to.
pub(super) struct Compiled {
    /// Machine code for a device, or PTX.
    pub(super) image: Vec<u8>,
    /// What the compiler said.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look for warnings and registers"))]
    pub(super) log: String,
}

/// Version of NVRTC, major and minor, once it is known to be there.
pub(super) fn compiler_version() -> Result<(i32, i32), DeviceError> {
    // SAFETY: opening the library is all that is done.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::LibraryMissing { library: "nvrtc" });
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written.
    let result = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    result.result().map_err(|error| DeviceError::Call {
        what: "ask for NVRTC's version",
        detail: format!("{error:?}"),
    })?;
    Ok((major, minor))
}

/// The options with which a file is compiled for `architecture`.
pub(super) fn options(
    file: &KernelFile,
    heads: Option<HeadKind>,
    architecture: &str,
) -> Vec<String> {
    assert_eq!(file.is_by_heads, heads.is_some(), "some files are for one kind of heads");
    let mut options: Vec<String> = OPTIONS.iter().map(|option| (*option).to_owned()).collect();
    options.push(format!("--gpu-architecture={architecture}"));
    if let Some(HeadKind { width, number }) = heads {
        options.push(format!("-DHEAD_DIM={width}"));
        options.push(format!("-DNUMBER_{}", number.suffix().to_uppercase()));
    }
    options
}

/// Compiles a file of kernels. An architecture `sm_90` gives machine code for it, `compute_90` PTX.
pub(super) fn compile(
    file: &KernelFile,
    architecture: &str,
    options: &[String],
) -> Result<Compiled, DeviceError> {
    compiler_version()?;
    let failed = |log: String| DeviceError::Compile {
        file: file.name,
        architecture: architecture.to_owned(),
        log,
    };
    let source = CString::new(file.source()).expect("sources have no zero");
    let name = CString::new(format!("{}.cu", file.name)).expect("names have no zero");
    let program = nvrtc::create_program(&source, Some(&name))
        .map_err(|error| failed(format!("{error:?}")))?;
    // SAFETY: the program lives until it is destroyed below.
    unsafe {
        let compiled = nvrtc::compile_program(program, options);
        let log = nvrtc::get_program_log(program).unwrap_or_default();
        let log: Vec<u8> = log.iter().map(|byte| *byte as u8).take_while(|b| *b != 0).collect();
        let log = String::from_utf8_lossy(&log).trim().to_owned();
        let image = match compiled {
            Err(_) => Err(failed(log.clone())),
            Ok(()) if architecture.starts_with("sm_") => {
                machine_code(program).map_err(|error| failed(format!("{error:?}")))
            }
            Ok(()) => nvrtc::get_ptx(program)
                .map(|ptx| ptx.iter().map(|byte| *byte as u8).collect())
                .map_err(|error| failed(format!("{error:?}"))),
        };
        // What cannot be destroyed stays, which costs memory alone.
        let _ = nvrtc::destroy_program(program);
        Ok(Compiled { image: image?, log })
    }
}

/// # Safety
///
/// The program has been compiled and not been destroyed.
unsafe fn machine_code(program: sys::nvrtcProgram) -> Result<Vec<u8>, nvrtc::NvrtcError> {
    let mut bytes = 0;
    // SAFETY: the size is written, then as many bytes.
    unsafe {
        sys::nvrtcGetCUBINSize(program, &raw mut bytes).result()?;
        let mut image = vec![0_u8; bytes];
        sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result()?;
        Ok(image)
    }
}
