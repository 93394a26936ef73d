//! What was shown in episodes, each medium once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use spar_core::{Media, MediaError, StoreError, Trajectory};

/// The folder beside the shards of a store that has what was shown in its trajectories.
const FOLDER: &str = "media";

/// Pictures and the like in a folder `media` beside the trajectories that show them, as files that are named by the
/// hashes of what they contain: each is kept once, however often it was shown. The folder is made with the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaStore {
    folder: PathBuf,
}

impl MediaStore {
    /// For what is shown in the trajectories of a store in this folder.
    pub fn beside(trajectories: &Path) -> Self {
        Self { folder: trajectories.join(FOLDER) }
    }

    /// Keeps a medium, unless it is there already. When this returns it is on the disk, whole.
    ///
    /// # Errors
    ///
    /// [`StoreError::Media`] when it is not there and its bytes are not at hand; [`StoreError::Io`].
    pub fn keep(&self, media: &Media) -> Result<(), StoreError> {
        let path = self.path(media);
        if path.is_file() {
            return Ok(());
        }
        let bytes = media.bytes().map_err(|source| media_error(&path, source))?;
        let write = || {
            fs::create_dir_all(&self.folder)?;
            // Writers of the same medium write the same, each to a file of its own.
            let unfinished = path.with_extension(format!("{}.tmp", unique()));
            let mut file = fs::File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            fs::File::open(&self.folder)?.sync_all()
        };
        write().map_err(|source| StoreError::Io { path: path.display().to_string(), source })
    }

    /// Gives all media of a trajectory their bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Media`] names the first that is not there, or is another one; [`StoreError::Io`].
    pub fn load(&self, trajectory: &mut Trajectory) -> Result<(), StoreError> {
        trajectory.media_mut().try_for_each(|media| self.load_one(media))
    }

    /// Gives a medium its bytes, unless it has them.
    ///
    /// # Errors
    ///
    /// As [`MediaStore::load`].
    pub fn load_one(&self, media: &mut Media) -> Result<(), StoreError> {
        if media.bytes().is_ok() {
            return Ok(());
        }
        let path = self.path(media);
        let bytes = fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                media_error(&path, MediaError::Missing { hash: media.hash })
            }
            _ => StoreError::Io { path: path.display().to_string(), source },
        })?;
        media.load(bytes).map_err(|source| media_error(&path, source))
    }

    fn path(&self, media: &Media) -> PathBuf {
        self.folder.join(media.hash.to_string())
    }
}

fn media_error(path: &Path, source: MediaError) -> StoreError {
    StoreError::Media { path: path.display().to_string(), source }
}

/// A number that no other file in progress has.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use spar_core::{Observation, ToolResult};

    use super::*;
    use crate::samples::test_trajectories::{sampled, trajectory, turn};
    use crate::{JsonlStore, StoreConfig};

    fn shown(bytes: &[u8]) -> Trajectory {
        let media = Media::new("image/png", bytes);
        let mut shown = trajectory(vec![turn(0, &[1], sampled(&[2], &[]))]);
        shown.first_observation =
            Observation { media: vec![media.clone()], ..Observation::new("a page") };
        let result = ToolResult {
            call: "c".into(),
            text: String::new(),
            media: vec![media],
            is_error: false,
        };
        shown.turns[0].step.observation.results.push(result);
        shown
    }

    #[test]
    fn a_medium_is_kept_once_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::open(folder.path(), StoreConfig::default()).unwrap();
        for number in 0..2 {
            store.append_one(number, 0, &shown(b"pixels")).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 1);
        let media = MediaStore::beside(folder.path());
        let read: Vec<_> = JsonlStore::read(folder.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        for mut stored in read {
            assert!(stored.trajectory.media().all(|media| media.bytes().is_err()));
            // What was read can be kept again, since it is there.
            store.append_one(2, 0, &stored.trajectory).unwrap();
            media.load(&mut stored.trajectory).unwrap();
            let loaded: Vec<_> = stored.trajectory.media().map(|media| media.bytes()).collect();
            assert_eq!(loaded.len(), 2);
            assert!(loaded.iter().all(|bytes| ***bytes.as_ref().unwrap() == *b"pixels"));
        }
    }

    #[test]
    fn a_medium_that_is_missing_or_another_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::open(folder.path(), StoreConfig::default()).unwrap();
        store.append_one(0, 0, &shown(b"pixels")).unwrap();
        let media = MediaStore::beside(folder.path());
        let mut read = JsonlStore::read(folder.path()).unwrap().next().unwrap().unwrap().trajectory;
        let path = media.path(read.media().next().unwrap());
        fs::write(&path, b"others").unwrap();
        let other = media.load(&mut read).unwrap_err();
        assert!(other.source().unwrap().to_string().contains("their hash is"), "{other}");
        fs::remove_file(&path).unwrap();
        let missing = media.load(&mut read).unwrap_err();
        assert!(missing.to_string().contains(&path.display().to_string()), "{missing}");
        // Where its bytes are nowhere, it cannot be kept either.
        let elsewhere = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::open(elsewhere.path(), StoreConfig::default()).unwrap();
        assert!(matches!(store.append_one(0, 0, &read), Err(StoreError::Media { .. })));
        assert_eq!(JsonlStore::read(elsewhere.path()).unwrap().count(), 0);
    }
}
