//! Tar archives into and out of a folder, by descriptors: no link leads out on the way.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, PROC_SUPER_MAGIC, Stat, Timespec, Timestamps, Uid,
    chownat, fchmod, fstat, fstatfs, futimens, linkat, openat, readlinkat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::files::{FileOwner, make_folders_in, own};
use super::unpack_error;
use super::walk::{Folder, Visitor, open_entry, reopen, walk};
use crate::SandboxError;

/// Whose the unpacked files are.
pub(crate) enum Ownership {
    /// All the same, and links may not lead out of the folder: an archive for a sandbox.
    One(FileOwner),
    /// As the archive says where this process may; links are followed as inside the folder, and
    /// devices are left out: a root file system.
    Archive,
}

/// Unpacks a tar archive into a folder that nobody else writes, or whose writers cannot leave it.
pub(crate) fn unpack(
    folder: &OwnedFd,
    archive: impl Read,
    ownership: &Ownership,
) -> Result<(), SandboxError> {
    let mut archive = tar::Archive::new(archive);
    let broken = |error: io::Error| unpack_error("the archive", error);
    let mut times = Vec::new();
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let named = |error: io::Error| unpack_error(&path.to_string_lossy(), error);
        unpack_entry(folder, &mut entry, &path, ownership, &mut times).map_err(named)?;
    }
    // Last, since unpacking into a folder changes it.
    for (path, mode, time) in times.into_iter().rev() {
        let in_root = matches!(ownership, Ownership::Archive);
        if let Ok(made) = make_folders_in(folder, &path, None, in_root) {
            let _ = fchmod(&made, mode);
            let _ = futimens(&made, &time);
        }
    }
    Ok(())
}

