//! The next tasks of each category.

use serde::{Deserialize, Serialize};

use super::TaskOrder;

/// Tasks that are looked at to learn which categories there are.
const LOOKED_AT: usize = 4_096;
/// Tasks that are looked up together.
const STRETCH: usize = 256;

/// The categories of a split, which are the strata of its tasks, each with the place from which its tasks are taken next.
///
/// A task without a stratum is of the category without a name; one of a stratum that none of the first tasks had is never taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Categories {
    first: u64,
    names: Vec<String>,
    cursors: Vec<u64>,
}

impl Categories {
    pub(super) fn new(first: u64) -> Self {
        Self { first, names: Vec::new(), cursors: Vec::new() }
    }

    /// Learns which ones there are, unless it has; whether there are any.
    pub(super) fn meet(&mut self, order: &dyn TaskOrder) -> bool {
        if self.names.is_empty() {
            let looked = order.look(self.first, order.len().min(LOOKED_AT));
            let names = looked.into_iter().map(|task| task.stratum.unwrap_or_default());
            let mut names: Vec<String> = names.collect();
            names.sort_unstable();
            names.dedup();
            self.cursors = vec![self.first; names.len()];
            self.names = names;
        }
        !self.names.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The next place of a category. Every task of it comes once an epoch.
    pub(super) fn take(&mut self, category: usize, order: &dyn TaskOrder) -> Option<u64> {
        let (name, cursor) = (&self.names[category], &mut self.cursors[category]);
        let mut left = order.len().saturating_mul(2);
        while left > 0 {
            let looked = order.look(*cursor, STRETCH.min(left));
            left -= looked.len().clamp(1, left);
            let found =
                looked.iter().find(|task| task.stratum.as_deref().unwrap_or_default() == name);
            if let Some(task) = found {
                *cursor = task.place + 1;
                return Some(task.place);
            }
            *cursor += looked.len() as u64;
        }
        None
    }

    /// The place behind all that was taken.
    pub(super) fn behind(&self) -> u64 {
        self.cursors.iter().copied().max().unwrap_or(self.first)
    }
}
