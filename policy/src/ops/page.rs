//! Keys and values of adjacent tokens, in the layout of matrix products.

use super::kernel::WIDE;
use crate::cuda::{DeviceError, DevicePage};

/// Tokens of a page; a page begins at a multiple of it.
pub(crate) const PAGE: usize = WIDE;

/// Token that stands where there is none; equal to no token.
pub(crate) const NO_TOKEN: u32 = u32::MAX;

/// What a page has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageShape {
    pub(crate) layers: usize,
    pub(crate) key_heads: usize,
    pub(crate) head_dim: usize,
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
    pub(crate) fn bytes(self) -> usize {
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
#[derive(Debug)]
pub(crate) struct Page {
    shape: PageShape,
    /// [`NO_TOKEN`] where there is none.
    pub(crate) tokens: [u32; PAGE],
    /// Per layer and head, a panel of keys and then panels of values; empty for a page on a device.
    data: Box<[f32]>,
    /// Where the keys and values are, if not in `data`.
    pub(crate) device: Option<DevicePage>,
}

impl Page {
    pub(crate) fn new(shape: PageShape) -> Self {
        let data = vec![0.0; shape.layers * shape.layer_len()].into_boxed_slice();
        Self { shape, tokens: [NO_TOKEN; PAGE], data, device: None }
    }

    /// A page whose keys and values are on a device.
    pub(crate) fn on_device(shape: PageShape, device: DevicePage) -> Self {
        Self { shape, tokens: [NO_TOKEN; PAGE], data: Box::default(), device: Some(device) }
    }

    /// A page of its own with the same content.
    pub(crate) fn copied(&self) -> Result<Self, DeviceError> {
        let device = self.device.as_ref().map(DevicePage::copied).transpose()?;
        Ok(Self { shape: self.shape, tokens: self.tokens, data: self.data.clone(), device })
    }

    /// `[head_dim, PAGE]`.
    pub(crate) fn keys(&self, layer: usize, key_head: usize) -> &[f32] {
        let start = self.shape.keys_start(layer, key_head);
        &self.data[start..start + self.shape.keys_len()]
    }

    /// Per [`WIDE`] channels of the head `[PAGE, WIDE]`.
    pub(crate) fn values(&self, layer: usize, key_head: usize) -> &[f32] {
        let start = self.shape.keys_start(layer, key_head) + self.shape.keys_len();
        &self.data[start..start + self.shape.values_len()]
    }

    /// Writes the keys and the values, `[key_heads, head_dim]` each, of the token in `column`.
    pub(crate) fn write(&mut self, layer: usize, column: usize, keys: &[f32], values: &[f32]) {
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
    pub(crate) fn copy_layer(&mut self, layer: usize, from: &Self) {
        let len = self.shape.layer_len();
        let range = layer * len..(layer + 1) * len;
        self.data[range.clone()].copy_from_slice(&from.data[range]);
    }
}
