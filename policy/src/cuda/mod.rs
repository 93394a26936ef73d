//! The decoder on a GPU, which is found at run time.
//!
//! ```text
//!  decoder, head ─▶ Placement ─▶ Device: operations ─▶ dyn Driver ─┬─▶ CudaDriver: libcuda, cuBLASLt, NVRTC
//!                   weights, pages  buffers, kernels                 └─▶ Emulator: the host's C++ compiler
//! ```
//!
//! Nothing is linked and nothing is needed to build: the libraries are opened when a device is asked
//! for, and what is missing is a [`DeviceError`]. The kernels are CUDA C++ under `kernels/`; NVRTC
//! compiles them for the machine's device at their first use, and the result is kept on disk. The
//! tests run the same sources on the host, where threads, barriers, shared memory and the instructions
//! of the tensor cores have twins, and compare them with [`crate::ops`].

mod arguments;
mod backward;
mod batch;
mod ceilings;
mod choice;
#[cfg(feature = "cuda")]
mod cuda_driver;
mod device;
mod driver;
#[cfg(any(test, feature = "emulator"))]
mod emulator;
mod error;
mod forward;
mod group;
mod head;
#[cfg(feature = "cuda")]
mod kernel_cache;
#[cfg(any(test, feature = "cuda", feature = "emulator"))]
mod kernels;
mod learner;
#[cfg(feature = "cuda")]
mod library;
#[cfg(all(test, feature = "cuda"))]
mod library_tests;
#[cfg(feature = "cuda")]
mod nccl;
#[cfg(feature = "cuda")]
mod nccl_library;
mod operations;
mod pages;
mod placement;
#[cfg(any(test, feature = "cuda"))]
mod plans;
#[cfg(feature = "cuda")]
mod products;
#[cfg(any(test, feature = "cuda", feature = "emulator"))]
mod recorder;
mod recording;
mod seam;
mod step;
#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;
mod trainer;
mod trial;

pub use self::choice::DeviceChoice;
pub use self::device::{Device, DeviceInfo};
pub use self::driver::Number;
pub use self::error::DeviceError;
pub(crate) use self::forward::DeviceTape;
pub use self::group::{DeviceGroup, Member};
pub use self::learner::DeviceLearner;
pub(crate) use self::learner::LiveWeights;
pub(crate) use self::operations::{Candidates, Drawing, Truncation};
pub(crate) use self::pages::DevicePage;
pub(crate) use self::placement::Placement;
pub(crate) use self::seam::DeviceStates;
pub(crate) use self::step::{Found, Wanted};
pub use self::trainer::{DeviceTrainer, DeviceUpdate};

/// What a page has to hold.
#[derive(Debug, Clone, Copy)]
struct ModelShape {
    layers: usize,
    key_heads: usize,
    head_dim: usize,
}