fn unpack_entry(
    root: &OwnedFd,
    entry: &mut tar::Entry<'_, impl Read>,
    path: &Path,
    ownership: &Ownership,
    times: &mut Vec<(PathBuf, Mode, Timestamps)>,
) -> io::Result<()> {
    let in_root = matches!(ownership, Ownership::Archive);
    let header = entry.header();
    let kind = header.entry_type();
    let owner = match ownership {
        Ownership::One(owner) => *owner,
        Ownership::Archive if rustix::process::geteuid().is_root() => {
            // Some programs leave the fields of root empty.
            Some((header.uid().unwrap_or(0) as u32, header.gid().unwrap_or(0) as u32))
        }
        Ownership::Archive => None,
    };
    let mode = Mode::from_raw_mode(header.mode()? & 0o7777);
    let time = timestamps(header.mtime().unwrap_or(0));
    let Some(name) = path.file_name().map(OsStr::to_owned) else {
        // The folder itself.
        return Ok(());
    };
    if kind.is_dir() {
        let made = make_folders_in(root, path, owner, in_root)?;
        own(&made, owner)?;
        times.push((path.to_owned(), mode, time));
        return Ok(());
    }
    let parent = make_folders_in(
        root,
        path.parent().unwrap_or(Path::new("")),
        owner_above(ownership),
        in_root,
    )?;
    let is_taken = kind.is_file() || kind.is_symlink() || kind.is_hard_link();
    if !is_taken {
        return Ok(());
    }
    if kind.is_hard_link() {
        let target = entry.link_name()?.ok_or(io::ErrorKind::InvalidData)?;
        let above = target.parent().unwrap_or(Path::new(""));
        let above = make_folders_in(root, above, owner_above(ownership), in_root)?;
        let target = target.file_name().ok_or(io::ErrorKind::InvalidData)?;
        remove_entry(&parent, &name)?;
        return Ok(linkat(above, target, &parent, &name, AtFlags::empty())?);
    }
    remove_entry(&parent, &name)?;
    if kind.is_symlink() {
        let target = entry.link_name_bytes().ok_or(io::ErrorKind::InvalidData)?;
        symlinkat(OsStr::from_bytes(&target), &parent, &name)?;
        if let Some((user, group)) = owner {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            chownat(&parent, &name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&parent, &name, flags, Mode::from_raw_mode(0o600))?);
    io::copy(entry, &mut file)?;
    own(&file, owner)?;
    fchmod(&file, mode)?;
    Ok(futimens(&file, &time)?)
}

/// Whose folders are that the archive does not name.
fn owner_above(ownership: &Ownership) -> FileOwner {
    match ownership {
        Ownership::One(owner) => *owner,
        Ownership::Archive => None,
    }
}

fn remove_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timestamps(seconds: u64) -> Timestamps {
    let time = Timespec { tv_sec: seconds as i64, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

/// Adds `name` in `parent` and all below it, in order; nothing on the way is a link that is
/// followed. What goes away meanwhile is left out, and so is what lies in `/proc`.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if `name` is not there; [`Moved`](super::walk::Moved) inside of an
/// error if a folder is moved while it is packed.
pub(crate) fn pack(
    builder: &mut tar::Builder<&mut dyn Write>,
    parent: &OwnedFd,
    name: &OsStr,
) -> io::Result<()> {
    let mut packer = Packer { builder, path: PathBuf::from(name) };
    let stat = fstat(open_entry(parent, name, true)?)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        packer.path.clear();
        return packer.file(parent, name);
    }
    let folder = Folder::open(parent, name, true, false)?;
    packer.folder(&folder.stat)?;
    walk(&folder.handle, &mut packer)
}

struct Packer<'a, 'b> {
    builder: &'a mut tar::Builder<&'b mut dyn Write>,
    /// Of the folder whose contents are packed.
    path: PathBuf,
}

impl Packer<'_, '_> {
    fn folder(&mut self, stat: &Stat) -> io::Result<()> {
        let mut header = header_of(stat);
        header.set_entry_type(tar::EntryType::Directory);
        self.builder.append_data(&mut header, &self.path, io::empty())
    }
}

impl Visitor for Packer<'_, '_> {
    const SORTED: bool = true;
    const CROSSES_MOUNTS: bool = true;

    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let named = match open_entry(above, name, true) {
            // Not the top, which was there a moment ago: then as if it had never been there.
            Err(Errno::NOENT) => return Ok(()),
            named => named?,
        };
        let stat = fstat(&named)?;
        let path = self.path.join(name);
        let mut header = header_of(&stat);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(&named, "", Vec::new())?;
                header.set_entry_type(tar::EntryType::Symlink);
                self.builder.append_link(&mut header, &path, OsStr::from_bytes(target.to_bytes()))
            }
            FileType::RegularFile => {
                let file = File::from(reopen(named.as_fd(), OFlags::RDONLY | OFlags::NONBLOCK)?);
                let size = file.metadata()?.len();
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(size);
                // A file that shrinks meanwhile is filled up, one that grows is cut.
                let content = file.chain(io::repeat(0)).take(size);
                self.builder.append_data(&mut header, &path, content)
            }
            // Pipes, sockets and devices mean nothing outside.
            _ => Ok(()),
        }
    }

    fn enter(&mut self, folder: &Folder, name: &OsStr) -> io::Result<bool> {
        self.path.push(name);
        self.folder(&folder.stat)?;
        // What the kernel makes up there is no file of the sandbox, and changes all the time.
        let goes_on = fstatfs(&folder.handle)?.f_type != PROC_SUPER_MAGIC;
        if !goes_on {
            self.path.pop();
        }
        Ok(goes_on)
    }

    fn leave(&mut self, _: &OwnedFd, _: &OsStr, _: &Stat) -> io::Result<()> {
        self.path.pop();
        Ok(())
    }

    fn not_opened(&mut self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
            _ => Err(error),
        }
    }
}

fn header_of(stat: &Stat) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(stat.st_mode & 0o7777);
    header.set_uid(u64::from(stat.st_uid));
    header.set_gid(u64::from(stat.st_gid));
    header.set_mtime(stat.st_mtime.max(0) as u64);
    header.set_size(0);
    header
}
