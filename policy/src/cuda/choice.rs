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

    /// The decoder in its place, a GPU once it has been tried ([`Device::try_out`]). With `Auto`, one that is
    /// there and cannot be used is told of in the log.
    ///
    /// # Errors
    ///
    /// With `Cuda`, when there is no GPU, or none that can be used for this decoder.
    pub fn place(self, weights: Weights) -> Result<Weights, DeviceError> {
        self.place_on(weights, Device::open)
    }

    /// As [`DeviceChoice::place`] with the GPU that `open` finds.
    fn place_on(
        self,
        weights: Weights,
        open: impl FnOnce() -> Result<Device, DeviceError>,
    ) -> Result<Weights, DeviceError> {
        if self == Self::Cpu {
            return Ok(weights);
        }
        let placed = open().and_then(|device| {
            device.try_out()?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cuda::emulator::Emulator;
    use crate::{ModelConfig, initial_parameters};

    #[test]
    #[ignore = "needs a C++ compiler"]
    fn emulated_device_that_computes_wrongly_is_not_used() {
        let config = ModelConfig {
            vocab_size: 11,
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            num_attention_heads: 1,
            num_key_value_heads: 1,
            head_dim: 16,
            ..ModelConfig::default()
        };
        let seed = spar_core::Seed::from_u64(1);
        let weights = Weights::new(&config, initial_parameters(&config, seed));
        let place = |choice: DeviceChoice, emulator: Emulator| {
            choice.place_on(weights.clone(), || Ok(Device::with_driver(Arc::new(emulator))))
        };
        for choice in [DeviceChoice::Auto, DeviceChoice::Cuda] {
            assert!(place(choice, Emulator::default()).unwrap().device().is_some());
        }
        assert!(place(DeviceChoice::Cpu, Emulator::default()).unwrap().device().is_none());
        let fallen_back = place(DeviceChoice::Auto, Emulator::erring()).unwrap();
        assert!(fallen_back.device().is_none());
        let error = place(DeviceChoice::Cuda, Emulator::erring()).unwrap_err();
        assert!(matches!(error, DeviceError::WrongResult { what: "a product", .. }), "{error}");
        assert!(error.hint().is_some());
        // A block that has no room for the heads is found before anything is computed.
        let error = place(DeviceChoice::Cuda, Emulator::with_shared_bytes(4 << 10)).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    }
}
