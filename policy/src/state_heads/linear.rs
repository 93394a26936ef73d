//! A linear head.

use spar_core::Seed;
use spar_ops::elementwise::{add_scaled, dot};
use spar_ops::matmul::{Output, linear, linear_backward, linear_gradient};

use super::StateHead;
use crate::{ParameterKind, Parameters};

/// The names of TRL's value head, and of all heads that end in one.
pub(super) const WEIGHT: &str = "v_head.summary.weight";
pub(super) const BIAS: &str = "v_head.summary.bias";

/// `W x + b` of a state `x`, as many numbers as there are outputs; both begin at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linear {
    /// Numbers of a state, at least 1.
    pub(super) outputs: usize,
}

/// Names, shapes and kinds of a last layer on so many numbers. The weights are an output matrix, which optimisers that
/// treat matrices between hidden layers in their own way leave to AdamW.
pub(super) fn last_layer(width: usize, outputs: usize) -> [(String, Vec<usize>, ParameterKind); 2] {
    [
        (WEIGHT.to_owned(), vec![outputs, width], ParameterKind::Embedding),
        (BIAS.to_owned(), vec![outputs], ParameterKind::Vector),
    ]
}

/// The last layer's numbers of `inputs`, `[rows, width]`, which are `[rows, outputs]`; `layer` is its weights with the
/// biases behind them.
pub(super) fn last_forward(layer: &[f32], outputs: usize, inputs: &[f32]) -> Vec<f32> {
    let (weights, biases) = layer.split_at(layer.len() - outputs);
    let width = weights.len() / outputs;
    if let [bias] = biases {
        return inputs.chunks_exact(width).map(|input| dot(weights, input) + bias).collect();
    }
    let rows = inputs.len() / width;
    let mut numbers = biases.repeat(rows);
    linear(inputs, weights, &mut numbers, rows, outputs, Output::Add);
    numbers
}

/// Adds the gradients of the last layer and of its inputs.
pub(super) fn last_backward(
    layer: &[f32],
    outputs: usize,
    inputs: &[f32],
    dnumbers: &[f32],
    dinputs: Option<&mut [f32]>,
    gradient: &mut [f32],
) {
    let weights = &layer[..layer.len() - outputs];
    let (dweights, dbiases) = gradient.split_at_mut(weights.len());
    let width = weights.len() / outputs;
    for dnumbers in dnumbers.chunks_exact(outputs) {
        dbiases.iter_mut().zip(dnumbers).for_each(|(sum, dnumber)| *sum += dnumber);
    }
    if outputs > 1 {
        let rows = dnumbers.len() / outputs;
        linear_gradient(dnumbers, inputs, dweights, rows, outputs);
        if let Some(dinputs) = dinputs {
            linear_backward(dnumbers, weights, dinputs, rows, outputs, Output::Add);
        }
        return;
    }
    for (input, dnumber) in inputs.chunks_exact(width).zip(dnumbers) {
        add_scaled(dweights, *dnumber, input);
    }
    let Some(dinputs) = dinputs else { return };
    for (dinput, dnumber) in dinputs.chunks_exact_mut(width).zip(dnumbers) {
        add_scaled(dinput, *dnumber, weights);
    }
}

impl StateHead for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn shapes(&self, width: usize) -> Vec<(String, Vec<usize>, ParameterKind)> {
        last_layer(width, self.outputs).into()
    }

    fn initial(&self, width: usize, _seed: Seed) -> Parameters {
        Parameters::zeros(self.shapes(width))
    }

    fn forward(&self, parameters: &Parameters, states_rd: &[f32]) -> Vec<f32> {
        last_forward(&parameters.data, self.outputs, states_rd)
    }

    fn backward(
        &self,
        parameters: &Parameters,
        states_rd: &[f32],
        dnumbers: &[f32],
        dstates_rd: Option<&mut [f32]>,
        gradient: &mut [f32],
    ) {
        last_backward(&parameters.data, self.outputs, states_rd, dnumbers, dstates_rd, gradient);
    }
}
