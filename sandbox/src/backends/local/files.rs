//! Files of a sandbox, from outside.
//!
//! Every path is resolved by the kernel with the sandbox's root as the root
//! (`openat2` with `RESOLVE_IN_ROOT`), so that no link and no `..` leads out, whatever the sandbox
//! does meanwhile. What is reached through `/proc` inside cannot lead out either: magic links are
//! not followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstat, mkdirat,
    openat2, statat,
};
use rustix::io::Errno;

use super::packing::{Ownership, pack, unpack};
use super::walk::{Moved, reopen};
use crate::{FileEntry, FileKind, SandboxError};

/// Times that a lookup which raced with a rename is tried anew.
const LOOKUP_TRIES: usize = 32;

/// Who files are made for; absent where this process knows only one user.
pub(crate) type FileOwner = Option<(u32, u32)>;

/// A file system that paths cannot lead out of.
#[derive(Debug)]
pub(crate) struct RootFiles {
    root: OwnedFd,
}

impl RootFiles {
    /// That whose root is `root`.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root }
    }

    /// What `path` leads to, opened with `flags`.
    pub(crate) fn open(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        open_inside(&self.root, Path::new(path), flags, Mode::empty())
    }

    /// The bytes of the regular file `path`.
    pub(crate) fn read(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        let refuse = |reason: &str| refused(path, reason);
        let too_large = || SandboxError::TooLarge { path: path.to_owned(), limit_bytes };
        // Looked at before it is opened, and not looked up again: opening a device or a pipe may do
        // things.
        let named = self.open(path, OFlags::PATH).map_err(|error| told(path, "read", error))?;
        let stat = fstat(&named).map_err(|error| told(path, "read", error))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(refuse("it is a folder")),
            _ => return Err(refuse("it is no regular file")),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = reopen(named.as_fd(), flags).map_err(|error| told(path, "read", error))?;
        if stat.st_size as u64 > limit_bytes {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(limit_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| failed(path, "read", error))?;
        if bytes.len() as u64 > limit_bytes { Err(too_large()) } else { Ok(bytes) }
    }

    /// Writes the regular file `path`, folders above it included.
    pub(crate) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        mode: u32,
        owner: FileOwner,
    ) -> Result<(), SandboxError> {
        let (folder, _) = path.rsplit_once('/').ok_or_else(|| refused(path, "it is no file"))?;
        self.make_folders(folder, owner)?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let file = self.open_to_write(path, mode)?;
        let write = || -> io::Result<()> {
            rustix::fs::ftruncate(&file, 0)?;
            let mut file = File::from(file);
            file.write_all(bytes)?;
            own(&file, owner)?;
            Ok(fchmod(&file, mode)?)
        };
        write().map_err(|error| failed(path, "write", error))
    }

    /// The regular file `path`, made where it is absent. A link in the last place is followed, as a
    /// program inside would.
    fn open_to_write(&self, path: &str, mode: Mode) -> Result<OwnedFd, SandboxError> {
        let told = |error| told(path, "write", error);
        let check =
            |file: &OwnedFd| match FileType::from_raw_mode(fstat(file).map_err(told)?.st_mode) {
                FileType::RegularFile => Ok(()),
                FileType::Directory => Err(refused(path, "it is a folder")),
                _ => Err(refused(path, "it is no regular file")),
            };
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open(path, OFlags::PATH) {
            Ok(named) => {
                check(&named)?;
                reopen(named.as_fd(), flags).map_err(told)
            }
            Err(Errno::NOENT) => {
                let flags = flags | OFlags::CREATE;
                let file = open_inside(&self.root, Path::new(path), flags, mode).map_err(told)?;
                // Something else may have come there in between.
                check(&file)?;
                Ok(file)
            }
            Err(error) => Err(told(error)),
        }
    }

    /// Makes the folder `path` and those above it, where they are absent.
    pub(crate) fn make_folders(
        &self,
        path: &str,
        owner: FileOwner,
    ) -> Result<OwnedFd, SandboxError> {
        make_folders_in(&self.root, Path::new(path), owner, true)
            .map_err(|error| told(path, "make", error))
    }

    /// What lies in the folder `path`, sorted by name.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = self.open(path, flags).map_err(|error| match error {
            Errno::NOTDIR => refused(path, "it is no folder"),
            error => told(path, "list", error),
        })?;
        let mut entries = Vec::new();
        let listed = Dir::read_from(&folder).map_err(|error| told(path, "list", error))?;
        for entry in listed {
            let entry = entry.map_err(|error| told(path, "list", error))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            // Gone in between: as if it had never been there.
            let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let (kind, size_bytes) = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => (FileKind::File, stat.st_size as u64),
                FileType::Directory => (FileKind::Folder, 0),
                FileType::Symlink => (FileKind::Link, 0),
                _ => (FileKind::Other, 0),
            };
            entries.push(FileEntry {
                name: String::from_utf8_lossy(name).into_owned(),
                kind,
                size_bytes,
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Unpacks an archive that was checked into the folder `path`.
    pub(crate) fn upload(
        &self,
        path: &str,
        archive: impl Read,
        owner: FileOwner,
    ) -> Result<(), SandboxError> {
        let folder = self.make_folders(path, owner)?;
        unpack(&folder, archive, &Ownership::One(owner))
    }

    /// Packs the file or folder `path`.
    pub(crate) fn download(&self, path: &str, archive: &mut dyn Write) -> Result<(), SandboxError> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) if !name.is_empty() => (folder, name),
            // The root itself has no name.
            _ => ("/", if name.is_empty() { "." } else { name }),
        };
        let parent = self
            .open(if folder.is_empty() { "/" } else { folder }, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|error| told(path, "pack", error))?;
        let mut builder = tar::Builder::new(archive);
        pack(&mut builder, &parent, OsStr::new(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SandboxError::NotFound { path: path.to_owned() },
            _ if error.get_ref().is_some_and(|inner| inner.is::<Moved>()) => {
                refused(path, "a folder was moved while it was packed")
            }
            _ => failed(path, "pack", error),
        })?;
        builder.finish().map_err(|error| failed(path, "pack", error))
    }
}

