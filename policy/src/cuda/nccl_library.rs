//! NCCL's functions, found at run time.
//!
//! By hand, since the library that binds CUDA's looks for no name with NCCL's number in it, and packages
//! bring no other: `libnccl.so` alone comes with the headers.
#![expect(unsafe_code, reason = "functions of a foreign library")]

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use libloading::Library;

use super::DeviceError;

/// Names of the library, best first.
const NAMES: &[&str] = &["libnccl.so.2", "libnccl.so"];

/// The functions in use, which keep the signatures that they have had since version 2.0; the last two
/// since 2.4.
#[derive(Debug)]
pub(super) struct NcclLibrary {
    pub(super) get_version: unsafe extern "C" fn(*mut c_int) -> ncclResult_t,
    pub(super) init_all: unsafe extern "C" fn(*mut ncclComm_t, c_int, *const c_int) -> ncclResult_t,
    pub(super) all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        ncclDataType_t,
        ncclRedOp_t,
        ncclComm_t,
        cudaStream_t,
    ) -> ncclResult_t,
    pub(super) destroy: unsafe extern "C" fn(ncclComm_t) -> ncclResult_t,
    pub(super) abort: unsafe extern "C" fn(ncclComm_t) -> ncclResult_t,
    pub(super) async_error: unsafe extern "C" fn(ncclComm_t, *mut ncclResult_t) -> ncclResult_t,
    /// Keeps the functions where they are.
    _library: Library,
}

impl NcclLibrary {
    /// The machine's NCCL, opened by the first call.
    pub(super) fn get() -> Result<&'static Self, DeviceError> {
        static LIBRARY: OnceLock<Result<NcclLibrary, DeviceError>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::open(NAMES)).as_ref().map_err(Clone::clone)
    }

    fn open(names: &[&str]) -> Result<Self, DeviceError> {
        // SAFETY: what NCCL does when it is opened has no conditions.
        let library = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = library.ok_or(DeviceError::LibraryMissing { library: "nccl" })?;
        let failed = |error: libloading::Error| {
            // Which function it is stands in the cause.
            let cause = error.source().map(ToString::to_string);
            let detail = cause.unwrap_or_else(|| error.to_string());
            DeviceError::Call { what: "find NCCL's functions", detail }
        };
        // SAFETY: the functions have these signatures in every version that has them.
        unsafe {
            Ok(Self {
                get_version: *library.get(b"ncclGetVersion\0").map_err(failed)?,
                init_all: *library.get(b"ncclCommInitAll\0").map_err(failed)?,
                all_reduce: *library.get(b"ncclAllReduce\0").map_err(failed)?,
                destroy: *library.get(b"ncclCommDestroy\0").map_err(failed)?,
                abort: *library.get(b"ncclCommAbort\0").map_err(failed)?,
                async_error: *library.get(b"ncclCommGetAsyncError\0").map_err(failed)?,
                _library: library,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_or_another_is_an_error() {
        let missing = NcclLibrary::open(&["libnccl-of-nobody.so"]).unwrap_err();
        assert_eq!(missing, DeviceError::LibraryMissing { library: "nccl" });
        let other = NcclLibrary::open(&["libnccl-of-nobody.so", "libc.so.6"]).unwrap_err();
        let DeviceError::Call { what: "find NCCL's functions", detail } = other else {
            panic!("another error: {other:?}");
        };
        assert!(detail.contains("ncclGetVersion"), "{detail}");
    }

    #[test]
    #[ignore = "needs NCCL"]
    fn nccl_tells_its_version() {
        let version = super::super::nccl::version().unwrap();
        assert!(version.starts_with("2."), "{version}");
    }
}
