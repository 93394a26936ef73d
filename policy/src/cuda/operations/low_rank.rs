//! What an adapter changes in a product.

use crate::cuda::DeviceError;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::operations::linear::Columns;

/// The factors of an adapted matrix, which acts as `W + scale B A`.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct LowRank<'a> {
    /// `[rank, inputs]`.
    pub(in crate::cuda) a: &'a Buffer,
    /// `[outputs, rank]`.
    pub(in crate::cuda) b: &'a Buffer,
    pub(in crate::cuda) rank: usize,
    pub(in crate::cuda) scale: f32,
}

impl Device {
    /// `out[t, outputs] += scale x[t, inputs] A^T B^T`.
    pub(in crate::cuda) fn low_rank(
        &self,
        x: &Buffer,
        factors: LowRank<'_>,
        out: Columns<'_>,
    ) -> Result<(), DeviceError> {
        let LowRank { a, b, rank, scale } = factors;
        let rows = out.rows();
        let by_rank = self.allocate(x.kind(), rows * rank)?;
        self.linear(x, a, &by_rank, (rows, rank), false)?;
        let by_rank = Columns::whole(&by_rank, rank);
        self.multiply_columns((by_rank, false), (b, true), out, (rank, scale, true))
    }

    /// The gradients of [`Device::low_rank`], each added to what is there: with `dY` those of the
    /// outputs, `dA += (scale dY B)^T X`, `dB += dY^T (scale X A^T)` and `dX += scale dY B A`.
    pub(in crate::cuda) fn low_rank_backward(
        &self,
        dout: Columns<'_>,
        x: &Buffer,
        factors: LowRank<'_>,
        (da, db): (&Buffer, &Buffer),
        dx: &Buffer,
    ) -> Result<(), DeviceError> {
        let LowRank { a, b, rank, scale } = factors;
        let (rows, inputs) = (dout.rows(), a.len() / rank);
        let by_rank = self.allocate(x.kind(), rows * rank)?;
        self.linear(x, a, &by_rank, (rows, rank), false)?;
        assert_eq!(db.kind(), Kind::F32, "gradients are summed up in f32");
        let db = Columns::whole(db, rank);
        self.multiply_columns((dout, true), (&by_rank, false), db, (rows, scale, true))?;
        // The same memory: work is done in order.
        let of_rank = Columns::whole(&by_rank, rank);
        self.multiply_columns((dout, false), (b, false), of_rank, (dout.width, scale, false))?;
        self.multiply((&by_rank, true), (x, false), da, rank, inputs, rows, true)?;
        // The adapter's part is small beside what it is added to, as in the forward pass.
        let dx = Columns::whole(dx, inputs);
        self.multiply_columns((of_rank, false), (a, false), dx, (rank, 1.0, true))
    }
}
