//! Causal attention of tokens over pages of keys and values, without a score matrix in memory.
//!
//! Keys are met in blocks of [`KEY_BLOCK`] whose borders are multiples of it, in ascending order;
//! between blocks a token keeps the maximum and the sum of its softmax (Dao et al. 2022). So a
//! token's result depends on nothing but its own query and the keys it sees, to the bit: not on how
//! its sequence was cut into calls, and not on which other tokens see the same keys.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::elementwise::{
    absorb_scores, add_scaled, dot, exp_scores_with, scale, scale_add, softmax_backward,
};
use super::kernel::{Isa, Left, WIDE, multiply_wide, per_isa};
use super::page::{PAGE, Page};
use super::parallel;

/// Pages of a block of keys.
pub(crate) const BLOCK_PAGES: usize = 4;

/// Keys between two borders; fixed, because it takes part in the rounding.
pub(crate) const KEY_BLOCK: usize = BLOCK_PAGES * PAGE;

/// Queries that are worked off together, those of all heads of a key head counted.
const TILE: usize = 48;

/// Multiplications that are worth a piece of their own.
const PIECE_PRODUCTS: usize = 1 << 22;

/// The shape of an attention layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionShape {
    /// Query heads.
    pub(crate) heads: usize,
    /// Key-value heads.
    pub(crate) key_heads: usize,
    /// Channels of a head.
    pub(crate) head_dim: usize,
    /// Keys that a query sees, its own included; `usize::MAX` for all before it.
    pub(crate) window: usize,
}

impl AttentionShape {
    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    /// Query heads that share a key head.
    fn group(&self) -> usize {
        self.heads / self.key_heads
    }

    /// Tokens of a tile.
    fn tile_rows(&self) -> usize {
        (TILE / self.group()).max(1)
    }
}

/// A block of keys, and the tokens of the call that see some of it.
#[derive(Debug)]
pub(crate) struct KeyBlock {
    /// Position of the first key.
    pub(crate) start: usize,
    /// Up to [`BLOCK_PAGES`].
    pub(crate) pages: Vec<u32>,
    /// Each range holds adjacent tokens of one sequence.
    pub(crate) rows: Vec<Range<usize>>,
    /// The token before the block and those of its pages; empty where nobody asks for them.
    pub(crate) tokens: Vec<u32>,
}

impl KeyBlock {
    /// Calls `visit` with every so many of the rows that are among `some`.
    fn for_each_tile(
        &self,
        some: &Range<usize>,
        tile_rows: usize,
        visit: &mut dyn FnMut(&[usize]),
    ) {
        let mut tile = Vec::with_capacity(tile_rows);
        for rows in &self.rows {
            for row in rows.start.max(some.start)..rows.end.min(some.end) {
                tile.push(row);
                if tile.len() == tile_rows {
                    visit(&tile);
                    tile.clear();
                }
            }
        }
        if !tile.is_empty() {
            visit(&tile);
        }
    }
}

/// Per row and head: maximum of the scores and inverse of the sum of their exponentials.
pub(crate) type SoftmaxStatistics = Vec<[f32; 2]>;

/// The attention of one layer in one call.
///
/// A query sees the keys of its sequence up to its own position that are nearer than the window.
/// Row `i` has the output `softmax(q k^T / sqrt(head_dim) + bias) v`.
pub(crate) struct Attention<'a> {
    pub(crate) shape: AttentionShape,
    pub(crate) layer: usize,
    /// In ascending order of position; every row is in the blocks that hold a key it sees.
    pub(crate) blocks: &'a [KeyBlock],
    /// What the blocks' pages are indices of.
    pub(crate) pages: &'a [Arc<Page>],
    pub(crate) positions: &'a [usize],
    pub(crate) tokens: &'a [u32],
    /// `[row, heads, head_dim]`.
    pub(crate) queries: &'a [f32],
    /// Two entries per head: the first is added where an earlier key's token equals the query's
    /// token, the second where the token before the key's does. Empty means no bias.
    pub(crate) match_bias: &'a [f32],
}

