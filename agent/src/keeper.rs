//! Keeps what is played as it ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spar_core::{StoreError, Trajectory};

use crate::{Cancellation, CollectionSink, FinishedGroup, JsonlStore};

/// Keeps trajectories as they end, so that whoever ends the process loses none that was played. Where one cannot
/// be kept, it tells the collection to stop: what is played from there on would be lost.
pub struct Keeper<'a> {
    /// The number that the records have as their iteration.
    number: u64,
    /// The numbers of the groups, as far as they are not those of the collection.
    groups: Vec<usize>,
    cancellation: &'a Cancellation,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    store: &'a mut JsonlStore,
    /// Why nothing is kept any more.
    failure: Option<StoreError>,
}

impl<'a> Keeper<'a> {
    /// Into a store, under this number.
    pub fn new(store: &'a mut JsonlStore, number: u64, cancellation: &'a Cancellation) -> Self {
        let state = Mutex::new(State { store, failure: None });
        Self { number, groups: Vec::new(), cancellation, state }
    }

    /// The same for a collection whose groups have these numbers among all that stand under this one, such as where others were kept before, or
    /// where a group is played on.
    #[must_use]
    pub fn with_groups(self, groups: Vec<usize>) -> Self {
        Self { groups, ..self }
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when a trajectory could not be kept.
    pub fn finish(self) -> Result<(), StoreError> {
        let State { store, failure } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or_else(|| store.sync(), Err)
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CollectionSink for Keeper<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        let mut state = self.state();
        let group = self.groups.get(index).copied().unwrap_or(index);
        if state.failure.is_none()
            && let Err(error) = state.store.append_one(self.number, group, trajectory)
        {
            state.failure = Some(error);
            self.cancellation.cancel();
        }
    }

    fn group(&self, _group: FinishedGroup) {}
}
