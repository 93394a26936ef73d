//! What a run trains, and the memory that takes.

use std::fmt;

use serde::Serialize;
use spar_policy::{LoraConfig, ModelConfig};
use spar_trainer::{AverageConfig, StatePlace, TrainerConfig, WeightPrecision};

/// How many weights a run trains, and the memory that it takes besides activations, keys and
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Weights of the model.
    pub weights: usize,
    /// Numbers that are trained.
    pub trained: usize,
    /// Bytes of weights: those that are updated, those that the policy plays by meanwhile, and,
    /// below an adapter, the frozen ones.
    pub weight_bytes: usize,
    /// Bytes of gradients, one per shard.
    pub gradient_bytes: usize,
    /// Bytes of the optimiser's two moments, where they are in memory, and of averages.
    pub optimizer_bytes: usize,
}

impl Footprint {
    /// That of a model of this shape; with an adapter where `lora` describes one.
    pub fn new(model: &ModelConfig, lora: Option<&LoraConfig>, trainer: &TrainerConfig) -> Self {
        let weights = model.num_parameters();
        let trained = lora.map_or(weights, |lora| lora.num_parameters(model));
        let bytes = size_of::<f32>();
        let weight_bytes = match (lora, trainer.weights) {
            // Frozen ones, and merged ones before and after an update.
            (Some(_), _) => (3 * weights + trained) * bytes,
            (None, WeightPrecision::F32) => 2 * weights * bytes,
            // Master weights, and rounded ones before and after an update.
            (None, WeightPrecision::Bf16) => weights * bytes + 2 * weights * size_of::<u16>(),
        };
        let moments = match trainer.optimizer_state {
            StatePlace::Memory => 2,
            StatePlace::File => 0,
        };
        let averages = match trainer.average {
            Some(AverageConfig::Last { count }) => count,
            Some(AverageConfig::Exponential { .. }) => 1,
            None => 0,
        };
        Self {
            weights,
            trained,
            weight_bytes,
            gradient_bytes: trainer.shards * trained * bytes,
            optimizer_bytes: (moments + averages) * trained * bytes,
        }
    }

    /// All bytes together.
    pub fn bytes(&self) -> usize {
        self.weight_bytes + self.gradient_bytes + self.optimizer_bytes
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{} of {} weights trained ({:.3} %); {:.1} MiB: weights {:.1}, gradients {:.1}, optimiser \
             {:.1}",
            self.trained,
            self.weights,
            100.0 * self.trained as f64 / self.weights.max(1) as f64,
            mib(self.bytes()),
            mib(self.weight_bytes),
            mib(self.gradient_bytes),
            mib(self.optimizer_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_takes_a_fraction() {
        let model = ModelConfig { vocab_size: 1000, ..ModelConfig::default() };
        let trainer = TrainerConfig::default();
        let whole = Footprint::new(&model, None, &trainer);
        assert_eq!(
            (whole.trained, whole.bytes()),
            (whole.weights, whole.weights * 4 * (2 + 4 + 2))
        );
        let lora = LoraConfig { rank: 2, ..LoraConfig::default() };
        let part = Footprint::new(&model, Some(&lora), &trainer);
        // Two layers of seven matrices: rank times outputs plus inputs.
        let layer = (128 + 128) * 2 + (64 + 128) * 2 + (256 + 128) * 3;
        assert_eq!(part.trained, 2 * 2 * layer);
        assert!(part.bytes() < whole.bytes() / 2);
    }
}
