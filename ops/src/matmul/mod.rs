//! Matrix products whose rows do not depend on each other.
//!
//! Every element of a product is the same chain of multiply-adds over the depth, cut into blocks of
//! fixed size, whatever the number of rows, the storage of the right-hand side and the number of threads.
//! They are fused where the machine has an instruction for it.
mod few_rows;
mod many_rows;
mod pack;
mod product;
mod right;
#[cfg(test)]
mod tests;
mod weight;

use self::product::product;
pub use self::right::Panels;
use self::right::Right;
pub use self::weight::{Order, Weight, linear_by, reorder};
use super::kernel::Left;
use super::matrix::Matrix;

/// What becomes of the output's old content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It is replaced.
    Set,
    /// The product is added to it.
    Add,
}

/// `out[rows, width] (+)= left[rows, depth] * right[depth, width]`, all stored by rows.
///
/// A row of the result depends on nothing but its own row of `left`, to the bit.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn multiply(left: &[f32], right: &Panels, out: &mut [f32], rows: usize, output: Output) {
    let left = Left { data: left, row_stride: right.depth, column_stride: 1 };
    product(left, Right::Panels(right), out, right.width, rows, output);
}

/// `out[rows, width] (+)= left[depth, rows]^T * right[depth, width]`.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn multiply_left_transposed(
    left: &[f32],
    right: &Panels,
    out: &mut [f32],
    rows: usize,
    output: Output,
) {
    let left = Left { data: left, row_stride: 1, column_stride: rows };
    product(left, Right::Panels(right), out, right.width, rows, output);
}

/// `out[rows, outputs] (+)= inputs[rows, width] * weight[outputs, width]^T`: the outputs of a
/// linear layer.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn linear<'a>(
    inputs: &[f32],
    weight: impl Into<Matrix<'a>>,
    out: &mut [f32],
    rows: usize,
    outputs: usize,
    output: Output,
) {
    let weight = weight.into();
    let depth = weight.len() / outputs.max(1);
    let left = Left { data: inputs, row_stride: depth, column_stride: 1 };
    let right = Right::Columns { data: weight, stride: depth, depth, width: outputs };
    product(left, right, out, outputs, rows, output);
}

/// `out[rows, width] (+)= doutputs[rows, outputs] * weight[outputs, width]`: the gradient of
/// [`linear`] by its inputs.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn linear_backward<'a>(
    doutputs: &[f32],
    weight: impl Into<Matrix<'a>>,
    out: &mut [f32],
    rows: usize,
    outputs: usize,
    output: Output,
) {
    let weight = weight.into();
    let width = weight.len() / outputs.max(1);
    let left = Left { data: doutputs, row_stride: outputs, column_stride: 1 };
    let right = Right::Rows { data: weight, stride: width, depth: outputs, width };
    product(left, right, out, width, rows, output);
}

/// `gradient[outputs, width] += doutputs[rows, outputs]^T * inputs[rows, width]`: the gradient of
/// [`linear`] by its weight.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn linear_gradient(
    doutputs: &[f32],
    inputs: &[f32],
    gradient: &mut [f32],
    rows: usize,
    outputs: usize,
) {
    let width = gradient.len() / outputs.max(1);
    let left = Left { data: doutputs, row_stride: 1, column_stride: outputs };
    let right = Right::Rows { data: inputs.into(), stride: width, depth: rows, width };
    product(left, right, gradient, width, outputs, Output::Add);
}
