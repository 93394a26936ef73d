//! Queries that meet a block of keys together, and the products between them.

use std::ops::Range;

use super::bias::add_bias;
use super::{Attention, KEY_BLOCK, KeyBlock};
use crate::kernel::{Isa, Left, WIDE, multiply_wide};
use crate::page::{PAGE, Page};

/// Queries that meet a block together, and how much of it they see.
pub(super) struct Tile<'a> {
    pub(super) block: &'a KeyBlock,
    pub(super) key_head: usize,
    pub(super) rows: &'a [usize],
    /// Places of the pages that hold a key which one of them sees.
    pub(super) pages: Range<usize>,
    /// Keys of the block up to the last one that one of them sees.
    pub(super) visible: usize,
}

impl Tile<'_> {
    /// Keys of the page in `place` up to the last one that is seen.
    pub(super) fn depth(&self, place: usize) -> usize {
        PAGE.min(self.visible - place * PAGE)
    }

    pub(super) fn columns(&self) -> Range<usize> {
        self.pages.start * PAGE..self.pages.end * PAGE
    }
}

impl Attention<'_> {
    pub(super) fn tile<'b>(
        &self,
        block: &'b KeyBlock,
        key_head: usize,
        rows: &'b [usize],
    ) -> Tile<'b> {
        let positions = rows.iter().map(|row| self.positions[*row]);
        let (first, last) = positions.fold((usize::MAX, 0), |(first, last), position| {
            (first.min(position), last.max(position))
        });
        let hidden = (first + 1).saturating_sub(self.shape.window).saturating_sub(block.start);
        let visible = (last + 1 - block.start).min(KEY_BLOCK);
        let pages = hidden / PAGE..visible.div_ceil(PAGE);
        Tile { block, key_head, rows, pages, visible }
    }

    pub(super) fn page(&self, block: &KeyBlock, place: usize) -> &Page {
        self.pages[block.pages[place] as usize]
    }

    /// The keys of the tile's block that a row sees.
    pub(super) fn seen(&self, tile: &Tile<'_>, row: usize) -> Range<usize> {
        let (start, end) = (tile.block.start, self.positions[row] + 1);
        end.saturating_sub(self.shape.window).saturating_sub(start)..(end - start).min(KEY_BLOCK)
    }

    /// Calls `visit` with the index of every query in a tile, its row, and which of the heads of
    /// the key head it is.
    pub(super) fn for_each_query(
        &self,
        tile: &Tile<'_>,
        mut visit: impl FnMut(usize, usize, usize),
    ) {
        let group = self.shape.group();
        for (i, row) in tile.rows.iter().enumerate() {
            for j in 0..group {
                visit(i * group + j, *row, j);
            }
        }
    }

    /// The queries of a tile, or what has their shape, one after the other.
    pub(super) fn gather(&self, source: &[f32], tile: &Tile<'_>, out: &mut Vec<f32>) {
        let len = self.shape.group() * self.shape.head_dim;
        let width = self.shape.heads * self.shape.head_dim;
        out.clear();
        for row in tile.rows {
            out.extend_from_slice(&source[row * width + tile.key_head * len..][..len]);
        }
    }

    /// `[query, head_dim]` as panels of [`WIDE`] channels.
    pub(super) fn pack(&self, rows: &[f32], panels: &mut Vec<f32>) {
        let dim = self.shape.head_dim;
        panels.clear();
        for first in (0..dim).step_by(WIDE) {
            let width = WIDE.min(dim - first);
            for row in rows.chunks_exact(dim) {
                panels.extend_from_slice(&row[first..first + width]);
                panels.resize(panels.len() + WIDE - width, 0.0);
            }
        }
    }

    /// Masked and biased scores `[query, KEY_BLOCK]`, of which the tile's columns are written.
    pub(super) fn scores(&self, tile: &Tile<'_>, queries: &[f32], scores: &mut Vec<f32>) {
        let block = tile.block;
        let keys = |place| self.page(block, place).keys(self.layer, tile.key_head);
        self.products(tile, queries, keys, scores);
        let columns = tile.columns();
        self.for_each_query(tile, |index, row, member| {
            let head = tile.key_head * self.shape.group() + member;
            let scores = &mut scores[index * KEY_BLOCK..][..KEY_BLOCK];
            let seen = self.seen(tile, row);
            scores[columns.start..seen.start].fill(f32::NEG_INFINITY);
            scores[seen.end..columns.end].fill(f32::NEG_INFINITY);
            if let Some(bias) = self.match_bias.get(2 * head..2 * head + 2) {
                let own = self.positions[row] + 1 - block.start == seen.end;
                let tokens = &block.tokens[seen.start..=seen.end];
                add_bias(&mut scores[seen], tokens, self.tokens[row], own, bias);
            }
        });
    }

    /// `out[query, key] = left[query, head_dim] * panels[head_dim, key]`, one panel per page.
    pub(super) fn products<'b>(
        &self,
        tile: &Tile<'_>,
        left: &[f32],
        panel: impl Fn(usize) -> &'b [f32],
        out: &mut Vec<f32>,
    ) {
        let dim = self.shape.head_dim;
        let queries = left.len() / dim;
        out.resize(queries * KEY_BLOCK, 0.0);
        let left = Left { data: left, row_stride: dim, column_stride: 1 };
        for place in tile.pages.clone() {
            let out = &mut out[place * PAGE..];
            multiply_wide(
                Isa::detect(),
                left,
                panel(place),
                out,
                KEY_BLOCK,
                queries,
                dim,
                PAGE,
                false,
            );
        }
    }

    /// `out[query, head_dim] = weights[query, key] * rows[key, head_dim]`, the rows of a page in
    /// panels of [`WIDE`] channels.
    pub(super) fn weighted_sum<'b>(
        &self,
        tile: &Tile<'_>,
        weights: &[f32],
        rows: impl Fn(usize) -> &'b [f32],
        out: &mut Vec<f32>,
    ) {
        let dim = self.shape.head_dim;
        let queries = tile.rows.len() * self.shape.group();
        out.resize(queries * dim, 0.0);
        for first in (0..dim).step_by(WIDE) {
            for place in tile.pages.clone() {
                multiply_wide(
                    Isa::detect(),
                    Left {
                        data: &weights[place * PAGE..],
                        row_stride: KEY_BLOCK,
                        column_stride: 1,
                    },
                    &rows(place)[first * PAGE..],
                    &mut out[first..],
                    dim,
                    queries,
                    tile.depth(place),
                    WIDE.min(dim - first),
                    place > tile.pages.start,
                );
            }
        }
    }

    /// `out[key, head_dim] += weights[query, key]^T * panels[query, head_dim]`.
    pub(super) fn add_to_keys(
        &self,
        tile: &Tile<'_>,
        weights: &[f32],
        panels: &[f32],
        out: &mut [f32],
    ) {
        let dim = self.shape.head_dim;
        let queries = tile.rows.len() * self.shape.group();
        for first in (0..dim).step_by(WIDE) {
            for place in tile.pages.clone() {
                let page = tile.block.pages[place] as usize;
                multiply_wide(
                    Isa::detect(),
                    Left {
                        data: &weights[place * PAGE..],
                        row_stride: 1,
                        column_stride: KEY_BLOCK,
                    },
                    &panels[first * queries..],
                    &mut out[page * PAGE * dim + first..],
                    dim,
                    tile.depth(place),
                    queries,
                    WIDE.min(dim - first),
                    true,
                );
            }
        }
    }

    /// Keys by rows, in panels of channels, and values by columns, page by page.
    pub(super) fn unpack(
        &self,
        block: &KeyBlock,
        key_head: usize,
        key_rows: &mut Vec<f32>,
        value_columns: &mut Vec<f32>,
    ) {
        let dim = self.shape.head_dim;
        let len = dim.next_multiple_of(WIDE) * PAGE;
        key_rows.resize(block.pages.len() * len, 0.0);
        value_columns.resize(block.pages.len() * dim * PAGE, 0.0);
        let rows = key_rows.chunks_exact_mut(len).zip(value_columns.chunks_exact_mut(dim * PAGE));
        for (place, (key_rows, value_columns)) in rows.enumerate() {
            let page = self.page(block, place);
            let (keys, values) =
                (page.keys(self.layer, key_head), page.values(self.layer, key_head));
            for p in 0..dim {
                let first = p / WIDE * PAGE * WIDE + p % WIDE;
                for j in 0..PAGE {
                    key_rows[first + j * WIDE] = keys[p * PAGE + j];
                    value_columns[p * PAGE + j] = values[first + j * WIDE];
                }
            }
        }
    }
}
