//! A named, versioned set of tasks with splits.

use serde::{Deserialize, Serialize};

use crate::{SuiteError, Task};

/// What identifies a suite in a run's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteManifest {
    /// Its name.
    pub name: String,
    /// Its version, as its author counts.
    pub version: String,
    /// Hash of all that determines its tasks, 64 hexadecimal digits.
    pub content_hash: String,
    /// Names and sizes of its splits.
    pub splits: Vec<(String, usize)>,
}

/// A stretch of a split that has a share of its own in what is drawn from it, as each suite of a
/// [`Mixture`](crate::Mixture) has.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// What it is called in reports.
    pub name: String,
    /// How many tasks it has, which lie behind those of the shares before it.
    pub len: usize,
    /// How much of what is drawn comes from it, relative to the other weights; positive.
    pub weight: f64,
    /// How often each of its tasks is drawn at the most; behind that the others take up its share. Absent: without end.
    pub epochs: Option<u32>,
}

/// A named, versioned set of tasks with splits.
pub trait Suite: Send + Sync {
    /// What identifies it.
    fn manifest(&self) -> &SuiteManifest;

    /// One line on what it is about.
    fn about(&self) -> &str;

    /// Whether its tasks are for evaluation alone, so that nothing is trained on them. Default false.
    fn is_for_evaluation(&self) -> bool {
        false
    }

    /// Makes task `index` of `split`, which [`Suite::task`] has found to be there.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when it cannot be read.
    ///
    /// # Panics
    ///
    /// May panic where there is no such split or index.
    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError>;

    /// What task `index` of `split` has in common with others, such as its family, where that is
    /// known without playing it. Stretches and samples of [`ShuffledTasks`](crate::ShuffledTasks)
    /// have of every stratum what its share is. By default nothing is known.
    ///
    /// # Panics
    ///
    /// May panic where there is no such split or index.
    fn stratum(&self, _split: &str, _index: usize) -> Option<String> {
        None
    }

    /// The shares of a split that is mixed from several stretches, in their order; empty where it is of one piece, which
    /// is the default.
    fn shares(&self, _split: &str) -> Vec<Share> {
        Vec::new()
    }

    /// The first tasks of a split, by their indices: one of every kind that a machine has to be made ready for, such as of
    /// every [share](Self::shares), or of every set of tools. They are tried out before others are played. Default: the
    /// first of all, if there is any.
    fn firsts(&self, split: &str) -> Vec<usize> {
        (0..self.len(split).unwrap_or(0)).take(1).collect()
    }

    /// The [share](Share::name) that the task with this id is of; absent where nothing is mixed, which is the default.
    fn share_of(&self, _id: &str) -> Option<&str> {
        None
    }

    /// Task `index` of `split`, counted from 0.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when there is no such split or index, or it cannot be read.
    fn task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let len = self.len(split)?;
        if index < len {
            return self.make_task(split, index);
        }
        let (suite, split) = (self.manifest().name.clone(), split.to_owned());
        Err(SuiteError::OutOfRange { suite, split, index, len })
    }

    /// The task with this id, as a trajectory names it.
    ///
    /// # Errors
    ///
    /// [`SuiteError::UnknownTask`] when the suite has none.
    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let manifest = self.manifest();
        let place = id.strip_prefix(manifest.name.as_str()).and_then(|rest| {
            let (split, index) = rest.strip_prefix('/')?.rsplit_once('/')?;
            Some((split, index.parse().ok()?))
        });
        let task = place.and_then(|(split, index)| self.task(split, index).ok());
        task.filter(|task| task.id == id).ok_or_else(|| SuiteError::UnknownTask {
            suite: manifest.name.clone(),
            id: id.to_owned(),
        })
    }

    /// How many tasks `split` has.
    ///
    /// # Errors
    ///
    /// [`SuiteError::UnknownSplit`] names the splits there are.
    fn len(&self, split: &str) -> Result<usize, SuiteError> {
        let manifest = self.manifest();
        manifest.splits.iter().find(|(name, _)| name == split).map(|(_, len)| *len).ok_or_else(
            || SuiteError::UnknownSplit {
                suite: manifest.name.clone(),
                split: split.to_owned(),
                known: manifest
                    .splits
                    .iter()
                    .map(|(name, _)| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
            },
        )
    }
}

/// The task of an id `NAME/SPLIT/KEY` where files give keys: `by_key` tells the index of a split's key, and a key that it does not
/// know may be an index.
pub(crate) fn task_by_key(
    suite: &dyn Suite,
    name: &str,
    id: &str,
    by_key: impl Fn(&str, &str) -> Option<usize>,
) -> Result<Task, SuiteError> {
    let find = || {
        let (split, key) = id.strip_prefix(name)?.strip_prefix('/')?.rsplit_once('/')?;
        let index = by_key(split, key).or_else(|| key.parse().ok())?;
        suite.task(split, index).ok().filter(|task| task.id == id)
    };
    find().ok_or_else(|| SuiteError::UnknownTask {
        suite: suite.manifest().name.clone(),
        id: id.to_owned(),
    })
}
