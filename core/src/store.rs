//! Where groups are kept.

use crate::{Group, MediaError, TrajectoryError};

/// A trajectory store could not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Reading or writing failed.
    #[error("access `{path}`")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A record in it cannot be used.
    #[error("read record {record} of `{path}`")]
    Record {
        /// The file.
        path: String,
        /// The record, from 1.
        record: usize,
        /// What is wrong with it.
        #[source]
        source: TrajectoryError,
    },
    /// Bytes of it are no record any more; those before and behind them are.
    #[error("read {bytes} bytes of `{path}` from byte {start} on: they are damaged")]
    Damaged {
        /// The file.
        path: String,
        /// Where they begin.
        start: usize,
        /// How many they are.
        bytes: usize,
    },
    /// What is shown in a trajectory cannot be had.
    #[error("use media `{path}`")]
    Media {
        /// The file that has it, or should.
        path: String,
        /// What is wrong with it.
        #[source]
        source: MediaError,
    },
}

impl StoreError {
    /// Whether what comes behind it can still be read.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Record { .. } | Self::Damaged { .. })
    }
}

/// Keeps the groups of a run, in the order they were appended.
pub trait TrajectoryStore: Send {
    /// Appends the groups of one iteration; afterwards they survive a crash.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they could not be kept; the store is then as it was before.
    fn append(&mut self, iteration: u64, groups: &[Group]) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Keeps groups in memory.
    #[derive(Default)]
    struct InMemory(Vec<(u64, Group)>);

    impl TrajectoryStore for InMemory {
        fn append(&mut self, iteration: u64, groups: &[Group]) -> Result<(), StoreError> {
            self.0.extend(groups.iter().map(|group| (iteration, group.clone())));
            Ok(())
        }
    }

    #[test]
    fn a_store_can_be_chosen_at_run_time() {
        let group = Group { task: "suite/train/1".to_owned(), trajectories: Vec::new() };
        let json = serde_json::to_string(&group).unwrap();
        assert_eq!(serde_json::from_str::<Group>(&json).unwrap(), group);
        let mut memory = InMemory::default();
        let store: &mut dyn TrajectoryStore = &mut memory;
        store.append(3, std::slice::from_ref(&group)).unwrap();
        assert_eq!(memory.0, [(3, group)]);
    }

    #[test]
    fn a_bad_record_is_named_with_its_cause() {
        let source = TrajectoryError::Version { found: 9 };
        let error = StoreError::Record { path: "a.zst".to_owned(), record: 2, source };
        assert_eq!(error.to_string(), "read record 2 of `a.zst`");
        let cause = error.source().unwrap().to_string();
        assert_eq!(cause, "read trajectory format 9: this build reads up to 5");
    }
}
