//! A product: what it is made of, and how its output is divided.
#![expect(unsafe_code, reason = "pieces of one output are written by several threads")]

use super::Output;
use super::pack::SCRATCH;
use super::right::Right;
use crate::kernel::{Isa, Left, PANEL, Tile};
use crate::parallel::{self, Shared};

/// Depth after which a sum is written out and taken up again; fixed, because it takes part in the
/// rounding.
pub(super) const DEPTH_BLOCK: usize = 256;
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

/// The product with a right-hand side in any storage.
pub(super) fn product(
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
pub(super) struct Product<'a> {
    pub(super) isa: Isa,
    pub(super) left: Left<'a>,
    pub(super) right: Right<'a>,
    pub(super) out: Shared<*mut f32>,
    pub(super) out_stride: usize,
    pub(super) depth: usize,
    pub(super) adds: bool,
}

/// A rectangle of the output.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) column: usize,
    pub(super) width: usize,
}

/// Where the panels of a block lie.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) data: *const f32,
    /// From panel to panel.
    pub(super) panel: usize,
    /// From row to row.
    pub(super) row: usize,
}

impl Block {
    /// The tile with this block as its right-hand side.
    pub(super) fn of(self, tile: Tile) -> Tile {
        Tile { right: self.data, right_panel: self.panel, right_row: self.row, ..tile }
    }
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
    pub(super) fn tile(&self, row: usize, column: usize, depth_start: usize) -> Tile {
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

    pub(super) fn block_depth(&self, depth_start: usize) -> usize {
        DEPTH_BLOCK.min(self.depth - depth_start)
    }
}
