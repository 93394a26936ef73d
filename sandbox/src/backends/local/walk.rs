//! Walking through folders that a sandbox has written, by handles.
//!
//! A path is looked up part by part each time it is used, and any part may have been swapped for a
//! link meanwhile. So no path is used twice: a folder is opened in the one above it, whose handle
//! is held, by its name alone, and never through a link; the way back is `..`, and only if that is
//! the folder it came from. However deep the folders lie, a walk holds a few handles and does not
//! call itself.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fstat, openat, openat2,
    statat,
};
use rustix::io::Errno;

use super::BACKEND;
use super::files::resolve;
use crate::SandboxError;

/// What is done on the way.
pub(crate) trait Visitor {
    /// Names come in order, folders among files. Otherwise files come as the file system has them,
    /// and folders behind them.
    const SORTED: bool = false;
    /// Goes on into what is mounted below.
    const CROSSES_MOUNTS: bool = false;
    /// Folders of this user that forbid even their owner to look are opened up meanwhile.
    const OPENS_UP: bool = false;

    /// `name` in the folder `above` is no folder.
    fn file(&mut self, above: &OwnedFd, name: &OsStr) -> io::Result<()>;

    /// The folder `name` was opened; whether to go into it.
    fn enter(&mut self, _folder: &Folder, _name: &OsStr) -> io::Result<bool> {
        Ok(true)
    }

    /// All that lies in the folder `name` of `above` was visited; `stat` is what it was when it was
    /// entered.
    fn leave(&mut self, _above: &OwnedFd, _name: &OsStr, _stat: &Stat) -> io::Result<()> {
        Ok(())
    }

    /// A folder could not be opened: another error ends the walk with it, none goes on behind it.
    fn not_opened(&mut self, error: io::Error) -> io::Result<()> {
        Err(error)
    }
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) handle: OwnedFd,
    pub(crate) stat: Stat,
    /// The permissions that it had, if it had to be opened up.
    closed: Option<Mode>,
}

impl Folder {
    /// `name` in `above`, which must not be a link.
    ///
    /// # Errors
    ///
    /// Those of the system; [`io::ErrorKind::NotADirectory`] if it is something else.
    pub(crate) fn open(
        above: &OwnedFd,
        name: &OsStr,
        crosses_mounts: bool,
        opens_up: bool,
    ) -> io::Result<Self> {
        let named = open_entry(above, name, crosses_mounts)?;
        let stat = fstat(&named)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || openat(&named, ".", flags, Mode::empty());
        let (handle, closed) = match open() {
            Err(Errno::ACCESS) if opens_up => {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
                change_mode(named.as_fd(), mode | Mode::RWXU)?;
                (open()?, Some(mode))
            }
            opened => (opened?, None),
        };
        Ok(Self { handle, stat, closed })
    }

    /// Sets the permissions that were in the way again.
    pub(crate) fn close_again(&self) -> io::Result<()> {
        close_again(&self.handle, self.closed)
    }
}

fn close_again(handle: &OwnedFd, closed: Option<Mode>) -> io::Result<()> {
    closed.map_or(Ok(()), |mode| Ok(fchmod(handle, mode)?))
}

/// Something was moved away while a walk was in it.
#[derive(Debug, thiserror::Error)]
#[error("a folder was moved meanwhile")]
pub(crate) struct Moved;

/// A folder that the walk is in.
struct Level {
    name: OsString,
    stat: Stat,
    closed: Option<Mode>,
    /// What is still to be visited, the next one last, and whether it was a folder.
    pending: Vec<(OsString, bool)>,
}

/// Visits all that lies in `top`, itself left out.
///
/// # Errors
///
/// The visitor's and those of the system; [`Moved`] inside of one.
pub(crate) fn walk<V: Visitor>(top: &OwnedFd, visitor: &mut V) -> io::Result<()> {
    let mut here =
        openat(top, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut levels = vec![Level {
        name: OsString::new(),
        stat: fstat(&here)?,
        closed: None,
        pending: read(&here, visitor)?,
    }];
    let walked = go(&mut here, &mut levels, visitor);
    if walked.is_err() {
        // What was opened up is closed again all the way, as far as there is a way.
        while let Some(level) = levels.pop() {
            let _ = close_again(&here, level.closed);
            let Some(above) = levels.last() else { break };
            let Ok(opened) = open_above(&here, &above.stat) else { break };
            here = opened;
        }
    }
    walked
}

fn go<V: Visitor>(here: &mut OwnedFd, levels: &mut Vec<Level>, visitor: &mut V) -> io::Result<()> {
    while let Some(level) = levels.last_mut() {
        let Some((name, is_folder)) = level.pending.pop() else {
            let [.., above, left] = &levels[..] else { return Ok(()) };
            let opened = open_above(here, &above.stat)?;
            close_again(here, left.closed)?;
            visitor.leave(&opened, &left.name, &left.stat)?;
            levels.pop();
            *here = opened;
            continue;
        };
        if !is_folder {
            visitor.file(here, &name)?;
            continue;
        }
        let folder = match Folder::open(here, &name, V::CROSSES_MOUNTS, V::OPENS_UP) {
            Ok(folder) => folder,
            Err(error) => {
                visitor.not_opened(error)?;
                continue;
            }
        };
        if !visitor.enter(&folder, &name)? {
            folder.close_again()?;
            continue;
        }
        let pending = match read(&folder.handle, visitor) {
            Ok(pending) => pending,
            Err(error) => {
                folder.close_again()?;
                return Err(error);
            }
        };
        levels.push(Level { name, stat: folder.stat, closed: folder.closed, pending });
        *here = folder.handle;
    }
    Ok(())
}

/// What lies in `folder`: everything, or only the folders, the rest being visited already.
fn read<V: Visitor>(folder: &OwnedFd, visitor: &mut V) -> io::Result<Vec<(OsString, bool)>> {
    let mut pending = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Not all file systems say it here.
            FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        let is_folder = kind == FileType::Directory;
        if is_folder || V::SORTED {
            pending.push((name.to_owned(), is_folder));
        } else {
            visitor.file(folder, name)?;
        }
    }
    if V::SORTED {
        pending.sort_by(|a, b| b.cmp(a));
    }
    Ok(pending)
}

