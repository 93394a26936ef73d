//! Where groups are kept.

use crate::{Group, TrajectoryError};

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
