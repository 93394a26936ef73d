//! A head with one hidden layer.

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Seed;
use spar_core::registry::NamedOptions;
use spar_ops::matmul::{Output, linear, linear_backward, linear_gradient};

use super::StateHead;
use super::linear::{last_backward, last_forward, last_layer};
use crate::{ParameterKind, Parameters};

/// Options of [`HiddenLayer`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HiddenLayerOptions {
    /// Numbers of the hidden layer; at least 1. Default absent: as many as a state has.
    pub(super) width: Option<usize>,
}

impl NamedOptions for HiddenLayerOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = self.width == Some(0);
        is_wrong.then(|| "width is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// `V tanh(W x + c) + b` of a state `x`, as many numbers as there are outputs; `W` begins uniform within
/// `1 / sqrt(width of x)`, all else at 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HiddenLayer {
    options: HiddenLayerOptions,
    outputs: usize,
}

/// The parts of the flat buffer.
struct Parts<T> {
    /// `W`, `[hidden, width]`.
    matrix: T,
    /// `c`, `[hidden]`.
    shift: T,
    /// `V` and `b`, `[outputs * hidden + outputs]`.
    last: T,
}

impl HiddenLayer {
    /// A head with these options that gives so many numbers of a state, at least 1.
    pub(super) fn new(options: HiddenLayerOptions, outputs: usize) -> Self {
        Self { options, outputs }
    }

    /// What the hidden layer makes of states, `[rows, hidden]`.
    fn hidden(parts: &Parts<&[f32]>, states_rd: &[f32]) -> Vec<f32> {
        let hidden = parts.shift.len();
        let rows = states_rd.len() * hidden / parts.matrix.len();
        let mut out = vec![0.0; rows * hidden];
        linear(states_rd, parts.matrix, &mut out, rows, hidden, Output::Set);
        for row in out.chunks_exact_mut(hidden) {
            row.iter_mut().zip(parts.shift).for_each(|(x, shift)| *x = (*x + shift).tanh());
        }
        out
    }
}

/// Where the parts of parameters of this layout end.
fn ends(parameters: &Parameters) -> [usize; 2] {
    [parameters.specs[0].range().end, parameters.specs[1].range().end]
}

fn parts(parameters: &Parameters) -> Parts<&[f32]> {
    let [first, second] = ends(parameters);
    let data = &parameters.data;
    Parts { matrix: &data[..first], shift: &data[first..second], last: &data[second..] }
}

impl StateHead for HiddenLayer {
    fn name(&self) -> &'static str {
        "hidden_layer"
    }

    fn shapes(&self, width: usize) -> Vec<(String, Vec<usize>, ParameterKind)> {
        let hidden = self.options.width.unwrap_or(width);
        let mut shapes = vec![
            ("v_head.hidden.weight".to_owned(), vec![hidden, width], ParameterKind::Matrix),
            ("v_head.hidden.bias".to_owned(), vec![hidden], ParameterKind::Vector),
        ];
        shapes.extend(last_layer(hidden, self.outputs));
        shapes
    }

    fn initial(&self, width: usize, seed: Seed) -> Parameters {
        let mut parameters = Parameters::zeros(self.shapes(width));
        let bound = 1.0 / (width as f32).sqrt();
        let mut rng = seed.derive("parameter", "v_head.hidden.weight").rng();
        let [end, _] = ends(&parameters);
        for value in &mut parameters.data[..end] {
            *value = rng.random_range(-bound..bound);
        }
        parameters
    }

    fn forward(&self, parameters: &Parameters, states_rd: &[f32]) -> Vec<f32> {
        let parts = parts(parameters);
        last_forward(parts.last, self.outputs, &Self::hidden(&parts, states_rd))
    }

    fn backward(
        &self,
        parameters: &Parameters,
        states_rd: &[f32],
        dnumbers: &[f32],
        dstates_rd: Option<&mut [f32]>,
        gradient: &mut [f32],
    ) {
        let parts = parts(parameters);
        let [first, second] = ends(parameters);
        let (dmatrix, rest) = gradient.split_at_mut(first);
        let (dshift, dlast) = rest.split_at_mut(second - first);

        // 1. The last layer, on what the hidden one made; d tanh(y) / dy = 1 - tanh(y)^2.
        let inner = Self::hidden(&parts, states_rd);
        let mut dinner = vec![0.0; inner.len()];
        last_backward(parts.last, self.outputs, &inner, dnumbers, Some(&mut dinner), dlast);
        dinner.iter_mut().zip(&inner).for_each(|(d, value)| *d *= 1.0 - value * value);

        // 2. The hidden layer.
        let (rows, hidden) = (dnumbers.len() / self.outputs, dshift.len());
        for row in dinner.chunks_exact(hidden) {
            dshift.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        linear_gradient(&dinner, states_rd, dmatrix, rows, hidden);
        if let Some(dstates_rd) = dstates_rd {
            linear_backward(&dinner, parts.matrix, dstates_rd, rows, hidden, Output::Add);
        }
    }
}
