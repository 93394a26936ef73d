//! The folder of a run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::atomic::{parent, sync_folder, unfinished_beside, write_synced};
use super::{Manifest, MetricRecord, read_metrics};
use crate::RunFolderError;

/// The folder of a run, `<root>/<name>/`.
///
/// ```text
/// config.toml      the config, resolved     metrics.jsonl    numbers, one record per line
/// manifest.json    what it started from     tensorboard/     the same for TensorBoard
/// checkpoints/     weights and state        trajectories/    what was played
/// lock             who writes it
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// The right to write a run; given back when dropped, or when the process ends in any way.
#[derive(Debug)]
pub struct RunLock {
    /// The lock is held by the open file.
    _file: File,
}

impl RunFolder {
    /// Makes the folder of a new run and takes the right to write it.
    ///
    /// Either all of it is there afterwards, or nothing.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Exists`] when there is something of that name, [`RunFolderError::Name`]
    /// when it is no name, [`RunFolderError::Secret`] when the config holds a secret of this process, else
    /// [`RunFolderError::Write`].
    pub fn create(
        root: &Path,
        manifest: &Manifest,
        config_toml: &str,
    ) -> Result<(Self, RunLock), RunFolderError> {
        check_name(&manifest.name)?;
        let path = root.join(&manifest.name);
        let exists = || RunFolderError::Exists { name: manifest.name.clone(), path: path.clone() };
        if path.exists() {
            return Err(exists());
        }
        let redactor = spar_core::redaction::current();
        if redactor.is_some_and(|it| it.is_match(config_toml.as_bytes())) {
            return Err(RunFolderError::Secret { name: manifest.name.clone() });
        }
        // An address that was typed may hold a password.
        let plain = spar_core::redaction::to_json(manifest).expect("a manifest is JSON");
        let plain: serde_json::Value =
            serde_json::from_slice(&plain).expect("it was written as JSON");
        let mut json = serde_json::to_vec_pretty(&plain).expect("a manifest is JSON");
        json.push(b'\n');
        let unfinished = unfinished_beside(&path).with_extension(std::process::id().to_string());
        let write = || {
            fs::create_dir_all(&unfinished)?;
            write_synced(&unfinished.join("config.toml"), |writer| {
                writer.write_all(config_toml.as_bytes())
            })?;
            write_synced(&unfinished.join("manifest.json"), |writer| writer.write_all(&json))?;
            sync_folder(&unfinished)?;
            // A folder that is not empty is not replaced by a rename.
            fs::rename(&unfinished, &path)?;
            sync_folder(parent(&path))
        };
        if let Err(source) = write() {
            // Best effort: the name says that it may be removed.
            let _ = fs::remove_dir_all(&unfinished);
            if path.exists() {
                return Err(exists());
            }
            return Err(RunFolderError::Write { path, source });
        }
        let folder = Self { path };
        let lock = folder.lock()?;
        Ok((folder, lock))
    }