fn open_inside(
    root: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    resolve(root, path, flags, mode, ResolveFlags::IN_ROOT)
}

pub(crate) fn resolve(
    root: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    how: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let how = how | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match openat2(root, path, flags | OFlags::CLOEXEC, mode, how) {
            // Something was renamed while `..` was looked up.
            Err(Errno::AGAIN) if tries < LOOKUP_TRIES => tries += 1,
            result => return result,
        }
    }
}

/// With `in_root` links are followed as inside `root`; without, one that leads out of it is
/// refused.
pub(crate) fn make_folders_in(
    root: &OwnedFd,
    path: &Path,
    owner: FileOwner,
    in_root: bool,
) -> rustix::io::Result<OwnedFd> {
    let how = if in_root { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match resolve(
        root,
        if path == Path::new("") { Path::new(".") } else { path },
        flags,
        Mode::empty(),
        how,
    ) {
        Err(Errno::NOENT) => {}
        result => return result,
    }
    let mut walked = std::path::PathBuf::from(".");
    let mut folder = resolve(root, &walked, flags, Mode::empty(), how)?;
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        walked.push(name);
        folder = match resolve(root, &walked, flags, Mode::empty(), how) {
            Err(Errno::NOENT) => {
                // `folder` is what the part before leads to.
                match mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                let made = resolve(root, &walked, flags, Mode::empty(), how)?;
                own(&made, owner)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
                made
            }
            result => result?,
        };
    }
    Ok(folder)
}

pub(crate) fn own(file: impl AsFd, owner: FileOwner) -> io::Result<()> {
    if let Some((user, group)) = owner {
        fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    Ok(())
}

fn refused(path: &str, reason: &str) -> SandboxError {
    SandboxError::PathRefused { path: path.to_owned(), reason: reason.to_owned() }
}

fn told(path: &str, doing: &str, error: Errno) -> SandboxError {
    match error {
        Errno::NOENT => SandboxError::NotFound { path: path.to_owned() },
        Errno::NOTDIR => refused(path, "something above it is no folder"),
        Errno::ISDIR => refused(path, "it is a folder"),
        Errno::LOOP => refused(path, "its links go in circles or cannot be followed"),
        Errno::XDEV => refused(path, "it leads out of the folder"),
        Errno::NAMETOOLONG => refused(path, "it is too long"),
        Errno::ROFS => refused(path, "the file system can only be read"),
        Errno::ACCESS | Errno::PERM => refused(path, "permission denied"),
        error => failed(path, doing, error.into()),
    }
}

fn failed(path: &str, doing: &str, error: io::Error) -> SandboxError {
    SandboxError::Backend {
        doing: format!("{doing} `{path}` in the sandbox"),
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn root(folder: &Path) -> RootFiles {
        RootFiles::new(File::open(folder).unwrap().into())
    }

    #[test]
    fn no_link_leads_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("root");
        fs::create_dir_all(inside.join("etc")).unwrap();
        fs::write(folder.path().join("secret"), "host").unwrap();
        fs::write(inside.join("etc/passwd"), "inside").unwrap();
        symlink("/etc/passwd", inside.join("absolute")).unwrap();
        symlink("../../../secret", inside.join("up")).unwrap();
        symlink("/proc/self/root/etc/passwd", inside.join("magic")).unwrap();
        let files = root(&inside);
        assert_eq!(files.read("/absolute", 100).unwrap(), b"inside");
        for path in ["/up", "/../secret", "/magic"] {
            let error = files.read(path, 100).unwrap_err();
            assert!(matches!(error, SandboxError::NotFound { .. }), "{path}: {error}");
        }
        files.write("/up", b"x", 0o644, None).unwrap();
        assert_eq!(fs::read(folder.path().join("secret")).unwrap(), b"host");
        assert_eq!(fs::read(inside.join("secret")).unwrap(), b"x");
        assert!(matches!(files.read("/etc", 9), Err(SandboxError::PathRefused { .. })));
        assert!(matches!(files.read("/absolute", 5), Err(SandboxError::TooLarge { .. })));
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("root");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(inside.join("a/b/file"), "text").unwrap();
        symlink("b/file", inside.join("a/link")).unwrap();
        let files = root(&inside);
        let mut archive = Vec::new();
        files.download("/a", &mut archive).unwrap();
        files.upload("/new/place", archive.as_slice(), None).unwrap();
        assert_eq!(files.read("/new/place/a/link", 100).unwrap(), b"text");
        assert_eq!(files.list("/new/place/a").unwrap().len(), 2);
        // A link that lies there already must not carry entries away.
        fs::remove_dir_all(inside.join("new/place/a")).unwrap();
        symlink("/etc", inside.join("new/place/a")).unwrap();
        let error = files.upload("/new/place", archive.as_slice(), None).unwrap_err();
        assert!(matches!(error, SandboxError::PathRefused { .. }), "{error}");
    }
}
