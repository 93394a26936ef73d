//! What stands at the places of a split's shuffled order.

use std::collections::HashSet;

/// A task as a sampler knows it before it is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTask {
    /// The place in the shuffled order.
    pub place: u64,
    /// Its number in the split.
    pub index: usize,
    /// What it has in common with others, such as its family, where that is known.
    pub stratum: Option<String>,
}

/// Which tasks stand where in the shuffled order of a split: every one once an epoch.
pub trait TaskOrder: Sync {
    /// How many tasks the split has.
    fn len(&self) -> usize;

    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tasks at `first..first + count`; none where the split has none.
    fn look(&self, first: u64, count: usize) -> Vec<KnownTask>;

    /// All that is known of the task at a place in words: its instruction and parameters; empty where it cannot be read.
    fn text(&self, place: u64) -> String;
}

/// The next `count` tasks from `next` on, none of them twice, so never more than the split has; `next` moves behind them.
pub(super) fn candidates(order: &dyn TaskOrder, next: &mut u64, count: usize) -> Vec<KnownTask> {
    let count = count.min(order.len());
    let mut met = HashSet::new();
    let mut found = Vec::with_capacity(count);
    // Behind the end of an epoch the next one may begin with tasks of its end.
    for _ in 0..4 {
        let looked = order.look(*next, count - found.len());
        *next += looked.len() as u64;
        found.extend(looked.into_iter().filter(|task| met.insert(task.index)));
        if found.len() == count {
            break;
        }
    }
    found
}
