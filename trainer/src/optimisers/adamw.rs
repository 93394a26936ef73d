//! AdamW.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_policy::ops::elementwise::{AdamWStep, adamw};
use spar_policy::{ParameterKind, ParameterSpec, Parameters};

use super::state_file::StateData;
use super::state_numbers::StateNumbers;
use super::{Optimizer, StateReader, StateTensor};
use crate::TrainerError;

/// Options of [`AdamW`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdamWOptions {
    /// Learning rate of what has no rate of its own; not negative. Default 4e-4.
    pub learning_rate: f32,
    /// Learning rate of embeddings; that of `learning_rate` when absent. Absent by default.
    pub embedding_learning_rate: Option<f32>,
    /// Learning rate of gains and biases; that of `learning_rate` when absent. Absent by default.
    pub vector_learning_rate: Option<f32>,
    /// Decay of the running mean of gradients; 0 up to but not including 1. Default 0.9.
    pub beta1: f32,
    /// Decay of the running mean of squared gradients; 0 up to but not including 1. Default 0.95.
    pub beta2: f32,
    /// Added to the root of the mean square; positive. Default 1e-8.
    pub epsilon: f32,
    /// Share of a matrix or embedding that an update of learning rate 1 takes away; gains and
    /// biases do not decay. Not negative. Default 0.
    pub weight_decay: f32,
}

impl Default for AdamWOptions {
    fn default() -> Self {
        Self {
            learning_rate: 4e-4,
            embedding_learning_rate: None,
            vector_learning_rate: None,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.0,
        }
    }
}

impl NamedOptions for AdamWOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let not_negative = [
            ("learning_rate", Some(self.learning_rate)),
            ("embedding_learning_rate", self.embedding_learning_rate),
            ("vector_learning_rate", self.vector_learning_rate),
            ("weight_decay", Some(self.weight_decay)),
        ];
        for (name, value) in not_negative {
            if let Some(value) = value
                && !(value.is_finite() && value >= 0.0)
            {
                problems.push(format!("`{name}` {value} must not be negative"));
            }
        }
        for (name, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                problems.push(format!("`{name}` {beta} is outside 0 to 1"));
            }
        }
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            problems.push(format!("`epsilon` {} must be positive", self.epsilon));
        }
        problems
    }
}

impl AdamWOptions {
    /// The learning rate of a kind of parameter.
    pub fn learning_rate_of(&self, kind: ParameterKind) -> f32 {
        match kind {
            ParameterKind::Matrix => None,
            ParameterKind::Embedding => self.embedding_learning_rate,
            ParameterKind::Vector => self.vector_learning_rate,
        }
        .unwrap_or(self.learning_rate)
    }

    /// What update number `updates`, counted from 1, does to parameters of a kind.
    pub(crate) fn step(&self, kind: ParameterKind, rate: f32, updates: u64) -> AdamWStep {
        let Self { beta1, beta2, epsilon, .. } = *self;
        let decays = kind != ParameterKind::Vector;
        // In f64, since 1 - beta2^k loses most of its digits in f32 when k is small.
        let correction =
            |beta: f32| 1.0 - f64::from(beta).powi(updates.try_into().unwrap_or(i32::MAX));
        AdamWStep {
            beta1,
            beta2,
            epsilon,
            keep: if decays { 1.0 - rate * self.weight_decay } else { 1.0 },
            step: (f64::from(rate) / correction(beta1)) as f32,
            root: correction(beta2).sqrt() as f32,
        }
    }
}

/// Adam with bias correction and decoupled weight decay (arXiv 1711.05101, algorithm 2; the
/// arrangement of PyTorch's `AdamW`).
///
/// ```text
/// w <- w (1 - rate decay)
/// m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
/// w <- w - rate (m / (1 - beta1^k)) / (sqrt(v / (1 - beta2^k)) + epsilon)      in update k
/// ```
#[derive(Debug)]
pub struct AdamW {
    options: AdamWOptions,
    moments: Moments,
}

impl AdamW {
    /// The optimiser for weights in the layout of `parameters`; its state is in a file within `folder`
    /// where there is one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::StateFile`] when the file cannot be made.
    pub fn new(
        options: AdamWOptions,
        parameters: &Parameters,
        folder: Option<&Path>,
    ) -> Result<Self, TrainerError> {
        Ok(Self { options, moments: Moments::new(parameters, folder)? })
    }
}

impl Optimizer for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn update(
        &mut self,
        parameters: &mut Parameters,
        gradient: &[f32],
        learning_rate_scale: f32,
    ) -> Result<(), TrainerError> {
        self.moments.updates += 1;
        for spec in parameters.specs.clone().iter() {
            let rate = self.options.learning_rate_of(spec.kind) * learning_rate_scale;
            self.moments.update(spec, parameters, gradient, &self.options, rate)?;
        }
        Ok(())
    }

    fn state(&self) -> Vec<StateTensor<'_>> {
        self.moments.state(|_| true)
    }

    fn load_state(&mut self, state: StateReader<'_>) -> Result<(), TrainerError> {
        self.moments.load_state(state, |_| true)
    }
}

/// Running means of gradients and of their squares, in the layout of the weights.
#[derive(Debug)]
pub(crate) struct Moments {
    pub(crate) specs: std::sync::Arc<[ParameterSpec]>,
    /// Running mean of gradients, or Muon's momentum.
    pub(crate) first: StateNumbers,
    pub(crate) second: StateNumbers,
    pub(crate) updates: u64,
    /// Where the file of a further state is made.
    folder: Option<PathBuf>,
}

impl Moments {
    pub(crate) fn new(
        parameters: &Parameters,
        folder: Option<&Path>,
    ) -> Result<Self, TrainerError> {
        Self::zeros(parameters.specs.clone(), folder.map(Path::to_owned))
    }

