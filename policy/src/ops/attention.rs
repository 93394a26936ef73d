//! Causal attention of a sequence over its keys and values, without a score matrix in memory.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use super::elementwise::{dot, exp_scores, exp_scores_with, scale, softmax_backward};
use super::kernel::{Left, PANEL, per_isa};
use super::matmul::{Output, Panels, PanelsRef, multiply_strided};

/// Query rows that are worked off together; bounds the memory for scores.
const QUERY_BLOCK: usize = 48;

/// Token that stands before the first one in comparisons; equal to none.
const NO_TOKEN: u32 = u32::MAX;

/// Keys and values of one key-value head of one sequence, in the layout of matrix products.
#[derive(Debug, Clone)]
pub struct HeadCache {
    head_dim: usize,
    len: usize,
    /// Panels of 32 keys each, `[head_dim, 32]`.
    keys: Vec<f32>,
    /// Per 32 channels of the head, one row of 32 per token.
    values: Vec<Vec<f32>>,
}

impl HeadCache {
    /// An empty cache for heads of `head_dim` channels.
    pub fn new(head_dim: usize) -> Self {
        let values = vec![Vec::new(); head_dim.div_ceil(PANEL)];
        Self { head_dim, len: 0, keys: Vec::new(), values }
    }

    /// Appends the key and the value of the next token.
    pub fn push(&mut self, key: &[f32], value: &[f32]) {
        let column = self.len % PANEL;
        if column == 0 {
            self.keys.resize(self.keys.len() + self.head_dim * PANEL, 0.0);
        }
        let panel = self.len / PANEL * self.head_dim * PANEL;
        for (p, key) in key.iter().enumerate() {
            self.keys[panel + p * PANEL + column] = *key;
        }
        for (values, chunk) in self.values.iter_mut().zip(value.chunks(PANEL)) {
            values.extend_from_slice(chunk);
            values.resize(values.len() + PANEL - chunk.len(), 0.0);
        }
        self.len += 1;
    }

    /// Drops the tokens from `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.keys.truncate(len.div_ceil(PANEL) * self.head_dim * PANEL);
            for values in &mut self.values {
                values.truncate(len * PANEL);
            }
        }
    }
}

/// The tokens of a sequence as attention compares them.
#[derive(Debug, Clone)]
pub struct MatchTokens {
    /// Entry `j + 1` is token `j`, entry 0 none.
    shifted: Vec<u32>,
}

impl Default for MatchTokens {
    fn default() -> Self {
        Self { shifted: vec![NO_TOKEN] }
    }
}

impl MatchTokens {
    /// Appends the next token.
    pub fn push(&mut self, token: u32) {
        self.shifted.push(token);
    }

    /// Drops the tokens from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.shifted.truncate(len + 1);
    }
}

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

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }
}

/// Statistics of the softmax of each row and head, `[row, head]`: maximum and inverse sum.
pub type SoftmaxStatistics = Vec<[f32; 2]>;

