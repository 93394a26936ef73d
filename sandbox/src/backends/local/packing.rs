//! Tar archives into and out of a folder, by descriptors: no link leads out on the way.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
    chownat, fchmod, fstat, futimens, linkat, openat, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::files::{FileOwner, make_folders_in, own, resolve};
use super::unpack_error;
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

/// Adds `name` in `parent` and all below it; nothing on the way is a link that is followed.
pub(crate) fn pack(
    builder: &mut tar::Builder<&mut dyn Write>,
    parent: &OwnedFd,
    name: &Path,
) -> io::Result<()> {
    let mut pending = vec![name.to_owned()];
    while let Some(path) = pending.pop() {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let above = path.parent().filter(|above| *above != Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = resolve(parent, above.unwrap_or(Path::new(".")), flags, Mode::empty(), how)?;
        let last = path.file_name().unwrap_or(OsStr::new("."));
        let stat = statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW)?;
        let mut header = header_of(&stat);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                header.set_entry_type(tar::EntryType::Directory);
                builder.append_data(&mut header, &path, io::empty())?;
                let opened = openat(
                    &folder,
                    last,
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                let mut names = Vec::new();
                for entry in Dir::read_from(&opened)? {
                    let entry = entry?;
                    let name = entry.file_name().to_bytes();
                    if name != b"." && name != b".." {
                        names.push(path.join(OsStr::from_bytes(name)));
                    }
                }
                names.sort_by(|a, b| b.cmp(a));
                pending.extend(names);
            }
            FileType::Symlink => {
                let target = readlinkat(&folder, last, Vec::new())?;
                header.set_entry_type(tar::EntryType::Symlink);
                builder.append_link(&mut header, &path, OsStr::from_bytes(target.to_bytes()))?;
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = openat(&folder, last, flags, Mode::empty())?;
                let size = fstat(&file)?.st_size as u64;
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(size);
                // A file that shrinks meanwhile is filled up, one that grows is cut.
                let content = File::from(file).chain(io::repeat(0)).take(size);
                builder.append_data(&mut header, &path, content)?;
            }
            // Pipes, sockets and devices mean nothing outside.
            _ => {}
        }
    }
    Ok(())
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
