//! Checkpoints: folders that are there whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::{remove_unfinished, sync_all, sync_folder, unfinished_beside};
use super::write_atomically;
use crate::RunFolderError;

const PREFIX: &str = "iteration-";
/// Where an older checkpoint of the same iteration waits while it is replaced.
const REPLACED: &str = ".tmp-replaced";

/// A checkpoint on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Iteration behind which it was made.
    pub iteration: u64,
    /// Its folder.
    pub path: PathBuf,
}

/// A name that a checkpoint was given, such as `best`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMark {
    /// Iteration of the checkpoint.
    pub iteration: u64,
    /// What it is best in, where something was measured.
    pub score: Option<f64>,
}

/// The checkpoints of a run: `iteration-000042/` folders, and marks such as `best.json`.
///
/// A checkpoint is written beside its place and renamed when all of it is on the disk, so that a
/// folder with the right name is whole. The last few are kept, and those that are marked.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep_last: usize,
}

impl Checkpoints {
    /// Opens the folder for writing: creates it where it is missing and removes what a crash left
    /// unfinished. `keep_last` counts at least 1.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when the folder cannot be made or read.
    pub fn open(folder: &Path, keep_last: usize) -> Result<Self, RunFolderError> {
        fs::create_dir_all(folder).map_err(RunFolderError::write(folder))?;
        remove_unfinished(folder)?;
        Ok(Self { folder: folder.to_owned(), keep_last: keep_last.max(1) })
    }

