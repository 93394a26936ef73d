//! Operations on elements and rows one by one.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::{blocks, expect, kernel, kernel_of, number, threads};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::{Launch, Number};

impl Device {
    /// A kernel of `elementwise` with one thread per element, its arguments ending in their number
    /// and what `rest` adds.
    fn each(
        &self,
        name: &str,
        of: Number,
        count: usize,
        arguments: Arguments,
    ) -> Result<(), DeviceError> {
        let launch = Launch { grid: [blocks(count, 256), 1, 1], block: 256, shared_bytes: 0 };
        // SAFETY: the callers have checked lengths.
        unsafe { self.launch(&kernel_of("elementwise", name, of), launch, arguments) }
    }

    /// As [`spar_ops::elementwise::swiglu`].
    pub(in crate::cuda) fn swiglu(
        &self,
        gate_up: &Buffer,
        width: usize,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(gate_up, out.kind(), 2 * out.len());
        let arguments = Arguments::default().buffer(out).buffer(gate_up).long(out.len()).int(width);
        self.each("swiglu", number(out), out.len(), arguments)
    }

    /// As [`spar_ops::elementwise::swiglu_backward`].
    pub(in crate::cuda) fn swiglu_backward(
        &self,
        dout: &Buffer,
        gate_up: &Buffer,
        width: usize,
        dgate_up: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(gate_up, dout.kind(), 2 * dout.len());
        expect(dgate_up, dout.kind(), 2 * dout.len());
        let arguments = Arguments::default().buffer(dgate_up).buffer(dout).buffer(gate_up);
        let arguments = arguments.long(dout.len()).int(width);
        self.each("swiglu_backward", number(dout), dout.len(), arguments)
    }

    /// Adds the bias to every row.
    pub(in crate::cuda) fn add_bias(
        &self,
        rows: &Buffer,
        bias: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(bias, rows.kind(), bias.len());
        assert!(rows.len().is_multiple_of(bias.len()));
        let arguments = Arguments::default().buffer(rows).buffer(bias).long(rows.len());
        self.each("add_bias", number(rows), rows.len(), arguments.int(bias.len()))
    }

    /// The numbers in the type of `out`.
    pub(in crate::cuda) fn convert(&self, x: &Buffer, out: &Buffer) -> Result<(), DeviceError> {
        expect(x, Kind::F32, out.len());
        let arguments = Arguments::default().buffer(out).buffer(x).long(out.len());
        self.each("convert", number(out), out.len(), arguments)
    }

    /// Writes `values[row, width]` to the columns from `start` on of rows of `stride`.
    pub(in crate::cuda) fn put_columns(
        &self,
        values: &Buffer,
        width: usize,
        rows: &Buffer,
        stride: usize,
        start: usize,
    ) -> Result<(), DeviceError> {
        expect(values, Kind::F32, rows.len() / stride * width);
        assert!(start + width <= stride);
        let arguments = Arguments::default().buffer(rows).buffer(values).long(values.len());
        let arguments = arguments.int(width).int(stride).int(start);
        self.each("put_columns", number(rows), values.len(), arguments)
    }

    /// Rows of `x` by their indices.
    pub(in crate::cuda) fn gather_rows(
        &self,
        x: &Buffer,
        rows: &Buffer,
        width: usize,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(x, out.kind(), x.len());
        expect(rows, Kind::U32, out.len() / width);
        let arguments = Arguments::default().buffer(out).buffer(x).buffer(rows).int(width);
        let launch =
            Launch { grid: [rows.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        let kernel = kernel_of("elementwise", "gather_rows", number(out));
        // SAFETY: lengths have been checked; the caller's indices are inside.
        unsafe { self.launch(&kernel, launch, arguments) }
    }

    /// Numbers of `x` by their places.
    pub(in crate::cuda) fn gather(
        &self,
        x: &Buffer,
        places: &Buffer,
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(x, Kind::F32, x.len());
        expect(places, Kind::U32, out.len());
        expect(out, Kind::F32, out.len());
        let arguments = Arguments::default().buffer(out).buffer(x).buffer(places).long(out.len());
        let launch = Launch { grid: [blocks(out.len(), 256), 1, 1], block: 256, shared_bytes: 0 };
        // SAFETY: lengths have been checked; the caller's places are inside.
        unsafe { self.launch(&kernel("elementwise", "gather"), launch, arguments) }
    }

    /// Adds to row `targets[i]` of `out` the rows `entries[starts[i]..starts[i + 1]]` of `x`.
    pub(in crate::cuda) fn collect_rows(
        &self,
        x: &Buffer,
        width: usize,
        (targets, starts, entries): (&Buffer, &Buffer, &Buffer),
        out: &Buffer,
    ) -> Result<(), DeviceError> {
        expect(x, Kind::F32, x.len());
        expect(out, Kind::F32, out.len());
        expect(targets, Kind::U32, targets.len());
        expect(starts, Kind::U32, targets.len() + 1);
        expect(entries, Kind::U32, entries.len());
        let arguments = Arguments::default().buffer(out).buffer(targets).buffer(starts);
        let arguments = arguments.buffer(entries).buffer(x).int(width);
        let launch =
            Launch { grid: [targets.len() as u32, 1, 1], block: threads(width), shared_bytes: 0 };
        // SAFETY: lengths have been checked; the caller's indices are inside.
        unsafe { self.launch(&kernel("elementwise", "collect_rows"), launch, arguments) }
    }
}
