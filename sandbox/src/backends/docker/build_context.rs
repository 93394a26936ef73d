//! The folder that is sent along with a Dockerfile.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::dockerignore::DockerIgnore;

const IGNORE: &str = ".dockerignore";

/// A folder as an archive in an unnamed file, and a hash of what is in it. What its `.dockerignore`
/// names stays out, but for that file and the Dockerfile, which the engine needs.
pub(super) fn pack(folder: &Path, dockerfile: &str) -> io::Result<(File, String)> {
    let ignored = match fs::read(folder.join(IGNORE)) {
        Ok(text) => DockerIgnore::new(&String::from_utf8_lossy(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => DockerIgnore::default(),
        Err(error) => return Err(error),
    };
    let parts = Path::new(dockerfile).components();
    let dockerfile = parts.filter(|part| *part != Component::CurDir).collect();
    let walk = Walk { folder, ignored, needed: [PathBuf::from(IGNORE), dockerfile] };
    let mut files = Vec::new();
    walk.collect(Path::new(""), &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    let mut archive = tar::Builder::new(unnamed_file()?);
    archive.follow_symlinks(false);
    for name in files {
        let path = folder.join(&name);
        let meta = fs::symlink_metadata(&path)?;
        hasher.update(name.as_os_str().as_encoded_bytes()).update(&[0]);
        hasher.update(format!("{:?}", meta.permissions()).as_bytes());
        if meta.is_file() {
            hasher.update(blake3::hash(&fs::read(&path)?).as_bytes());
        } else if meta.is_symlink() {
            hasher.update(fs::read_link(&path)?.as_os_str().as_encoded_bytes());
        }
        archive.append_path_with_name(&path, &name)?;
    }
    let mut file = archive.into_inner()?;
    io::Seek::rewind(&mut file)?;
    Ok((file, hasher.finalize().to_hex().to_string()))
}

struct Walk<'a> {
    folder: &'a Path,
    ignored: DockerIgnore,
    /// Sent whatever is ignored.
    needed: [PathBuf; 2],
}

impl Walk<'_> {
    fn collect(&self, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(self.folder.join(below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            let kind = entry.file_type()?;
            let is_excluded = self.ignored.excludes(&name.to_string_lossy());
            let is_needed = self.needed.contains(&name);
            let leads_on = self.needed.iter().any(|needed| needed.starts_with(&name));
            if kind.is_dir() && (!is_excluded || self.ignored.takes_back() || leads_on) {
                self.collect(&name, files)?;
            }
            let is_sent = kind.is_dir() || kind.is_file() || kind.is_symlink();
            if is_sent && (!is_excluded || is_needed) {
                files.push(name);
            }
        }
        Ok(())
    }
}

/// A file that has no name, so that nothing is left whatever happens.
fn unnamed_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    if let Some(file) = open_unnamed(&folder) {
        return Ok(file);
    }
    let name = format!("spar-context-{}-{}", std::process::id(), super::container::new_name());
    let path = folder.join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Absent where the file system cannot do that.
#[cfg(target_os = "linux")]
fn open_unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    /// `O_TMPFILE | O_DIRECTORY`.
    const UNNAMED: i32 = if cfg!(target_arch = "aarch64") { 0o20_040_000 } else { 0o20_200_000 };
    let mut options = File::options();
    options.read(true).write(true).mode(0o600).custom_flags(UNNAMED);
    options.open(folder).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, dockerfile: &str) -> Vec<String> {
        let (archive, _) = pack(folder, dockerfile).unwrap();
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap();
        entries.map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
    }

    #[test]
    fn the_hash_of_a_context_follows_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("Dockerfile"), "FROM scratch").unwrap();
        fs::write(folder.path().join("sub/file"), "one").unwrap();
        assert_eq!(names(folder.path(), "Dockerfile"), ["Dockerfile", "sub", "sub/file"]);
        let first = pack(folder.path(), "Dockerfile").unwrap().1;
        assert_eq!(pack(folder.path(), "Dockerfile").unwrap().1, first);
        fs::write(folder.path().join("sub/file"), "two").unwrap();
        assert_ne!(pack(folder.path(), "Dockerfile").unwrap().1, first);
    }

    #[test]
    fn what_is_ignored_is_neither_sent_nor_hashed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["build", "data/raw", "data/keep"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("file"), "x").unwrap();
        }
        fs::write(folder.path().join("build/Dockerfile"), "FROM scratch").unwrap();
        let ignore = "**\n!data/keep\n";
        fs::write(folder.path().join(IGNORE), ignore).unwrap();
        let expected = [".dockerignore", "build/Dockerfile", "data/keep", "data/keep/file"];
        assert_eq!(names(folder.path(), "./build/Dockerfile"), expected);
        let first = pack(folder.path(), "build/Dockerfile").unwrap().1;
        fs::write(folder.path().join("data/raw/file"), "another").unwrap();
        assert_eq!(pack(folder.path(), "build/Dockerfile").unwrap().1, first);
        fs::write(folder.path().join("data/keep/file"), "another").unwrap();
        assert_ne!(pack(folder.path(), "build/Dockerfile").unwrap().1, first);
    }

    #[test]
    fn the_archive_has_no_name() {
        let file = unnamed_file().unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&file.metadata().unwrap()), 0);
        drop(file);
    }
}
