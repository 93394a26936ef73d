//! What differs in a sandbox's own layer from those below it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, Stat, fgetxattr, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::walk::{Folder, Moved, Visitor, open_entry, walk};
use crate::{Change, ChangeKind, Changes, FileKind, FileState};

/// Times that a layer is walked anew because something was moved away meanwhile.
const TRIES: usize = 5;

/// One overlay of a sandbox.
pub(super) struct Part<'a> {
    /// The folder of the sandbox's own layers.
    pub(super) upper: &'a OwnedFd,
    /// What its layer is called there.
    pub(super) name: &'a str,
    /// Where it is mounted.
    pub(super) target: &'a str,
    /// The layers below, topmost first.
    pub(super) below: &'a [PathBuf],
}

impl Part<'_> {
    /// What differs, at most `limit` of it.
    pub(super) fn changes(
        &self,
        limit: usize,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<Changes> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.walk(limit, is_wanted) {
                Err(error) if tries < TRIES && is_in_motion(&error) => {}
                walked => return walked,
            }
        }
    }

    fn walk(&self, limit: usize, is_wanted: &dyn Fn(&[u8]) -> bool) -> io::Result<Changes> {
        let top = Folder::open(self.upper, OsStr::new(self.name), false, true)?;
        let mut below = Vec::new();
        for path in self.below {
            match File::open(path) {
                Ok(folder) => below.push(folder.into()),
                // What was never written to has no folder in a frozen layer.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let mut finder = Finder {
            limit,
            is_wanted,
            path: self.target.trim_end_matches('/').as_bytes().to_vec(),
            levels: vec![below],
            found: Changes::default(),
        };
        let walked = walk(&top.handle, &mut finder);
        top.close_again()?;
        match walked {
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Full>()) => {
                finder.found.is_cut = true;
            }
            walked => walked?,
        }
        Ok(finder.found)
    }
}

/// There is no room for more changes.
#[derive(Debug, thiserror::Error)]
#[error("there are more changes than asked for")]
struct Full;

fn is_in_motion(error: &io::Error) -> bool {
    let is_moved = error.get_ref().is_some_and(|inner| inner.is::<Moved>());
    is_moved || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

struct Finder<'a> {
    limit: usize,
    is_wanted: &'a dyn Fn(&[u8]) -> bool,
    /// Of the folder that the walk is in, empty for the root.
    path: Vec<u8>,
    /// For each folder on the way, the folders below it that it shows, topmost first.
    levels: Vec<Vec<OwnedFd>>,
    found: Changes,
}

/// What lay at a path.
enum Before {
    Nothing,
    /// Folders that lie on top of each other, the first one being seen.
    Folders(Vec<OwnedFd>),
    Other,
}

impl Finder<'_> {
    fn add(&mut self, name: &OsStr, kind: ChangeKind, now: Option<FileState>) -> io::Result<()> {
        let path = [&self.path, b"/".as_slice(), name.as_bytes()].concat();
        if !(self.is_wanted)(&path) {
            return Ok(());
        }
        if self.found.changes.len() >= self.limit {
            return Err(io::Error::other(Full));
        }
        self.found.changes.push(Change::new(&path, kind, now));
        Ok(())
    }

    /// What the layers below have at `name`.
    fn before(&self, name: &OsStr) -> io::Result<Before> {
        let mut folders = Vec::new();
        for layer in self.levels.last().into_iter().flatten() {
            let stat = match statat(layer, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                let is_first = folders.is_empty();
                return Ok(match (is_first, is_whiteout(&stat)) {
                    (true, true) => Before::Nothing,
                    (true, false) => Before::Other,
                    // It hides what lies further below.
                    (false, _) => Before::Folders(folders),
                });
            }
            let folder = Folder::open(layer, name, false, false)?.handle;
            let is_last = is_opaque(&folder)?;
            folders.push(folder);
            if is_last {
                break;
            }
        }
        Ok(if folders.is_empty() { Before::Nothing } else { Before::Folders(folders) })
    }

    /// What lay in folders that an opaque one hides, and is not in it.
    fn hidden(&mut self, upper: &OwnedFd, below: &[OwnedFd]) -> io::Result<()> {
        let mut names = std::collections::BTreeSet::new();
        let mut gone = std::collections::BTreeSet::new();
        for layer in below {
            for entry in Dir::read_from(layer)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes().to_vec();
                if name == b"." || name == b".." || names.contains(&name) || gone.contains(&name) {
                    continue;
                }
                let stat = statat(layer, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW)?;
                let seen = if is_whiteout(&stat) { &mut gone } else { &mut names };
                seen.insert(name);
            }
        }
        for name in names {
            let name = OsStr::from_bytes(&name);
            match statat(upper, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => self.add(name, ChangeKind::Deleted, None)?,
                stat => drop(stat?),
            }
        }
        Ok(())
    }
}

