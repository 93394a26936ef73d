//! Copying and removing trees that a sandbox has written.
//!
//! Nothing in them is trusted: they are walked by handles, links are never followed, and devices
//! never opened.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid, XattrFlags,
    chmodat, chownat, copy_file_range, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat,
    futimens, ioctl_ficlone, linkat, mkdirat, mknodat, openat, readlinkat, seek, statat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;

use super::walk::{Folder, Moved, Visitor, change_mode, open_entry, reopen, walk};

/// Times that removing is tried while a folder turns out not to be empty.
const REMOVE_TRIES: usize = 4;

/// Copies the folder `name` of `above`, an upper layer that nobody writes meanwhile, to `target`,
/// which must not exist. Whiteouts, holes, hard links and extended attributes of users are kept.
/// Returns the bytes of all regular files.
///
/// If somebody writes all the same, the copy may be neither the one state nor the other, but nothing
/// of it comes from elsewhere.
pub(crate) fn copy_layer(above: &OwnedFd, name: &OsStr, target: &Path) -> io::Result<u64> {
    let source = Folder::open(above, name, false, true)?;
    DirBuilder::new().mode(0o700).create(target)?;
    let top: OwnedFd = File::open(target)?.into();
    copy_extended(&source.handle, &top)?;
    let mut copy = Copy {
        target: top.try_clone()?,
        links: Links { place: target.with_extension("links"), folder: None, seen: HashSet::new() },
        copied: 0,
    };
    let walked = walk(&source.handle, &mut copy);
    let removed = copy.links.remove();
    let closed = source.close_again();
    walked.and(removed).and(closed)?;
    copy_attributes(&top, &source.stat)?;
    Ok(copy.copied)
}

struct Copy {
    /// Where what is visited belongs.
    target: OwnedFd,
    links: Links,
    copied: u64,
}

/// Files with several names, each under one more beside the copy: a path to where the first name
/// was copied could be longer than the kernel takes.
struct Links {
    place: PathBuf,
    folder: Option<OwnedFd>,
    seen: HashSet<(u64, u64)>,
}

impl Links {
    fn folder(&mut self) -> io::Result<&OwnedFd> {
        if self.folder.is_none() {
            DirBuilder::new().mode(0o700).create(&self.place)?;
            self.folder = Some(File::open(&self.place)?.into());
        }
        Ok(self.folder.as_ref().expect("it was just set"))
    }

    fn remove(&self) -> io::Result<()> {
        if self.folder.is_some() { remove_tree(&self.place) } else { Ok(()) }
    }
}

