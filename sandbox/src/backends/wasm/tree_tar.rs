//! Archives and folders of the host, into the in-memory file system and out of it.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::errno::Errno;
use super::host::{SharedTree, lock};
use super::sandbox::path_error;
use super::tree::{Node, ROOT, Tree};
use crate::{FileKind, SandboxError};

/// Bytes moved at a time, so that the tree is never locked for long.
const CHUNK: usize = 256 << 10;

/// Unpacks a checked archive into the folder `path`, which is made where it is absent. Links that lie
/// in the way of an entry are not followed.
pub(crate) fn unpack(
    tree: &SharedTree,
    path: &str,
    archive: &Path,
    now: u64,
) -> Result<(), SandboxError> {
    let host = |source| host_error("read the archive", archive, source);
    let file = File::open(archive).map_err(host)?;
    let base = lock(tree).make_folders(ROOT, path, now).map_err(|errno| path_error(path, errno))?;
    let mut reader = tar::Archive::new(BufReader::new(file));
    for entry in reader.entries().map_err(host)? {
        let mut entry = entry.map_err(host)?;
        let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| {
            SandboxError::PathRefused {
                path: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                reason: Errno::NotUtf8.to_string(),
            }
        })?;
        match unpack_entry(tree, base, &name, &mut entry, now) {
            Ok(()) => {}
            Err(Failed::Refused(errno)) => return Err(path_error(&name, errno)),
            Err(Failed::Read(source)) => return Err(host(source)),
        }
    }
    Ok(())
}

enum Failed {
    Refused(Errno),
    Read(io::Error),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

fn unpack_entry(
    shared: &SharedTree,
    base: Node,
    name: &str,
    entry: &mut tar::Entry<'_, impl Read>,
    now: u64,
) -> Result<(), Failed> {
    let name = name.trim_end_matches('/');
    let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
    let header = entry.header();
    let kind = header.entry_type();
    let mode = header.mode().unwrap_or(0o644);
    let mut tree = lock(shared);
    if kind.is_dir() {
        let folder = plain_folders(&mut tree, base, name, now)?;
        return Ok(tree.set_mode(folder, mode)?);
    }
    let folder = plain_folders(&mut tree, base, folder, now)?;
    let linked = entry.link_name_bytes().map(|bytes| String::from_utf8(bytes.into_owned()));
    let linked = linked.transpose().map_err(|_| Errno::NotUtf8)?.unwrap_or_default();
    match tree.remove_file(folder, last, now) {
        Ok(()) | Err(Errno::NotFound) => {}
        Err(errno) => return Err(errno.into()),
    }
    if kind.is_symlink() {
        tree.make_link(&linked, folder, last, now)?;
        return Ok(());
    }
    if kind.is_hard_link() {
        let target = tree.find(base, &linked, false)?;
        return Ok(tree.make_hard_link(target, folder, last, now)?);
    }
    let file = tree.make_file(folder, last, mode & 0o7777, now)?;
    drop(tree);
    let mut buffer = vec![0; CHUNK];
    let mut written = 0;
    loop {
        let n = entry.read(&mut buffer).map_err(Failed::Read)?;
        if n == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..n];
        while !rest.is_empty() {
            let m = lock(shared).write_at(file, written, rest, now)?;
            (written, rest) = (written + m as u64, &rest[m..]);
        }
    }
}

/// The folder at `path` below `base`, made where it is absent; a link on the way is refused.
fn plain_folders(tree: &mut Tree, base: Node, path: &str, now: u64) -> Result<Node, Errno> {
    let mut folder = base;
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        folder = match tree.find(folder, part, false) {
            Err(Errno::NotFound) => tree.make_folder(folder, part, now)?,
            found => found?,
        };
        tree.entries(folder)?;
    }
    Ok(folder)
}

/// Packs the file or folder `path` into `archive`, which appears whole or not at all.
pub(crate) fn pack(
    tree: &Tree,
    path: &str,
    archive: &Path,
    limit_bytes: u64,
) -> Result<(), SandboxError> {
    let refused = |errno| path_error(path, errno);
    let node = tree.find(ROOT, path, true).map_err(refused)?;
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(".");
    let mut part = archive.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&part);
    let written =
        File::options().write(true).create_new(true).mode(0o600).open(part).and_then(|file| {
            let limited = Limited { file: BufWriter::new(file), left: limit_bytes };
            let mut builder = tar::Builder::new(limited);
            pack_nodes(tree, node, name, &mut builder)?;
            builder.into_inner()?.file.into_inner()?.sync_all()?;
            fs::rename(part, archive)
        });
    written.map_err(|source| {
        drop(fs::remove_file(part));
        if source.get_ref().is_some_and(|inner| inner.is::<OverLimit>()) {
            return SandboxError::TooLarge { path: path.to_owned(), limit_bytes };
        }
        host_error("write the archive", archive, source)
    })
}

