//! Products of matrices.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{expect, number};
use crate::cuda::DeviceError;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::Product;

/// Some columns of a matrix that lies row by row.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Columns<'a> {
    pub(in crate::cuda) matrix: &'a Buffer,
    /// Columns that the matrix has.
    pub(in crate::cuda) stride: usize,
    pub(in crate::cuda) start: usize,
    pub(in crate::cuda) width: usize,
}

impl<'a> Columns<'a> {
    /// All columns of a matrix that has so many.
    pub(in crate::cuda) fn whole(matrix: &'a Buffer, width: usize) -> Self {
        Self { matrix, stride: width, start: 0, width }
    }

    pub(in crate::cuda) fn rows(&self) -> usize {
        self.matrix.len() / self.stride
    }

    fn address(&self) -> u64 {
        assert!(self.start + self.width <= self.stride, "columns are inside their matrix");
        assert_eq!(self.matrix.len(), self.rows() * self.stride, "rows are whole");
        match self.matrix.len() {
            0 => self.matrix.address(),
            len => self.matrix.slice(self.start..len).address(),
        }
    }
}

impl Device {
    /// `out[rows, columns] = left * right`, added to what is there with `adds`, which is then in f32.
    #[expect(clippy::too_many_arguments, reason = "a product has two operands and three lengths")]
    pub(in crate::cuda) fn multiply(
        &self,
        (left, left_transposed): (&Buffer, bool),
        right: (&Buffer, bool),
        out: &Buffer,
        rows: usize,
        columns: usize,
        depth: usize,
        adds: bool,
    ) -> Result<(), DeviceError> {
        assert_eq!(out.len(), rows * columns);
        assert!(!adds || out.kind() == Kind::F32, "sums are kept in f32");
        expect(left, left.kind(), rows * depth);
        if rows * columns * depth == 0 {
            return if adds { Ok(()) } else { out.clear() };
        }
        let left = Columns::whole(left, if left_transposed { rows } else { depth });
        let out = Columns::whole(out, columns);
        self.multiply_columns((left, left_transposed), right, out, (depth, 1.0, adds))
    }

    /// As [`Device::multiply`] with columns of matrices, the product being multiplied by `scale`; what it is
    /// added to may be in the decoder's numbers.
    pub(in crate::cuda) fn multiply_columns(
        &self,
        (left, left_transposed): (Columns<'_>, bool),
        (right, right_transposed): (&Buffer, bool),
        out: Columns<'_>,
        (depth, scale, adds): (usize, f32, bool),
    ) -> Result<(), DeviceError> {
        let (rows, columns) = (out.rows(), out.width);
        if rows * columns * depth == 0 {
            return Ok(());
        }
        expect(right, left.matrix.kind(), depth * columns);
        let of_left = if left_transposed { (depth, rows) } else { (rows, depth) };
        assert_eq!((left.rows(), left.width), of_left, "the operands fit");
        let product = Product {
            left: left.address(),
            left_transposed,
            left_stride: left.stride,
            right: right.address(),
            right_transposed,
            inputs: number(left.matrix),
            out: out.address(),
            out_stride: out.stride,
            output: number(out.matrix),
            rows,
            columns,
            depth,
            scale,
            adds,
        };
        // SAFETY: the buffers have the operands' lengths.
        unsafe { self.driver.multiply(&product) }
    }

    /// `out[t, n] = x[t, k] * weight[n, k]^T`.
    pub(in crate::cuda) fn linear(
        &self,
        x: &Buffer,
        weight: &Buffer,
        out: &Buffer,
        (rows, width): (usize, usize),
        adds: bool,
    ) -> Result<(), DeviceError> {
        let depth = weight.len() / width;
        self.multiply((x, false), (weight, true), out, rows, width, depth, adds)
    }

    /// `dx[t, k] = dout[t, n] * weight[n, k]`.
    pub(in crate::cuda) fn linear_backward(
        &self,
        dout: &Buffer,
        weight: &Buffer,
        dx: &Buffer,
        (rows, width): (usize, usize),
        adds: bool,
    ) -> Result<(), DeviceError> {
        let columns = weight.len() / width;
        self.multiply((dout, false), (weight, false), dx, rows, columns, width, adds)
    }

    /// `dweight[n, k] += dout[t, n]^T * x[t, k]`.
    pub(in crate::cuda) fn linear_gradient(
        &self,
        dout: &Buffer,
        x: &Buffer,
        dweight: &Buffer,
        (rows, width): (usize, usize),
    ) -> Result<(), DeviceError> {
        let columns = dweight.len() / width;
        self.multiply((dout, true), (x, false), dweight, width, columns, rows, true)
    }
}
