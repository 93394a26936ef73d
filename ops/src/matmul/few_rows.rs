//! Products of rows that are too few to pack what they are multiplied by.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use super::pack::{Scratch, with_numbers};
use super::product::{Block, DEPTH_BLOCK, Piece, Product};
use super::right::Right;
use crate::kernel::{MAX_COLUMN_ROWS, PANEL, run_columns, run_panels, run_tile};
use crate::matrix::{Bf16, F16, Matrix};

impl Product<'_> {
    /// Few rows: the right-hand side is read once, where it lies if that can be done.
    pub(super) fn run_few(&self, piece: Piece, scratch: &mut Scratch) {
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
                if let Right::Weight { data, depth, .. } = self.right
                    && piece.rows <= MAX_COLUMN_ROWS
                    && !matches!(data, Matrix::F32(_))
                {
                    let tile = self.tile(piece.row, column, depth_start);
                    let start = column * depth + depth_start * PANEL;
                    with_numbers!(data, start, panels => {
                        let tile = tile.with_panels(panels, depth * PANEL);
                        // SAFETY: `product` checked the operands, whose panels are whole.
                        unsafe { run_panels(self.isa, piece.rows, width / PANEL, tile) };
                    });
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
}