/// `out = softmax(q k^T / sqrt(head_dim) + bias, causal) v` for the last rows of a sequence.
///
/// `queries` and `out` have the shape `[rows, heads, head_dim]`; the caches already hold the rows'
/// own keys and values, so row `i` stands at position `len - rows + i`. `match_bias` has two
/// entries per head: the first is added where an earlier key's token equals the query's token, the
/// second where the token before the key's does. Empty means no bias.
///
/// A row's result depends on nothing but its own query and the keys before it, to the bit.
pub fn attend(
    shape: AttentionShape,
    queries: &[f32],
    caches: &[HeadCache],
    tokens: &MatchTokens,
    match_bias: &[f32],
    out: &mut [f32],
    statistics: Option<&mut SoftmaxStatistics>,
) {
    let (width, dim) = (shape.width(), shape.head_dim);
    let rows = queries.len() / width;
    let past = caches[0].len - rows;
    let mut scores = Vec::new();
    let mut kept = vec![[0.0; 2]; if statistics.is_some() { rows * shape.heads } else { 0 }];
    for head in 0..shape.heads {
        let cache = &caches[head * shape.key_heads / shape.heads];
        let bias = match_bias.get(2 * head..2 * head + 2);
        for start in (0..rows).step_by(QUERY_BLOCK) {
            let count = QUERY_BLOCK.min(rows - start);
            let visible = past + start + count;
            let stride = visible.next_multiple_of(PANEL);
            let offset = start * width + head * dim;
            raw_scores(shape, &queries[offset..], cache, visible, count, &mut scores);
            for (i, scores) in scores.chunks_exact_mut(stride).enumerate() {
                finish_scores(shape, scores, past + start + i, tokens, bias);
                let (maximum, sum) = exp_scores(scores);
                let inverse_sum = 1.0 / sum;
                scale(scores, inverse_sum);
                if let Some(kept) = kept.get_mut((start + i) * shape.heads + head) {
                    *kept = [maximum, inverse_sum];
                }
            }
            let left = Left { data: &scores, row_stride: stride, column_stride: 1 };
            for (index, values) in cache.values.iter().enumerate() {
                let first = index * PANEL;
                let right = PanelsRef {
                    depth: visible,
                    width: PANEL.min(dim - first),
                    depth_stride: visible,
                    data: values,
                };
                let target = &mut out[offset + first..];
                multiply_strided(left, right, target, width, count, Output::Set);
            }
        }
    }
    if let Some(statistics) = statistics {
        *statistics = kept;
    }
}

/// What [`attend_backward`] writes, in the shapes of the forward inputs.
pub struct AttentionGradients<'a> {
    /// `[rows, heads, head_dim]`, added to.
    pub queries: &'a mut [f32],
    /// `[rows, key_heads, head_dim]`, added to.
    pub keys: &'a mut [f32],
    /// `[rows, key_heads, head_dim]`, added to.
    pub values: &'a mut [f32],
    /// `[heads, 2]`, added to; empty where there is no bias.
    pub match_bias: &'a mut [f32],
}