impl Visitor for Copy {
    const OPENS_UP: bool = true;

    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let named = open_entry(above, name, false)?;
        let stat = fstat(&named)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return self.regular(&named, name, &stat),
            FileType::Symlink => {
                let text = readlinkat(&named, "", Vec::new())?;
                symlinkat(text.as_c_str(), &self.target, name)?;
            }
            FileType::Fifo => {
                mknodat(&self.target, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
                chmodat(&self.target, name, mode_of(&stat), AtFlags::empty())?;
            }
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                // The overlay's mark of a removed file.
                let kind = FileType::CharacterDevice;
                return Ok(mknodat(&self.target, name, kind, Mode::empty(), 0)?);
            }
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            // A socket without its server.
            _ => return Ok(()),
        }
        if let Some((user, group)) = owner_of(&stat) {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&self.target, name, Some(user), Some(group), flags)?;
        }
        Ok(utimensat(&self.target, name, &times_of(&stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn enter(&mut self, folder: &Folder, name: &OsStr) -> io::Result<bool> {
        mkdirat(&self.target, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.target, name, flags, Mode::empty())?;
        copy_extended(&folder.handle, &made)?;
        self.target = made;
        Ok(true)
    }

    fn leave(&mut self, _: &OwnedFd, _: &OsStr, stat: &Stat) -> io::Result<()> {
        // Before its permissions may forbid going up.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(&self.target, "..", flags, Mode::empty())?;
        // Last, since writing into it changes its times.
        copy_attributes(&self.target, stat)?;
        self.target = above;
        Ok(())
    }
}

impl Copy {
    fn regular(&mut self, named: &OwnedFd, name: &OsStr, stat: &Stat) -> io::Result<()> {
        let key = (stat.st_dev, stat.st_ino);
        let link = format!("{:x}-{:x}", key.0, key.1);
        if stat.st_nlink > 1 && !self.links.seen.insert(key) {
            let folder = self.links.folder()?;
            return Ok(linkat(folder, &link, &self.target, name, AtFlags::empty())?);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let source = match reopen(named.as_fd(), flags) {
            // An ordinary user's own file that forbids reading.
            Err(Errno::ACCESS) => {
                change_mode(named.as_fd(), mode_of(stat) | Mode::RUSR)?;
                let opened = reopen(named.as_fd(), flags);
                change_mode(named.as_fd(), mode_of(stat))?;
                opened?
            }
            opened => opened?,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let target = openat(&self.target, name, flags | OFlags::CLOEXEC, mode)?;
        copy_extended(&source, &target)?;
        let target = File::from(target);
        self.copied += copy_bytes(&File::from(source), &target)?;
        copy_attributes(&target, stat)?;
        if stat.st_nlink > 1 {
            linkat(&self.target, name, self.links.folder()?, &link, AtFlags::empty())?;
        }
        Ok(())
    }
}

fn copy_bytes(source: &File, target: &File) -> io::Result<u64> {
    let length = source.metadata()?.len();
    if ioctl_ficlone(target, source).is_ok() {
        return Ok(length);
    }
    target.set_len(length)?;
    let (mut position, mut copied) = (0, 0);
    while position < length {
        // Holes stay holes: a sandbox may have made files larger than any disk.
        let Ok(start) = seek(source, SeekFrom::Data(position)) else { break };
        let end = seek(source, SeekFrom::Hole(start)).unwrap_or(length);
        copied += end - start;
        copy_range(source, target, start, end)?;
        position = end;
    }
    Ok(copied)
}

fn copy_range(source: &File, target: &File, start: u64, end: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut position = start;
    let mut buffer = Vec::new();
    while position < end {
        let (mut read_at, mut write_at) = (position, position);
        let wanted = (end - position).min(1 << 30) as usize;
        let count = match copy_file_range(
            source,
            Some(&mut read_at),
            target,
            Some(&mut write_at),
            wanted,
        ) {
            Ok(count) => count,
            Err(_) => {
                // Two file systems of different kinds.
                buffer.resize(wanted.min(1 << 16), 0);
                let count = source.read_at(&mut buffer, position)?;
                target.write_all_at(&buffer[..count], position)?;
                count
            }
        };
        if count == 0 {
            return Ok(());
        }
        position += count as u64;
    }
    Ok(())
}

/// Owner, permissions and times, as far as this process may set them.
fn copy_attributes(to: impl AsFd, stat: &Stat) -> io::Result<()> {
    if let Some((user, group)) = owner_of(stat) {
        fchown(&to, Some(user), Some(group))?;
    }
    fchmod(&to, mode_of(stat))?;
    Ok(futimens(&to, &times_of(stat))?)
}

/// Whom a copy belongs to; absent where this process knows only one user.
fn owner_of(stat: &Stat) -> Option<(Uid, Gid)> {
    let is_root = rustix::process::geteuid().is_root();
    is_root.then(|| (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)))
}

fn mode_of(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o7777)
}

fn times_of(stat: &Stat) -> Timestamps {
    let time = |secs: i64, nanos: u64| Timespec { tv_sec: secs, tv_nsec: nanos as i64 };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// The attributes `user.*`, those of the overlay among them.
fn copy_extended(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let mut names = vec![0u8; 1 << 16];
    let length = match flistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0u8; 1 << 16];
        let length = fgetxattr(from, name, value.as_mut_slice())?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// Removes a folder and all below it; one that is gone is no error.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (above, name) = (path.parent().ok_or_else(invalid)?, path.file_name().ok_or_else(invalid)?);
    let above: OwnedFd = match File::open(above) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?.into(),
    };
    let mut tries = 0;
    loop {
        let removed = remove_in(&above, name);
        match &removed {
            // Some file systems leave entries out that come behind removed ones.
            Err(error)
                if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < REMOVE_TRIES =>
            {
                tries += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            _ => return removed,
        }
    }
}

fn remove_in(above: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let folder = Folder::open(above, name, false, true)?;
    make_removable(&folder)?;
    walk(&folder.handle, &mut Remove)?;
    Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

struct Remove;

impl Visitor for Remove {
    const OPENS_UP: bool = true;

    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()> {
        match unlinkat(above, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    fn enter(&mut self, folder: &Folder, _: &OsStr) -> io::Result<bool> {
        make_removable(folder).map(|()| true)
    }

    fn leave(&mut self, above: &OwnedFd, name: &OsStr, _: &Stat) -> io::Result<()> {
        Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
    }
}

/// Lets its owner remove what lies in it.
fn make_removable(folder: &Folder) -> io::Result<()> {
    let is_open = mode_of(&folder.stat).contains(Mode::RWXU);
    if is_open || rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Ok(fchmod(&folder.handle, Mode::RWXU)?)
}

/// Bytes that a file or folder takes up at least: one that is empty needs a place in the file system, too, of which there are only so
/// many.
const LEAST_BYTES: u64 = 4096;

/// Bytes that what lies below `folder` takes up on the disk, 4096 at least of each file and folder. What cannot be looked at is left out.
pub(crate) fn disk_usage(folder: &OwnedFd) -> io::Result<u64> {
    let mut usage = Usage(0);
    match walk(folder, &mut usage) {
        // Somebody moves folders about: what was seen up to then.
        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Moved>()) => Ok(usage.0),
        walked => walked.map(|()| usage.0),
    }
}

struct Usage(u64);

fn taken_up(stat: &Stat) -> u64 {
    (stat.st_blocks as u64 * 512).max(LEAST_BYTES)
}

impl Visitor for Usage {
    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()> {
        if let Ok(stat) = statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
            self.0 += taken_up(&stat);
        }
        Ok(())
    }

    fn enter(&mut self, folder: &Folder, _: &OsStr) -> io::Result<bool> {
        self.0 += taken_up(&folder.stat);
        Ok(true)
    }

    fn not_opened(&mut self, _: io::Error) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    /// As [`super::copy_layer`], by path.
    fn copy_layer(source: &Path, target: &Path) -> io::Result<u64> {
        let above = File::open(source.parent().unwrap()).unwrap().into();
        super::copy_layer(&above, source.file_name().unwrap(), target)
    }

    fn usage(path: &Path) -> u64 {
        disk_usage(&File::open(path).unwrap().into()).unwrap()
    }

    #[test]
    fn a_copied_layer_keeps_links_holes_modes_and_attributes() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir_all(source.join("sub")).unwrap();
        fs::write(source.join("sub/file"), "text").unwrap();
        fs::set_permissions(source.join("sub/file"), Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(source.join("sub/file"), source.join("again")).unwrap();
        symlink("/etc/passwd", source.join("link")).unwrap();
        symlink("/", source.join("root")).unwrap();
        let big = File::create(source.join("big")).unwrap();
        big.set_len(1 << 40).unwrap();
        drop(big);
        fs::set_permissions(source.join("sub"), Permissions::from_mode(0o555)).unwrap();
        let copied = copy_layer(&source, &target).unwrap();
        assert_eq!(copied, 4);
        assert_eq!(fs::read(target.join("again")).unwrap(), b"text");
        let meta = |name: &str| fs::symlink_metadata(target.join(name)).unwrap();
        assert_eq!(meta("again").ino(), meta("sub/file").ino());
        assert_eq!(meta("sub/file").mode() & 0o777, 0o751);
        assert_eq!(meta("sub").mode() & 0o777, 0o555);
        assert!(meta("root").is_symlink() && meta("link").is_symlink());
        assert_eq!((meta("big").len(), meta("big").blocks()), (1 << 40, 0));
        assert!(usage(&target) < 1 << 20);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "something was left over");
        remove_tree(&source).unwrap();
        remove_tree(&target).unwrap();
        remove_tree(&target).unwrap();
    }

    #[test]
    fn what_is_empty_is_counted_too() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..10 {
            let below = folder.path().join(format!("d{number}"));
            fs::create_dir(&below).unwrap();
            fs::write(below.join("empty"), "").unwrap();
        }
        assert!(usage(folder.path()) >= 20 * LEAST_BYTES);
    }

    #[test]
    fn a_link_that_is_swapped_in_leads_no_walk_away() {
        let folder = tempfile::tempdir().unwrap();
        let (host, layer) = (folder.path().join("host"), folder.path().join("layer"));
        fs::create_dir(&host).unwrap();
        fs::write(host.join("secret"), vec![b'x'; 1 << 20]).unwrap();
        fs::create_dir(&layer).unwrap();
        // Time between looking at a name and going into it, for those who do both.
        for number in 0..50 {
            fs::create_dir_all(layer.join(format!("d{number}"))).unwrap();
            fs::write(layer.join(format!("d{number}/inside")), "inside").unwrap();
        }
        let swap = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let links: Vec<_> = (0..50).map(|n| folder.path().join(format!("l{n}"))).collect();
                links.iter().for_each(|link| symlink(&host, link).unwrap());
                while swap.load(std::sync::atomic::Ordering::Relaxed) {
                    for (number, link) in links.iter().enumerate() {
                        let place = layer.join(format!("d{number}"));
                        renameat_with(CWD, link, CWD, &place, RenameFlags::EXCHANGE).unwrap();
                    }
                }
            });
            let start = std::time::Instant::now();
            let mut wrong = None;
            for number in 0.. {
                let target = folder.path().join(format!("copy{number}"));
                // It may fail, since nobody may write meanwhile, but has nothing of the host.
                let _ = copy_layer(&layer, &target);
                if holds(&target, "secret") {
                    wrong = Some("copied");
                } else if usage(&layer) >= 1 << 20 {
                    wrong = Some("counted");
                } else if let Err(error) = remove_tree(&target) {
                    wrong = Some("in the way");
                    println!("{error}");
                }
                if wrong.is_some() || start.elapsed() > std::time::Duration::from_millis(700) {
                    break;
                }
            }
            // Before anything is asserted: the other thread would never end.
            swap.store(false, std::sync::atomic::Ordering::Relaxed);
            assert!(wrong.is_none(), "a file of the host was {}", wrong.unwrap_or_default());
        });
        assert!(host.join("secret").exists());
    }

    /// Whether a file of this name lies in a folder of `path`; links are not followed.
    fn holds(path: &Path, name: &str) -> bool {
        let folders = fs::read_dir(path).unwrap().flatten();
        folders.filter(|entry| entry.file_type().unwrap().is_dir()).any(|entry| {
            fs::read_dir(entry.path()).unwrap().flatten().any(|entry| entry.file_name() == name)
        })
    }

    #[test]
    fn folders_of_any_depth_are_copied_counted_and_removed() {
        // More than a path can name, and than a process has descriptors.
        const DEPTH: usize = 1_100;
        // In memory where there is such a place: some disks take milliseconds for each folder.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (source, target) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&source).unwrap();
        let mut here: OwnedFd = File::open(&source).unwrap().into();
        for _ in 0..DEPTH {
            mkdirat(&here, "deep", Mode::RWXU).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            here = openat(&here, "deep", flags, Mode::empty()).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let file = openat(&here, "file", flags, Mode::RUSR | Mode::WUSR).unwrap();
        linkat(&here, "file", File::open(&source).unwrap(), "again", AtFlags::empty()).unwrap();
        rustix::io::write(&file, b"text").unwrap();
        // Held open, it would keep all folders above in the kernel's memory while they are removed.
        drop((here, file));
        let copying = || -> io::Result<u64> {
            let copied = copy_layer(&source, &target)?;
            assert_eq!(usage(&source), usage(&target));
            assert_eq!(fs::metadata(target.join("again")).unwrap().nlink(), 2);
            remove_tree(&target)?;
            remove_tree(&source).map(|()| copied)
        };
        // As small as a stack is that somebody might give to a thread.
        let copied = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            thread.spawn_scoped(scope, copying).unwrap().join().unwrap()
        });
        assert_eq!(copied.unwrap(), 4);
        assert!(!source.exists() && !target.exists());
    }
}
