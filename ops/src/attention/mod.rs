//! Causal attention of tokens over pages of keys and values, without a score matrix in memory.
//!
//! Keys are met in blocks of [`KEY_BLOCK`] whose borders are multiples of it, in ascending order;
//! between blocks a token keeps the maximum and the sum of its softmax (Dao et al. 2022). So a
//! token's result depends on nothing but its own query and the keys it sees, to the bit: not on how
//! its sequence was cut into calls, and not on which other tokens see the same keys.
mod bias;
#[cfg(test)]
mod tests;
mod tile;

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use self::bias::add_bias_gradient;
use super::elementwise::{
    absorb_scores, add_scaled, dot, exp_scores_with, scale, scale_add, softmax_backward,
};
use super::kernel::WIDE;
use super::page::{PAGE, Page};
use super::parallel;

/// Pages of a block of keys.
pub const BLOCK_PAGES: usize = 4;

/// Keys between two borders; fixed, because it takes part in the rounding.
pub const KEY_BLOCK: usize = BLOCK_PAGES * PAGE;

/// Queries that are worked off together, those of all heads of a key head counted.
const TILE: usize = 48;

/// Multiplications that are worth a piece of their own.
const PIECE_PRODUCTS: usize = 1 << 22;

/// The shape of an attention layer.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Query heads.
    pub heads: usize,
    /// Key-value heads.
    pub key_heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Keys that a query sees, its own included; `usize::MAX` for all before it.
    pub window: usize,
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
pub struct KeyBlock {
    /// Position of the first key.
    pub start: usize,
    /// Up to [`BLOCK_PAGES`].
    pub pages: Vec<u32>,
    /// Each range holds adjacent tokens of one sequence.
    pub rows: Vec<Range<usize>>,
    /// The token before the block and those of its pages; empty where nobody asks for them.
    pub tokens: Vec<u32>,
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
pub type SoftmaxStatistics = Vec<[f32; 2]>;

/// The attention of one layer in one call.
///
/// A query sees the keys of its sequence up to its own position that are nearer than the window.
/// Row `i` has the output `softmax(q k^T / sqrt(head_dim) + bias) v`.
pub struct Attention<'a> {
    /// Heads and their width.
    pub shape: AttentionShape,
    /// The layer, whose keys and values are read from the pages.
    pub layer: usize,
    /// In ascending order of position; every row is in the blocks that hold a key it sees.
    pub blocks: &'a [KeyBlock],
    /// What the blocks' pages are indices of.
    pub pages: Vec<&'a Page>,
    /// Position of every row in its sequence.
    pub positions: &'a [usize],
    /// Token of every row.
    pub tokens: &'a [u32],
    /// `[row, heads, head_dim]`.
    pub queries: &'a [f32],
    /// Two entries per head: the first is added where an earlier key's token equals the query's
    /// token, the second where the token before the key's does. Empty means no bias.
    pub match_bias: &'a [f32],
}

/// What [`Attention::backward`] adds to.
pub struct AttentionGradients<'a> {
    /// `[row, heads, head_dim]`.
    pub queries: &'a mut [f32],
    /// `[key_heads, page, PAGE, head_dim]`.
    pub keys: &'a mut [f32],
    /// `[key_heads, page, PAGE, head_dim]`.
    pub values: &'a mut [f32],
    /// `[heads, 2]`; empty where there is no bias.
    pub match_bias: &'a mut [f32],
}
impl Attention<'_> {
    /// Writes the output, `[row, heads, head_dim]`, and the statistics of every row and head.
    pub fn forward(&self, out: &mut [f32], statistics: &mut SoftmaxStatistics) {
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
    pub fn backward(
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
}
