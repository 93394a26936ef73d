//! Paths and tar archives that cross the wall of a sandbox.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use tar::EntryType;
use tokio::io::AsyncWriteExt;

use crate::SandboxError;

/// Entries that an archive may have.
const MAX_ENTRIES: usize = 1_000_000;

/// Bytes of a path inside, as Linux limits them.
const MAX_PATH_BYTES: usize = 4096;

/// Bytes of a block: headers are one, content is padded to whole ones.
const BLOCK_BYTES: u64 = 512;

/// Bytes of an extended header.
const MAX_EXTENSION_BYTES: u64 = 1 << 20;

/// Checks that the plain tar archive at `archive` stays inside the folder it is unpacked into,
/// whichever program unpacks it. Reads the file: call it off the async threads.
///
/// Allowed are files, folders, links to earlier files of the archive, and symbolic links whose
/// target is relative, goes up only at its beginning, and not above the folder. Whatever programs
/// read differently (two names for one entry, sparse files, data after the end) is refused.
///
/// # Errors
///
/// [`SandboxError::PathRefused`] names the first entry that is not allowed,
/// [`SandboxError::Host`] if the file cannot be read or is no whole archive.
pub(crate) fn check_tar(archive: &Path) -> Result<(), SandboxError> {
    let host = |source| SandboxError::Host { doing: "read archive", path: archive.into(), source };
    check_entries(BufReader::with_capacity(1 << 16, File::open(archive).map_err(host)?)).map_err(
        |problem| match problem {
            Problem::Io(source) => host(source),
            Problem::Entry { path, reason } => SandboxError::PathRefused {
                path: String::from_utf8_lossy(&path).into_owned(),
                reason: reason.into(),
            },
        },
    )
}

/// `path` as an absolute path without `.`, `..`, doubled or trailing slashes; a relative one starts
/// at `workdir`. As everywhere on Linux, `..` of the root is the root.
///
/// Links are not looked at: what a path leads to is only known inside.
///
/// # Errors
///
/// [`SandboxError::PathRefused`] for an empty path, one with a NUL byte, and an overlong one.
pub(crate) fn normalise(path: &str, workdir: &str) -> Result<String, SandboxError> {
    let refuse = |reason: &str| SandboxError::PathRefused {
        path: path.chars().take(200).collect(),
        reason: reason.into(),
    };
    if path.is_empty() {
        return Err(refuse("it is empty"));
    }
    if path.contains('\0') {
        return Err(refuse("it holds a NUL byte"));
    }
    let start = if path.starts_with('/') { "" } else { workdir };
    let mut parts = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let whole = format!("/{}", parts.join("/"));
    if whole.len() >= MAX_PATH_BYTES {
        return Err(refuse("it is longer than 4095 bytes"));
    }
    Ok(whole)
}

/// A file of the host that is being written beside its place; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct PartFile {
    file: tokio::fs::File,
    part: PathBuf,
    target: PathBuf,
    inside: String,
    limit_bytes: u64,
    written_bytes: u64,
    is_finished: bool,
}

