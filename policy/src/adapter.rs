//! An adapter beside frozen weights.

use std::ops::Range;
use std::sync::Arc;

use crate::SharedBuffer;
use crate::lora::AdaptedMatrix;
use spar_ops::elementwise::{add_scaled, scale_all};
use spar_ops::matmul::{Output, linear, linear_backward};

/// The factors of an adapter as they stand beside frozen weights on the CPU: `y = W x + s B (A x)`.
///
/// What a row gets depends on that row alone, to the bit, as with all products: rows of several adapters and of none can
/// be read side by side. The merged weights `W + s B A` give the same but for rounding.
#[derive(Debug)]
pub struct Adapter {
    pub(crate) matrices: Arc<[AdaptedMatrix]>,
    pub(crate) rank: usize,
    pub(crate) scale: f32,
    pub(crate) factors: SharedBuffer,
}

/// Rows that an adapter stands beside, in ascending runs.
pub(crate) type Runs = [Range<usize>];

impl Adapter {
    /// Bytes that the factors take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.factors[..])
    }

    /// The matrices among those that lie in `range` one below the other.
    fn inside<'a>(&'a self, range: &'a Range<usize>) -> impl Iterator<Item = &'a AdaptedMatrix> {
        let is_inside = |matrix: &&AdaptedMatrix| {
            range.start <= matrix.weight.start && matrix.weight.end <= range.end
        };
        self.matrices.iter().filter(is_inside)
    }

    /// Adds what the adapter changes of the product of `inputs[t, ..]` with the matrices in `range` to the rows of
    /// `out[t, outputs]` that are its own.
    pub(crate) fn add(
        &self,
        runs: &Runs,
        range: &Range<usize>,
        inputs: &[f32],
        out: &mut [f32],
        outputs: usize,
    ) {
        let rows = count(runs);
        let mut by_rank = vec![0.0; rows * self.rank];
        let mut change = Vec::new();
        for matrix in self.inside(range) {
            let (a, b) = (&self.factors[matrix.a.clone()], &self.factors[matrix.b.clone()]);
            let inputs = gather(runs, inputs, matrix.inputs, 0..matrix.inputs);
            linear(&inputs, a, &mut by_rank, rows, self.rank, Output::Set);
            scale_all(&mut by_rank, self.scale);
            change.resize(rows * matrix.outputs, 0.0);
            linear(&by_rank, b, &mut change, rows, matrix.outputs, Output::Set);
            add_to(runs, &change, out, outputs, columns(matrix, range));
        }
    }

    /// Adds what the gradient `doutputs[t, outputs]` of such a product gives its inputs by way of the adapter to the rows
    /// of `dinputs[t, ..]`: `dX += s (dY B) A`.
    pub(crate) fn add_backward(
        &self,
        runs: &Runs,
        range: &Range<usize>,
        doutputs: &[f32],
        dinputs: &mut [f32],
        outputs: usize,
    ) {
        let rows = count(runs);
        let mut by_rank = vec![0.0; rows * self.rank];
        let mut change = Vec::new();
        for matrix in self.inside(range) {
            let (a, b) = (&self.factors[matrix.a.clone()], &self.factors[matrix.b.clone()]);
            let doutputs = gather(runs, doutputs, outputs, columns(matrix, range));
            linear_backward(&doutputs, b, &mut by_rank, rows, matrix.outputs, Output::Set);
            scale_all(&mut by_rank, self.scale);
            change.resize(rows * matrix.inputs, 0.0);
            linear_backward(&by_rank, a, &mut change, rows, self.rank, Output::Set);
            add_to(runs, &change, dinputs, matrix.inputs, 0..matrix.inputs);
        }
    }
}

/// The columns of the outputs of all matrices in `range` that are this one's.
fn columns(matrix: &AdaptedMatrix, range: &Range<usize>) -> Range<usize> {
    let first = (matrix.weight.start - range.start) / matrix.inputs;
    first..first + matrix.outputs
}

fn count(runs: &Runs) -> usize {
    runs.iter().map(Range::len).sum()
}

/// Columns of the rows in `runs`, one row after the other.
fn gather<'a>(
    runs: &Runs,
    all: &'a [f32],
    width: usize,
    columns: Range<usize>,
) -> std::borrow::Cow<'a, [f32]> {
    if let [run] = runs
        && columns.len() == width
    {
        return all[run.start * width..run.end * width].into();
    }
    let rows = runs.iter().cloned().flatten();
    let of_row = |row: usize| &all[row * width..][columns.clone()];
    rows.flat_map(of_row).copied().collect::<Vec<f32>>().into()
}

/// Adds rows that lie one after the other to columns of the rows in `runs`.
fn add_to(runs: &Runs, change: &[f32], all: &mut [f32], width: usize, columns: Range<usize>) {
    let rows = runs.iter().cloned().flatten();
    for (row, change) in rows.zip(change.chunks_exact(columns.len())) {
        add_scaled(&mut all[row * width..][columns.clone()], 1.0, change);
    }
}
