//! Matrix products whose rows do not depend on each other.
//!
//! Every element of a product is the same chain of fused multiply-adds over the depth, cut into
//! blocks of fixed size, whatever the number of rows, the storage of the right-hand side, the
//! instruction set and the number of threads.
#![expect(unsafe_code, reason = "pieces of one output are written by several threads")]

use std::cell::RefCell;

use super::kernel::{Isa, Left, MAX_COLUMN_ROWS, MAX_PANELS, PANEL, Tile, run_columns, run_tile};
use super::matrix::{Bf16, F16, Matrix};
use super::parallel::{self, Shared};
use super::transpose::{copy_rows, interleave_rows};

/// Works with a pointer to a matrix's numbers from a place on, which has the type they are kept in.
macro_rules! with_numbers {
    ($matrix:expr, $start:expr, $pointer:ident => $work:expr) => {
        match $matrix {
            Matrix::F32(numbers) => {
                let $pointer = numbers[$start..].as_ptr();
                $work
            }
            Matrix::Bf16(numbers) => {
                let $pointer = numbers[$start..].as_ptr().cast::<Bf16>();
                $work
            }
            Matrix::F16(numbers) => {
                let $pointer = numbers[$start..].as_ptr().cast::<F16>();
                $work
            }
        }
    };
}

/// Depth after which a sum is written out and taken up again; fixed, because it takes part in the
/// rounding.
const DEPTH_BLOCK: usize = 256;
/// Most rows of a piece: with a block of the depth they stay in the second cache.
const PIECE_ROWS: usize = 240;
/// Most columns of a piece.
const PIECE_WIDTH: usize = 256;
/// Most rows that are worked off without packing what they are multiplied by.
const FEW_ROWS: usize = 6;
/// Multiplications that are worth a piece of their own.
const PIECE_PRODUCTS: usize = 1 << 19;
/// Elements of the right-hand side that are worth a piece of their own where rows are few.
const PIECE_ELEMENTS: usize = 1 << 15;

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

