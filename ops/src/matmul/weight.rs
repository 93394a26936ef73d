//! Weights of linear layers in the order in which products read them.

use rayon::prelude::*;

use super::product::product;
use super::right::Right;
use super::{Output, linear};
use crate::kernel::{Left, PANEL};
use crate::matrix::Matrix;

/// How the numbers of a weight `[outputs, depth]` lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Row by row: what training differentiates, and what checkpoints hold.
    #[default]
    Rows,
    /// Sixteen rows at a time, their elements side by side: `[outputs / 16, depth, 16]`; the rows that are
    /// left over follow as they are. A product then reads the weight from its first number to its last.
    Panels,
}

/// The weight of a linear layer, `[outputs, depth]`.
#[derive(Debug, Clone, Copy)]
pub struct Weight<'a> {
    /// Its numbers.
    pub numbers: Matrix<'a>,
    /// How they lie.
    pub order: Order,
}

impl<'a> Weight<'a> {
    /// A row of `outputs` in single precision; in `buffer` where it does not lie so.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub fn row<'b>(self, row: usize, outputs: usize, buffer: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        assert!(row < outputs, "a row of the weight");
        let depth = self.numbers.len() / outputs;
        if self.order == Order::Rows || row >= outputs / PANEL * PANEL {
            return self.numbers.part(row * depth..(row + 1) * depth).widened(buffer);
        }
        let panel = row / PANEL * PANEL * depth;
        let panel = self.numbers.part(panel..panel + PANEL * depth);
        buffer.clear();
        buffer.extend((0..depth).map(|p| panel.number(p * PANEL + row % PANEL)));
        buffer
    }
}

/// As [`linear`] with a weight in any order, to the same bits.
///
/// # Panics
///
/// When a slice is shorter than its shape.
pub fn linear_by(
    inputs: &[f32],
    weight: Weight<'_>,
    out: &mut [f32],
    rows: usize,
    outputs: usize,
    output: Output,
) {
    let Weight { numbers, order } = weight;
    if order == Order::Rows || rows == 0 {
        return linear(inputs, numbers, out, rows, outputs, output);
    }
    let depth = numbers.len() / outputs.max(1);
    let whole = outputs / PANEL * PANEL;
    let left = Left { data: inputs, row_stride: depth, column_stride: 1 };
    let data = numbers.part(0..whole * depth);
    product(left, Right::Weight { data, depth, width: whole }, out, outputs, rows, output);
    if whole < outputs {
        let (data, width) = (numbers.part(whole * depth..outputs * depth), outputs - whole);
        let right = Right::Columns { data, stride: depth, depth, width };
        product(left, right, &mut out[whole..], outputs, rows, output);
    }
}

/// Brings the numbers of a weight `[outputs, depth]` that lie in one order into the other.
///
/// # Panics
///
/// When the numbers are not as many.
pub fn reorder<T: Copy + Send + Sync>(numbers: &mut [T], outputs: usize, from: Order, to: Order) {
    if from == to || outputs < PANEL || numbers.is_empty() {
        return;
    }
    assert!(numbers.len().is_multiple_of(outputs), "rows are of equal length");
    let depth = numbers.len() / outputs;
    let whole = outputs / PANEL * PANEL * depth;
    numbers[..whole].par_chunks_exact_mut(PANEL * depth).for_each(|panel| {
        let old = panel.to_vec();
        for (p, row) in (0..depth).flat_map(|p| (0..PANEL).map(move |row| (p, row))) {
            match to {
                Order::Panels => panel[p * PANEL + row] = old[row * depth + p],
                Order::Rows => panel[row * depth + p] = old[p * PANEL + row],
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel;

    fn numbers(count: usize, step: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * step).sin()).collect()
    }

    #[test]
    fn the_order_of_a_weight_changes_no_bit() {
        for (rows, depth, outputs) in [
            (1, 600, 96),
            (1, 40, 31),
            (2, 257, 48),
            (3, 300, 64),
            (4, 33, 100),
            (5, 1000, 16),
            (6, 70, 200),
            (7, 513, 35),
            (70, 300, 130),
            (1, 5, 15),
        ] {
            let x = numbers(rows * depth, 0.7);
            let start = numbers(rows * outputs, 0.9);
            let singles = numbers(outputs * depth, 0.3);
            // Finite numbers of either kind of half precision.
            let halves: Vec<u16> =
                singles.iter().map(|value| (value.to_bits() >> 16) as u16 & 0xbfff).collect();
            let check = |by_rows: Matrix<'_>, by_panels: Matrix<'_>| {
                let run = |numbers, order| {
                    let mut out = start.clone();
                    let weight = Weight { numbers, order };
                    linear_by(&x, weight, &mut out, rows, outputs, Output::Add);
                    let mut set = start.clone();
                    linear_by(&x, weight, &mut set, rows, outputs, Output::Set);
                    let mut buffer = Vec::new();
                    let of_rows: Vec<f32> = (0..outputs)
                        .flat_map(|row| weight.row(row, outputs, &mut buffer).to_vec())
                        .collect();
                    (out, set, of_rows)
                };
                let expected = run(by_rows, Order::Rows);
                assert!(expected.0.iter().all(|value| value.is_finite()));
                assert!(run(by_panels, Order::Panels) == expected, "{rows} x {depth} x {outputs}");
                let serial = parallel::serially(|| run(by_panels, Order::Panels));
                assert!(serial == expected, "{rows} x {depth} x {outputs}");
            };
            let mut panels = singles.clone();
            reorder(&mut panels, outputs, Order::Rows, Order::Panels);
            check(Matrix::F32(&singles), Matrix::F32(&panels));
            reorder(&mut panels, outputs, Order::Panels, Order::Rows);
            assert_eq!(panels, singles);
            let mut of_halves = halves.clone();
            reorder(&mut of_halves, outputs, Order::Rows, Order::Panels);
            check(Matrix::Bf16(&halves), Matrix::Bf16(&of_halves));
            check(Matrix::F16(&halves), Matrix::F16(&of_halves));
        }
    }
}