    fn zeros(
        specs: std::sync::Arc<[ParameterSpec]>,
        folder: Option<PathBuf>,
    ) -> Result<Self, TrainerError> {
        let len = specs.last().map_or(0, |spec| spec.range().end);
        let first = StateNumbers::zeros(len, folder.as_deref())?;
        let second = StateNumbers::zeros(len, folder.as_deref())?;
        Ok(Self { specs, first, second, updates: 0, folder })
    }

    /// Updates one parameter by Adam; `updates` counts this update already.
    pub(crate) fn update(
        &mut self,
        spec: &ParameterSpec,
        parameters: &mut Parameters,
        gradient: &[f32],
        options: &AdamWOptions,
        rate: f32,
    ) -> Result<(), TrainerError> {
        let step = options.step(spec.kind, rate, self.updates);
        let data = &mut parameters.data[..];
        let (first, second) = (&mut self.first, &mut self.second);
        StateNumbers::change_both(first, second, spec.range(), |range, first, second| {
            adamw(&mut data[range.clone()], first, second, &gradient[range], step);
        })
    }

    /// The state of a device's moments, which were read back.
    pub(crate) fn read_back(
        specs: &[ParameterSpec],
        [first, second]: [Vec<f32>; 2],
        updates: u64,
    ) -> Vec<StateTensor<'static>> {
        let mut tensors = vec![StateTensor::counter("updates", updates)];
        for spec in specs {
            for (moment, numbers) in [("first", &first), ("second", &second)] {
                let name = format!("{moment}.{}", spec.name);
                let data = StateData::Owned(numbers[spec.range()].to_vec());
                tensors.push(StateTensor { name, shape: spec.shape.clone(), data });
            }
        }
        tensors
    }

    /// The state; the second moments only of parameters for which `has_second` holds.
    pub(crate) fn state(
        &self,
        has_second: impl Fn(&ParameterSpec) -> bool,
    ) -> Vec<StateTensor<'_>> {
        let mut tensors = vec![StateTensor::counter("updates", self.updates)];
        for spec in self.specs.iter() {
            let mut push = |moment: &str, numbers| {
                let name = format!("{moment}.{}", spec.name);
                let data = StateData::Numbers(numbers, spec.range());
                tensors.push(StateTensor { name, shape: spec.shape.clone(), data });
            };
            push("first", &self.first);
            if has_second(spec) {
                push("second", &self.second);
            }
        }
        tensors
    }

    pub(crate) fn load_state(
        &mut self,
        mut state: StateReader<'_>,
        has_second: impl Fn(&ParameterSpec) -> bool,
    ) -> Result<(), TrainerError> {
        let mut loaded = Self::zeros(self.specs.clone(), self.folder.clone())?;
        loaded.updates = state.counter("updates")?;
        for spec in self.specs.iter() {
            let mut read = |moment: &str, numbers: &mut StateNumbers| {
                let name = format!("{moment}.{}", spec.name);
                let take =
                    |first: usize, values: &[f32]| numbers.write(spec.offset + first, values);
                state.read(&name, &spec.shape, take)
            };
            read("first", &mut loaded.first)?;
            if has_second(spec) {
                read("second", &mut loaded.second)?;
            }
        }
        *self = loaded;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, golden, number, vector};

    fn parameters(weights: &[f32]) -> Parameters {
        let shapes = vec![("w".to_owned(), vec![1, weights.len()], ParameterKind::Matrix)];
        let mut parameters = Parameters::zeros(shapes);
        parameters.data.copy_from_slice(weights);
        parameters
    }

    #[test]
    fn updates_equal_the_golden_numbers() {
        for case in golden("optimizer_adamw") {
            let param = |name: &str| number(&case["params"][name]) as f32;
            let options = AdamWOptions {
                learning_rate: param("learning_rate"),
                beta1: param("beta1"),
                beta2: param("beta2"),
                epsilon: param("epsilon"),
                weight_decay: param("weight_decay"),
                ..AdamWOptions::default()
            };
            let floats = |values: Vec<f64>| values.iter().map(|v| *v as f32).collect::<Vec<_>>();
            let mut weights = parameters(&floats(vector(&case["inputs"]["weights"])));
            let mut optimizer = AdamW::new(options, &weights, None).unwrap();
            let gradients = case["inputs"]["gradients"].as_array().unwrap();
            let outputs = case["outputs"]["weights"].as_array().unwrap();
            for (gradient, wanted) in gradients.iter().zip(outputs) {
                optimizer.update(&mut weights, &floats(vector(gradient)), 1.0).unwrap();
                for (found, wanted) in weights.data.iter().zip(vector(wanted)) {
                    assert_close((*found).into(), wanted, 1e-6);
                }
            }
        }
    }

    #[test]
    fn kinds_have_their_own_rates_and_vectors_do_not_decay() {
        let shapes = vec![
            ("m".to_owned(), vec![1, 1], ParameterKind::Matrix),
            ("e".to_owned(), vec![1, 1], ParameterKind::Embedding),
            ("v".to_owned(), vec![1], ParameterKind::Vector),
        ];
        let mut weights = Parameters::zeros(shapes);
        weights.data.fill(1.0);
        let options = AdamWOptions {
            learning_rate: 0.1,
            embedding_learning_rate: Some(0.2),
            weight_decay: 0.5,
            ..AdamWOptions::default()
        };
        // Without a gradient only the decay is left.
        let mut optimizer = AdamW::new(options, &weights, None).unwrap();
        optimizer.update(&mut weights, &[0.0; 3], 0.5).unwrap();
        assert_eq!(weights.data[..], [0.975, 0.95, 1.0]);
    }
}
