//! Muon.

use std::path::Path;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use spar_core::registry::{NamedOptions, Options};
use spar_policy::{ParameterKind, ParameterSpec, Parameters};

use super::adamw::Moments;
use super::{AdamWOptions, Optimizer, StateReader, StateTensor, orthogonalize};
use crate::TrainerError;

/// Options of [`Muon`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MuonOptions {
    /// Learning rate of matrices between hidden layers; not negative. Default 0.02.
    pub learning_rate: f32,
    /// Decay of the momentum; 0 up to but not including 1. Default 0.95.
    pub momentum: f32,
    /// Whether the gradient is mixed into the momentum once more (Nesterov). Default true.
    pub nesterov: bool,
    /// Newton-Schulz iterations; at least 1. Default 5.
    pub iterations: usize,
    /// Share of a matrix that an update of learning rate 1 takes away; not negative. Default 0.
    pub weight_decay: f32,
    /// How embeddings, gains and biases are updated. Default that of [`AdamWOptions`] with
    /// `learning_rate` 1e-2.
    #[serde(deserialize_with = "adamw_beside")]
    pub adamw: AdamWOptions,
}

impl Default for MuonOptions {
    fn default() -> Self {
        Self {
            learning_rate: 0.02,
            momentum: 0.95,
            nesterov: true,
            iterations: 5,
            weight_decay: 0.0,
            adamw: AdamWOptions { learning_rate: 1e-2, ..AdamWOptions::default() },
        }
    }
}

/// Options of AdamW that keep Muon's default rate for it unless they name one.
fn adamw_beside<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AdamWOptions, D::Error> {
    let mut given = Options::deserialize(deserializer)?;
    let rate = MuonOptions::default().adamw.learning_rate;
    given.entry("learning_rate").or_insert(rate.into());
    serde_json::from_value(given.into()).map_err(D::Error::custom)
}

impl NamedOptions for MuonOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in
            [("learning_rate", self.learning_rate), ("weight_decay", self.weight_decay)]
        {
            if !(value.is_finite() && value >= 0.0) {
                problems.push(format!("`{name}` {value} must not be negative"));
            }
        }
        if !(0.0..1.0).contains(&self.momentum) {
            problems.push(format!("`momentum` {} is outside 0 to 1", self.momentum));
        }
        if self.iterations == 0 {
            problems.push("`iterations` is 0, it must be positive".to_owned());
        }
        problems.extend(self.adamw.problems().into_iter().map(|text| format!("adamw: {text}")));
        problems
    }
}

/// Momentum whose matrices are made orthogonal before they are applied.
///
/// For a matrix `w` of shape `[out, in]` with gradient `g`:
///
/// ```text
/// m <- momentum m + (1 - momentum) g
/// u  = momentum m + (1 - momentum) g              (with Nesterov, else m)
/// w <- w (1 - rate decay) - rate sqrt(max(1, out / in)) orthogonalize(u)
/// ```
///
/// All else is updated by [`AdamW`](super::AdamW). Source: Jordan et al., "Muon: an optimizer for
/// hidden layers" (2024); the arrangement of PyTorch's `Muon` with `adjust_lr_fn = "original"`.
#[derive(Debug)]
pub struct Muon {
    options: MuonOptions,
    moments: Moments,
}

impl Muon {
    /// The optimiser for weights in the layout of `parameters`; its state is in a file within `folder`
    /// where there is one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::StateFile`] when the file cannot be made.
    pub fn new(
        options: MuonOptions,
        parameters: &Parameters,
        folder: Option<&Path>,
    ) -> Result<Self, TrainerError> {
        Ok(Self { options, moments: Moments::new(parameters, folder)? })
    }

    /// Advances the momentum of a matrix and returns the direction to go, orthogonal.
    fn direction(&self, spec: &ParameterSpec, gradient: &[f32], momentum: &mut [f32]) -> Vec<f32> {
        let mix = 1.0 - self.options.momentum;
        for (m, g) in momentum.iter_mut().zip(gradient) {
            *m += (g - *m) * mix;
        }
        let mut direction: Vec<f32> = if self.options.nesterov {
            momentum.iter().zip(gradient).map(|(m, g)| m + (g - m) * mix).collect()
        } else {
            momentum.to_vec()
        };
        let (rows, columns) = sides(spec);
        orthogonalize(&mut direction, rows, columns, self.options.iterations);
        direction
    }
}