    /// A look at the checkpoints of a run that may be running; changes nothing.
    pub fn view(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), keep_last: usize::MAX }
    }

    /// Writes the checkpoint of an iteration, replacing an older one of the same iteration, then
    /// removes those that are no longer kept. `write` is given the folder to write into.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`]; nothing of the new checkpoint is left then, and the others stay.
    pub fn save(
        &self,
        iteration: u64,
        write: &dyn Fn(&Path) -> io::Result<()>,
    ) -> Result<Checkpoint, RunFolderError> {
        let path = self.path_of(iteration);
        let unfinished = unfinished_beside(&path);
        if let Err(error) = self.write(&path, &unfinished, write) {
            // Best effort: the name says that it may be removed.
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
        self.prune()?;
        Ok(Checkpoint { iteration, path })
    }

    /// All checkpoints, oldest iteration first; none where there is no folder.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Read`].
    pub fn list(&self) -> Result<Vec<Checkpoint>, RunFolderError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RunFolderError::read(&self.folder))?,
        };
        let mut checkpoints = Vec::new();
        for entry in entries {
            let path = entry.map_err(RunFolderError::read(&self.folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(iteration) = name.strip_prefix(PREFIX).and_then(|text| text.parse().ok())
                && path.is_dir()
            {
                checkpoints.push(Checkpoint { iteration, path });
            }
        }
        checkpoints.sort_by_key(|checkpoint| checkpoint.iteration);
        Ok(checkpoints)
    }

    /// The checkpoint of the latest iteration.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Read`].
    pub fn latest(&self) -> Result<Option<Checkpoint>, RunFolderError> {
        Ok(self.list()?.pop())
    }

    /// The checkpoint marked `best`.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::marked`].
    pub fn best(&self) -> Result<Option<Checkpoint>, RunFolderError> {
        Ok(self.marked("best")?.map(|(checkpoint, _)| checkpoint))
    }

    /// The checkpoint with a mark, and the mark; `None` when none has it.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when the mark cannot be read.
    pub fn marked(
        &self,
        name: &str,
    ) -> Result<Option<(Checkpoint, CheckpointMark)>, RunFolderError> {
        let file = self.mark_file(name)?;
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(RunFolderError::read(&file))?,
        };
        let mark: CheckpointMark = serde_json::from_slice(&bytes).map_err(|error| {
            RunFolderError::Malformed { path: file, line: error.line(), detail: error.to_string() }
        })?;
        let path = self.path_of(mark.iteration);
        let checkpoint = Checkpoint { iteration: mark.iteration, path };
        Ok(checkpoint.path.is_dir().then_some((checkpoint, mark)))
    }

    /// Gives a mark to the checkpoint of an iteration, taking it from the one that had it.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Missing`] when there is no such checkpoint, else
    /// [`RunFolderError::Write`].
    pub fn mark(&self, name: &str, mark: &CheckpointMark) -> Result<(), RunFolderError> {
        let path = self.path_of(mark.iteration);
        if !path.is_dir() {
            let source = io::Error::from(io::ErrorKind::NotFound);
            return Err(RunFolderError::Read { path, source });
        }
        let bytes = serde_json::to_vec(mark).expect("a mark can be written as JSON");
        write_atomically(&self.mark_file(name)?, &bytes)?;
        self.prune()
    }

    /// Removes the checkpoints of iterations after `iteration`, and marks on them, so that a run
    /// resumed from there makes them anew.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when something cannot be removed.
    pub fn remove_after(&self, iteration: u64) -> Result<(), RunFolderError> {
        for (file, mark) in self.marks()? {
            if mark.iteration > iteration {
                fs::remove_file(&file).map_err(RunFolderError::write(&file))?;
            }
        }
        for checkpoint in self.list()?.iter().filter(|found| found.iteration > iteration) {
            self.remove(checkpoint)?;
        }
        Ok(())
    }

    fn path_of(&self, iteration: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{iteration:06}"))
    }

    fn mark_file(&self, name: &str) -> Result<PathBuf, RunFolderError> {
        super::run_folder::check_name(name)?;
        Ok(self.folder.join(format!("{name}.json")))
    }

    fn write(
        &self,
        path: &Path,
        unfinished: &Path,
        write: &dyn Fn(&Path) -> io::Result<()>,
    ) -> Result<(), RunFolderError> {
        if unfinished.exists() {
            fs::remove_dir_all(unfinished).map_err(RunFolderError::write(unfinished))?;
        }
        fs::create_dir(unfinished).map_err(RunFolderError::write(path))?;
        // The error names the place the user knows, not the one it is written at first.
        write(unfinished).map_err(RunFolderError::write(path))?;
        sync_all(unfinished).map_err(RunFolderError::write(path))?;
        let replaced = self.folder.join(REPLACED);
        let replace = || {
            if path.exists() {
                fs::rename(path, &replaced)?;
            }
            fs::rename(unfinished, path)?;
            sync_folder(&self.folder)?;
            if replaced.exists() { fs::remove_dir_all(&replaced) } else { Ok(()) }
        };
        replace().map_err(RunFolderError::write(path))
    }

    fn prune(&self) -> Result<(), RunFolderError> {
        let marked: Vec<u64> = self.marks()?.iter().map(|(_, mark)| mark.iteration).collect();
        let checkpoints = self.list()?;
        let surplus = checkpoints.len().saturating_sub(self.keep_last);
        for checkpoint in &checkpoints[..surplus] {
            if !marked.contains(&checkpoint.iteration) {
                self.remove(checkpoint)?;
            }
        }
        Ok(())
    }

    fn marks(&self) -> Result<Vec<(PathBuf, CheckpointMark)>, RunFolderError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RunFolderError::read(&self.folder))?,
        };
        let mut marks = Vec::new();
        for entry in entries {
            let path = entry.map_err(RunFolderError::read(&self.folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(name) = name.strip_suffix(".json").filter(|name| !name.starts_with('.'))
                && let Some((_, mark)) = self.marked(name)?
            {
                marks.push((path, mark));
            }
        }
        Ok(marks)
    }

    fn remove(&self, checkpoint: &Checkpoint) -> Result<(), RunFolderError> {
        // Renamed first, so that a crash cannot leave half a folder under a whole one's name.
        let unfinished = unfinished_beside(&checkpoint.path);
        fs::rename(&checkpoint.path, &unfinished)
            .and_then(|()| fs::remove_dir_all(&unfinished))
            .map_err(RunFolderError::write(&checkpoint.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(checkpoints: &Checkpoints, iteration: u64, text: &str) {
        let write = |folder: &Path| fs::write(folder.join("weights"), text);
        let saved = checkpoints.save(iteration, &write).unwrap();
        assert_eq!(fs::read_to_string(saved.path.join("weights")).unwrap(), text);
    }

    fn iterations(checkpoints: &Checkpoints) -> Vec<u64> {
        checkpoints.list().unwrap().iter().map(|checkpoint| checkpoint.iteration).collect()
    }

    #[test]
    fn the_last_ones_and_the_best_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::open(&folder.path().join("c"), 2).unwrap();
        assert_eq!(checkpoints.latest().unwrap(), None);
        for iteration in [1, 2, 3, 4, 5] {
            save(&checkpoints, iteration, "w");
            if iteration == 2 {
                checkpoints.mark("best", &CheckpointMark { iteration, score: Some(0.7) }).unwrap();
            }
        }
        assert_eq!(iterations(&checkpoints), [2, 4, 5]);
        assert_eq!(checkpoints.best().unwrap().unwrap().iteration, 2);
        assert_eq!(checkpoints.latest().unwrap().unwrap().iteration, 5);
        assert!(checkpoints.mark("best", &CheckpointMark { iteration: 3, score: None }).is_err());
        save(&checkpoints, 5, "again");
        assert_eq!(iterations(&checkpoints), [2, 4, 5]);
        checkpoints.remove_after(1).unwrap();
        assert_eq!((iterations(&checkpoints), checkpoints.best().unwrap()), (vec![], None));
        assert_eq!(fs::read_dir(folder.path().join("c")).unwrap().count(), 0);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::open(folder.path(), 2).unwrap();
        save(&checkpoints, 1, "w");
        let write = |folder: &Path| {
            fs::create_dir(folder.join("part"))?;
            fs::write(folder.join("part/a"), "part")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = checkpoints.save(2, &write).unwrap_err();
        assert!(error.to_string().ends_with("iteration-000002"), "{error}");
        assert_eq!(error.hint().unwrap(), "free disk space, then resume");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_crash_left_is_removed_on_opening() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".tmp-iteration-000003")).unwrap();
        let checkpoints = Checkpoints::view(folder.path());
        assert!(checkpoints.list().unwrap().is_empty());
        let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
        assert!(checkpoints.list().unwrap().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