/// The folder above `folder`, which has to be the one of which `expected` was told.
fn open_above(folder: &OwnedFd, expected: &Stat) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = openat(folder, "..", flags, Mode::empty())?;
    let stat = fstat(&above)?;
    if (stat.st_dev, stat.st_ino) != (expected.st_dev, expected.st_ino) {
        return Err(io::Error::other(Moved));
    }
    Ok(above)
}

/// A handle that only names `name` in `above`: a link itself, not what it leads to.
pub(crate) fn open_entry(
    above: &OwnedFd,
    name: &OsStr,
    crosses_mounts: bool,
) -> rustix::io::Result<OwnedFd> {
    let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    if !crosses_mounts {
        how |= ResolveFlags::NO_XDEV;
    }
    resolve(above, Path::new(name), OFlags::PATH | OFlags::NOFOLLOW, Mode::empty(), how)
}

/// What the handle names, opened by no path of the sandbox.
pub(crate) fn reopen(named: BorrowedFd<'_>, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(own_name(named), flags | OFlags::CLOEXEC, Mode::empty())
}

/// Changes the permissions of what a handle names that need not be readable.
pub(crate) fn change_mode(named: BorrowedFd<'_>, mode: Mode) -> io::Result<()> {
    fs::set_permissions(own_name(named), Permissions::from_mode(mode.as_raw_mode()))
}

/// A handle as this process finds it.
fn own_name(named: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", named.as_raw_fd()))
}

/// Whether the kernel can look names up as walks need it.
///
/// # Errors
///
/// [`SandboxError::Unsupported`] where it cannot, or where a filter of system calls stands between.
pub(crate) fn check() -> Result<(), SandboxError> {
    match openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH) {
        Err(Errno::NOSYS | Errno::PERM) => Err(SandboxError::Unsupported {
            backend: BACKEND,
            what: "look files up without `openat2` (Linux 5.6 and later)".to_owned(),
        }),
        // An absolute path is refused by whoever knows the call.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Writes down what it sees.
    #[derive(Default)]
    struct Names(Vec<String>);

    impl Visitor for Names {
        const SORTED: bool = true;

        fn file(&mut self, _: &OwnedFd, name: &OsStr) -> io::Result<()> {
            self.0.push(name.to_string_lossy().into_owned());
            Ok(())
        }

        fn enter(&mut self, _: &Folder, name: &OsStr) -> io::Result<bool> {
            self.0.push(format!("{}/", name.display()));
            Ok(name != "closed")
        }

        fn leave(&mut self, _: &OwnedFd, name: &OsStr, _: &Stat) -> io::Result<()> {
            self.0.push(format!("/{}", name.display()));
            Ok(())
        }
    }

    #[test]
    fn names_come_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join("b/c")).unwrap();
        fs::create_dir_all(path.join("closed/x")).unwrap();
        symlink("/etc", path.join("b/link")).unwrap();
        fs::write(path.join("a"), "").unwrap();
        fs::write(path.join("z"), "").unwrap();
        let mut names = Names::default();
        walk(&fs::File::open(path).unwrap().into(), &mut names).unwrap();
        assert_eq!(names.0, ["a", "b/", "c/", "/c", "link", "/b", "closed/", "z"]);
    }

    #[test]
    fn a_folder_that_moves_away_is_not_followed() {
        struct Mover(PathBuf);
        impl Visitor for Mover {
            fn file(&mut self, _: &OwnedFd, name: &OsStr) -> io::Result<()> {
                assert_eq!(name, "inside");
                fs::rename(self.0.join("in/deep"), self.0.join("out/deep"))
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("in/deep")).unwrap();
        fs::create_dir_all(folder.path().join("out")).unwrap();
        fs::write(folder.path().join("in/deep/inside"), "").unwrap();
        let top = fs::File::open(folder.path().join("in")).unwrap().into();
        let error = walk(&top, &mut Mover(folder.path().to_owned())).unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Moved>()), "{error}");
    }

    #[test]
    fn the_kernel_can_look_names_up() {
        check().unwrap();
    }
}
