//! Keys and values of adjacent tokens, in the layout of matrix products.

use crate::kernel::WIDE;

/// Tokens of a page; a page begins at a multiple of it.
pub const PAGE: usize = WIDE;

/// Token that stands where there is none; equal to no token.
pub const NO_TOKEN: u32 = u32::MAX;

/// What a page has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageShape {
    /// Layers of the decoder.
    pub layers: usize,
    /// Key-value heads of a layer.
    pub key_heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
}

impl PageShape {
    fn keys_len(self) -> usize {
        self.head_dim * PAGE
    }

    fn values_len(self) -> usize {
        self.head_dim.div_ceil(WIDE) * PAGE * WIDE
    }

    fn layer_len(self) -> usize {
        self.key_heads * (self.keys_len() + self.values_len())
    }

    /// Memory of a page.
    pub fn bytes(self) -> usize {
        self.layers * self.layer_len() * size_of::<f32>()
    }

    fn keys_start(self, layer: usize, key_head: usize) -> usize {
        layer * self.layer_len() + key_head * (self.keys_len() + self.values_len())
    }
}

/// Keys and values of [`PAGE`] adjacent tokens, for all layers and key-value heads.
///
/// Places that hold no token yet are zero, or what a token left that was dropped; attention masks
/// them.
#[derive(Debug, Clone)]
pub struct Page {
    shape: PageShape,
    /// [`NO_TOKEN`] where there is none.
    pub tokens: [u32; PAGE],
    /// Per layer and head, a panel of keys and then panels of values; empty where they are elsewhere.
    data: Box<[f32]>,
}

impl Page {
    /// A page without tokens, all zero.
    pub fn new(shape: PageShape) -> Self {
        let data = vec![0.0; shape.layers * shape.layer_len()].into_boxed_slice();
        Self { shape, tokens: [NO_TOKEN; PAGE], data }
    }

    /// A page of tokens whose keys and values are kept elsewhere.
    pub fn of_tokens(shape: PageShape) -> Self {
        Self { shape, tokens: [NO_TOKEN; PAGE], data: Box::default() }
    }

    /// `[head_dim, PAGE]`.
    pub fn keys(&self, layer: usize, key_head: usize) -> &[f32] {
        let start = self.shape.keys_start(layer, key_head);
        &self.data[start..start + self.shape.keys_len()]
    }

    /// Per [`PAGE`] channels of the head `[PAGE, PAGE]`.
    pub fn values(&self, layer: usize, key_head: usize) -> &[f32] {
        let start = self.shape.keys_start(layer, key_head) + self.shape.keys_len();
        &self.data[start..start + self.shape.values_len()]
    }

    /// Writes the keys and the values, `[key_heads, head_dim]` each, of the token in `column`.
    pub fn write(&mut self, layer: usize, column: usize, keys: &[f32], values: &[f32]) {
        let shape = self.shape;
        let heads = keys.chunks_exact(shape.head_dim).zip(values.chunks_exact(shape.head_dim));
        for (key_head, (key, value)) in heads.enumerate() {
            let start = shape.keys_start(layer, key_head);
            for (panel_row, key) in key.iter().enumerate() {
                self.data[start + panel_row * PAGE + column] = *key;
            }
            let start = start + shape.keys_len();
            for (index, chunk) in value.chunks(WIDE).enumerate() {
                let start = start + (index * PAGE + column) * WIDE;
                self.data[start..start + chunk.len()].copy_from_slice(chunk);
            }
        }
    }

    /// Takes over all keys and values of a layer.
    pub fn copy_layer(&mut self, layer: usize, from: &Self) {
        let len = self.shape.layer_len();
        let range = layer * len..(layer + 1) * len;
        self.data[range.clone()].copy_from_slice(&from.data[range]);
    }
}
