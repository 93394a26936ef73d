//! Products of rows that are worth packing what they are multiplied by.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use super::pack::Scratch;
use super::product::{DEPTH_BLOCK, Piece, Product};
use crate::kernel::{PANEL, run_tile};

impl Product<'_> {
    /// Many rows: blocks of both sides are packed, so that tiles read them in order.
    pub(super) fn run_packed(&self, piece: Piece, scratch: &mut Scratch) {
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
}
