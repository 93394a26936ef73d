//! What a decoder remembers of a sequence.

use std::sync::Arc;

use spar_ops::page::{PAGE, PageShape};

use super::CachePage;
use crate::Weights;

/// What a decoder remembers of a sequence: its tokens, and the keys and values of every layer.
///
/// Keys and values lie in pages that clones share: a clone costs a pointer per page and a number
/// per token, and the first token that either side adds copies at most one page.
#[derive(Debug, Clone)]
pub struct SequenceCache {
    pub(super) tokens: Vec<u32>,
    pub(super) pages: Vec<Arc<CachePage>>,
    shape: PageShape,
}

impl SequenceCache {
    /// The memory of an empty sequence.
    pub fn new(weights: &Weights) -> Self {
        Self { tokens: Vec::new(), pages: Vec::new(), shape: page_shape(weights) }
    }

    /// The tokens read so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Forgets the tokens from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.pages.truncate(len.div_ceil(PAGE));
    }

    /// Pages of keys and values, whether shared or not.
    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// Pages that no other cache shares.
    pub fn num_own_pages(&self) -> usize {
        self.pages.iter().filter(|page| Arc::strong_count(page) == 1).count()
    }

    /// Memory of a page.
    pub fn page_bytes(&self) -> usize {
        self.shape.bytes()
    }
}

pub(crate) fn page_shape(weights: &Weights) -> PageShape {
    PageShape {
        layers: weights.config.num_hidden_layers,
        key_heads: weights.config.num_key_value_heads,
        head_dim: weights.config.head_dim,
    }
}
