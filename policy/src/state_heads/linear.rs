//! A linear head.

use spar_core::Seed;
use spar_ops::elementwise::{add_scaled, dot};

use super::StateHead;
use crate::{ParameterKind, Parameters};

/// The names of TRL's value head, and of all heads that end in one.
pub(super) const WEIGHT: &str = "v_head.summary.weight";
pub(super) const BIAS: &str = "v_head.summary.bias";

/// `w x + b` of a state `x`; both begin at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linear;

/// Names, shapes and kinds of a last layer on so many numbers. The weights are an output matrix, which optimisers that
/// treat matrices between hidden layers in their own way leave to AdamW.
pub(super) fn last_layer(width: usize) -> [(String, Vec<usize>, ParameterKind); 2] {
    [
        (WEIGHT.to_owned(), vec![1, width], ParameterKind::Embedding),
        (BIAS.to_owned(), vec![1], ParameterKind::Vector),
    ]
}

/// The last layer's numbers of `inputs`, `[rows, width]`; `layer` is its weights with the bias behind them.
pub(super) fn last_forward(layer: &[f32], inputs: &[f32]) -> Vec<f32> {
    let (bias, weights) = layer.split_last().expect("a layer has a bias");
    inputs.chunks_exact(weights.len()).map(|input| dot(weights, input) + bias).collect()
}

/// Adds the gradients of the last layer and of its inputs.
pub(super) fn last_backward(
    layer: &[f32],
    inputs: &[f32],
    dnumbers: &[f32],
    dinputs: Option<&mut [f32]>,
    gradient: &mut [f32],
) {
    let (_, weights) = layer.split_last().expect("a layer has a bias");
    let (dbias, dweights) = gradient.split_last_mut().expect("and so has its gradient");
    for (input, dnumber) in inputs.chunks_exact(weights.len()).zip(dnumbers) {
        add_scaled(dweights, *dnumber, input);
        *dbias += dnumber;
    }
    let Some(dinputs) = dinputs else { return };
    for (dinput, dnumber) in dinputs.chunks_exact_mut(weights.len()).zip(dnumbers) {
        add_scaled(dinput, *dnumber, weights);
    }
}

impl StateHead for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn shapes(&self, width: usize) -> Vec<(String, Vec<usize>, ParameterKind)> {
        last_layer(width).into()
    }

    fn initial(&self, width: usize, _seed: Seed) -> Parameters {
        Parameters::zeros(self.shapes(width))
    }

    fn forward(&self, parameters: &Parameters, states_rd: &[f32]) -> Vec<f32> {
        last_forward(&parameters.data, states_rd)
    }

    fn backward(
        &self,
        parameters: &Parameters,
        states_rd: &[f32],
        dnumbers: &[f32],
        dstates_rd: Option<&mut [f32]>,
        gradient: &mut [f32],
    ) {
        last_backward(&parameters.data, states_rd, dnumbers, dstates_rd, gradient);
    }
}
