//! Where a decoder computes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Device, DeviceError, Number};
use crate::Weights;

/// Where a decoder computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// On the machine's GPU in bf16 where there is one that works, and else on the CPU.
    #[default]
    Auto,
    /// On the CPU in f32.
    Cpu,
    /// On the machine's GPU in bf16.
    Cuda,
}

impl DeviceChoice {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Cpu, Self::Cuda];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// The decoder in its place. With `Auto`, a GPU that is there and cannot be used is told of in
    /// the log.
    ///
    /// # Errors
    ///
    /// With `Cuda`, when there is no GPU, or none that can be used for this decoder.
    pub fn place(self, weights: Weights) -> Result<Weights, DeviceError> {
        if self == Self::Cpu {
            return Ok(weights);
        }
        let placed = Device::open().and_then(|device| {
            let placed = weights.on_device(&device, Number::Bf16)?;
            tracing::info!(gpu = device.info().name, "the decoder is on the GPU");
            Ok(placed)
        });
        match placed {
            Err(error) if self == Self::Auto => {
                let is_absent = matches!(
                    error,
                    DeviceError::NotBuiltIn
                        | DeviceError::NoDevice
                        | DeviceError::LibraryMissing { library: "cuda" }
                );
                if !is_absent {
                    let hint = error.hint().unwrap_or_default();
                    tracing::warn!(%error, hint, "the GPU cannot be used, the CPU is");
                }
                Ok(weights)
            }
            placed => placed,
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| format!("`{text}` is none of auto, cpu, cuda"))
    }
}
