//! Matrix products whose rows do not depend on each other.

use super::kernel::{Isa, Left, PANEL, multiply_panel};

/// Depth after which a sum is written out and taken up again; fixed, because it takes part in the
/// rounding.
const DEPTH_BLOCK: usize = 512;
/// Rows that are worked off while a panel stays in the nearest cache.
const ROW_BLOCK: usize = 96;

/// The right-hand side of a product, shape `[depth, width]`, in panels of adjacent columns.
#[derive(Debug, Clone, Default)]
pub struct Panels {
    depth: usize,
    width: usize,
    data: Vec<f32>,
}

impl Panels {
    /// Packs `matrix[depth, width]`, stored by rows.
    pub fn from_rows(matrix: &[f32], depth: usize, width: usize) -> Self {
        let mut panels = Self::default();
        panels.pack_rows(matrix, depth, width, width);
        panels
    }

    /// Packs the transpose of `matrix[width, depth]`, stored by rows.
    pub fn from_transposed(matrix: &[f32], width: usize, depth: usize) -> Self {
        let mut panels = Self::default();
        panels.pack_transposed(matrix, width, depth, depth);
        panels
    }

    /// As [`Panels::from_rows`] into the memory of this one, rows being `stride` apart.
    pub(crate) fn pack_rows(&mut self, matrix: &[f32], depth: usize, width: usize, stride: usize) {
        self.reshape(depth, width);
        for (index, panel) in self.data.chunks_exact_mut((depth * PANEL).max(1)).enumerate() {
            let first = index * PANEL;
            let columns = PANEL.min(width - first);
            for (p, row) in panel.chunks_exact_mut(PANEL).enumerate() {
                let start = p * stride + first;
                row[..columns].copy_from_slice(&matrix[start..start + columns]);
            }
        }
    }

    /// As [`Panels::from_transposed`] into the memory of this one, rows being `stride` apart.
    pub(crate) fn pack_transposed(
        &mut self,
        matrix: &[f32],
        width: usize,
        depth: usize,
        stride: usize,
    ) {
        self.reshape(depth, width);
        for (index, panel) in self.data.chunks_exact_mut((depth * PANEL).max(1)).enumerate() {
            let first = index * PANEL;
            for column in 0..PANEL.min(width - first) {
                let row = &matrix[(first + column) * stride..][..depth];
                for (p, value) in row.iter().enumerate() {
                    panel[p * PANEL + column] = *value;
                }
            }
        }
    }

    fn reshape(&mut self, depth: usize, width: usize) {
        self.depth = depth;
        self.width = width;
        self.data.clear();
        self.data.resize(width.div_ceil(PANEL) * depth * PANEL, 0.0);
    }

    pub(crate) fn as_ref(&self) -> PanelsRef<'_> {
        PanelsRef {
            depth: self.depth,
            width: self.width,
            depth_stride: self.depth,
            data: &self.data,
        }
    }
}

/// Borrowed [`Panels`], possibly only the first `depth` rows of longer ones.
#[derive(Clone, Copy)]
pub(crate) struct PanelsRef<'a> {
    pub(crate) depth: usize,
    pub(crate) width: usize,
    /// Rows that each panel has in memory.
    pub(crate) depth_stride: usize,
    pub(crate) data: &'a [f32],
}

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
    multiply_strided(left, right.as_ref(), out, right.width, rows, output);
}

/// `out[rows, width] (+)= left[depth, rows]^T * right[depth, width]`: the gradient of a weight
/// from the gradients of its outputs and its inputs.
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
    multiply_strided(left, right.as_ref(), out, right.width, rows, output);
}

/// The product with arbitrary strides of `left` and rows of `out` that are `out_stride` apart.
pub(crate) fn multiply_strided(
    left: Left<'_>,
    right: PanelsRef<'_>,
    out: &mut [f32],
    out_stride: usize,
    rows: usize,
    output: Output,
) {
    let isa = Isa::detect();
    if right.depth == 0 {
        if output == Output::Set {
            for row in out.chunks_mut(out_stride).take(rows) {
                row[..right.width].fill(0.0);
            }
        }
        return;
    }
    for (block, depth_start) in (0..right.depth).step_by(DEPTH_BLOCK).enumerate() {
        let depth = DEPTH_BLOCK.min(right.depth - depth_start);
        let add = output == Output::Add || block > 0;
        for row_start in (0..rows).step_by(ROW_BLOCK) {
            let block_rows = ROW_BLOCK.min(rows - row_start);
            let offset = row_start * left.row_stride + depth_start * left.column_stride;
            let block_left = Left { data: &left.data[offset..], ..left };
            for first in (0..right.width).step_by(PANEL) {
                let panel_start = (first * right.depth_stride) + depth_start * PANEL;
                multiply_panel(
                    isa,
                    block_left,
                    &right.data[panel_start..],
                    &mut out[row_start * out_stride + first..],
                    out_stride,
                    block_rows,
                    depth,
                    PANEL.min(right.width - first),
                    add,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * step).sin()).collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        for (rows, depth, width) in [(1, 1, 1), (5, 33, 70), (100, 600, 31), (13, 128, 64)] {
            let a = numbers(rows * depth, 0.7);
            let b = numbers(depth * width, 0.3);
            let mut expected = vec![0.0_f64; rows * width];
            for i in 0..rows {
                for p in 0..depth {
                    for j in 0..width {
                        expected[i * width + j] +=
                            f64::from(a[i * depth + p]) * f64::from(b[p * width + j]);
                    }
                }
            }
            let check = |out: &[f32]| {
                for (found, expected) in out.iter().zip(&expected) {
                    assert!((f64::from(*found) - expected).abs() < 1e-3, "{found} {expected}");
                }
            };
            let panels = Panels::from_rows(&b, depth, width);
            let mut out = vec![9.0; rows * width];
            multiply(&a, &panels, &mut out, rows, Output::Set);
            check(&out);
            let transpose = |m: &[f32], r: usize, c: usize| -> Vec<f32> {
                (0..r * c).map(|i| m[(i % r) * c + i / r]).collect()
            };
            let packed = Panels::from_transposed(&transpose(&b, depth, width), width, depth);
            assert_eq!(packed.data, panels.data);
            let mut out = vec![0.0; rows * width];
            let at = transpose(&a, rows, depth);
            multiply_left_transposed(&at, &panels, &mut out, rows, Output::Add);
            check(&out);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_neighbours() {
        let (rows, depth, width) = (37, 700, 90);
        let a = numbers(rows * depth, 0.7);
        let panels = Panels::from_rows(&numbers(depth * width, 0.3), depth, width);
        let mut all = vec![0.0; rows * width];
        multiply(&a, &panels, &mut all, rows, Output::Set);
        for i in 0..rows {
            let mut one = vec![0.0; width];
            multiply(&a[i * depth..(i + 1) * depth], &panels, &mut one, 1, Output::Set);
            assert_eq!(one, all[i * width..(i + 1) * width]);
        }
    }
}