/// The right-hand side of a product, shape `[depth, width]`, as it is stored.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a> {
    /// In panels.
    Panels(PanelsRef<'a>),
    /// By rows, which are `stride` apart.
    Rows { data: Matrix<'a>, stride: usize, depth: usize, width: usize },
    /// By columns, which are `stride` apart.
    Columns { data: Matrix<'a>, stride: usize, depth: usize, width: usize },
}

impl Right<'_> {
    /// Depth and width.
    fn shape(&self) -> (usize, usize) {
        match *self {
            Self::Panels(panels) => (panels.depth, panels.width),
            Self::Rows { depth, width, .. } | Self::Columns { depth, width, .. } => (depth, width),
        }
    }

    /// Whether all elements lie within the data.
    fn is_whole(&self) -> bool {
        match *self {
            Self::Panels(PanelsRef { depth, width, depth_stride, data }) => {
                let before = (width.div_ceil(PANEL) - 1) * depth_stride;
                depth <= depth_stride && (before + depth) * PANEL <= data.len()
            }
            Self::Rows { data, stride, depth, width } => (depth - 1) * stride + width <= data.len(),
            Self::Columns { data, stride, depth, width } => {
                (width - 1) * stride + depth <= data.len()
            }
        }
    }
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
    multiply_strided(left, right.as_ref(), out, right.width, rows, output);
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

/// The product with arbitrary strides of `left` and rows of `out` that are `out_stride` apart.
pub(crate) fn multiply_strided(
    left: Left<'_>,
    right: PanelsRef<'_>,
    out: &mut [f32],
    out_stride: usize,
    rows: usize,
    output: Output,
) {
    product(left, Right::Panels(right), out, out_stride, rows, output);
}

/// The product with a right-hand side in any storage.
pub(crate) fn product(
    left: Left<'_>,
    right: Right<'_>,
    out: &mut [f32],
    out_stride: usize,
    rows: usize,
    output: Output,
) {
    let (depth, width) = right.shape();
    if rows == 0 || width == 0 {
        return;
    }
    assert!(rows == 1 || width <= out_stride, "rows of the output do not overlap");
    assert!((rows - 1) * out_stride + width <= out.len(), "out holds rows x width elements");
    if depth == 0 {
        if output == Output::Set {
            for row in out.chunks_mut(out_stride.max(1)).take(rows) {
                row[..width].fill(0.0);
            }
        }
        return;
    }
    let last = (rows - 1) * left.row_stride + (depth - 1) * left.column_stride;
    assert!(last < left.data.len(), "left matrix holds rows x depth elements");
    assert!(right.is_whole(), "right matrix holds depth x width elements");
    let product = Product {
        isa: Isa::detect(),
        left,
        right,
        out: Shared::new(out.as_mut_ptr()),
        out_stride,
        depth,
        adds: output == Output::Add,
    };
    product.run(rows, width);
}

/// Checked operands of a product.
struct Product<'a> {
    isa: Isa,
    left: Left<'a>,
    right: Right<'a>,
    out: Shared<*mut f32>,
    out_stride: usize,
    depth: usize,
    adds: bool,
}

/// A rectangle of the output.
#[derive(Clone, Copy)]
struct Piece {
    row: usize,
    rows: usize,
    column: usize,
    width: usize,
}

/// Buffers for packed blocks; each thread has its own.
#[derive(Default)]
struct Scratch {
    left: Vec<f32>,
    right: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A place in `buffer`, at the beginning of a cache line, with room for `len` elements.
fn aligned(buffer: &mut Vec<f32>, len: usize) -> *mut f32 {
    const LINE: usize = 64;
    if buffer.len() < len + LINE / 4 {
        buffer.resize(len + LINE / 4, 0.0);
    }
    let start = buffer.as_ptr().align_offset(LINE);
    buffer[start..].as_mut_ptr()
}

impl Product<'_> {
    /// Divides the output into pieces and works them off.
    fn run(&self, rows: usize, width: usize) {
        let few = rows <= FEW_ROWS;
        let (row_pieces, column_pieces) = if few {
            let worth = (self.depth * width / PIECE_ELEMENTS).max(1);
            (1, worth.min(parallel::threads() * 4))
        } else {
            let (across, down) = (width.div_ceil(PIECE_WIDTH), rows.div_ceil(PIECE_ROWS));
            // Few large pieces keep threads waiting for the last one.
            let worth = (rows * width).saturating_mul(self.depth) / PIECE_PRODUCTS;
            let wanted = (parallel::threads() * 4).min(worth);
            let more = if parallel::threads() > 1 { wanted.div_ceil(across * down) } else { 1 };
            (down, across * more.max(1))
        };
        let panels = width.div_ceil(PANEL);
        let piece_panels = panels.div_ceil(column_pieces);
        let column_pieces = panels.div_ceil(piece_panels);
        let whole_tile = self.isa.tile_rows(usize::MAX);
        let piece_rows = rows.div_ceil(row_pieces).next_multiple_of(whole_tile);
        let row_pieces = rows.div_ceil(piece_rows);
        parallel::for_each(row_pieces * column_pieces, |index| {
            let (row, column) =
                (index / column_pieces * piece_rows, index % column_pieces * piece_panels * PANEL);
            let piece = Piece {
                row,
                rows: piece_rows.min(rows - row),
                column,
                width: (piece_panels * PANEL).min(width - column),
            };
            SCRATCH.with_borrow_mut(|scratch| {
                if few {
                    self.run_few(piece, scratch);
                } else {
                    self.run_packed(piece, scratch);
                }
            });
        });
    }

    /// The part of the output at a row and a column; its operands are yet to be set.
    fn tile(&self, row: usize, column: usize, depth_start: usize) -> Tile {
        let left = row * self.left.row_stride + depth_start * self.left.column_stride;
        Tile {
            left: self.left.data[left..].as_ptr(),
            left_row: self.left.row_stride,
            left_column: self.left.column_stride,
            right: std::ptr::null(),
            right_panel: 0,
            right_row: 0,
            ahead: std::ptr::null(),
            depth: self.block_depth(depth_start),
            // SAFETY: `product` checked that the output holds every row and column.
            out: unsafe { self.out.get().add(row * self.out_stride + column) },
            out_row: self.out_stride,
            add: self.adds || depth_start > 0,
        }
    }

    fn block_depth(&self, depth_start: usize) -> usize {
        DEPTH_BLOCK.min(self.depth - depth_start)
    }

    /// Few rows: the right-hand side is read once, where it lies if that can be done.
    fn run_few(&self, piece: Piece, scratch: &mut Scratch) {
        let group = self.isa.tile_panels(self.isa.tile_rows(piece.rows)) * PANEL;
        let end = piece.column + piece.width;
        for column in (piece.column..end).step_by(group) {
            let width = group.min(end - column);
            for depth_start in (0..self.depth).step_by(DEPTH_BLOCK) {
                if let Right::Columns { data, stride, .. } = self.right
                    && piece.rows <= MAX_COLUMN_ROWS
                    && width.is_multiple_of(PANEL)
                    && self.left.column_stride == 1
                {
                    for first in (column..column + width).step_by(PANEL) {
                        let tile = self.tile(piece.row, first, depth_start);
                        with_numbers!(data, first * stride + depth_start, columns => {
                            // The panel behind the next one, whose columns lie side by side.
                            let start = 2 * PANEL * stride + depth_start * PANEL;
                            let ahead = columns.wrapping_add(start).wrapping_sub(depth_start);
                            let tile = tile.with_columns(columns, stride, ahead);
                            // SAFETY: `product` checked the operands; whole panels are left.
                            unsafe { run_columns(self.isa, piece.rows, tile) };
                        });
                    }
                    continue;
                }
                let right = match self.right {
                    Right::Rows { data: Matrix::F32(data), stride, .. }
                        if width.is_multiple_of(PANEL) =>
                    {
                        Block {
                            data: data[depth_start * stride + column..].as_ptr(),
                            panel: PANEL,
                            row: stride,
                        }
                    }
                    _ => self.block(column, width, depth_start, &mut scratch.right),
                };
                let mut row = piece.row;
                while row < piece.row + piece.rows {
                    let rows = self.isa.tile_rows(piece.row + piece.rows - row);
                    let tile = right.of(self.tile(row, column, depth_start));
                    // SAFETY: `product` checked the operands; `right` holds the tile's panels.
                    unsafe { run_tile(self.isa, rows, width, tile) };
                    row += rows;
                }
            }
        }
    }

    /// Many rows: blocks of both sides are packed, so that tiles read them in order.
    fn run_packed(&self, piece: Piece, scratch: &mut Scratch) {
        let group = self.isa.tile_panels(self.isa.tile_rows(piece.rows)) * PANEL;
        let end = piece.column + piece.width;
        let Scratch { left: packed, right: panels } = scratch;
        for depth_start in (0..self.depth).step_by(DEPTH_BLOCK) {
            let depth = self.block_depth(depth_start);
            let packed =
                (piece.width > group).then(|| self.pack_left(piece, depth_start, packed)).flatten();
            for column in (piece.column..end).step_by(group) {
                let width = group.min(end - column);
                let right = self.block(column, width, depth_start, panels);
                let mut row = 0;
                while row < piece.rows {
                    let rows = self.isa.tile_rows(piece.rows - row);
                    let mut tile = right.of(self.tile(piece.row + row, column, depth_start));
                    if let Some(packed) = packed {
                        tile.left = packed.wrapping_add(row * depth);
                        (tile.left_row, tile.left_column) = (1, rows);
                    }
                    // SAFETY: `product` checked the operands; packed blocks hold the tile's.
                    unsafe { run_tile(self.isa, rows, width, tile) };
                    row += rows;
                }
            }
        }
    }

    /// Brings a block of the left matrix into the order in which tiles read it: for each tile,
    /// the column of its rows at each depth. `None` where its storage allows no fast way.
    fn pack_left(
        &self,
        piece: Piece,
        depth_start: usize,
        buffer: &mut Vec<f32>,
    ) -> Option<*const f32> {
        let Left { row_stride, column_stride, .. } = self.left;
        if row_stride != 1 && column_stride != 1 {
            return None;
        }
        let depth = self.block_depth(depth_start);
        let packed = aligned(buffer, piece.rows * depth);
        let mut row = 0;
        while row < piece.rows {
            let rows = self.isa.tile_rows(piece.rows - row);
            let source = self.tile(piece.row + row, 0, depth_start).left;
            // SAFETY: `product` checked the left matrix; `packed` has room for the block.
            unsafe {
                let target = packed.add(row * depth);
                if column_stride == 1 {
                    interleave_rows(self.isa, source, row_stride, rows, depth, target, rows);
                } else {
                    gather_columns(source, column_stride, rows, depth, target);
                }
            }
            row += rows;
        }
        Some(packed.cast_const())
    }

    /// The panels of a block of the right-hand side, packed into `buffer` if need be.
    fn block(
        &self,
        column: usize,
        width: usize,
        depth_start: usize,
        buffer: &mut Vec<f32>,
    ) -> Block {
        let depth = self.block_depth(depth_start);
        let packed = |buffer: &mut Vec<f32>| {
            let data = aligned(buffer, MAX_PANELS * DEPTH_BLOCK * PANEL);
            (data, Block { data: data.cast_const(), panel: DEPTH_BLOCK * PANEL, row: PANEL })
        };
        match self.right {
            Right::Panels(panels) => Block {
                data: panels.data[column * panels.depth_stride + depth_start * PANEL..].as_ptr(),
                panel: panels.depth_stride * PANEL,
                row: PANEL,
            },
            Right::Rows { data, stride, .. } => {
                let (target, block) = packed(buffer);
                for first in (0..width).step_by(PANEL) {
                    let columns = PANEL.min(width - first);
                    with_numbers!(data, depth_start * stride + column + first, source => {
                        // SAFETY: `product` checked the right matrix; the buffer has room for a
                        // block of the most panels.
                        unsafe {
                            let target = target.add(first * DEPTH_BLOCK);
                            copy_rows(self.isa, source, stride, columns, depth, target);
                        }
                    });
                }
                block
            }
            Right::Columns { data, stride, .. } => {
                let (target, block) = packed(buffer);
                for first in (0..width).step_by(PANEL) {
                    let columns = PANEL.min(width - first);
                    let isa = self.isa;
                    with_numbers!(data, (column + first) * stride + depth_start, source => {
                        // SAFETY: as above.
                        unsafe {
                            let target = target.add(first * DEPTH_BLOCK);
                            interleave_rows(isa, source, stride, columns, depth, target, PANEL);
                        }
                    });
                }
                block
            }
        }
    }
}

/// Where the panels of a block lie.
#[derive(Clone, Copy)]
struct Block {
    data: *const f32,
    /// From panel to panel.
    panel: usize,
    /// From row to row.
    row: usize,
}

impl Block {
    /// The tile with this block as its right-hand side.
    fn of(self, tile: Tile) -> Tile {
        Tile { right: self.data, right_panel: self.panel, right_row: self.row, ..tile }
    }
}

/// `target[p * rows + i] = source[p * stride + i]` for `i < rows` and `p < depth`.
///
/// # Safety
///
/// Both must be valid for these elements.
unsafe fn gather_columns(
    source: *const f32,
    stride: usize,
    rows: usize,
    depth: usize,
    target: *mut f32,
) {
    /// Copies of a fixed size need no call.
    unsafe fn gather<const ROWS: usize>(
        source: *const f32,
        stride: usize,
        depth: usize,
        target: *mut f32,
    ) {
        for p in 0..depth {
            // SAFETY: the caller's promise.
            unsafe {
                let column = source.add(p * stride).cast::<[f32; ROWS]>();
                *target.add(p * ROWS).cast::<[f32; ROWS]>() = *column;
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            12 => gather::<12>(source, stride, depth, target),
            8 => gather::<8>(source, stride, depth, target),
            6 => gather::<6>(source, stride, depth, target),
            5 => gather::<5>(source, stride, depth, target),
            4 => gather::<4>(source, stride, depth, target),
            3 => gather::<3>(source, stride, depth, target),
            2 => gather::<2>(source, stride, depth, target),
            _ => gather::<1>(source, stride, depth, target),
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
            let packed = Panels::from_transposed(&transpose(&b, depth, width), width, depth);
            assert_eq!(packed.data, panels.data);
            let mut out = vec![0.0; rows * width];
            let at = transpose(&a, rows, depth);
            multiply_left_transposed(&at, &panels, &mut out, rows, Output::Add);
            check(&out);
        }
    }

    fn transpose(m: &[f32], rows: usize, columns: usize) -> Vec<f32> {
        (0..rows * columns).map(|i| m[(i % rows) * columns + i / rows]).collect()
    }

    #[test]
    fn storage_pieces_and_threads_do_not_change_a_bit() {
        for (rows, depth, width) in [
            (1, 600, 90),
            (2, 40, 31),
            (3, 300, 64),
            (5, 257, 17),
            (6, 1000, 200),
            (7, 513, 33),
            (70, 300, 130),
            (500, 270, 300),
        ] {
            let (a, b) = (numbers(rows * depth, 0.7), numbers(depth * width, 0.3));
            let start = numbers(rows * width, 0.9);
            // One element after the other, as the kernels promise to.
            let mut expected = start.clone();
            for (i, out) in expected.iter_mut().enumerate() {
                let (i, j) = (i / width, i % width);
                for block in (0..depth).step_by(DEPTH_BLOCK) {
                    let mut sum = 0.0_f32;
                    for p in block..depth.min(block + DEPTH_BLOCK) {
                        sum = a[i * depth + p].mul_add(b[p * width + j], sum);
                    }
                    *out += sum;
                }
            }
            let (at, bt) = (transpose(&a, rows, depth), transpose(&b, depth, width));
            let panels = Panels::from_rows(&b, depth, width);
            let lefts = [
                Left { data: &a, row_stride: depth, column_stride: 1 },
                Left { data: &at, row_stride: 1, column_stride: rows },
            ];
            let rights = [
                Right::Panels(panels.as_ref()),
                Right::Rows { data: Matrix::F32(&b), stride: width, depth, width },
                Right::Columns { data: Matrix::F32(&bt), stride: depth, depth, width },
            ];
            for (left, right) in lefts.iter().flat_map(|l| rights.iter().map(move |r| (l, r))) {
                let run = || {
                    let mut out = start.clone();
                    product(*left, *right, &mut out, width, rows, Output::Add);
                    out
                };
                let found = run();
                assert!(found == expected, "{rows} x {depth} x {width}");
                assert!(parallel::serially(run) == expected, "{rows} x {depth} x {width}");
                let pool = rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
                assert!(pool.install(run) == expected, "{rows} x {depth} x {width}");
            }
        }
    }

    #[test]
    fn linear_and_its_gradients_are_the_products_they_should_be() {
        let (rows, inputs, outputs) = (9, 20, 35);
        let (x, w) = (numbers(rows * inputs, 0.7), numbers(outputs * inputs, 0.3));
        let dy = numbers(rows * outputs, 0.2);
        let multiplied = |left: &[f32], right: &[f32], depth: usize, width: usize| {
            let rows = left.len() / depth;
            let mut out = vec![0.0; rows * width];
            multiply(left, &Panels::from_rows(right, depth, width), &mut out, rows, Output::Set);
            out
        };
        let mut y = vec![9.0; rows * outputs];
        linear(&x, &w, &mut y, rows, outputs, Output::Set);
        assert_eq!(y, multiplied(&x, &transpose(&w, outputs, inputs), inputs, outputs));
        let mut dx = vec![9.0; rows * inputs];
        linear_backward(&dy, &w, &mut dx, rows, outputs, Output::Set);
        assert_eq!(dx, multiplied(&dy, &w, outputs, inputs));
        let mut dw = vec![0.0; outputs * inputs];
        linear_gradient(&dy, &x, &mut dw, rows, outputs);
        assert_eq!(dw, multiplied(&transpose(&dy, rows, outputs), &x, rows, inputs));
    }

    #[test]
    fn halves_give_the_bits_of_the_same_numbers_in_single_precision() {
        let bf16 = |bits: &[u16]| Matrix::Bf16(bits).widened(&mut Vec::new()).to_vec();
        let f16 = |bits: &[u16]| Matrix::F16(bits).widened(&mut Vec::new()).to_vec();
        for rows in [1, 2, 3, 4, 6, 7, 13, 40] {
            for (inputs, outputs) in [(600, 90), (40, 31), (304, 64), (257, 17), (33, 130)] {
                let (x, dy) = (numbers(rows * inputs, 0.7), numbers(rows * outputs, 0.2));
                // Exponents around that of 1, and some of subnormal numbers of half precision.
                let bits = |spread: u16, least: u16| -> Vec<u16> {
                    let bit = |i: usize| {
                        let i = (i as u32).wrapping_mul(2_654_435_761) >> 16;
                        (i as u16 & 0x8000) | (least + i as u16 % spread)
                    };
                    (0..outputs * inputs).map(bit).collect()
                };
                let (as_bf16, as_f16) = (bits(0x180, 0x3e80), bits(0x3c00, 0));
                for (halves, singles) in
                    [(Matrix::Bf16(&as_bf16), bf16(&as_bf16)), (Matrix::F16(&as_f16), f16(&as_f16))]
                {
                    let run = |matrix: Matrix<'_>, output| {
                        let mut y = numbers(rows * outputs, 0.9);
                        linear(&x, matrix, &mut y, rows, outputs, output);
                        let mut dx = numbers(rows * inputs, 0.4);
                        linear_backward(&dy, matrix, &mut dx, rows, outputs, output);
                        (y, dx)
                    };
                    for output in [Output::Set, Output::Add] {
                        let expected = run(Matrix::F32(&singles), output);
                        assert!(expected.0.iter().all(|value| value.is_finite()));
                        assert!(run(halves, output) == expected, "{rows} x {inputs} x {outputs}");
                        let serial = parallel::serially(|| run(halves, output));
                        assert!(serial == expected, "{rows} x {inputs} x {outputs}");
                    }
                }
            }
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
