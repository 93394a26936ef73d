//! How samples become updates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AverageConfig, OptimizerConfig, ScheduleConfig, StatePlace};

/// How samples become updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrainerConfig {
    /// Times each sample is used per iteration; at least 1. Default 1.
    pub epochs: usize,
    /// Updates that an epoch is divided into, of about equal numbers of tokens; fewer where there
    /// are fewer samples. At least 1. Default 1.
    pub minibatches: usize,
    /// Whether samples with the same prompt, the tokens before the first one that weighs, go to the same
    /// minibatch, where the model reads it once. Otherwise samples are spread over minibatches one by
    /// one. Default false.
    pub keep_prompts_together: bool,
    /// Tokens the model reads at a time, what samples begin with counting once; a longer sample stands
    /// alone. At least 1. Default 1024.
    pub micro_batch_tokens: usize,
    /// Mebibytes that a shard keeps of what layers compute for their backward; where the tokens read
    /// at a time take more, layers are computed once more, which takes about a third more time and
    /// changes no result. 0: always. Default 2048.
    pub activation_mebibytes: usize,
    /// What forward, backward and generation compute with on the CPU: `f32`, the weights themselves, or
    /// `bf16`, their roundings, while the optimiser goes on with the master weights in f32. Default
    /// `f32`.
    pub weights: WeightPrecision,
    /// Where an optimiser on the host keeps its state: `memory`, or `file`, one in the run's folder, which takes 8
    /// bytes per weight less of memory and reads and writes as many in every update. Changes no
    /// result. Default `memory`.
    pub optimizer_state: StatePlace,
    /// Parts an update is computed in, at the same time where there are threads; the result
    /// depends on this number, not on the threads. At least 1. Default 4.
    pub shards: usize,
    /// Gradients longer than this (Euclidean length over all weights) are shortened to it;
    /// positive. Absent: never. Default 1.
    pub max_gradient_norm: Option<f64>,
    /// Weights averaged beside the trained ones, after every update: `{ last = { count = 8 } }` or
    /// `{ exponential = { decay = 0.99 } }`. Absent by default.
    pub average: Option<AverageConfig>,
    /// The course of the learning rate.
    pub schedule: ScheduleConfig,
    /// Which optimiser is used.
    pub optimizer: OptimizerConfig,
    /// Where the trained weights, their gradient and the optimiser's state are kept: `device`, where
    /// the decoder is on a GPU, `adamw` is used and no average is kept; or `host`, which takes 12 bytes
    /// per weight off the GPU (optimizer-state off-load), and sends gradients and weights across in
    /// every update. Default absent: `device` where that can be.
    pub optimizer_on: Option<OptimizerPlace>,
}

/// Where the trained weights, their gradient and the optimiser's state are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerPlace {
    /// In the memory of the decoder's GPU.
    Device,
    /// In the host's memory.
    Host,
}

/// What forward, backward and generation compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WeightPrecision {
    /// The weights that are trained.
    #[default]
    F32,
    /// Their roundings to bf16.
    Bf16,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            epochs: 1,
            minibatches: 1,
            keep_prompts_together: false,
            micro_batch_tokens: 1024,
            activation_mebibytes: 2048,
            weights: WeightPrecision::F32,
            optimizer_state: StatePlace::Memory,
            shards: 4,
            max_gradient_norm: Some(1.0),
            average: None,
            schedule: ScheduleConfig::default(),
            optimizer: OptimizerConfig::default(),
            optimizer_on: None,
        }
    }
}

impl TrainerConfig {
    /// [`activation_mebibytes`](Self::activation_mebibytes) in bytes.
    pub fn activation_bytes(&self) -> usize {
        self.activation_mebibytes.saturating_mul(1 << 20)
    }

    /// Whether weights and optimiser are kept on the decoder's device, if it has one.
    pub fn is_for_device(&self) -> bool {
        match self.optimizer_on {
            Some(place) => place == OptimizerPlace::Device,
            None => {
                self.optimizer.name == "adamw"
                    && self.average.is_none()
                    && self.optimizer_state == StatePlace::Memory
            }
        }
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let positive = [
            ("epochs", self.epochs),
            ("minibatches", self.minibatches),
            ("micro_batch_tokens", self.micro_batch_tokens),
            ("shards", self.shards),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("`{name}` is 0, it must be positive"));
            }
        }
        if self.optimizer_on == Some(OptimizerPlace::Device)
            && self.optimizer_state == StatePlace::File
        {
            let problem = "`optimizer_on` is `device`, which has no file for `optimizer_state`";
            problems.push(problem.to_owned());
        }
        if let Some(norm) = self.max_gradient_norm
            && !(norm.is_finite() && norm > 0.0)
        {
            problems.push(format!("`max_gradient_norm` {norm} must be positive"));
        }
        if self.optimizer_on == Some(OptimizerPlace::Device) {
            if self.optimizer.name != "adamw" {
                let name = &self.optimizer.name;
                problems.push(format!("`optimizer_on` is `device`, where `{name}` cannot be"));
            }
            if self.average.is_some() {
                problems.push("`optimizer_on` is `device`, where no `average` is kept".to_owned());
            }
        }
        problems.extend(self.average.iter().flat_map(AverageConfig::problems));
        let within = |part: &str, found: Vec<String>| {
            found.into_iter().map(|text| format!("{part}: {text}")).collect::<Vec<_>>()
        };
        problems.extend(within("schedule", self.schedule.problems()));
        problems.extend(within("optimizer", self.optimizer.problems()));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_round_trips_and_tells_all_problems() {
        let config: TrainerConfig = toml::from_str(
            "epochs = 0
             shards = 0
             average = { last = { count = 0 } }
             schedule = { shape = 'cosine', warmup = -1 }
             optimizer = { name = 'muon', options = { learning_rate = -1 } }",
        )
        .unwrap();
        assert_eq!(config.problems().len(), 5);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<TrainerConfig>(&text).unwrap(), config);
        assert!(TrainerConfig::default().problems().is_empty());
        assert!(toml::from_str::<TrainerConfig>("epoch = 1").is_err());
    }
}