/// The gradients of [`attend`] over a whole sequence, scores being computed once more.
///
/// With `P` the probabilities and `D = sum(dout * out)` per row and head: `dV = P^T dout`,
/// `dS = P * (dout V^T - D)`, `dQ = dS K / sqrt(head_dim)`, `dK = dS^T Q / sqrt(head_dim)`, and a
/// bias collects `dS` where it was added.
#[expect(clippy::too_many_arguments, reason = "a backward takes all that its forward took")]
pub fn attend_backward(
    shape: AttentionShape,
    queries: &[f32],
    caches: &[HeadCache],
    tokens: &MatchTokens,
    match_bias: &[f32],
    statistics: &SoftmaxStatistics,
    out: &[f32],
    dout: &[f32],
    gradients: AttentionGradients<'_>,
) {
    let (width, dim) = (shape.width(), shape.head_dim);
    let key_width = shape.key_heads * dim;
    let rows = queries.len() / width;
    let factor = shape.scale();
    let AttentionGradients { queries: dqueries, keys: dkeys, values: dvalues, match_bias: dbias } =
        gradients;
    let (mut scores, mut dscores, mut unpacked) = (Vec::new(), Vec::new(), Vec::new());
    let (mut key_rows, mut value_columns, mut block) =
        (Panels::default(), Panels::default(), Panels::default());
    for head in 0..shape.heads {
        let key_head = head * shape.key_heads / shape.heads;
        let cache = &caches[key_head];
        let bias = match_bias.get(2 * head..2 * head + 2);
        // Keys by rows for dQ and values by columns for dP.
        unpack_keys(cache, &mut unpacked);
        key_rows.pack_rows(&unpacked, rows, dim, dim);
        unpack_values(cache, &mut unpacked);
        value_columns.pack_transposed(&unpacked, rows, dim, dim);
        for start in (0..rows).step_by(QUERY_BLOCK) {
            let count = QUERY_BLOCK.min(rows - start);
            let visible = start + count;
            let stride = visible.next_multiple_of(PANEL);
            let offset = start * width + head * dim;
            // 1. Probabilities [count, visible].
            raw_scores(shape, &queries[offset..], cache, visible, count, &mut scores);
            for (i, scores) in scores.chunks_exact_mut(stride).enumerate() {
                finish_scores(shape, scores, start + i, tokens, bias);
                let [maximum, inverse_sum] = statistics[(start + i) * shape.heads + head];
                exp_scores_with(scores, maximum, inverse_sum);
            }
            // 2. dV [visible, dim] += P^T dout.
            let probabilities = Left { data: &scores, row_stride: 1, column_stride: stride };
            block.pack_rows(&dout[offset..], count, dim, width);
            let target = &mut dvalues[key_head * dim..];
            multiply_strided(
                probabilities,
                block.as_ref(),
                target,
                key_width,
                visible,
                Output::Add,
            );
            // 3. dS [count, visible] = P * (dout V^T - D).
            dscores.clear();
            dscores.resize(count * stride, 0.0);
            let left = Left { data: &dout[offset..], row_stride: width, column_stride: 1 };
            let right = PanelsRef { width: visible, ..value_columns.as_ref() };
            multiply_strided(left, right, &mut dscores, stride, count, Output::Set);
            for (i, (dscores, scores)) in
                dscores.chunks_exact_mut(stride).zip(scores.chunks_exact(stride)).enumerate()
            {
                let row = offset + i * width;
                let shared = dot(&dout[row..row + dim], &out[row..row + dim]);
                softmax_backward(dscores, scores, shared);
                if let Some(dbias) = dbias.get_mut(2 * head..2 * head + 2) {
                    add_bias_gradient(dscores, start + i, tokens, dbias);
                }
                scale(dscores, factor);
            }
            // 4. dQ [count, dim] += dS K and dK [visible, dim] += dS^T Q.
            let left = Left { data: &dscores, row_stride: stride, column_stride: 1 };
            let right = PanelsRef { depth: visible, ..key_rows.as_ref() };
            multiply_strided(left, right, &mut dqueries[offset..], width, count, Output::Add);
            let left = Left { data: &dscores, row_stride: 1, column_stride: stride };
            block.pack_rows(&queries[offset..], count, dim, width);
            let target = &mut dkeys[key_head * dim..];
            multiply_strided(left, block.as_ref(), target, key_width, visible, Output::Add);
        }
    }
}

/// `scores[count, visible]` of `count` queries, rows padded to whole panels.
fn raw_scores(
    shape: AttentionShape,
    queries: &[f32],
    cache: &HeadCache,
    visible: usize,
    count: usize,
    scores: &mut Vec<f32>,
) {
    let stride = visible.next_multiple_of(PANEL);
    scores.clear();
    scores.resize(count * stride, 0.0);
    let left = Left { data: queries, row_stride: shape.width(), column_stride: 1 };
    let right = PanelsRef {
        depth: shape.head_dim,
        width: visible,
        depth_stride: shape.head_dim,
        data: &cache.keys,
    };
    multiply_strided(left, right, scores, stride, count, Output::Set);
}

per_isa! {
/// Scales the scores of the query at `position`, adds the bias and masks what it does not see.
fn finish_scores(
    shape: AttentionShape,
    scores: &mut [f32],
    position: usize,
    tokens: &MatchTokens,
    bias: Option<&[f32]>,
) {
    let (seen, later) = scores.split_at_mut(position + 1);
    later.fill(f32::NEG_INFINITY);
    let hidden = (position + 1).saturating_sub(shape.window);
    let factor = shape.scale();
    let Some(bias) = bias else {
        for score in seen {
            *score *= factor;
        }
        scores[..hidden].fill(f32::NEG_INFINITY);
        return;
    };
    let token = tokens.shifted[position + 1];
    let (own, before) = (bias[0], bias[1]);
    let (last, earlier) = seen.split_last_mut().expect("a query sees itself");
    for ((score, key), previous) in
        earlier.iter_mut().zip(&tokens.shifted[1..]).zip(&tokens.shifted)
    {
        let matched = if *key == token { own } else { 0.0 };
        let followed = if *previous == token { before } else { 0.0 };
        *score = *score * factor + (matched + followed);
    }
    let followed = if tokens.shifted[position] == token { before } else { 0.0 };
    *last = *last * factor + followed;
    scores[..hidden].fill(f32::NEG_INFINITY);
}
}

