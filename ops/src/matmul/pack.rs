//! Blocks of both sides in the order in which tiles read them.
#![expect(
    unsafe_code,
    reason = "unchecked copies, and calls of functions compiled for the machine's instruction set"
)]

use std::cell::RefCell;

use super::product::{Block, DEPTH_BLOCK, Piece, Product};
use super::right::Right;
use crate::kernel::{Left, MAX_PANELS, PANEL};
use crate::matrix::{Bf16, F16, Matrix};
use crate::transpose::{copy_rows, interleave_rows};

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

pub(super) use with_numbers;

/// Buffers for packed blocks; each thread has its own.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) left: Vec<f32>,
    pub(super) right: Vec<f32>,
}

thread_local! {
    pub(super) static SCRATCH: RefCell<Scratch> = RefCell::default();
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
    /// Brings a block of the left matrix into the order in which tiles read it: for each tile,
    /// the column of its rows at each depth. `None` where its storage allows no fast way.
    pub(super) fn pack_left(
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
    pub(super) fn block(
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
                data: panels.data[column * panels.depth + depth_start * PANEL..].as_ptr(),
                panel: panels.depth * PANEL,
                row: PANEL,
            },
            Right::Weight { data: Matrix::F32(data), depth, .. } => Block {
                data: data[column * depth + depth_start * PANEL..].as_ptr(),
                panel: depth * PANEL,
                row: PANEL,
            },
            Right::Weight { data, depth: of_all, .. } => {
                let (target, block) = packed(buffer);
                for first in (0..width).step_by(PANEL) {
                    let start = (column + first) * of_all + depth_start * PANEL;
                    with_numbers!(data, start, source => {
                        // SAFETY: `product` checked the right matrix, whose panels are whole; the buffer
                        // has room for a block of the most panels.
                        unsafe {
                            let target = target.add(first * DEPTH_BLOCK);
                            copy_rows(self.isa, source, PANEL, PANEL, depth, target);
                        }
                    });
                }
                block
            }
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
