//! What can go wrong with a GPU.

/// A GPU is absent, or could not do its part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The program was built without the feature `cuda`.
    #[error("use a GPU: this program was built without the feature `cuda`")]
    NotBuiltIn,
    /// A library of CUDA is not on this machine.
    #[error("find the library `{library}`")]
    LibraryMissing {
        /// Its name without prefix and suffix.
        library: &'static str,
    },
    /// The driver works and has no device.
    #[error("find a GPU: the driver tells of none")]
    NoDevice,
    /// The device lacks what the kernels use.
    #[error("use the GPU `{name}`: it has compute capability {found}, the kernels need 8.0")]
    TooOld {
        /// The device.
        name: String,
        /// Its compute capability.
        found: String,
    },
    /// The driver is older than the compiler of kernels.
    #[error(
        "use the GPU: the driver supports CUDA {found}, the compiler of kernels is of CUDA {needed}"
    )]
    DriverTooOld {
        /// What the driver supports.
        found: String,
        /// The major version that is needed.
        needed: i32,
    },
    /// The device computes what it should not.
    #[error("trust the GPU: {what} came out wrong: {found} in place of {expected}")]
    WrongResult {
        /// What was computed.
        what: &'static str,
        /// One of the numbers that it gave.
        found: String,
        /// The right one.
        expected: String,
    },
    /// The machine has fewer devices than are wanted.
    #[error("use {wanted} GPUs: the machine has {found}")]
    TooFewDevices {
        /// How many there are.
        found: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// Another device of the same group failed.
    #[error("go on: the GPU {rank} of the group failed: {detail}")]
    MemberFailed {
        /// Its place in the group, from 0 on.
        rank: usize,
        /// How it failed.
        detail: String,
    },
    /// There is no room left.
    #[error("get {bytes} bytes of the GPU's memory")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A kernel could not be compiled.
    #[error("compile the kernels of `{file}` for {architecture}: {log}")]
    Compile {
        /// The file.
        file: &'static str,
        /// What it was compiled for.
        architecture: String,
        /// What the compiler said.
        log: String,
    },
    /// The compiled kernels could not be kept on disk.
    #[error("keep compiled kernels in `{folder}`: {detail}")]
    Cache {
        /// The folder.
        folder: String,
        /// What the system said.
        detail: String,
    },
    /// A call of the driver or of a library failed.
    #[error("{what} on the GPU: {detail}")]
    Call {
        /// What was to be done.
        what: &'static str,
        /// What the driver said.
        detail: String,
    },
    /// The kernels do not cover the shape of a model.
    #[error("run the model on a GPU: {detail}")]
    Unsupported {
        /// What is not covered.
        detail: String,
    },
}

impl DeviceError {
    /// The one thing to do about it, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotBuiltIn => Some("build with `--features cuda`"),
            Self::LibraryMissing { library: "cuda" } => {
                Some("install the NVIDIA driver; without a GPU, nothing: the CPU is used")
            }
            Self::LibraryMissing { library: "nccl" } => Some(
                "install NCCL 2 (`pip install nvidia-nccl-cu13` will do), name its library `libnccl.so` \
                 and put its folder into LD_LIBRARY_PATH; one GPU needs none",
            ),
            Self::TooFewDevices { .. } => Some("see `nvidia-smi`, and CUDA_VISIBLE_DEVICES"),
            Self::LibraryMissing { .. } => Some(
                "install CUDA 13's NVRTC and cuBLAS (`pip install nvidia-cuda-nvrtc nvidia-cublas` will \
                 do) and put their folder into LD_LIBRARY_PATH",
            ),
            Self::DriverTooOld { .. } => Some(
                "install a newer NVIDIA driver, or NVRTC and cuBLAS of the CUDA that it supports",
            ),
            Self::WrongResult { .. } => {
                Some("update the NVIDIA driver; if that does not help, use `cpu`")
            }
            Self::NoDevice => Some("see `nvidia-smi`, and CUDA_VISIBLE_DEVICES"),
            Self::OutOfMemory { .. } => {
                Some("give less to others, or read fewer tokens at a time (micro_batch_tokens)")
            }
            Self::Cache { .. } => Some("let XDG_CACHE_HOME name a folder that can be written"),
            _ => None,
        }
    }
}