/// A file that takes no more than so many bytes.
struct Limited {
    file: BufWriter<File>,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the archive is larger than its limit")]
struct OverLimit;

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left =
            self.left.checked_sub(bytes.len() as u64).ok_or_else(|| io::Error::other(OverLimit))?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Packs `node` and all below it. Not by calling itself: a guest makes folders as deep as it likes.
fn pack_nodes(
    tree: &Tree,
    node: Node,
    name: &str,
    builder: &mut tar::Builder<Limited>,
) -> io::Result<()> {
    // What is left to be packed, the next one last.
    let mut pending = vec![(node, name.to_owned())];
    while let Some((node, name)) = pending.pop() {
        let stat = tree.stat(node).map_err(io::Error::other)?;
        let mut header = tar::Header::new_gnu();
        header.set_mode(stat.mode);
        header.set_mtime(stat.modified / 1_000_000_000);
        header.set_size(0);
        match stat.kind {
            FileKind::Folder => {
                header.set_entry_type(tar::EntryType::Directory);
                builder.append_data(&mut header, format!("{name}/"), io::empty())?;
                let entries = tree.entries(node).map_err(io::Error::other)?.iter().rev();
                pending.extend(entries.map(|(entry, node)| (*node, format!("{name}/{entry}"))));
            }
            FileKind::Link => {
                header.set_entry_type(tar::EntryType::Symlink);
                let target = tree.link_target(node).map_err(io::Error::other)?;
                builder.append_link(&mut header, name, target)?;
            }
            FileKind::File | FileKind::Other => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(stat.size);
                builder.append_data(&mut header, name, FileReader { tree, node, position: 0 })?;
            }
        }
    }
    Ok(())
}

struct FileReader<'a> {
    tree: &'a Tree,
    node: Node,
    position: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.tree.read_at(self.node, self.position, into).map_err(io::Error::other)?;
        self.position += n as u64;
        Ok(n)
    }
}

/// Copies the host's file or folder `from` to `to`; links are copied, not followed, and what is
/// neither file, folder nor link is left out.
pub(crate) fn import(tree: &mut Tree, from: &Path, to: &str, now: u64) -> Result<(), SandboxError> {
    let host = |source| host_error("read the mount", from, source);
    let refused = |errno| path_error(to, errno);
    let metadata = fs::symlink_metadata(from).map_err(host)?;
    if metadata.is_dir() {
        tree.make_folders(ROOT, to, now).map_err(refused)?;
        for entry in fs::read_dir(from).map_err(host)? {
            let entry = entry.map_err(host)?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(refused(Errno::NotUtf8));
            };
            import(tree, &entry.path(), &format!("{to}/{name}"), now)?;
        }
    } else if metadata.is_symlink() {
        let target = fs::read_link(from).map_err(host)?;
        let target = target.to_str().ok_or_else(|| refused(Errno::NotUtf8))?;
        tree.make_link(target, ROOT, to, now).map_err(refused)?;
    } else if metadata.is_file() {
        let (folder, name) = to.rsplit_once('/').unwrap_or(("/", to));
        let folder = tree.make_folders(ROOT, folder, now).map_err(refused)?;
        let mode = metadata.permissions().mode() & 0o7777;
        let file = tree.make_file(folder, name, mode, now).map_err(refused)?;
        let mut source = File::open(from).map_err(host)?;
        let mut buffer = vec![0; CHUNK];
        let mut written = 0;
        loop {
            let n = source.read(&mut buffer).map_err(host)?;
            if n == 0 {
                break;
            }
            let mut rest = &buffer[..n];
            while !rest.is_empty() {
                let m = tree.write_at(file, written, rest, now).map_err(refused)?;
                (written, rest) = (written + m as u64, &rest[m..]);
            }
        }
    }
    Ok(())
}

fn host_error(doing: &'static str, path: &Path, source: io::Error) -> SandboxError {
    SandboxError::Host { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_any_depth_are_packed() {
        let mut tree = Tree::new(1 << 30);
        let mut folder = tree.make_folder(ROOT, "deep", 0).unwrap();
        // Each name is written out with all above it: the archive grows with the depth's square.
        const DEPTH: usize = 3_000;
        for _ in 0..DEPTH {
            folder = tree.make_folder(folder, "d", 0).unwrap();
        }
        tree.make_file(folder, "file", 0o644, 0).unwrap();
        let place = tempfile::tempdir().unwrap();
        let archive = place.path().join("deep.tar");
        let packing = move || pack(&tree, "/deep", &archive, 1 << 30).map(|()| archive);
        // As small as a stack is that somebody might give to a thread.
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(packing).unwrap();
        let archive = thread.join().unwrap().unwrap();
        let mut archive = tar::Archive::new(File::open(archive).unwrap());
        let mut entries = archive.entries().unwrap();
        let last = entries.by_ref().last().unwrap().unwrap().path().unwrap().into_owned();
        assert_eq!(last.components().count(), DEPTH + 2);
        assert!(last.ends_with("d/file"));
    }
}