impl Visitor for Finder<'_> {
    const SORTED: bool = true;
    const OPENS_UP: bool = true;

    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let named = match open_entry(above, name, false) {
            // It went meanwhile.
            Err(Errno::NOENT) => return Ok(()),
            named => named?,
        };
        let stat = fstat(&named)?;
        let was_there = !matches!(self.before(name)?, Before::Nothing);
        if is_whiteout(&stat) {
            return if was_there { self.add(name, ChangeKind::Deleted, None) } else { Ok(()) };
        }
        let kind = if was_there { ChangeKind::Modified } else { ChangeKind::Added };
        let mut state = state_of(&stat);
        if state.kind == FileKind::Link {
            let target = readlinkat(&named, "", Vec::new())?;
            state.link = Some(String::from_utf8_lossy(target.as_bytes()).into_owned());
        }
        self.add(name, kind, Some(state))
    }

    fn enter(&mut self, folder: &Folder, name: &OsStr) -> io::Result<bool> {
        let path = [&self.path, b"/".as_slice(), name.as_bytes()].concat();
        if !(self.is_wanted)(&path) {
            return Ok(false);
        }
        let (kind, below) = match self.before(name)? {
            Before::Nothing => (Some(ChangeKind::Added), Vec::new()),
            Before::Other => (Some(ChangeKind::Modified), Vec::new()),
            Before::Folders(below) => {
                let was = fstat(&below[0])?;
                let is_same = identity(&was) == identity(&folder.stat);
                ((!is_same).then_some(ChangeKind::Modified), below)
            }
        };
        if let Some(kind) = kind {
            self.add(name, kind, Some(state_of(&folder.stat)))?;
        }
        self.path = path;
        if !below.is_empty() && is_opaque(&folder.handle)? {
            self.hidden(&folder.handle, &below)?;
        }
        self.levels.push(below);
        Ok(true)
    }

    fn leave(&mut self, _: &OwnedFd, name: &OsStr, _: &Stat) -> io::Result<()> {
        self.path.truncate(self.path.len() - name.len() - 1);
        self.levels.pop();
        Ok(())
    }
}

/// What tells whether a folder itself has changed.
fn identity(stat: &Stat) -> (u32, u32, u32) {
    (stat.st_mode, stat.st_uid, stat.st_gid)
}

/// The overlay's mark of something that was removed.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Whether a folder hides what lies below it.
fn is_opaque(folder: &OwnedFd) -> io::Result<bool> {
    let mut value = [0u8; 1];
    match fgetxattr(folder, "user.overlay.opaque", &mut value[..]) {
        Ok(1) => Ok(value == *b"y"),
        Ok(_) | Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn state_of(stat: &Stat) -> FileState {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    };
    let size_bytes = if kind == FileKind::File { stat.st_size as u64 } else { 0 };
    FileState { kind, mode: stat.st_mode & 0o7777, size_bytes, link: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, XattrFlags, mknodat, setxattr};
    use std::fs;
    use std::path::Path;

    /// Layers as the kernel leaves them, by hand.
    fn told(root: &Path, limit: usize) -> (Vec<String>, bool) {
        let upper = File::open(root.join("upper")).unwrap().into();
        let below = ["frozen", "image", "absent"].map(|name| root.join(name));
        let part = Part { upper: &upper, name: "usr", target: "/usr", below: &below };
        let changes = part.changes(limit, &|path| path != b"/usr/apart").unwrap();
        let line = |change: &Change| {
            let letter = &format!("{:?}", change.kind)[..1];
            format!("{letter} {}", change.path)
        };
        (changes.changes.iter().map(line).collect(), changes.is_cut)
    }

    fn whiteout(path: &Path) {
        mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    fn opaque(path: &Path) {
        fs::create_dir_all(path).unwrap();
        setxattr(path, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    }

    #[test]
    fn a_layer_is_read_against_all_that_lie_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in
            ["image/lib/old", "image/lib/deep/x", "frozen/lib", "upper/usr/lib", "image/cut"]
        {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["image/a", "image/gone", "image/lib/f", "image/was_gone", "image/cut/x"] {
            fs::write(root.join(path), "1").unwrap();
        }
        if rustix::process::geteuid().is_root() {
            // The frozen layer removed one and hides a whole folder.
            whiteout(&root.join("frozen/was_gone"));
            whiteout(&root.join("upper/usr/gone"));
            whiteout(&root.join("upper/usr/never_there"));
            whiteout(&root.join("upper/usr/lib/old"));
        }
        opaque(&root.join("frozen/cut"));
        fs::create_dir_all(root.join("upper/usr/cut/made")).unwrap();
        fs::write(root.join("frozen/cut/y"), "1").unwrap();
        fs::write(root.join("upper/usr/cut/x"), "2").unwrap();
        fs::write(root.join("upper/usr/a"), "22").unwrap();
        fs::write(root.join("upper/usr/was_gone"), "2").unwrap();
        fs::write(root.join("upper/usr/apart"), "2").unwrap();
        opaque(&root.join("upper/usr/lib/deep"));
        std::os::unix::fs::symlink("/a", root.join("upper/usr/lib/f")).unwrap();
        let (told, is_cut) = told(root, 100);
        let mut expected = vec![
            "M /usr/a",
            "A /usr/cut/made",
            "A /usr/cut/x",
            "D /usr/gone",
            "D /usr/lib/deep/x",
            "M /usr/lib/f",
            "D /usr/lib/old",
            "A /usr/was_gone",
        ];
        if !rustix::process::geteuid().is_root() {
            expected.retain(|line| !line.starts_with("D /usr/gone") && !line.ends_with("old"));
            expected.pop();
            expected.push("M /usr/was_gone");
        }
        assert_eq!((told, is_cut), (expected.iter().map(|line| line.to_string()).collect(), false));
        let (some, is_cut) = self::told(root, 2);
        assert_eq!((some, is_cut), (expected[..2].iter().map(|s| s.to_string()).collect(), true));
    }
}
