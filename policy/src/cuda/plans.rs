//! What is worked out once and kept, as long as there is room.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by keys, of which the ones not used for the longest time give way.
#[derive(Debug)]
pub(super) struct Plans<K, V> {
    plans: HashMap<K, (u64, V)>,
    most: usize,
    clock: u64,
}

impl<K: Copy + Eq + Hash, V> Plans<K, V> {
    /// Room for `most` of them, at least 2.
    pub(super) fn new(most: usize) -> Self {
        Self { plans: HashMap::new(), most: most.max(2), clock: 0 }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        self.clock += 1;
        let (used, value) = self.plans.get_mut(key)?;
        *used = self.clock;
        Some(value)
    }

    /// Keeps a value; those that give way for it are returned: where there is no room, half of all, so that
    /// they need not be looked for each time.
    pub(super) fn insert(&mut self, key: K, value: V) -> Vec<V> {
        let mut gone = Vec::new();
        if self.plans.len() >= self.most && !self.plans.contains_key(&key) {
            let mut uses: Vec<(u64, K)> =
                self.plans.iter().map(|(key, (used, _))| (*used, *key)).collect();
            let half = uses.len() / 2;
            uses.select_nth_unstable_by_key(half, |(used, _)| *used);
            let old = uses[..half].iter().filter_map(|(_, key)| self.plans.remove(key));
            gone.extend(old.map(|(_, value)| value));
        }
        self.clock += 1;
        gone.extend(self.plans.insert(key, (self.clock, value)).map(|(_, value)| value));
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_bounded_and_what_is_used_stays() {
        let mut plans = Plans::new(100);
        let (mut made, mut gone) = (0, 0);
        for round in 0..10_000_usize {
            // Some shapes come over and over, others once.
            for shape in [round % 8, 1000 + round] {
                if plans.get(&shape).is_none() {
                    made += 1;
                    gone += plans.insert(shape, shape).len();
                }
                assert_eq!(plans.get(&shape), Some(&shape));
                assert!(plans.plans.len() <= 100);
            }
        }
        assert_eq!(made, 8 + 10_000);
        assert_eq!(gone, made - plans.plans.len());
    }
}
