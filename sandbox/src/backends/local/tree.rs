//! Copying and removing trees that a sandbox has written.
//!
//! Nothing in them is trusted: links are never followed, and devices never opened.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink,
};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, Timespec, Timestamps, XattrFlags,
    copy_file_range, ioctl_ficlone, lgetxattr, llistxattr, lsetxattr, mknodat, seek, utimensat,
};

/// Copies the folder `source`, an upper layer that nobody writes meanwhile, to `target`, which
/// must not exist. Whiteouts, holes, hard links and extended attributes of users are kept. Returns
/// the bytes of all regular files.
pub(crate) fn copy_layer(source: &Path, target: &Path) -> io::Result<u64> {
    let mut copied = 0;
    let mut links: HashMap<(u64, u64), PathBuf> = HashMap::new();
    // Attributes of folders come last: writing into them changes their times, and they may forbid
    // writing.
    let mut folders = vec![(source.to_owned(), target.to_owned())];
    fs::create_dir(target)?;
    let mut next = 0;
    while next < folders.len() {
        let (from, to) = folders[next].clone();
        next += 1;
        for entry in
            with_access(&from, 0o700, || fs::read_dir(&from)?.collect::<io::Result<Vec<_>>>())?
        {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let meta = fs::symlink_metadata(&from)?;
            let kind = meta.file_type();
            if kind.is_dir() {
                fs::create_dir(&to)?;
                folders.push((from, to));
                continue;
            }
            if kind.is_file() {
                if meta.nlink() > 1 {
                    if let Some(first) = links.get(&(meta.dev(), meta.ino())) {
                        fs::hard_link(first, &to)?;
                        continue;
                    }
                    links.insert((meta.dev(), meta.ino()), to.clone());
                }
                copied += with_access(&from, 0o400, || copy_file(&from, &to))?;
            } else if kind.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
            } else if kind.is_fifo() {
                mknodat(CWD, &to, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            } else if kind.is_char_device() && meta.rdev() == 0 {
                // The overlay's mark of a removed file.
                mknodat(CWD, &to, FileType::CharacterDevice, Mode::empty(), 0)?;
                continue;
            } else {
                // A socket without its server.
                continue;
            }
            copy_attributes(&from, &to, &meta)?;
        }
    }
    for (from, to) in folders.iter().rev() {
        copy_attributes(from, to, &fs::symlink_metadata(from)?)?;
    }
    Ok(copied)
}

/// Runs `access`; where an ordinary user's own file forbids it, with `bits` added meanwhile.
fn with_access<T>(
    path: &Path,
    bits: u32,
    mut access: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    match access() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mode = fs::symlink_metadata(path)?.mode() & 0o7777;
            fs::set_permissions(path, Permissions::from_mode(mode | bits))?;
            let result = access();
            fs::set_permissions(path, Permissions::from_mode(mode))?;
            result
        }
        result => result,
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<u64> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let source = OpenOptions::new().read(true).custom_flags(flags).open(from)?;
    let _ = fs::remove_file(to);
    let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let length = source.metadata()?.len();
    if ioctl_ficlone(&target, &source).is_ok() {
        return Ok(length);
    }
    target.set_len(length)?;
    let (mut position, mut copied) = (0, 0);
    while position < length {
        // Holes stay holes: a sandbox may have made files larger than any disk.
        let Ok(start) = seek(&source, SeekFrom::Data(position)) else { break };
        let end = seek(&source, SeekFrom::Hole(start)).unwrap_or(length);
        copied += end - start;
        copy_range(&source, &target, start, end)?;
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

fn copy_attributes(from: &Path, to: &Path, meta: &fs::Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    if rustix::process::geteuid().is_root() {
        lchown(to, Some(meta.uid()), Some(meta.gid()))?;
    }
    if kind.is_file() || kind.is_dir() {
        with_access(from, 0o400, || copy_extended(from, to))?;
    }
    if !kind.is_symlink() {
        fs::set_permissions(to, Permissions::from_mode(meta.mode() & 0o7777))?;
    }
    let time = |secs, nanos| Timespec { tv_sec: secs, tv_nsec: nanos };
    let times = Timestamps {
        last_access: time(meta.atime(), meta.atime_nsec()),
        last_modification: time(meta.mtime(), meta.mtime_nsec()),
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The attributes `user.*`, those of the overlay among them.
fn copy_extended(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = vec![0u8; 1 << 16];
    let length = match llistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0u8; 1 << 16];
        let length = lgetxattr(from, name, value.as_mut_slice())?;
        lsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// Removes a folder and all below it; one that is gone is no error.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // Folders that forbid even their owner to look, the overlay's own among them.
            open_up(path);
            fs::remove_dir_all(path)
        }
        result => result,
    }
}

fn open_up(path: &Path) {
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
}

/// Bytes that the files below `path` take up on the disk.
pub(crate) fn disk_usage(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // Does not follow links.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += meta.blocks() * 512;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(disk_usage(&target) < 1 << 20);
        remove_tree(&source).unwrap();
        remove_tree(&target).unwrap();
        remove_tree(&target).unwrap();
    }
}