per_isa! {
/// Collects the gradient of the bias from those of the scores it was added to.
fn add_bias_gradient(dscores: &[f32], position: usize, tokens: &MatchTokens, dbias: &mut [f32]) {
    let token = tokens.shifted[position + 1];
    let (mut own, mut before) = (0.0, 0.0);
    for ((d, key), previous) in
        dscores[..position].iter().zip(&tokens.shifted[1..]).zip(&tokens.shifted)
    {
        own += if *key == token { *d } else { 0.0 };
        before += if *previous == token { *d } else { 0.0 };
    }
    if tokens.shifted[position] == token {
        before += dscores[position];
    }
    dbias[0] += own;
    dbias[1] += before;
}
}

fn unpack_keys(cache: &HeadCache, out: &mut Vec<f32>) {
    out.clear();
    out.resize(cache.len * cache.head_dim, 0.0);
    for (j, row) in out.chunks_exact_mut(cache.head_dim).enumerate() {
        let panel = j / PANEL * cache.head_dim * PANEL + j % PANEL;
        for (p, value) in row.iter_mut().enumerate() {
            *value = cache.keys[panel + p * PANEL];
        }
    }
}

fn unpack_values(cache: &HeadCache, out: &mut Vec<f32>) {
    out.clear();
    out.resize(cache.len * cache.head_dim, 0.0);
    for (j, row) in out.chunks_exact_mut(cache.head_dim).enumerate() {
        for (chunk, values) in row.chunks_mut(PANEL).zip(&cache.values) {
            chunk.copy_from_slice(&values[j * PANEL..j * PANEL + chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gradient_check::{assert_gradient, numbers};

    const SHAPE: AttentionShape =
        AttentionShape { heads: 4, key_heads: 2, head_dim: 6, window: usize::MAX };

    struct Case {
        queries: Vec<f32>,
        keys: Vec<f32>,
        values: Vec<f32>,
        bias: Vec<f32>,
        tokens: MatchTokens,
        rows: usize,
    }

    fn case(rows: usize) -> Case {
        let mut tokens = MatchTokens::default();
        (0..rows).for_each(|i| tokens.push((i * i % 5) as u32));
        Case {
            queries: numbers(rows * 24, 0.31),
            keys: numbers(rows * 12, 0.17),
            values: numbers(rows * 12, 0.71),
            bias: numbers(8, 0.4),
            tokens,
            rows,
        }
    }

    fn caches(keys: &[f32], values: &[f32]) -> Vec<HeadCache> {
        let mut caches = vec![HeadCache::new(6); 2];
        for (keys, values) in keys.chunks_exact(12).zip(values.chunks_exact(12)) {
            for (i, cache) in caches.iter_mut().enumerate() {
                cache.push(&keys[i * 6..i * 6 + 6], &values[i * 6..i * 6 + 6]);
            }
        }
        caches
    }

    fn forward(case: &Case, bias: &[f32]) -> (Vec<f32>, SoftmaxStatistics) {
        let mut out = vec![0.0; case.queries.len()];
        let mut statistics = Vec::new();
        let caches = caches(&case.keys, &case.values);
        attend(SHAPE, &case.queries, &caches, &case.tokens, bias, &mut out, Some(&mut statistics));
        (out, statistics)
    }

    #[test]
    fn rows_equal_their_definition() {
        let case = case(70);
        let (out, _) = forward(&case, &case.bias);
        for row in [0, 1, 47, 48, 69] {
            for head in 0..4 {
                let q = &case.queries[row * 24 + head * 6..][..6];
                let scores: Vec<f64> = (0..=row)
                    .map(|j| {
                        let k = &case.keys[j * 12 + head / 2 * 6..][..6];
                        let product: f32 = q.iter().zip(k).map(|(q, k)| q * k).sum();
                        let token = |i: usize| i * i % 5;
                        let mut score = f64::from(product) / 6.0_f64.sqrt();
                        if j < row && token(j) == token(row) {
                            score += f64::from(case.bias[2 * head]);
                        }
                        if j > 0 && token(j - 1) == token(row) {
                            score += f64::from(case.bias[2 * head + 1]);
                        }
                        score.exp()
                    })
                    .collect();
                let sum: f64 = scores.iter().sum();
                for d in 0..6 {
                    let expected: f64 = (0..=row)
                        .map(|j| scores[j] * f64::from(case.values[j * 12 + head / 2 * 6 + d]))
                        .sum::<f64>()
                        / sum;
                    let found = out[row * 24 + head * 6 + d];
                    assert!((f64::from(found) - expected).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn decoding_row_by_row_gives_the_same_bits() {
        let case = case(70);
        let (all, _) = forward(&case, &case.bias);
        for rows in [1, 31, 32, 33, 64, 70] {
            let caches = caches(&case.keys[..rows * 12], &case.values[..rows * 12]);
            let mut out = vec![0.0; 24];
            let query = &case.queries[(rows - 1) * 24..rows * 24];
            attend(SHAPE, query, &caches, &case.tokens, &case.bias, &mut out, None);
            assert_eq!(out, all[(rows - 1) * 24..rows * 24]);
        }
    }

    #[test]
    fn a_truncated_cache_goes_on_like_a_new_one() {
        let case = case(40);
        let mut cut = caches(&case.keys, &case.values);
        cut.iter_mut().for_each(|cache| cache.truncate(10));
        let (keys, values) = (&case.keys[10 * 12..40 * 12], &case.values[10 * 12..40 * 12]);
        for (keys, values) in keys.chunks_exact(12).zip(values.chunks_exact(12)) {
            for (i, cache) in cut.iter_mut().enumerate() {
                cache.push(&keys[i * 6..i * 6 + 6], &values[i * 6..i * 6 + 6]);
            }
        }
        let (expected, _) = forward(&case, &[]);
        let mut out = vec![0.0; 40 * 24];
        attend(SHAPE, &case.queries, &cut, &case.tokens, &[], &mut out, None);
        assert_eq!(out, expected);
    }

    #[test]
    fn gradient_of_attention() {
        let case = case(9);
        let dout = numbers(case.rows * 24, 0.53);
        let (out, statistics) = forward(&case, &case.bias);
        let (mut dq, mut dk) = (vec![0.0; case.queries.len()], vec![0.0; case.keys.len()]);
        let (mut dv, mut db) = (vec![0.0; case.values.len()], vec![0.0; 8]);
        attend_backward(
            SHAPE,
            &case.queries,
            &caches(&case.keys, &case.values),
            &case.tokens,
            &case.bias,
            &statistics,
            &out,
            &dout,
            AttentionGradients {
                queries: &mut dq,
                keys: &mut dk,
                values: &mut dv,
                match_bias: &mut db,
            },
        );
        let loss = |queries: &[f32], keys: &[f32], values: &[f32], bias: &[f32]| {
            let case = Case {
                queries: queries.to_vec(),
                keys: keys.to_vec(),
                values: values.to_vec(),
                bias: bias.to_vec(),
                tokens: case.tokens.clone(),
                rows: case.rows,
            };
            f64::from(dot(&forward(&case, bias).0, &dout))
        };
        let Case { queries, keys, values, bias, .. } = &case;
        assert_gradient(queries, &dq, |x| loss(x, keys, values, bias));
        assert_gradient(keys, &dk, |x| loss(queries, x, values, bias));
        assert_gradient(values, &dv, |x| loss(queries, keys, x, bias));
        assert_gradient(bias, &db, |x| loss(queries, keys, values, x));
    }
}
