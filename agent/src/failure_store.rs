//! Failed trajectories, kept to find out why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use spar_core::{Boundary, EndReason, StoreError, Trajectory};

use crate::{JsonlStore, StoreConfig};

/// The folder beside the shards of a store that has the trajectories that failed.
const FOLDER: &str = "failed";

/// Keeps trajectories that failed for reasons of the infrastructure, with their cause, in a folder `failed` beside
/// the others.
///
/// They are never scored nor trained; they are there to be looked at and played again. The folder is a
/// [`JsonlStore`] and is made with the first of them. Clocks and outages decide what is in it, so that equal runs
/// need not have equal ones.
#[derive(Debug)]
pub struct FailureStore {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    store: Option<JsonlStore>,
    iteration: u64,
    /// Why nothing is kept any more.
    error: Option<StoreError>,
}

/// Failed trajectories with the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailureCause {
    /// Where they broke.
    pub boundary: Boundary,
    /// What was reported.
    pub detail: String,
    /// How many there are.
    pub count: usize,
}

impl FailureStore {
    /// For the failed ones beside a store in this folder.
    pub fn beside(trajectories: &Path) -> Self {
        Self { folder: trajectories.join(FOLDER), state: Mutex::default() }
    }

    /// What is kept from here on belongs to this iteration.
    pub fn begin(&self, iteration: u64) {
        self.state().iteration = iteration;
    }

    /// Keeps a trajectory if it failed, other than by being told to stop. What cannot be kept is told by
    /// [`FailureStore::sync`].
    pub fn keep(&self, trajectory: &Trajectory) {
        let is_cause = |boundary| boundary != Boundary::Cancelled;
        let mut state = self.state();
        match trajectory.end {
            EndReason::Failed { boundary, .. } if is_cause(boundary) && state.error.is_none() => {}
            _ => return,
        }
        if let Err(error) = state.append(&self.folder, trajectory) {
            state.error = Some(error);
        }
    }

    /// Waits until all of them are on the disk.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when one of them could not be kept.
    pub fn sync(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        match state.error.take() {
            Some(error) => Err(error),
            None => state.store.as_mut().map_or(Ok(()), JsonlStore::sync),
        }
    }

    /// Forgets those of later iterations, so that a run can go on from there; how many places are damaged.
    ///
    /// # Errors
    ///
    /// As for [`JsonlStore::truncate_after`].
    pub fn truncate_after(&self, iteration: u64) -> Result<usize, StoreError> {
        match self.folder.is_dir() {
            true => self.state().open(&self.folder)?.truncate_after(iteration),
            false => Ok(0),
        }
    }

    /// Counts the failed trajectories beside a store in this folder by their cause, the most frequent first; those
    /// that are damaged have none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be read.
    pub fn causes(trajectories: &Path) -> Result<Vec<FailureCause>, StoreError> {
        let folder = trajectories.join(FOLDER);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut counts: BTreeMap<(String, String), FailureCause> = BTreeMap::new();
        for stored in JsonlStore::read(folder)? {
            let stored = match stored {
                Err(error) if error.is_local() => continue,
                stored => stored?,
            };
            if let EndReason::Failed { boundary, detail } = stored.trajectory.end {
                let key = (format!("{boundary:?}"), detail.clone());
                let cause = FailureCause { boundary, detail, count: 0 };
                counts.entry(key).or_insert(cause).count += 1;
            }
        }
        let mut causes: Vec<_> = counts.into_values().collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        Ok(causes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn append(&mut self, folder: &Path, trajectory: &Trajectory) -> Result<(), StoreError> {
        let iteration = self.iteration;
        // It is in no group; its task is in its record.
        self.open(folder)?.append_one(iteration, 0, trajectory)
    }

    fn open(&mut self, folder: &Path) -> Result<&mut JsonlStore, StoreError> {
        Ok(match &mut self.store {
            Some(store) => store,
            none => none.insert(JsonlStore::open(folder, StoreConfig::default())?),
        })
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{Seat, Seed};

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::strategies::Independent;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
    };

    async fn collect(origin: &FakeEnvironment, failures: &FailureStore) {
        let request = CollectRequest {
            tasks: &[fake_task(0)],
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(1),
            cancellation: &Cancellation::new(),
            on_episode: &|trajectory| failures.keep(trajectory),
        };
        let config = CollectConfig { group_size: 2, refills: 1, ..CollectConfig::default() };
        collect_groups(&request, &config).await;
    }

    #[tokio::test]
    async fn what_failed_is_kept_with_its_cause_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let failures = FailureStore::beside(folder.path());
        failures.begin(1);
        collect(&FakeEnvironment::new(), &failures).await;
        failures.sync().unwrap();
        assert!(!folder.path().join(FOLDER).exists(), "nothing failed");
        assert_eq!(FailureStore::causes(folder.path()).unwrap(), []);

        let mut origin = FakeEnvironment::new();
        origin.breaks_after = Some(1);
        collect(&origin, &failures).await;
        failures.begin(2);
        (origin.breaks_after, origin.panics_after) = (None, Some(2));
        collect(&origin, &failures).await;
        failures.begin(3);
        collect(&origin, &failures).await;
        failures.sync().unwrap();
        let counts = || -> Vec<(usize, String)> {
            let causes = FailureStore::causes(folder.path()).unwrap();
            causes.into_iter().map(|cause| (cause.count, cause.detail)).collect()
        };
        let [(8, panic), (4, broken)] = &counts()[..] else { panic!("{:?}", counts()) };
        assert_eq!(panic, "it panicked: the floor of the corridor gave way");
        assert!(broken.contains("step"), "{broken}");
        // They are read like others, with what was played.
        let kept: Vec<_> =
            JsonlStore::read(folder.path().join(FOLDER)).unwrap().map(Result::unwrap).collect();
        assert_eq!((kept.len(), kept[0].iteration, kept[0].trajectory.turns.len()), (12, 1, 1));
        assert_eq!(JsonlStore::read(folder.path()).unwrap().count(), 0, "not among the others");
        // A run that goes on from its second iteration.
        let resumed = FailureStore::beside(folder.path());
        resumed.truncate_after(2).unwrap();
        assert_eq!(counts().iter().map(|(count, _)| count).sum::<usize>(), 8);
        resumed.begin(3);
        collect(&origin, &resumed).await;
        assert_eq!(counts().iter().map(|(count, _)| count).sum::<usize>(), 12);
    }

    #[tokio::test]
    async fn a_cancelled_episode_is_no_failure_and_what_cannot_be_kept_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let failures = FailureStore::beside(folder.path());
        let mut origin = FakeEnvironment::new();
        origin.breaks_after = Some(0);
        // A file stands where the folder belongs.
        std::fs::write(folder.path().join(FOLDER), "").unwrap();
        collect(&origin, &failures).await;
        assert!(failures.sync().is_err());
        std::fs::remove_file(folder.path().join(FOLDER)).unwrap();
        let cancellation = Cancellation::new();
        cancellation.cancel();
        let (task, player) = (fake_task(0), crate::Player::Oracle { encoder: None });
        let episode = crate::Episode {
            id: 1,
            task: &task,
            player,
            seat: Seat::FIRST,
            seed: Seed::from_u64(1),
            environment_seed: Seed::from_u64(1),
            cancellation: &cancellation,
        };
        let config = crate::EpisodeConfig::default();
        let stopped = crate::run_episode(&mut origin, &episode, &config).await;
        assert!(stopped.is_failed());
        failures.keep(&stopped);
        assert!(!folder.path().join(FOLDER).exists());
    }
}