impl PartFile {
    /// Begins a file that takes its place at `target` when it is finished.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Host`].
    pub(crate) async fn create(
        inside: &str,
        target: &Path,
        limit_bytes: u64,
    ) -> Result<Self, SandboxError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", crate::nonce::nonce()));
        let part = target.with_file_name(name);
        let file =
            tokio::fs::OpenOptions::new().write(true).create_new(true).open(&part).await.map_err(
                |source| SandboxError::Host { doing: "create", path: target.into(), source },
            )?;
        let (target, inside) = (target.to_owned(), inside.to_owned());
        Ok(Self { file, part, target, inside, limit_bytes, written_bytes: 0, is_finished: false })
    }

    /// Appends.
    ///
    /// # Errors
    ///
    /// [`SandboxError::TooLarge`], [`SandboxError::DiskFull`], [`SandboxError::Host`].
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), SandboxError> {
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes > self.limit_bytes {
            return Err(SandboxError::TooLarge {
                path: self.inside.clone(),
                limit_bytes: self.limit_bytes,
            });
        }
        self.file.write_all(bytes).await.map_err(|source| self.error(source))
    }

    /// Puts it in its place.
    ///
    /// # Errors
    ///
    /// [`SandboxError::DiskFull`], [`SandboxError::Host`].
    pub(crate) async fn finish(mut self) -> Result<(), SandboxError> {
        self.file.flush().await.map_err(|source| self.error(source))?;
        tokio::fs::rename(&self.part, &self.target).await.map_err(|source| self.error(source))?;
        self.is_finished = true;
        Ok(())
    }

    fn error(&self, source: io::Error) -> SandboxError {
        if source.kind() == io::ErrorKind::StorageFull {
            return SandboxError::DiskFull { doing: format!("write {}", self.target.display()) };
        }
        SandboxError::Host { doing: "write", path: self.target.clone(), source }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // A file that was never written, or is gone already, is as good as removed.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

#[derive(Debug)]
enum Problem {
    Io(io::Error),
    Entry { path: Vec<u8>, reason: &'static str },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What an archive puts at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
}

/// Names that come in headers of their own before the entry they belong to.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
    is_pending: bool,
}

fn check_entries(mut reader: impl Read) -> Result<(), Problem> {
    let mut seen: HashMap<Vec<u8>, Kind> = HashMap::from([(Vec::new(), Kind::Folder)]);
    let mut extensions = Extensions::default();
    let mut count = 0;
    let mut end_bytes = 0;
    let taken_bytes = Cell::new(0);
    let mut archive = tar::Archive::new(Counted { reader: &mut reader, taken_bytes: &taken_bytes });
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        end_bytes = entry.raw_file_position() + entry.size().next_multiple_of(BLOCK_BYTES);
        count += 1;
        if count > MAX_ENTRIES {
            let reason = "the archive has more than a million entries";
            return Err(Problem::Entry { path: entry.path_bytes().into_owned(), reason });
        }
        let kind = entry.header().entry_type();
        let is_extension = kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions()
            || kind.is_gnu_longname()
            || kind.is_gnu_longlink();
        if is_extension {
            read_extension(&mut entry, kind, &mut extensions)?;
        } else {
            check_entry(&entry, kind, &std::mem::take(&mut extensions), &mut seen)?;
            // Reading to the end tells a truncated archive from a whole one.
            let (size, mut content) = (entry.size(), entry);
            if io::copy(&mut content, &mut io::sink())? != size {
                return Err(Problem::Io(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
    drop(archive);
    if extensions.is_pending {
        return Err(broken("a name without an entry is at the end of the archive"));
    }
    if taken_bytes.get() < end_bytes + BLOCK_BYTES {
        return Err(broken("the archive was cut: it has no end mark"));
    }
    check_rest(reader)
}

/// Counts what a parser takes.
struct Counted<'r, R> {
    reader: &'r mut R,
    taken_bytes: &'r Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let num = self.reader.read(bytes)?;
        self.taken_bytes.set(self.taken_bytes.get() + num as u64);
        Ok(num)
    }
}

/// Behind the first block of zeros, which ends an archive for some programs, only zeros may follow.
fn check_rest(mut reader: impl Read) -> Result<(), Problem> {
    let mut block = [0; 4096];
    loop {
        match reader.read(&mut block)? {
            0 => return Ok(()),
            num if block[..num].iter().any(|byte| *byte != 0) => {
                return Err(broken("data follows after the end of the archive"));
            }
            _ => {}
        }
    }
}

fn broken(reason: &str) -> Problem {
    Problem::Io(io::Error::new(io::ErrorKind::InvalidData, reason))
}

fn read_extension(
    entry: &mut tar::Entry<'_, impl Read>,
    kind: EntryType,
    extensions: &mut Extensions,
) -> Result<(), Problem> {
    let size = entry.size();
    let own_path = entry.path_bytes().into_owned();
    let refuse = |reason| Err(Problem::Entry { path: own_path.clone(), reason });
    if size > MAX_EXTENSION_BYTES {
        return refuse("its extended header is larger than 1 MiB");
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(Problem::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    if kind.is_pax_global_extensions() {
        // Programs differ in what they apply to the entries that follow.
        for (key, _) in pax_records(&bytes).ok_or_else(|| broken("a broken extended header"))? {
            if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse") {
                return refuse("a global header gives names or sizes");
            }
        }
        return Ok(());
    }
    extensions.is_pending = true;
    let mut set = |slot: fn(&mut Extensions) -> &mut Option<Vec<u8>>, value: &[u8]| {
        slot(extensions).replace(value.to_vec()).is_none()
    };
    if kind.is_pax_local_extensions() {
        for (key, value) in pax_records(&bytes).ok_or_else(|| broken("a broken extended header"))? {
            let is_first = match key {
                b"path" => set(|e| &mut e.path, value),
                b"linkpath" => set(|e| &mut e.link, value),
                b"size" => set(|e| &mut e.size, value),
                key if key.starts_with(b"GNU.sparse") => {
                    return refuse("sparse files are not taken");
                }
                _ => true,
            };
            if !is_first {
                return refuse("it has two names");
            }
        }
        return Ok(());
    }
    let value = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    let is_first = if kind.is_gnu_longname() {
        set(|e| &mut e.path, value)
    } else {
        set(|e| &mut e.link, value)
    };
    if is_first { Ok(()) } else { refuse("it has two names") }
}

/// The records `LENGTH KEY=VALUE\n` of an extended header.
fn pax_records(mut bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
        let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        records.push((&record[..equals], &record[equals + 1..]));
        bytes = &bytes[length..];
    }
    Some(records)
}

fn check_entry(
    entry: &tar::Entry<'_, impl Read>,
    kind: EntryType,
    extensions: &Extensions,
    seen: &mut HashMap<Vec<u8>, Kind>,
) -> Result<(), Problem> {
    let header = entry.header();
    let path = match &extensions.path {
        Some(path) => path.clone(),
        None => header.path_bytes().into_owned(),
    };
    let refuse = |reason| Err(Problem::Entry { path: path.clone(), reason });
    if let Some(size) = &extensions.size
        && std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()) != Some(entry.size())
    {
        return refuse("its two headers give different sizes");
    }
    let is_known_format = header.as_ustar().is_some()
        || header.as_gnu().is_some()
        || header.as_bytes()[257..265].iter().all(|byte| *byte == 0);
    if !is_known_format {
        return refuse("its header is of no known format");
    }
    let is_dashed = path.ends_with(b"/");
    let parts = match inside_parts(&path) {
        Ok(parts) => parts,
        Err(reason) => return refuse(reason),
    };
    let what = match kind {
        EntryType::Directory => Kind::Folder,
        EntryType::Regular if is_dashed && entry.size() == 0 => Kind::Folder,
        EntryType::Regular if is_dashed => return refuse("a file is named as a folder"),
        EntryType::Regular | EntryType::Link => Kind::File,
        EntryType::Symlink => Kind::Link,
        EntryType::Char | EntryType::Block => return refuse("it is a device file"),
        EntryType::Fifo => return refuse("it is a named pipe"),
        EntryType::GNUSparse => return refuse("sparse files are not taken"),
        _ => return refuse("it is of a kind that is not taken"),
    };
    if kind != EntryType::Regular && entry.size() != 0 {
        return refuse("it has content and is no file");
    }
    if let Err(reason) = claim(&parts, what, seen) {
        return refuse(reason);
    }
    if !matches!(kind, EntryType::Link | EntryType::Symlink) {
        return Ok(());
    }
    let target = match &extensions.link {
        Some(link) => link.clone(),
        None => header.link_name_bytes().unwrap_or_default().into_owned(),
    };
    let checked = if kind == EntryType::Symlink {
        check_symlink(&target, parts.len() - 1)
    } else {
        check_hard_link(&target, &parts, seen)
    };
    checked.or_else(refuse)
}

/// The parts of a path that stays below where it starts.
fn inside_parts(path: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    if path.len() >= MAX_PATH_BYTES {
        return Err("its name is longer than 4095 bytes");
    }
    if path.contains(&0) {
        return Err("its name holds a NUL byte");
    }
    if path.first() == Some(&b'/') {
        return Err("its name is an absolute path");
    }
    if path.is_empty() {
        return Err("it has no name");
    }
    let mut parts = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err("its name goes up with `..`"),
            part => parts.push(part),
        }
    }
    Ok(parts)
}

