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
    /// By model: what one reads is of no use to another.
    prefixes: Mutex<Vec<Prefixes>>,
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
    /// Room for `limit` tokens, up to `prefix_limit` of them for prefixes, of which every model has an equal part.
    pub(crate) fn new(limit: usize, prefix_limit: usize, engines: usize, models: usize) -> Self {
        let prefixes = || {
            let tree = PrefixTree::new(prefix_limit.min(limit) / models);
            Prefixes { epoch: 0, tree }
        };
        Self {
            limit,
            used: (0..engines).map(|_| AtomicUsize::new(0)).collect(),
            prefixes: Mutex::new((0..models).map(|_| prefixes()).collect()),
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
            shrink(&mut self.lock(), left);
        }
    }

    /// Tokens of conversations.
    pub(crate) fn used(&self) -> usize {
        self.used.iter().map(|used| used.load(Ordering::Relaxed)).sum()
    }

    /// Tokens of prefixes.
    pub(crate) fn kept(&self) -> usize {
        self.lock().iter().map(|prefixes| prefixes.tree.tokens()).sum()
    }

    /// Forgets prefixes of a model's weights before `epoch`.
    pub(crate) fn start_epoch(&self, model: usize, epoch: u64) {
        let prefixes = &mut self.lock()[model];
        if prefixes.epoch < epoch {
            prefixes.epoch = epoch;
            prefixes.tree.clear();
        }
    }

    /// What a model remembers of the first of `tokens`.
    pub(crate) fn find(&self, model: usize, epoch: u64, tokens: &[u32]) -> Option<SequenceCache> {
        let prefixes = &mut self.lock()[model];
        if prefixes.epoch == epoch { prefixes.tree.get(tokens) } else { None }
    }

    /// How many of the first of `tokens` a model remembers.
    pub(crate) fn matching(&self, model: usize, epoch: u64, tokens: &[u32]) -> usize {
        let prefixes = &self.lock()[model];
        if prefixes.epoch == epoch { prefixes.tree.matching(tokens) } else { 0 }
    }

    /// Remembers what a model read under the weights of `epoch`.
    pub(crate) fn keep(&self, model: usize, epoch: u64, cache: SequenceCache) {
        let mut all = self.lock();
        if all[model].epoch == epoch {
            all[model].tree.insert(cache);
            if self.limit < usize::MAX {
                shrink(&mut all, self.limit.saturating_sub(self.used()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Prefixes>> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps at most `left` tokens of all models together, the greatest of them giving way first.
fn shrink(all: &mut [Prefixes], left: usize) {
    let mut kept: usize = all.iter().map(|prefixes| prefixes.tree.tokens()).sum();
    while kept > left
        && let Some(greatest) = all.iter_mut().max_by_key(|prefixes| prefixes.tree.tokens())
    {
        let before = greatest.tree.tokens();
        greatest.tree.shrink(before - before.min(kept - left));
        kept -= before - greatest.tree.tokens();
    }
}
