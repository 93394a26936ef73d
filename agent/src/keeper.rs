//! Keeps what is played as it ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spar_core::{StoreError, Trajectory};

use crate::{Cancellation, CollectionSink, FinishedGroup, JsonlStore};

/// Keeps trajectories as they end, so that whoever ends the process loses none that was played. Where one cannot
/// be kept, it tells the collection to stop: what is played from there on would be lost.
pub struct Keeper<'a> {
    /// The number that the records have as their iteration.
    number: u64,
    /// The number of the first group.
    first_group: usize,
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
        Self { number, first_group: 0, cancellation, state }
    }

    /// The same behind so many groups that stand under this number already.
    #[must_use]
    pub fn behind(self, groups: usize) -> Self {
        Self { first_group: groups, ..self }
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
        if state.failure.is_none()
            && let Err(error) =
                state.store.append_one(self.number, self.first_group + index, trajectory)
        {
            state.failure = Some(error);
            self.cancellation.cancel();
        }
    }

    fn group(&self, _group: FinishedGroup) {}
}