/// Notes that `what` is at the path; nothing may be beneath, or come in place of, a link.
fn claim(
    parts: &[&[u8]],
    what: Kind,
    seen: &mut HashMap<Vec<u8>, Kind>,
) -> Result<(), &'static str> {
    for above in 1..parts.len() {
        match seen.entry(parts[..above].join(&b'/')).or_insert(Kind::Folder) {
            Kind::Folder => {}
            Kind::File => return Err("it lies beneath a file"),
            Kind::Link => return Err("it lies beneath a symbolic link"),
        }
    }
    match (seen.insert(parts.join(&b'/'), what), what) {
        (None, _) | (Some(Kind::File), Kind::File) | (Some(Kind::Folder), Kind::Folder) => Ok(()),
        (Some(Kind::Link), _) => Err("it comes in place of a symbolic link"),
        (Some(_), Kind::Link) => Err("it turns what is there into a symbolic link"),
        (Some(Kind::Folder), Kind::File) => Err("it turns a folder into a file"),
        (Some(Kind::File), Kind::Folder) => Err("it turns a file into a folder"),
    }
}

/// A target may go up at its beginning, where all folders are real ones, and not later, where a
/// part may itself be a link and `..` leads elsewhere than it seems.
fn check_symlink(target: &[u8], depth: usize) -> Result<(), &'static str> {
    if target.is_empty() || target.contains(&0) {
        return Err("its target is empty or holds a NUL byte");
    }
    if target.len() >= MAX_PATH_BYTES {
        return Err("its target is longer than 4095 bytes");
    }
    if target[0] == b'/' {
        return Err("it is a link to an absolute path");
    }
    let (mut up, mut is_down) = (0, false);
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if is_down => return Err("its target goes up with `..` after going down"),
            b".." => up += 1,
            _ => is_down = true,
        }
    }
    if up > depth { Err("it is a link that leads outside") } else { Ok(()) }
}

