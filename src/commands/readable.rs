//! Trajectories that a command reads.

use std::path::Path;

use spar::agent::{JsonlStore, StoreReader, StoredTrajectory};
use spar::core::StoreError;

/// Reads the trajectories at a path that can be read, and warns of what cannot.
pub(crate) struct Readable {
    reader: StoreReader,
    num_unreadable: usize,
    is_silent: bool,
    has_ended: bool,
}

impl Readable {
    /// Those of a store or a shard.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the folder cannot be listed.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let reader = JsonlStore::read(path)?;
        Ok(Self { reader, num_unreadable: 0, is_silent: false, has_ended: false })
    }

    /// The same without warnings, for a second look.
    pub(crate) fn silent(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { is_silent: true, ..Self::open(path)? })
    }

    /// Records and damaged places so far that could not be read, an append that was cut off among them.
    pub(crate) fn num_unreadable(&self) -> usize {
        self.num_unreadable
    }

    fn warn(&mut self, what: &dyn std::fmt::Display) {
        self.num_unreadable += 1;
        if !self.is_silent {
            eprintln!("warning: {what}");
        }
    }
}

impl Iterator for Readable {
    type Item = Result<StoredTrajectory, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next() {
                Some(Err(error)) if error.is_local() => {
                    let error = anyhow::Error::new(error);
                    self.warn(&format_args!("could not {error:#}"));
                }
                Some(stored) => return Some(stored),
                None => {
                    let is_first = !std::mem::replace(&mut self.has_ended, true);
                    let cut_off = self.reader.cut_off().filter(|_| is_first);
                    if let Some((path, bytes)) = cut_off {
                        let path = path.display().to_string();
                        self.warn(&format_args!(
                            "the last {bytes} bytes of `{path}` are a record that was not written to its end"
                        ));
                    }
                    return None;
                }
            }
        }
    }
}
