//! Which archives are taken.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use tar::EntryType;

use super::MAX_PATH_BYTES;
use super::tree::{Kind, Tree};
use crate::SandboxError;

/// Entries that an archive may have.
pub(super) const MAX_ENTRIES: usize = 1_000_000;

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

#[derive(Debug)]
pub(super) enum Problem {
    Io(io::Error),
    Entry { path: Vec<u8>, reason: &'static str },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Names that come in headers of their own before the entry they belong to.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
    is_pending: bool,
}

pub(super) fn check_entries(mut reader: impl Read) -> Result<(), Problem> {
    let mut seen = Tree::new();
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
    seen: &mut Tree,
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
    if let Err(reason) = seen.claim(&parts, what) {
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
fn check_hard_link(target: &[u8], own: &[&[u8]], seen: &Tree) -> Result<(), &'static str> {
    let parts = inside_parts(target).map_err(|_| "it is a hard link that leads outside")?;
    if parts == own {
        return Err("it is a hard link to itself");
    }
    match seen.at(&parts) {
        Some(Kind::File) => Ok(()),
        _ => Err("it is a hard link to something that is no earlier file of the archive"),
    }
}