/// What [`Attention::backward`] adds to.
pub(crate) struct AttentionGradients<'a> {
    /// `[row, heads, head_dim]`.
    pub(crate) queries: &'a mut [f32],
    /// `[key_heads, page, PAGE, head_dim]`.
    pub(crate) keys: &'a mut [f32],
    /// `[key_heads, page, PAGE, head_dim]`.
    pub(crate) values: &'a mut [f32],
    /// `[heads, 2]`; empty where there is no bias.
    pub(crate) match_bias: &'a mut [f32],
}

/// Queries that meet a block together, and how much of it they see.
struct Tile<'a> {
    block: &'a KeyBlock,
    key_head: usize,
    rows: &'a [usize],
    /// Places of the pages that hold a key which one of them sees.
    pages: Range<usize>,
    /// Keys of the block up to the last one that one of them sees.
    visible: usize,
}

impl Tile<'_> {
    /// Keys of the page in `place` up to the last one that is seen.
    fn depth(&self, place: usize) -> usize {
        PAGE.min(self.visible - place * PAGE)
    }

    fn columns(&self) -> Range<usize> {
        self.pages.start * PAGE..self.pages.end * PAGE
    }
}

impl Attention<'_> {
    /// Writes the output, `[row, heads, head_dim]`, and the statistics of every row and head.
    pub(crate) fn forward(&self, out: &mut [f32], statistics: &mut SoftmaxStatistics) {
        let (heads, group) = (self.shape.heads, self.shape.group());
        let (width, len) = (heads * self.shape.head_dim, group * self.shape.head_dim);
        statistics.clear();
        statistics.resize(self.positions.len() * heads, [0.0; 2]);
        let pieces = self.pieces();
        let results: Vec<_> = pieces.iter().map(|_| OnceLock::new()).collect();
        self.for_each(pieces.len(), |index| {
            let (key_head, rows) = &pieces[index];
            let _ = results[index].set(self.forward_piece(*key_head, rows));
        });
        for ((key_head, rows), result) in pieces.into_iter().zip(results) {
            let (part, of_part) = result.into_inner().expect("every piece is worked off");
            let parts = part.chunks_exact(len).zip(of_part.chunks_exact(group));
            for (row, (part, of_part)) in rows.zip(parts) {
                out[row * width + key_head * len..][..len].copy_from_slice(part);
                statistics[row * heads + key_head * group..][..group].copy_from_slice(of_part);
            }
        }
    }

    /// The gradients of [`Attention::forward`], scores being computed once more.
    ///
    /// With `P` the probabilities and `D = sum(dout * out)` per row and head: `dV = P^T dout`,
    /// `dS = P * (dout V^T - D)`, `dQ = dS K / sqrt(head_dim)`, `dK = dS^T Q / sqrt(head_dim)`, and
    /// a bias collects `dS` where it was added. Keys and values that several sequences share
    /// collect from all of them.
    pub(crate) fn backward(
        &self,
        statistics: &SoftmaxStatistics,
        out: &[f32],
        dout: &[f32],
        gradients: &mut AttentionGradients<'_>,
    ) {
        let (group, key_heads) = (self.shape.group(), self.shape.key_heads);
        let (width, len) = (self.shape.heads * self.shape.head_dim, group * self.shape.head_dim);
        let of_pages = self.pages.len() * PAGE * self.shape.head_dim;
        if of_pages == 0 {
            return;
        }
        // Every key head has gradients of its own.
        let keys = gradients.keys.chunks_exact_mut(of_pages);
        let of_heads: Vec<_> =
            keys.zip(gradients.values.chunks_exact_mut(of_pages)).map(Mutex::new).collect();
        let results: Vec<_> = of_heads.iter().map(|_| OnceLock::new()).collect();
        self.for_each(key_heads, |key_head| {
            let mut of_head = of_heads[key_head].lock().unwrap_or_else(PoisonError::into_inner);
            let (dkeys, dvalues) = &mut *of_head;
            let result = self.backward_head(key_head, statistics, out, dout, dkeys, dvalues);
            let _ = results[key_head].set(result);
        });
        for (key_head, result) in results.into_iter().enumerate() {
            let (dqueries, dbias) = result.into_inner().expect("every head is worked off");
            for (row, dquery) in dqueries.chunks_exact(len).enumerate() {
                let target = &mut gradients.queries[row * width + key_head * len..][..len];
                add_scaled(target, 1.0, dquery);
            }
            if !self.match_bias.is_empty() {
                let target = &mut gradients.match_bias[2 * group * key_head..][..2 * group];
                add_scaled(target, 1.0, &dbias);
            }
        }
    }

    /// Multiplications of one key head.
    fn products_of_head(&self) -> usize {
        let met: usize = self.blocks.iter().flat_map(|block| &block.rows).map(Range::len).sum();
        met * KEY_BLOCK * self.shape.group() * self.shape.head_dim
    }

    /// Calls `work` for every number below `count`, on several threads where it is worth it.
    fn for_each(&self, count: usize, work: impl Fn(usize) + Sync + Send) {
        if self.products_of_head() * self.shape.key_heads < PIECE_PRODUCTS {
            (0..count).for_each(work);
        } else {
            parallel::for_each(count, work);
        }
    }

    /// Key heads and rows that can be worked off at the same time.
    fn pieces(&self) -> Vec<(usize, Range<usize>)> {
        let rows = self.positions.len();
        let parts = if parallel::threads() == 1 {
            1
        } else {
            (self.products_of_head() / PIECE_PRODUCTS).clamp(1, 4 * parallel::threads())
        };
        let part_rows = rows.div_ceil(parts).max(1);
        let parts = (0..rows).step_by(part_rows).map(|first| first..rows.min(first + part_rows));
        let heads = 0..self.shape.key_heads;
        parts.flat_map(|rows| heads.clone().map(move |key_head| (key_head, rows.clone()))).collect()
    }

    /// Output `[row, group, head_dim]` and statistics `[row, group]` of some rows and the heads of
    /// a key head.
    fn forward_piece(&self, key_head: usize, some: &Range<usize>) -> (Vec<f32>, SoftmaxStatistics) {
        let (group, dim) = (self.shape.group(), self.shape.head_dim);
        let place = |row: usize, member: usize| (row - some.start) * group + member;
        let mut out = vec![0.0; some.len() * group * dim];
        let mut statistics = vec![[f32::NEG_INFINITY, 0.0]; some.len() * group];
        let (mut queries, mut scores) = (Vec::new(), Vec::new());
        let (mut factors, mut attended) = (Vec::new(), Vec::new());
        for block in self.blocks {
            block.for_each_tile(some, self.shape.tile_rows(), &mut |rows| {
                let tile = self.tile(block, key_head, rows);
                self.gather(self.queries, &tile, &mut queries);
                scale(&mut queries, self.shape.scale());
                self.scores(&tile, &queries, &mut scores);
                factors.clear();
                self.for_each_query(&tile, |index, row, member| {
                    let scores = &mut scores[index * KEY_BLOCK..][tile.columns()];
                    let [maximum, sum] = &mut statistics[place(row, member)];
                    factors.push(absorb_scores(scores, maximum, sum));
                });
                let values = |place| self.page(block, place).values(self.layer, key_head);
                self.weighted_sum(&tile, &scores, values, &mut attended);
                self.for_each_query(&tile, |index, row, member| {
                    let out = &mut out[place(row, member) * dim..][..dim];
                    scale_add(out, factors[index], &attended[index * dim..][..dim]);
                });
            });
        }
        for (out, [_, sum]) in out.chunks_exact_mut(dim).zip(&mut statistics) {
            *sum = 1.0 / *sum;
            scale(out, *sum);
        }
        (out, statistics)
    }

    /// Gradients of the queries of a key head, `[row, group, head_dim]`, and of the biases,
    /// `[group, 2]`; those of keys and values, `[page, PAGE, head_dim]`, are added to.
    fn backward_head(
        &self,
        key_head: usize,
        statistics: &SoftmaxStatistics,
        out: &[f32],
        dout: &[f32],
        dkeys: &mut [f32],
        dvalues: &mut [f32],
    ) -> (Vec<f32>, Vec<f32>) {
        let (heads, dim, group) = (self.shape.heads, self.shape.head_dim, self.shape.group());
        let all = 0..self.positions.len();
        let head = |row: usize, member: usize| row * heads + key_head * group + member;
        // What the probabilities of a query share.
        let shared: Vec<f32> = all
            .clone()
            .flat_map(|row| (0..group).map(move |member| head(row, member) * dim))
            .map(|start| dot(&out[start..start + dim], &dout[start..start + dim]))
            .collect();
        let mut dqueries = vec![0.0; all.len() * group * dim];
        let mut dbias = vec![0.0; 2 * group];
        let (mut queries, mut douts, mut dtile) = (Vec::new(), Vec::new(), Vec::new());
        let (mut scores, mut dscores, mut panels) = (Vec::new(), Vec::new(), Vec::new());
        let (mut key_rows, mut value_columns) = (Vec::new(), Vec::new());
        for block in self.blocks {
            self.unpack(block, key_head, &mut key_rows, &mut value_columns);
            block.for_each_tile(&all, self.shape.tile_rows(), &mut |rows| {
                let tile = self.tile(block, key_head, rows);
                self.gather(self.queries, &tile, &mut queries);
                scale(&mut queries, self.shape.scale());
                self.gather(dout, &tile, &mut douts);
                // 1. Probabilities [query, key].
                self.scores(&tile, &queries, &mut scores);
                self.for_each_query(&tile, |index, row, member| {
                    let scores = &mut scores[index * KEY_BLOCK..][tile.columns()];
                    let [maximum, inverse_sum] = statistics[head(row, member)];
                    exp_scores_with(scores, maximum, inverse_sum);
                });
                // 2. dV [key, dim] += P^T dout.
                self.pack(&douts, &mut panels);
                self.add_to_keys(&tile, &scores, &panels, dvalues);
                // 3. dS [query, key] = P * (dout V^T - D).
                let columns = |place: usize| &value_columns[place * dim * PAGE..][..dim * PAGE];
                self.products(&tile, &douts, columns, &mut dscores);
                self.for_each_query(&tile, |index, row, member| {
                    let columns = tile.columns();
                    let dscores = &mut dscores[index * KEY_BLOCK..][columns.clone()];
                    let scores = &scores[index * KEY_BLOCK..][columns];
                    softmax_backward(dscores, scores, shared[row * group + member]);
                });
                if !self.match_bias.is_empty() {
                    self.for_each_query(&tile, |index, row, member| {
                        let dbias = &mut dbias[2 * member..2 * member + 2];
                        let dscores = &dscores[index * KEY_BLOCK..][..KEY_BLOCK];
                        let seen = self.seen(&tile, row);
                        let tokens = &block.tokens[seen.start..=seen.end];
                        let own = self.positions[row] + 1 - block.start == seen.end;
                        add_bias_gradient(&dscores[seen], tokens, self.tokens[row], own, dbias);
                    });
                }
                // 4. dQ [query, dim] += dS K and dK [key, dim] += dS^T Q.
                let len = dim.next_multiple_of(WIDE) * PAGE;
                let key_rows = |place: usize| &key_rows[place * len..][..len];
                self.weighted_sum(&tile, &dscores, key_rows, &mut dtile);
                self.for_each_query(&tile, |index, row, member| {
                    let target = &mut dqueries[(row * group + member) * dim..][..dim];
                    add_scaled(target, self.shape.scale(), &dtile[index * dim..][..dim]);
                });
                self.pack(&queries, &mut panels);
                self.add_to_keys(&tile, &dscores, &panels, dkeys);
            });
        }
        (dqueries, dbias)
    }

    fn tile<'b>(&self, block: &'b KeyBlock, key_head: usize, rows: &'b [usize]) -> Tile<'b> {
        let positions = rows.iter().map(|row| self.positions[*row]);
        let (first, last) = positions.fold((usize::MAX, 0), |(first, last), position| {
            (first.min(position), last.max(position))
        });
        let hidden = (first + 1).saturating_sub(self.shape.window).saturating_sub(block.start);
        let visible = (last + 1 - block.start).min(KEY_BLOCK);
        let pages = hidden / PAGE..visible.div_ceil(PAGE);
        Tile { block, key_head, rows, pages, visible }
    }

    fn page(&self, block: &KeyBlock, place: usize) -> &Page {
        &self.pages[block.pages[place] as usize]
    }

    /// The keys of the tile's block that a row sees.
    fn seen(&self, tile: &Tile<'_>, row: usize) -> Range<usize> {
        let (start, end) = (tile.block.start, self.positions[row] + 1);
        end.saturating_sub(self.shape.window).saturating_sub(start)..(end - start).min(KEY_BLOCK)
    }

    /// Calls `visit` with the index of every query in a tile, its row, and which of the heads of
    /// the key head it is.
    fn for_each_query(&self, tile: &Tile<'_>, mut visit: impl FnMut(usize, usize, usize)) {
        let group = self.shape.group();
        for (i, row) in tile.rows.iter().enumerate() {
            for j in 0..group {
                visit(i * group + j, *row, j);
            }
        }
    }

    /// The queries of a tile, or what has their shape, one after the other.
    fn gather(&self, source: &[f32], tile: &Tile<'_>, out: &mut Vec<f32>) {
        let len = self.shape.group() * self.shape.head_dim;
        let width = self.shape.heads * self.shape.head_dim;
        out.clear();
        for row in tile.rows {
            out.extend_from_slice(&source[row * width + tile.key_head * len..][..len]);
        }
    }

    /// `[query, head_dim]` as panels of [`WIDE`] channels.
    fn pack(&self, rows: &[f32], panels: &mut Vec<f32>) {
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
    fn scores(&self, tile: &Tile<'_>, queries: &[f32], scores: &mut Vec<f32>) {
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
    fn products<'b>(
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
    fn weighted_sum<'b>(
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
    fn add_to_keys(&self, tile: &Tile<'_>, weights: &[f32], panels: &[f32], out: &mut [f32]) {
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
    fn unpack(
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

per_isa! {
/// Adds the bias to the scores of a query with `token`; `tokens` are the one before the first key
/// and those of the keys, the last of which is the query's own where `own` says so.
fn add_bias(scores: &mut [f32], tokens: &[u32], token: u32, own: bool, bias: &[f32]) {
    let (same, next) = (bias[0], bias[1]);
    let earlier = scores.len() - usize::from(own);
    for ((score, key), previous) in
        scores[..earlier].iter_mut().zip(&tokens[1..]).zip(tokens)
    {
        let matched = if *key == token { same } else { 0.0 };
        let followed = if *previous == token { next } else { 0.0 };
        *score += matched + followed;
    }
    // A query does not match itself.
    if own && tokens[earlier] == token {
        scores[earlier] += next;
    }
}
}

per_isa! {
/// Collects the gradient of the bias from those of the scores it was added to.
fn add_bias_gradient(dscores: &[f32], tokens: &[u32], token: u32, own: bool, dbias: &mut [f32]) {
    let (mut same, mut next) = (0.0, 0.0);
    let earlier = dscores.len() - usize::from(own);
    for ((d, key), previous) in dscores[..earlier].iter().zip(&tokens[1..]).zip(tokens) {
        same += if *key == token { *d } else { 0.0 };
        next += if *previous == token { *d } else { 0.0 };
    }
    if own && tokens[earlier] == token {
        next += dscores[earlier];
    }
    dbias[0] += same;
    dbias[1] += next;
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gradient_check::{assert_gradient, numbers};
    use crate::ops::page::{NO_TOKEN, PageShape};

    struct Case {
        shape: AttentionShape,
        queries: Vec<f32>,
        keys: Vec<f32>,
        values: Vec<f32>,
        bias: Vec<f32>,
        tokens: Vec<u32>,
    }

    /// Heads 0 and 1 share a key head, and 2 and 3.
    fn case(rows: usize, head_dim: usize, window: usize) -> Case {
        Case {
            shape: AttentionShape { heads: 4, key_heads: 2, head_dim, window },
            queries: numbers(rows * 4 * head_dim, 0.31),
            keys: numbers(rows * 2 * head_dim, 0.17),
            values: numbers(rows * 2 * head_dim, 0.71),
            bias: numbers(8, 0.4),
            tokens: (0..rows).map(|i| (i * i % 5) as u32).collect(),
        }
    }

    impl Case {
        fn pages(&self) -> Vec<Arc<Page>> {
            let (key_heads, head_dim) = (self.shape.key_heads, self.shape.head_dim);
            let shape = PageShape { layers: 1, key_heads, head_dim };
            let width = key_heads * head_dim;
            let count = self.tokens.len().div_ceil(PAGE);
            let mut pages: Vec<Page> = (0..count).map(|_| Page::new(shape)).collect();
            let rows = self.keys.chunks_exact(width).zip(self.values.chunks_exact(width));
            for (row, (keys, values)) in rows.enumerate() {
                pages[row / PAGE].write(0, row % PAGE, keys, values);
            }
            pages.into_iter().map(Arc::new).collect()
        }

        /// Blocks of the rows from `first` on.
        fn blocks(&self, first: usize) -> Vec<KeyBlock> {
            let rows = self.tokens.len();
            let shifted: Vec<u32> =
                std::iter::once(NO_TOKEN).chain(self.tokens.iter().copied()).collect();
            let block = |start: usize| KeyBlock {
                start,
                pages: (start / PAGE..rows.min(start + KEY_BLOCK).div_ceil(PAGE))
                    .map(|page| page as u32)
                    .collect(),
                rows: std::iter::once(
                    first.max(start) - first
                        ..rows
                            .min((start + KEY_BLOCK - 1).saturating_add(self.shape.window))
                            .saturating_sub(first),
                )
                .collect(),
                tokens: shifted[start..rows.min(start + KEY_BLOCK) + 1].to_vec(),
            };
            let blocks = (0..rows).step_by(KEY_BLOCK).map(block);
            blocks.filter(|block| !block.rows[0].is_empty()).collect()
        }

        /// The output and statistics of the rows from `first` on.
        fn forward(&self, first: usize) -> (Vec<f32>, SoftmaxStatistics) {
            let width = self.shape.heads * self.shape.head_dim;
            let positions: Vec<usize> = (first..self.tokens.len()).collect();
            let mut out = vec![7.0; positions.len() * width];
            let mut statistics = Vec::new();
            let attention = Attention {
                shape: self.shape,
                layer: 0,
                blocks: &self.blocks(first),
                pages: &self.pages(),
                positions: &positions,
                tokens: &self.tokens[first..],
                queries: &self.queries[first * width..],
                match_bias: &self.bias,
            };
            attention.forward(&mut out, &mut statistics);
            (out, statistics)
        }
    }

    #[test]
    fn rows_equal_their_definition() {
        for (rows, head_dim, window) in
            [(70, 6, usize::MAX), (300, 34, usize::MAX), (300, 6, 20), (300, 6, 150)]
        {
            let case = case(rows, head_dim, window);
            let (out, _) = case.forward(0);
            for row in [0, 1, 31, 32, 47, 48, 69, 127, 128, 160, 255, 256, 299] {
                if row >= rows {
                    continue;
                }
                for head in 0..4 {
                    let at = |data: &[f32], j: usize| -> Vec<f32> {
                        data[(j * 2 + head / 2) * head_dim..][..head_dim].to_vec()
                    };
                    let q = &case.queries[(row * 4 + head) * head_dim..][..head_dim];
                    let first = (row + 1).saturating_sub(window);
                    let scores: Vec<f64> = (first..=row)
                        .map(|j| {
                            let product = q.iter().zip(at(&case.keys, j)).map(|(q, k)| q * k);
                            let mut score =
                                f64::from(product.sum::<f32>()) / (head_dim as f64).sqrt();
                            if j < row && case.tokens[j] == case.tokens[row] {
                                score += f64::from(case.bias[2 * head]);
                            }
                            if j > 0 && case.tokens[j - 1] == case.tokens[row] {
                                score += f64::from(case.bias[2 * head + 1]);
                            }
                            score.exp()
                        })
                        .collect();
                    let sum: f64 = scores.iter().sum();
                    for d in 0..head_dim {
                        let expected: f64 = (first..=row)
                            .map(|j| scores[j - first] * f64::from(at(&case.values, j)[d]))
                            .sum::<f64>()
                            / sum;
                        let found = out[(row * 4 + head) * head_dim + d];
                        assert!((f64::from(found) - expected).abs() < 2e-5, "{row} {head} {d}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_part_of_the_rows_gives_the_same_bits() {
        for window in [usize::MAX, 40, 3] {
            let case = case(290, 6, window);
            let (all, _) = case.forward(0);
            for first in [1, 31, 32, 33, 64, 127, 128, 129, 200, 289] {
                assert_eq!(case.forward(first).0, all[first * 24..], "{first}");
            }
        }
    }

    #[test]
    fn gradient_of_attention() {
        for (rows, head_dim, window) in [(9, 6, usize::MAX), (9, 6, 3), (7, 34, usize::MAX)] {
            let case = case(rows, head_dim, window);
            let dout = numbers(case.queries.len(), 0.53);
            let (out, statistics) = case.forward(0);
            let mut dq = vec![0.0; case.queries.len()];
            let (mut dk, mut dv) = (vec![0.0; PAGE * 2 * head_dim], vec![0.0; PAGE * 2 * head_dim]);
            let mut db = vec![0.0; 8];
            let positions: Vec<usize> = (0..rows).collect();
            let attention = Attention {
                shape: case.shape,
                layer: 0,
                blocks: &case.blocks(0),
                pages: &case.pages(),
                positions: &positions,
                tokens: &case.tokens,
                queries: &case.queries,
                match_bias: &case.bias,
            };
            let mut gradients = AttentionGradients {
                queries: &mut dq,
                keys: &mut dk,
                values: &mut dv,
                match_bias: &mut db,
            };
            attention.backward(&statistics, &out, &dout, &mut gradients);
            let loss = |queries: &[f32], keys: &[f32], values: &[f32], bias: &[f32]| {
                let case = Case {
                    shape: case.shape,
                    queries: queries.to_vec(),
                    keys: keys.to_vec(),
                    values: values.to_vec(),
                    bias: bias.to_vec(),
                    tokens: case.tokens.clone(),
                };
                f64::from(dot(&case.forward(0).0, &dout))
            };
            let Case { queries, keys, values, bias, .. } = &case;
            let len = keys.len();
            assert_gradient(queries, &dq, |x| loss(x, keys, values, bias));
            // From `[key_head, PAGE, head_dim]` to `[row, key_head, head_dim]`.
            let by_row = |of_pages: &[f32]| -> Vec<f32> {
                let element = |i: usize| {
                    let (row, rest) = (i / (2 * head_dim), i % (2 * head_dim));
                    of_pages[(rest / head_dim * PAGE + row) * head_dim + rest % head_dim]
                };
                (0..len).map(element).collect()
            };
            assert_gradient(keys, &by_row(&dk), |x| loss(queries, x, values, bias));
            assert_gradient(values, &by_row(&dv), |x| loss(queries, keys, x, bias));
            assert_gradient(bias, &db, |x| loss(queries, keys, values, x));
        }
    }
}
