//! Files that are whole or absent.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces the file at `path`: readers see the old bytes or all of the new ones, after a crash too.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&partial, path)) {
        // Best effort: the error that is reported is the one that matters.
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    // The new name is durable once the folder is.
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}
