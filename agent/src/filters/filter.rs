//! The trait of all group filters.

use std::fmt;

use crate::credit::{BatchView, GroupView};

/// Chooses which trajectories of a group are trained.
pub trait GroupFilter: Send + Sync + fmt::Debug {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// Whether each trajectory of `group` is trained; rewards are the shaped ones.
    fn keep(&self, group: &GroupView<'_>) -> Vec<bool>;
}

/// Whether each trajectory of a batch is trained, by its place in it.
pub fn kept(filter: &dyn GroupFilter, batch: &BatchView<'_>) -> Vec<bool> {
    batch.groups().iter().flat_map(|group| filter.keep(group)).collect()
}