/// A hard link to a symbolic link would move that to another depth, so the target has to be a file
/// of the archive.
fn check_hard_link(
    target: &[u8],
    own: &[&[u8]],
    seen: &HashMap<Vec<u8>, Kind>,
) -> Result<(), &'static str> {
    let parts = inside_parts(target).map_err(|_| "it is a hard link that leads outside")?;
    if parts == own {
        return Err("it is a hard link to itself");
    }
    match seen.get(&parts.join(&b'/')) {
        Some(Kind::File) => Ok(()),
        _ => Err("it is a hard link to something that is no earlier file of the archive"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(kind: EntryType, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name);
        old.linkname[..link.len()].copy_from_slice(link);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    fn file(name: &str) -> Vec<u8> {
        entry(EntryType::Regular, name.as_bytes(), b"", b"content")
    }

    fn folder(name: &str) -> Vec<u8> {
        entry(EntryType::Directory, name.as_bytes(), b"", b"")
    }

    fn link(name: &str, target: &str) -> Vec<u8> {
        entry(EntryType::Symlink, name.as_bytes(), target.as_bytes(), b"")
    }

    fn hard_link(name: &str, target: &str) -> Vec<u8> {
        entry(EntryType::Link, name.as_bytes(), target.as_bytes(), b"")
    }

    fn special(kind: EntryType, name: &str) -> Vec<u8> {
        entry(kind, name.as_bytes(), b"", b"")
    }

    fn pax(kind: EntryType, records: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = String::new();
        for (key, value) in records {
            let rest = format!(" {key}={value}\n");
            let mut length = rest.len();
            while length != rest.len() + length.to_string().len() {
                length = rest.len() + length.to_string().len();
            }
            bytes += &format!("{length}{rest}");
        }
        entry(kind, b"pax", b"", bytes.as_bytes())
    }

    fn check_bytes(bytes: &[u8]) -> Result<(), SandboxError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        std::fs::write(&path, bytes).unwrap();
        check_tar(&path)
    }

    fn check(entries: &[Vec<u8>]) -> Result<(), SandboxError> {
        let mut bytes = entries.concat();
        bytes.extend([0; 1024]);
        check_bytes(&bytes)
    }

    #[test]
    fn harmless_archives_are_taken() {
        let long = "d/".repeat(90) + "file";
        let harmless: &[&[Vec<u8>]] = &[
            &[],
            &[folder("./"), file("./a"), file("b/c/d"), folder("b")],
            &[file("a"), file("a")],
            &[link("lib/x.so", "../usr/lib/x.so"), link("here", "."), link("d/e/top", "../..")],
            &[file("a"), hard_link("b", "./a"), hard_link("d/c", "b")],
            &[pax(EntryType::XHeader, &[("path", &long), ("mtime", "1.5")]), file("short")],
            &[pax(EntryType::XGlobalHeader, &[("comment", "of git archive")]), file("a")],
            &[entry(EntryType::GNULongName, b"././@LongLink", b"", long.as_bytes()), file("short")],
            &[entry(EntryType::Regular, b"old/", b"", b""), file("old/file")],
        ];
        for (num, entries) in harmless.iter().enumerate() {
            check(entries).unwrap_or_else(|error| panic!("{num}: {error}"));
        }
    }

    #[test]
    fn hostile_archives_are_refused_and_the_entry_is_named() {
        let x = EntryType::XHeader;
        let hostile: &[(&str, &[Vec<u8>])] = &[
            ("/etc/passwd", &[file("/etc/passwd")]),
            ("../x", &[file("../x")]),
            ("a/../../x", &[file("a/../../x")]),
            ("a/..", &[folder("a/..")]),
            ("l/x", &[link("l", "d"), file("l/x")]),
            ("l/d/x", &[link("l", "."), file("l/d/x")]),
            ("l", &[link("l", "/etc")]),
            ("l", &[link("l", "..")]),
            ("d/l", &[link("d/l", "../../x")]),
            ("./d/.//l", &[link("./d/.//l", "../../x")]),
            ("p", &[link("s", "."), link("p", "s/s/../../x")]),
            ("d", &[file("d/x"), link("d", "elsewhere")]),
            ("d", &[folder("d"), link("d", "elsewhere")]),
            ("f", &[link("f", "g"), file("f")]),
            ("f", &[file("f"), link("f", "g")]),
            ("f/x", &[file("f"), file("f/x")]),
            ("h", &[hard_link("h", "/etc/passwd")]),
            ("h", &[hard_link("h", "../x")]),
            ("h", &[hard_link("h", "not-in-the-archive")]),
            ("h", &[hard_link("h", "h")]),
            ("h", &[link("a/b/l", "../../x"), hard_link("h", "a/b/l")]),
            ("h", &[folder("d"), hard_link("h", "d")]),
            (".", &[link(".", "d")]),
            ("null", &[special(EntryType::Char, "null")]),
            ("sda", &[special(EntryType::Block, "sda")]),
            ("pipe", &[special(EntryType::Fifo, "pipe")]),
            ("s", &[special(EntryType::GNUSparse, "s")]),
            ("?", &[special(EntryType::new(b'?'), "?")]),
            ("a\0b", &[pax(x, &[("path", "a\0b")]), file("a")]),
            ("/abs", &[pax(x, &[("path", "/abs")]), file("a")]),
            ("l", &[pax(x, &[("linkpath", "/etc")]), link("l", "fine")]),
            ("f", &[pax(x, &[("size", "0")]), file("f")]),
            ("pax", &[pax(x, &[("path", "a"), ("path", "b")]), file("f")]),
            ("pax", &[pax(x, &[("GNU.sparse.name", "a")]), file("f")]),
            ("pax", &[pax(EntryType::XGlobalHeader, &[("path", "/etc/x")]), file("f")]),
            (
                "long",
                &[
                    pax(x, &[("path", "a")]),
                    entry(EntryType::GNULongName, b"long", b"", b"b\0"),
                    file("f"),
                ],
            ),
        ];
        for (name, entries) in hostile {
            match check(entries) {
                Err(SandboxError::PathRefused { path, reason }) => {
                    assert_eq!(path, *name, "{reason}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_whole_archive_is_an_error_of_the_host() {
        let whole = [file("a"), vec![0; 1024]].concat();
        check_bytes(&whole).unwrap();
        let mut after = whole.clone();
        after.extend(file("../x"));
        let lone = [file("a"), vec![0; 512], file("../x"), vec![0; 1024]].concat();
        let zeros = entry(EntryType::Regular, b"zeros", b"", &[0; 2048]);
        let dangling = [pax(EntryType::XHeader, &[("path", "a")]), vec![0; 1024]].concat();
        let broken: &[&[u8]] = &[
            b"",
            b"garbage",
            &[b'x'; 2000],
            &[0x1f, 0x8b, 8, 0],
            &whole[..100],
            &whole[..600],
            &whole[..1024],
            &zeros,
            &after,
            &lone,
            &dangling,
        ];
        for (num, bytes) in broken.iter().enumerate() {
            match check_bytes(bytes) {
                Err(SandboxError::Host { doing: "read archive", .. }) => {}
                other => panic!("{num}: {other:?}"),
            }
        }
        assert!(matches!(check_tar(Path::new("/nowhere.tar")), Err(SandboxError::Host { .. })));
    }

    #[test]
    fn paths_are_normalised_as_they_read() {
        for (path, expected) in [
            ("/", "/"),
            ("/a//b/./c/", "/a/b/c"),
            ("x", "/work/x"),
            ("./x/../y", "/work/y"),
            ("..", "/"),
            ("../../../etc/passwd", "/etc/passwd"),
            ("/../..", "/"),
        ] {
            assert_eq!(normalise(path, "/work").unwrap(), expected, "{path}");
        }
        for path in ["", "a\0b", &"x/".repeat(3000)] {
            assert!(matches!(normalise(path, "/"), Err(SandboxError::PathRefused { .. })));
        }
    }

    #[tokio::test]
    async fn what_is_saved_is_a_whole_file_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.tar");
        let mut part = PartFile::create("/x", &target, 4).await.unwrap();
        part.write(b"abc").await.unwrap();
        let error = part.write(b"de").await.unwrap_err();
        assert!(matches!(error, SandboxError::TooLarge { limit_bytes: 4, .. }), "{error}");
        drop(part);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut part = PartFile::create("/x", &target, 5).await.unwrap();
        part.write(b"abc").await.unwrap();
        part.write(b"de").await.unwrap();
        assert!(!target.exists());
        part.finish().await.unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"abcde");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        let nowhere = folder.path().join("no/out.tar");
        let error = PartFile::create("/x", &nowhere, 5).await.unwrap_err();
        assert!(matches!(error, SandboxError::Host { doing: "create", .. }), "{error}");
    }

    /// Where a path leads in a world of links, as the kernel would walk it; `None` is outside.
    fn walk(
        start: &[String],
        path: &str,
        links: &HashMap<Vec<String>, String>,
        left: u32,
    ) -> Option<Vec<String>> {
        let mut place = start.to_vec();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    place.pop()?;
                }
                part => {
                    place.push(part.to_owned());
                    if let Some(target) = links.get(&place) {
                        place.pop();
                        if left == 0 {
                            return Some(place); // A loop: the kernel refuses it.
                        }
                        place = walk(&place, target, links, left - 1)?;
                    }
                }
            }
        }
        Some(place)
    }

    proptest! {
        #[test]
        fn no_path_through_links_that_were_taken_leads_outside(
            links in proptest::collection::vec(("[ab](/[ab]){0,2}", r"([ab]|\.|\.\.)(/([ab]|\.\.)){0,3}"), 1..6),
            probe in "[ab](/[ab]){0,5}",
        ) {
            let entries: Vec<_> = links.iter().map(|(name, target)| link(name, target)).collect();
            if check(&entries).is_ok() {
                let world = links
                    .iter()
                    .map(|(name, target)| (name.split('/').map(str::to_owned).collect(), target.clone()))
                    .collect();
                prop_assert!(walk(&[], &probe, &world, 8).is_some());
            }
        }

        #[test]
        fn normal_paths_stay_as_they_are(path in r"[a./]{1,12}", workdir in "(/[ab]){0,3}") {
            let once = normalise(&path, &workdir).unwrap();
            prop_assert_eq!(&normalise(&once, "/other").unwrap(), &once);
            prop_assert!(once.starts_with('/'));
            prop_assert!(!once.split('/').any(|part| part == "." || part == ".."));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
            let _ = check_entries(bytes.as_slice());
        }

        #[test]
        fn no_cut_of_an_archive_is_taken(cut in 0usize..3072) {
            let whole = [file("a"), file("b"), vec![0; 1024]].concat();
            prop_assert_eq!(check_entries(&whole[..cut]).is_ok(), cut >= 2048 + 512);
        }
    }
}
