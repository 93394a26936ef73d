//! Where a backward puts the gradients of weights.

use std::ops::Range;

use crate::lora::AdaptedMatrix;
use spar_ops::elementwise::scale_all;
use spar_ops::matmul::{Output, linear, linear_backward, linear_gradient};

/// Where a backward puts the gradients of weights.
pub enum WeightGradient<'a> {
    /// Of all weights, in their layout.
    Full(&'a mut [f32]),
    /// Of the factors of an adapter, in theirs; the weights below it are frozen.
    Adapter(AdapterGradient<'a>),
}

/// The gradient of an adapter's factors, collected without that of the matrix they change.
///
/// With `W' = W + s B A`, outputs' gradient `dY` and inputs `X`: `dW' = dY^T X`, and so
/// `dA = s B^T dW' = (s dY B)^T X` and `dB = s dW' A^T = dY^T (s X A^T)`. Both go by way of
/// `[tokens, rank]`.
pub struct AdapterGradient<'a> {
    pub(crate) matrices: &'a [AdaptedMatrix],
    pub(crate) rank: usize,
    pub(crate) scale: f32,
    /// The factors, in the adapter's layout.
    pub(crate) factors: &'a [f32],
    /// In the same layout.
    pub(crate) gradient: &'a mut [f32],
    pub(crate) memory: Memory,
}

/// Memory that serves one matrix after the other.
#[derive(Default)]
pub(crate) struct Memory {
    doutputs: Vec<f32>,
    by_rank: Vec<f32>,
    /// Takes the gradients of vectors that are frozen.
    frozen: Vec<f32>,
}

impl WeightGradient<'_> {
    /// Adds `doutputs[rows, outputs]^T * inputs[rows, ..]`, the gradient of the matrices that lie
    /// in `range` one below the other.
    pub(crate) fn add_product(
        &mut self,
        range: &Range<usize>,
        doutputs: &[f32],
        inputs: &[f32],
        rows: usize,
        outputs: usize,
    ) {
        match self {
            Self::Full(gradient) => {
                linear_gradient(doutputs, inputs, &mut gradient[range.clone()], rows, outputs);
            }
            Self::Adapter(adapter) => {
                adapter.add_product(range, doutputs, inputs, rows, outputs);
            }
        }
    }

    /// Where to add the gradient of a vector.
    pub(crate) fn vector(&mut self, range: &Range<usize>) -> &mut [f32] {
        match self {
            Self::Full(gradient) => &mut gradient[range.clone()],
            Self::Adapter(AdapterGradient { memory: Memory { frozen, .. }, .. }) => {
                frozen.resize(frozen.len().max(range.len()), 0.0);
                &mut frozen[..range.len()]
            }
        }
    }

    /// The gradient of all weights, if it is asked for.
    pub(crate) fn full(&mut self) -> Option<&mut [f32]> {
        match self {
            Self::Full(gradient) => Some(gradient),
            Self::Adapter(_) => None,
        }
    }
}

impl AdapterGradient<'_> {
    fn add_product(
        &mut self,
        range: &Range<usize>,
        doutputs: &[f32],
        inputs: &[f32],
        rows: usize,
        outputs: usize,
    ) {
        let Self { matrices, rank, scale, factors, gradient, memory } = self;
        let Memory { doutputs: own, by_rank, .. } = memory;
        let (rank, scale) = (*rank, *scale);
        let inside = |matrix: &&AdaptedMatrix| {
            range.start <= matrix.weight.start && matrix.weight.end <= range.end
        };
        for matrix in matrices.iter().filter(inside) {
            // 1. The gradient of the outputs that are this matrix's.
            let first = (matrix.weight.start - range.start) / matrix.inputs;
            let doutputs: &[f32] = if matrix.outputs == outputs {
                doutputs
            } else {
                own.clear();
                for row in doutputs[..rows * outputs].chunks_exact(outputs) {
                    own.extend_from_slice(&row[first..first + matrix.outputs]);
                }
                &*own
            };
            by_rank.resize(rows * rank, 0.0);

            // 2. dB += dY^T (s X A^T).
            let (a, b) = (&factors[matrix.a.clone()], &factors[matrix.b.clone()]);
            linear(inputs, a, by_rank, rows, rank, Output::Set);
            scale_all(by_rank, scale);
            let db = &mut gradient[matrix.b.clone()];
            linear_gradient(doutputs, by_rank, db, rows, matrix.outputs);

            // 3. dA += (s dY B)^T X.
            linear_backward(doutputs, b, by_rank, rows, matrix.outputs, Output::Set);
            scale_all(by_rank, scale);
            linear_gradient(by_rank, inputs, &mut gradient[matrix.a.clone()], rows, rank);
        }
    }
}