impl Optimizer for Muon {
    fn name(&self) -> &'static str {
        "muon"
    }

    fn update(
        &mut self,
        parameters: &mut Parameters,
        gradient: &[f32],
        learning_rate_scale: f32,
    ) -> Result<(), TrainerError> {
        self.moments.updates += 1;
        let specs = parameters.specs.clone();
        // Matrices do not depend on each other, so any number of threads gives the same result.
        let matrices: Vec<&ParameterSpec> = specs.iter().filter(|spec| is_matrix(spec)).collect();
        // Those whose momentum comes from a file, only as many at a time as there are threads.
        let at_once = match self.moments.first.is_in_memory() {
            true => matrices.len(),
            false => rayon::current_num_threads(),
        };
        let rate = self.options.learning_rate * learning_rate_scale;
        let keep = 1.0 - rate * self.options.weight_decay;
        for matrices in matrices.chunks(at_once.max(1)) {
            let changes: Vec<(Vec<f32>, Vec<f32>)> = matrices
                .par_iter()
                .map(|spec| {
                    let mut momentum = Vec::new();
                    self.moments.first.read(spec.range(), &mut momentum)?;
                    let direction = self.direction(spec, &gradient[spec.range()], &mut momentum);
                    Ok((momentum, direction))
                })
                .collect::<Result<_, TrainerError>>()?;
            for (spec, (momentum, direction)) in matrices.iter().zip(changes) {
                self.moments.first.write(spec.offset, &momentum)?;
                let (rows, columns) = sides(spec);
                let step = rate * (rows as f32 / columns as f32).max(1.0).sqrt();
                for (w, d) in parameters.view_mut(spec).iter_mut().zip(direction) {
                    *w = *w * keep - step * d;
                }
            }
        }
        let adamw = &self.options.adamw;
        for spec in specs.iter().filter(|spec| !is_matrix(spec)) {
            let rate = adamw.learning_rate_of(spec.kind) * learning_rate_scale;
            self.moments.update(spec, parameters, gradient, adamw, rate)?;
        }
        Ok(())
    }

    fn state(&self) -> Vec<StateTensor<'_>> {
        self.moments.state(|spec| !is_matrix(spec))
    }

    fn load_state(&mut self, state: StateReader<'_>) -> Result<(), TrainerError> {
        self.moments.load_state(state, |spec| !is_matrix(spec))
    }
}

fn is_matrix(spec: &ParameterSpec) -> bool {
    spec.kind == ParameterKind::Matrix && !spec.is_empty()
}

/// Rows and columns; further axes count as columns.
fn sides(spec: &ParameterSpec) -> (usize, usize) {
    let rows = spec.shape.first().copied().unwrap_or(1);
    (rows, spec.len() / rows.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, golden, matrix, number};

    #[test]
    fn updates_equal_the_golden_numbers() {
        for case in golden("optimizer_muon") {
            let param = |name: &str| number(&case["params"][name]) as f32;
            let options = MuonOptions {
                learning_rate: param("learning_rate"),
                momentum: param("momentum"),
                nesterov: case["params"]["nesterov"].as_bool().unwrap(),
                weight_decay: param("weight_decay"),
                ..MuonOptions::default()
            };
            let start = matrix(&case["inputs"]["weights"]);
            let shape = vec![start.len(), start[0].len()];
            let mut weights =
                Parameters::zeros(vec![("w".to_owned(), shape, ParameterKind::Matrix)]);
            let flat = |rows: Vec<Vec<f64>>| {
                rows.concat().iter().map(|value| *value as f32).collect::<Vec<_>>()
            };
            weights.data = flat(start).into();
            let mut optimizer = Muon::new(options, &weights, None).unwrap();
            let gradients = case["inputs"]["gradients"].as_array().unwrap();
            let outputs = case["outputs"]["weights"].as_array().unwrap();
            for (gradient, wanted) in gradients.iter().zip(outputs) {
                optimizer.update(&mut weights, &flat(matrix(gradient)), 1.0).unwrap();
                for (found, wanted) in weights.data.iter().zip(matrix(wanted).concat()) {
                    assert_close((*found).into(), wanted, 2e-5);
                }
            }
        }
    }

    #[test]
    fn what_is_no_matrix_moves_as_under_adamw() {
        let shapes = vec![
            ("e".to_owned(), vec![2, 2], ParameterKind::Embedding),
            ("v".to_owned(), vec![3], ParameterKind::Vector),
        ];
        let mut by_muon = Parameters::zeros(shapes);
        let mut by_adamw = by_muon.clone();
        let options = MuonOptions::default();
        let mut adamw = super::super::AdamW::new(options.adamw.clone(), &by_muon, None).unwrap();
        let mut muon = Muon::new(options, &by_muon, None).unwrap();
        for _ in 0..3 {
            let gradient = [1.0, -2.0, 0.5, 0.0, 3.0, -1.0, 0.1];
            muon.update(&mut by_muon, &gradient, 0.7).unwrap();
            adamw.update(&mut by_adamw, &gradient, 0.7).unwrap();
        }
        assert_eq!(by_muon, by_adamw);
    }
}
