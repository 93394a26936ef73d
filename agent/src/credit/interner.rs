//! Small numbers for equal things.

use std::collections::HashMap;
use std::hash::Hash;

/// Gives equal keys equal numbers, counted from 0 in the order they first come.
#[derive(Debug)]
pub(super) struct Interner<K> {
    ids: HashMap<K, u32>,
}

impl<K: Hash + Eq> Interner<K> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { ids: HashMap::with_capacity(capacity) }
    }

    pub(super) fn id(&mut self, key: K) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(key).or_insert(next)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
