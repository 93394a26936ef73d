//! What an update did.

use std::collections::BTreeMap;

use crate::Drift;

/// What an update did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpdateMetrics {
    /// Number of the update, counted from 1 over the run.
    pub update: u64,
    /// The loss before it.
    pub loss: f64,
    /// Euclidean length of the gradient before it was shortened.
    pub gradient_norm: f64,
    /// Whether the gradient was shortened.
    pub is_clipped: bool,
    /// Factor of the learning rates.
    pub learning_rate_scale: f32,
    /// Rows given, all of which count in what the loss is divided by.
    pub samples: usize,
    /// Those of them that have a gradient; only they were computed.
    pub computed_samples: usize,
    /// Tokens of the samples that were computed.
    pub tokens: usize,
    /// Tokens the model had to read: what samples of a micro-batch begin with counts once.
    pub computed_tokens: usize,
    /// Sampled against recomputed log-probabilities.
    pub drift: Drift,
    /// Metrics of the objective, by name.
    pub objective: BTreeMap<String, f64>,
    /// Wall-clock seconds it took.
    pub seconds: f64,
}

impl UpdateMetrics {
    /// All numbers by name, as they go into metrics files.
    ///
    /// Drift is there only when tokens were compared.
    pub fn scalars(&self) -> Vec<(String, f64)> {
        let mut scalars = vec![
            ("update".to_owned(), self.update as f64),
            ("loss".to_owned(), self.loss),
            ("gradient_norm".to_owned(), self.gradient_norm),
            ("gradient_clipped".to_owned(), f64::from(u8::from(self.is_clipped))),
            ("learning_rate_scale".to_owned(), f64::from(self.learning_rate_scale)),
            ("samples".to_owned(), self.samples as f64),
            ("computed_samples".to_owned(), self.computed_samples as f64),
            ("tokens".to_owned(), self.tokens as f64),
            ("computed_tokens".to_owned(), self.computed_tokens as f64),
            ("seconds".to_owned(), self.seconds),
        ];
        for (name, distances) in [("current", self.drift.current), ("all", self.drift.all)] {
            if distances.tokens > 0 {
                scalars.push((format!("drift_{name}_mean"), distances.mean()));
                scalars.push((format!("drift_{name}_max"), distances.max));
            }
        }
        scalars.extend(self.objective.iter().map(|(name, value)| (name.clone(), *value)));
        scalars
    }
}
