use super::*;
use crate::gradient_check::{assert_gradient, numbers};
use crate::page::{NO_TOKEN, PageShape};

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
    fn pages(&self) -> Vec<Page> {
        let (key_heads, head_dim) = (self.shape.key_heads, self.shape.head_dim);
        let shape = PageShape { layers: 1, key_heads, head_dim };
        let width = key_heads * head_dim;
        let count = self.tokens.len().div_ceil(PAGE);
        let mut pages: Vec<Page> = (0..count).map(|_| Page::new(shape)).collect();
        let rows = self.keys.chunks_exact(width).zip(self.values.chunks_exact(width));
        for (row, (keys, values)) in rows.enumerate() {
            pages[row / PAGE].write(0, row % PAGE, keys, values);
        }
        pages
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
        let pages = self.pages();
        let attention = Attention {
            shape: self.shape,
            layer: 0,
            blocks: &self.blocks(first),
            pages: pages.iter().collect(),
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
                        let mut score = f64::from(product.sum::<f32>()) / (head_dim as f64).sqrt();
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
        let pages = case.pages();
        let attention = Attention {
            shape: case.shape,
            layer: 0,
            blocks: &case.blocks(0),
            pages: pages.iter().collect(),
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