    /// Opens the folder of a run, to read it, or to go on with it under [`RunFolder::lock`].
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Missing`] when there is no run.
    pub fn open(path: &Path) -> Result<Self, RunFolderError> {
        if !path.join("manifest.json").is_file() {
            return Err(RunFolderError::Missing { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The first of `<stem>-1`, `<stem>-2`, ... that no run in `root` has.
    pub fn free_name(root: &Path, stem: &str) -> String {
        (1..)
            .map(|number: u64| format!("{stem}-{number}"))
            .find(|name| !root.join(name).exists())
            .expect("the numbers do not end")
    }

    /// Takes the right to write the run.
    ///
    /// The system gives it back when its owner dies, so no lock outlives its process.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Locked`] when another process has it.
    pub fn lock(&self) -> Result<RunLock, RunFolderError> {
        let path = self.path.join("lock");
        let refuse = || RunFolderError::write(&path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(refuse())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let owner = if owner.is_empty() { "unknown".to_owned() } else { owner };
                return Err(RunFolderError::Locked { path: self.path.clone(), owner });
            }
            Err(TryLockError::Error(source)) => return Err(refuse()(source)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(refuse())?;
        Ok(RunLock { _file: file })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `metrics.jsonl`.
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// `evaluations.jsonl`.
    pub fn evaluations_path(&self) -> PathBuf {
        self.path.join("evaluations.jsonl")
    }

    /// The folder of TensorBoard's event files.
    pub fn tensorboard_path(&self) -> PathBuf {
        self.path.join("tensorboard")
    }

    /// The folder of checkpoints.
    pub fn checkpoints_path(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// The folder of trajectories.
    pub fn trajectories_path(&self) -> PathBuf {
        self.path.join("trajectories")
    }

    /// What the run was started from.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when the file cannot be read or understood.
    pub fn manifest(&self) -> Result<Manifest, RunFolderError> {
        let path = self.path.join("manifest.json");
        let bytes = fs::read(&path).map_err(RunFolderError::read(&path))?;
        serde_json::from_slice(&bytes).map_err(|error| RunFolderError::Malformed {
            path,
            line: error.line(),
            detail: error.to_string(),
        })
    }

    /// The resolved config, as TOML.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Read`].
    pub fn config(&self) -> Result<String, RunFolderError> {
        let path = self.path.join("config.toml");
        fs::read_to_string(&path).map_err(RunFolderError::read(&path))
    }

    /// All records written so far, oldest first; none where there is no file yet.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when the file cannot be read or a line not be understood.
    pub fn metrics(&self) -> Result<Vec<MetricRecord>, RunFolderError> {
        read_records(&self.metrics_path())
    }

    /// The results of every evaluation by task, oldest first; none in runs of versions that did not
    /// keep them.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::metrics`].
    pub fn evaluations(&self) -> Result<Vec<MetricRecord>, RunFolderError> {
        read_records(&self.evaluations_path())
    }
}

fn read_records(path: &Path) -> Result<Vec<MetricRecord>, RunFolderError> {
    if path.exists() { read_metrics(path)?.collect() } else { Ok(Vec::new()) }
}

/// Refuses names that would leave the folder, hide themselves, or need quoting in a shell.
pub(crate) fn check_name(name: &str) -> Result<(), RunFolderError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(RunFolderError::Name { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str) -> Manifest {
        Manifest { name: name.to_owned(), seed: 7, ..Manifest::default() }
    }

    #[test]
    fn a_run_is_created_once_and_read_back() {
        let root = tempfile::tempdir().unwrap();
        let runs = root.path().join("runs");
        assert_eq!(RunFolder::free_name(&runs, "toy"), "toy-1");
        let (folder, lock) = RunFolder::create(&runs, &manifest("toy-1"), "a = 1\n").unwrap();
        assert_eq!(folder.manifest().unwrap(), manifest("toy-1"));
        assert_eq!(folder.config().unwrap(), "a = 1\n");
        assert!(folder.metrics().unwrap().is_empty());
        let error = RunFolder::create(&runs, &manifest("toy-1"), "").unwrap_err();
        assert!(matches!(error, RunFolderError::Exists { .. }));
        assert_eq!(error.hint().unwrap(), "resume `toy-1`, or give the new run another name");
        assert_eq!(RunFolder::free_name(&runs, "toy"), "toy-2");

        let again = RunFolder::open(folder.path()).unwrap();
        let error = again.lock().unwrap_err();
        let owner = std::process::id().to_string();
        assert!(matches!(error, RunFolderError::Locked { owner: found, .. } if found == owner));
        drop(lock);
        again.lock().unwrap();
        assert_eq!(fs::read_dir(&runs).unwrap().count(), 1);
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", ".hidden", "two words"] {
            let error = RunFolder::create(root.path(), &manifest(name), "").unwrap_err();
            assert!(matches!(error, RunFolderError::Name { .. }));
        }
        let error = RunFolder::open(root.path()).unwrap_err();
        assert!(matches!(error, RunFolderError::Missing { .. }));
    }

    #[test]
    fn a_config_that_holds_a_secret_is_refused() {
        let root = tempfile::tempdir().unwrap();
        spar_core::redaction::keep("RUN_FOLDER", "hunter2-of-the-run-folder").unwrap();
        let config = "base_url = \"http://me:hunter2-of-the-run-folder@host\"\n";
        let error = RunFolder::create(root.path(), &manifest("toy"), config).unwrap_err();
        assert!(error.to_string().contains("api_key_env"), "{error}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_one_clear_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunFolder::create(&file, &manifest("toy"), "").unwrap_err();
        assert!(matches!(error, RunFolderError::Write { .. }));
    }
}
