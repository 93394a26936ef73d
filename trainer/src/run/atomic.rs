//! Writing so that a reader sees the old or the new, never a half.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::RunFolderError;

/// Marks files and folders that are being written.
pub(crate) const UNFINISHED: &str = ".tmp-";

/// Replaces a file by `bytes`; a crash or error leaves the old one.
///
/// # Errors
///
/// [`RunFolderError::Write`] names the file.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunFolderError> {
    let refuse = RunFolderError::write(path);
    let unfinished = unfinished_beside(path);
    let written = write_synced(&unfinished, |writer| writer.write_all(bytes))
        .and_then(|()| fs::rename(&unfinished, path))
        .and_then(|()| sync_folder(parent(path)));
    if written.is_err() {
        // Best effort: the name says that it may be removed.
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(refuse)
}

/// Writes a file and waits until it is on the disk.
pub(crate) fn write_synced(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    write(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Waits until a folder and all in it are on the disk.
pub(crate) fn sync_all(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        if entry.is_dir() {
            sync_all(&entry)?;
        } else {
            File::open(&entry)?.sync_all()?;
        }
    }
    sync_folder(path)
}

/// The name under which `path` is written before it is renamed.
pub(crate) fn unfinished_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{UNFINISHED}{name}"))
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what a crash left unfinished in a folder.
pub(crate) fn remove_unfinished(folder: &Path) -> Result<(), RunFolderError> {
    for entry in fs::read_dir(folder).map_err(RunFolderError::read(folder))? {
        let entry = entry.map_err(RunFolderError::read(folder))?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(RunFolderError::write(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_missing_is_one_clear_error() {
        let error = write_atomically(Path::new("/nowhere/at/all"), b"").unwrap_err();
        assert_eq!(error.to_string(), "write /nowhere/at/all");
    }
}
