//! A model's folder in the cache.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{HubError, ModelName};
use crate::atomic_file::write_atomically;

/// A model's folder in the cache.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(super) fn new(cache: &Path, name: &ModelName) -> Self {
        Self { folder: cache.join(name.folder()) }
    }

    /// The folder of a revision's files, if the cache has it: of a branch or tag it has seen, or of
    /// a commit.
    pub(super) fn snapshot(&self, revision: &str) -> Option<PathBuf> {
        let commit = fs::read_to_string(self.folder.join("refs").join(revision));
        let commit = commit.as_deref().map_or(revision, str::trim);
        // What a file says is not to lead elsewhere.
        if !is_inside(Path::new(commit)) {
            return None;
        }
        let folder = self.folder.join("snapshots").join(commit);
        folder.join("config.json").exists().then_some(folder)
    }

    /// The folder of a commit's files, made where it is absent.
    pub(super) fn open(&self, commit: &str) -> Result<PathBuf, HubError> {
        let folder = self.folder.join("snapshots").join(commit);
        for path in [&folder, &self.folder.join("blobs")] {
            create(path)?;
        }
        Ok(folder)
    }

    /// Where a file of a commit is or will be.
    pub(super) fn path(&self, commit: &str, file: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit).join(file)
    }

    /// Where contents are or will be.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.folder.join("blobs").join(etag)
    }

    /// Makes a file of a commit have the contents `etag`.
    pub(super) fn link(&self, commit: &str, file: &str, etag: &str) -> Result<(), HubError> {
        let path = self.path(commit, file);
        let io = |source| HubError::Io { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            create(parent)?;
        }
        // From `snapshots/<commit>/` up to the model's folder, and further from folders below.
        let up = "../".repeat(2 + file.matches('/').count());
        let target = format!("{up}blobs/{etag}");
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        // One that a crash left behind.
        let _ = fs::remove_file(&partial);
        #[cfg(unix)]
        std::os::unix::fs::symlink(target, &partial).map_err(io)?;
        #[cfg(not(unix))]
        fs::copy(self.blob(etag), &partial).map(|_| drop(target)).map_err(io)?;
        fs::rename(&partial, &path).map_err(io)
    }

    /// Keeps the commit that a branch or tag is at.
    pub(super) fn set_reference(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if revision == commit {
            return Ok(());
        }
        let path = self.folder.join("refs").join(revision);
        if let Some(parent) = path.parent() {
            create(parent)?;
        }
        write_atomically(&path, commit.as_bytes()).map_err(|source| HubError::Io { path, source })
    }
}

fn create(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(|source| HubError::Io { path: folder.to_owned(), source })
}

/// Whether a path has no parts that lead out of a folder.
pub(super) fn is_inside(path: &Path) -> bool {
    path.components().count() > 0
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}
