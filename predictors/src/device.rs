//! Where predictors compute.

use candle_core::{Device, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a predictor computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PredictorDevice {
    /// The host.
    #[default]
    Cpu,
    /// The first GPU, in programs that were built with the feature `predictors-cuda` and without `cuda`.
    Cuda,
}

impl PredictorDevice {
    /// What is wrong with it in this program.
    pub(crate) fn problem(self) -> Option<String> {
        let is_missing = self == Self::Cuda && !cfg!(feature = "cuda");
        is_missing.then(|| {
            "device is `cuda`, and this program was built without it: build it with \
             `--no-default-features --features predictors-cuda`, which needs NVIDIA's nvcc, or leave device out"
                .to_owned()
        })
    }

    pub(crate) fn open(self) -> Result<Device> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda => Device::new_cuda(0),
        }
    }
}
