//! A lock on a folder that several processes use, which ends with the process that holds it.

use std::fs::File;
use std::io;
use std::path::Path;

/// The lock file's name in its folder.
pub(crate) const LOCK: &str = "lock";

/// Held by whoever makes something in the folder that is not whole yet: while anybody does, nothing
/// unfinished is removed. Others may hold it as well; dropping it gives it back.
pub(crate) fn share(folder: &Path) -> io::Result<File> {
    let file = open(folder)?;
    file.lock_shared()?;
    Ok(file)
}

/// Held by whoever removes what is unfinished; waits until nobody makes anything.
#[cfg(feature = "local")]
pub(crate) fn own(folder: &Path) -> io::Result<File> {
    let file = open(folder)?;
    file.lock()?;
    Ok(file)
}

/// Held by whoever removes what is unfinished, unless somebody makes something just now.
pub(crate) fn try_own(folder: &Path) -> io::Result<Option<File>> {
    let file = open(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn open(folder: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(folder.join(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_removes_while_somebody_makes() {
        let folder = tempfile::tempdir().unwrap();
        let making = [share(folder.path()).unwrap(), share(folder.path()).unwrap()];
        assert!(try_own(folder.path()).unwrap().is_none());
        drop(making);
        let owned = try_own(folder.path()).unwrap();
        assert!(owned.is_some());
        assert!(try_own(folder.path()).unwrap().is_none());
    }

    #[cfg(feature = "local")]
    #[test]
    fn who_waits_gets_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        drop(share(folder.path()).unwrap());
        let _owned = own(folder.path()).unwrap();
        assert!(try_own(folder.path()).unwrap().is_none());
    }
}
