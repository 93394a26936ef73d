//! Room for keys and values.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::prefix_tree::PrefixTree;
use crate::Weights;
use crate::cuda::Number;
use crate::decoder::SequenceCache;

/// Room for keys and values that engines share: what conversations under way need, and, in the
/// rest of it, what was read before.
///
/// Every engine may use its share for conversations; prefixes give way to these.
#[derive(Debug)]
pub(crate) struct KvMemory {
    /// Tokens there is room for.
    limit: usize,
    /// Tokens of conversations, by engine.
    used: Box<[AtomicUsize]>,
    prefixes: Mutex<Prefixes>,
}

#[derive(Debug)]
struct Prefixes {
    /// Counts the publications; memory of other weights is of no use.
    epoch: u64,
    tree: PrefixTree<SequenceCache>,
}

/// Bytes that keys and values of a token take, where the decoder is.
pub(crate) fn bytes_per_token(weights: &Weights) -> usize {
    let config = weights.config();
    let of_number = weights.device_number().map_or(size_of::<f32>(), Number::bytes);
    2 * of_number * config.num_hidden_layers * config.key_width()
}

impl KvMemory {
    /// Room for `limit` tokens, up to `prefix_limit` of them for prefixes.
    pub(crate) fn new(limit: usize, prefix_limit: usize, engines: usize) -> Self {
        let tree = PrefixTree::new(prefix_limit.min(limit));
        Self {
            limit,
            used: (0..engines).map(|_| AtomicUsize::new(0)).collect(),
            prefixes: Mutex::new(Prefixes { epoch: 0, tree }),
        }
    }

    /// Tokens that one engine may use.
    pub(crate) fn share(&self) -> usize {
        self.limit / self.used.len()
    }

    /// Sets what an engine uses; prefixes make room for it.
    pub(crate) fn set_used(&self, engine: usize, tokens: usize) {
        if self.used[engine].swap(tokens, Ordering::Relaxed) < tokens && self.limit < usize::MAX {
            let left = self.limit.saturating_sub(self.used());
            self.lock().tree.shrink(left);
        }
    }

    /// Tokens of conversations.
    pub(crate) fn used(&self) -> usize {
        self.used.iter().map(|used| used.load(Ordering::Relaxed)).sum()
    }

    /// Tokens of prefixes.
    pub(crate) fn kept(&self) -> usize {
        self.lock().tree.tokens()
    }

    /// Forgets prefixes of weights before `epoch`.
    pub(crate) fn start_epoch(&self, epoch: u64) {
        let mut prefixes = self.lock();
        if prefixes.epoch < epoch {
            prefixes.epoch = epoch;
            prefixes.tree.clear();
        }
    }

    /// What is remembered of the first of `tokens`.
    pub(crate) fn find(&self, epoch: u64, tokens: &[u32]) -> Option<SequenceCache> {
        let mut prefixes = self.lock();
        if prefixes.epoch == epoch { prefixes.tree.get(tokens) } else { None }
    }

    /// How many of the first of `tokens` are remembered.
    pub(crate) fn matching(&self, epoch: u64, tokens: &[u32]) -> usize {
        let prefixes = self.lock();
        if prefixes.epoch == epoch { prefixes.tree.matching(tokens) } else { 0 }
    }

    /// Remembers what was read under the weights of `epoch`.
    pub(crate) fn keep(&self, epoch: u64, cache: SequenceCache) {
        let mut prefixes = self.lock();
        if prefixes.epoch == epoch {
            prefixes.tree.insert(cache);
            if self.limit < usize::MAX {
                let left = self.limit.saturating_sub(self.used());
                prefixes.tree.shrink(left);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Prefixes> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
