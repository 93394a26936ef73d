//! Products of matrices.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{expect, number};
use crate::cuda::DeviceError;
use crate::cuda::device::{Buffer, Device};
use crate::cuda::driver::Product;

impl Device {
    /// `out[rows, columns] = left * right`, added to what is there with `adds`.
    #[expect(clippy::too_many_arguments, reason = "a product has two operands and three lengths")]
    pub(in crate::cuda) fn multiply(
        &self,
        (left, left_transposed): (&Buffer, bool),
        (right, right_transposed): (&Buffer, bool),
        out: &Buffer,
        rows: usize,
        columns: usize,
        depth: usize,
        adds: bool,
    ) -> Result<(), DeviceError> {
        if rows * columns * depth == 0 {
            return if adds { Ok(()) } else { out.clear() };
        }
        expect(left, right.kind(), rows * depth);
        assert_eq!((right.len(), out.len()), (depth * columns, rows * columns));
        let product = Product {
            left: left.address(),
            left_transposed,
            right: right.address(),
            right_transposed,
            inputs: number(left),
            out: out.address(),
            output: number(out),
            rows,
            columns,
            depth,
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
