use indexmap::IndexMap;

use super::{LogError, MAX_NAME_BYTES, MAX_TESTS};
use crate::TestStatus;

/// Statuses by the name of the test, in the order in which the log first names them.
pub type StatusMap = IndexMap<String, TestStatus>;

/// The map under way: bounded, and spoiled by the first problem.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    map: StatusMap,
    written: usize,
    problem: Option<LogError>,
}

impl Statuses {
    /// What was last said of a test holds.
    pub(crate) fn set(&mut self, name: impl Into<String>, status: TestStatus) {
        let name = name.into();
        if self.has_room(name.len()) {
            self.map.insert(name, status);
            self.check_count();
        }
    }

    /// What was first said of a test holds.
    pub(crate) fn set_default(&mut self, name: impl Into<String>, status: TestStatus) {
        let name = name.into();
        if self.has_room(name.len()) {
            self.map.entry(name).or_insert(status);
            self.check_count();
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<TestStatus> {
        self.map.get(name).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Takes what another one gathered, as if it had been set here.
    pub(crate) fn extend(&mut self, other: Self) {
        self.problem = self.problem.take().or(other.problem);
        for (name, status) in other.map {
            self.set(name, status);
        }
    }

    /// Takes what another one gathered of tests that are not known here.
    pub(crate) fn extend_default(&mut self, other: Self) {
        self.problem = self.problem.take().or(other.problem);
        for (name, status) in other.map {
            self.set_default(name, status);
        }
    }

    /// Whether names of `bytes` may still be written or kept; every name counts, also one that is known, so that
    /// composing long names for the same test again and again ends.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.written = self.written.saturating_add(bytes);
        if self.written > MAX_NAME_BYTES {
            self.spoil(LogError::TooManyTests);
        }
        self.problem.is_none()
    }

    /// The original would have raised here.
    pub(crate) fn raise(&mut self, problem: impl Into<String>) {
        self.spoil(LogError::Malformed { problem: problem.into() });
    }

    pub(crate) fn spoil(&mut self, problem: LogError) {
        self.problem.get_or_insert(problem);
    }

    pub(crate) fn is_spoiled(&self) -> bool {
        self.problem.is_some()
    }

    pub(crate) fn finish(self) -> Result<StatusMap, LogError> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self.map),
        }
    }

    fn check_count(&mut self) {
        if self.map.len() > MAX_TESTS {
            self.spoil(LogError::TooManyTests);
        }
    }
}
