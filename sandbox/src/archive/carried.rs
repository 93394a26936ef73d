//! Files that one sandbox hands to another.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tar::{EntryType, Header};
use tempfile::TempDir;

use super::check::MAX_ENTRIES;
use super::pattern::Exclusions;
use super::{check_tar, normalise};
use crate::{Sandbox, SandboxError};

/// Permissions that are carried: reading, writing and running, but no change of the user.
const CARRIED_MODE: u32 = 0o777;
/// Parts of a path within an archive of which some is left out.
const MAX_PARTS: usize = 256;

/// Files and folders that were taken out of a sandbox, on their way into another.
///
/// What they hold is whatever the sandbox wrote. But each thing lies where it lay, its links lead
/// nowhere but into itself, it runs as whoever starts it, and is not of the future.
#[derive(Debug)]
pub struct Carried {
    /// Holds the archives; gone with this.
    folder: TempDir,
    items: Vec<Item>,
}

/// One of the paths, as an archive.
#[derive(Debug)]
struct Item {
    archive: PathBuf,
    /// The folder to unpack it into: itself, or the one it lies in.
    into: String,
    is_folder: bool,
}

/// A file or folder that is taken for what can be carried of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CarriedPath {
    /// Where it lies, absolute or from the sandbox's working directory.
    pub path: String,
    /// What of a folder is left out, as GNU tar's `--exclude` reads patterns over names as `./a/b`.
    pub exclude: Vec<String>,
}

impl Carried {
    /// Takes the files and folders `paths` out of a sandbox, absolute or from its working directory.
    /// One that is absent is left out.
    ///
    /// # Errors
    ///
    /// [`SandboxError::TooLarge`] if their archives have more than `limit_bytes` in all,
    /// [`SandboxError::PathRefused`] for what cannot be carried: a link in place of a path, one that
    /// leads out of it, a device; those of [`Sandbox::download_tar`].
    pub async fn take(
        from: &dyn Sandbox,
        paths: &[String],
        limit_bytes: u64,
    ) -> Result<Self, SandboxError> {
        let whole = |path: &String| (path.clone(), None);
        Self::take_each(from, paths.iter().map(whole), limit_bytes).await
    }

    /// Takes what can be carried of these files and folders: links that lead out of a folder, devices and what else
    /// [`Carried::take`] refuses are left out, as are those that the patterns name. A path that is absent, or itself a link,
    /// is left out whole.
    ///
    /// # Errors
    ///
    /// As [`Carried::take`]; [`SandboxError::PathRefused`] only for archives with more than a million entries or paths of more
    /// than 256 parts, and for those that no sandbox makes.
    pub async fn take_fit(
        from: &dyn Sandbox,
        paths: &[CarriedPath],
        limit_bytes: u64,
    ) -> Result<Self, SandboxError> {
        let fit = |it: &CarriedPath| (it.path.clone(), Some(Exclusions::new(&it.exclude)));
        Self::take_each(from, paths.iter().map(fit), limit_bytes).await
    }

    async fn take_each(
        from: &dyn Sandbox,
        paths: impl Iterator<Item = (String, Option<Exclusions>)>,
        limit_bytes: u64,
    ) -> Result<Self, SandboxError> {
        let host = |source| SandboxError::Host {
            doing: "make a folder in",
            path: std::env::temp_dir(),
            source,
        };
        let folder = tempfile::Builder::new().prefix("spar-carried-").tempdir().map_err(host)?;
        let workdir = from.spec().workdir.clone().unwrap_or_else(|| "/".to_owned());
        let mut items = Vec::new();
        let mut left = limit_bytes;
        for (number, (path, fit)) in paths.enumerate() {
            let path = normalise(&path, &workdir)?;
            let raw = folder.path().join(format!("{number}.raw"));
            match from.download_tar(&path, &raw, left).await {
                Err(SandboxError::NotFound { .. }) => continue,
                Err(SandboxError::TooLarge { path, .. }) => {
                    return Err(SandboxError::TooLarge { path, limit_bytes });
                }
                downloaded => downloaded?,
            }
            let archive = folder.path().join(format!("{number}.tar"));
            let making = tokio::task::spawn_blocking(move || {
                let made = match &fit {
                    None => Item::make(&path, &raw, archive),
                    Some(exclusions) => Item::make_fit(&path, &raw, archive, exclusions),
                };
                let size = std::fs::metadata(&raw).map_or(0, |metadata| metadata.len());
                // Only one copy of each is kept.
                let _ = std::fs::remove_file(&raw);
                made.map(|item| (item, size))
            });
            let (item, size) = making.await.expect("reading an archive does not panic")?;
            left = left.saturating_sub(size);
            items.extend(item);
        }
        Ok(Self { folder, items })
    }

    /// Puts them into a sandbox, to the same places, over what is there.
    ///
    /// # Errors
    ///
    /// Those of [`Sandbox::upload_tar`]; [`SandboxError::PathRefused`] for links that lead out.
    pub async fn bring(&self, to: &dyn Sandbox) -> Result<(), SandboxError> {
        for item in &self.items {
            to.upload_tar(&item.into, &item.archive).await?;
        }
        Ok(())
    }

    /// The folders among them, which are brought into what lies there.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter(|item| item.is_folder).map(|item| item.into.as_str())
    }

    /// The folders that files among them lie in.
    pub fn folders_of_files(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter(|item| !item.is_folder).map(|item| item.into.as_str())
    }

    /// How many of the paths were there.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none of the paths was there.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Where the archives lie on the host.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Item {
    /// Makes the archive of `path` out of what a sandbox handed out, which may hold anything. Absent
    /// where there is nothing in it, as of a pipe.
    fn make(path: &str, raw: &Path, archive: PathBuf) -> Result<Option<Self>, SandboxError> {
        check_tar(raw)?;
        let host = |doing, place: &Path| {
            let path = place.to_owned();
            move |source| SandboxError::Host { doing, path, source }
        };
        let refuse = |reason: &str| SandboxError::PathRefused {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let read = host("read archive", raw);
        let wrote = host("write archive", &archive);
        let open = File::open(raw).map_err(host("read archive", raw))?;
        let made = File::create_new(&archive).map_err(host("create", &archive))?;
        let mut input = tar::Archive::new(BufReader::with_capacity(1 << 18, open));
        let mut output = tar::Builder::new(BufWriter::with_capacity(1 << 18, made));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (mut into, mut is_folder) = (None, false);
        for entry in input.entries().map_err(host("read archive", raw))? {
            let mut entry = entry.map_err(host("read archive", raw))?;
            let kind = entry.header().entry_type();
            let inside = below_first(&entry.path_bytes());
            let mut header = Header::new_gnu();
            let mode = entry.header().mode().unwrap_or(0o644) & CARRIED_MODE;
            header.set_mode(mode);
            header.set_mtime(entry.header().mtime().unwrap_or(0).min(now));
            header.set_size(0);
            header.set_entry_type(kind);
            let is_whole = inside.is_empty();
            match (kind, is_whole) {
                (EntryType::Directory, true) => {
                    (into, is_folder) = (Some(path.to_owned()), true);
                    continue;
                }
                (EntryType::Regular | EntryType::Continuous, true) => {
                    into = Some(if above.is_empty() { "/" } else { above }.to_owned());
                }
                (_, true) => return Err(refuse("it is a link")),
                (_, false) => {}
            }
            let place = if is_whole { name.as_bytes() } else { &inside };
            let place = Path::new(OsStr::from_bytes(place));
            let appended = match kind {
                EntryType::Directory => output.append_data(&mut header, place, io::empty()),
                EntryType::Regular | EntryType::Continuous => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_size(entry.size());
                    output.append_data(&mut header, place, &mut entry)
                }
                EntryType::Symlink | EntryType::Link => {
                    let link = entry.link_name_bytes().unwrap_or_default().into_owned();
                    let link = if kind == EntryType::Link { below_first(&link) } else { link };
                    output.append_link(&mut header, place, Path::new(OsStr::from_bytes(&link)))
                }
                _ => return Err(refuse("it holds what is neither file, folder nor link")),
            };
            appended.map_err(host("write archive", &archive))?;
        }
        let flushed = output.into_inner().and_then(|mut file| file.flush());
        flushed.map_err(wrote)?;
        if into.is_none() && std::fs::metadata(&archive).map_err(read)?.len() > 1024 {
            return Err(refuse("its archive has no entry for itself"));
        }
        let Some(into) = into else { return Ok(None) };
        // Links that were inside of the folder above are not inside of this.
        check_tar(&archive)?;
        Ok(Some(Self { archive, into, is_folder }))
    }

    /// The same of what is fit, without what the patterns name.
    fn make_fit(
        path: &str,
        raw: &Path,
        archive: PathBuf,
        exclusions: &Exclusions,
    ) -> Result<Option<Self>, SandboxError> {
        let host = |doing, place: &Path| {
            let path = place.to_owned();
            move |source| SandboxError::Host { doing, path, source }
        };
        let open = File::open(raw).map_err(host("read archive", raw))?;
        let made = File::create_new(&archive).map_err(host("create", &archive))?;
        let mut input = tar::Archive::new(BufReader::with_capacity(1 << 18, open));
        let mut output = tar::Builder::new(BufWriter::with_capacity(1 << 18, made));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (mut into, mut is_folder) = (None, false);
        // Files that were taken, to which hard links may lead; and links, below which nothing lies.
        let (mut files, mut links) = (BTreeSet::new(), BTreeSet::new());
        for (number, entry) in input.entries().map_err(host("read archive", raw))?.enumerate() {
            let mut entry = entry.map_err(host("read archive", raw))?;
            let kind = entry.header().entry_type();
            let inside = below_first(&entry.path_bytes());
            for (is_there, reason) in [
                (number >= MAX_ENTRIES, "its archive has more than a million entries"),
                (
                    inside.split(|&byte| byte == b'/').count() > MAX_PARTS,
                    "a path in it has more than 256 parts",
                ),
            ] {
                if is_there {
                    let (path, reason) = (path.to_owned(), reason.to_owned());
                    return Err(SandboxError::PathRefused { path, reason });
                }
            }
            let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous);
            if inside.is_empty() {
                match kind {
                    EntryType::Directory => {
                        (into, is_folder) = (Some(path.to_owned()), true);
                        continue;
                    }
                    _ if is_file => {
                        into = Some(if above.is_empty() { "/" } else { above }.to_owned());
                    }
                    _ => continue,
                }
            } else if is_up(&inside)
                || exclusions.leaves_out(&inside)
                || ancestors(&inside).any(|above| links.contains(above))
            {
                continue;
            }
            let mut header = Header::new_gnu();
            header.set_mode(entry.header().mode().unwrap_or(0o644) & CARRIED_MODE);
            header.set_mtime(entry.header().mtime().unwrap_or(0).min(now));
            header.set_size(0);
            header.set_entry_type(kind);
            let place = if inside.is_empty() { name.as_bytes() } else { &inside };
            let place = Path::new(OsStr::from_bytes(place));
            let link = entry.link_name_bytes().unwrap_or_default().into_owned();
            let appended = match kind {
                EntryType::Directory => output.append_data(&mut header, place, io::empty()),
                _ if is_file => {
                    files.insert(inside.clone());
                    header.set_entry_type(EntryType::Regular);
                    header.set_size(entry.size());
                    output.append_data(&mut header, place, &mut entry)
                }
                EntryType::Link => {
                    let link = below_first(&link);
                    if !files.contains(&link) {
                        continue;
                    }
                    output.append_link(&mut header, place, Path::new(OsStr::from_bytes(&link)))
                }
                EntryType::Symlink if stays_inside(&inside, &link) => {
                    links.insert(inside.clone());
                    output.append_link(&mut header, place, Path::new(OsStr::from_bytes(&link)))
                }
                _ => continue,
            };
            appended.map_err(host("write archive", &archive))?;
        }
        let flushed = output.into_inner().and_then(|mut file| file.flush());
        flushed.map_err(host("write archive", &archive))?;
        let Some(into) = into else { return Ok(None) };
        check_tar(&archive)?;
        Ok(Some(Self { archive, into, is_folder }))
    }
}

/// Whether a path goes up anywhere.
fn is_up(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|part| part == b"..")
}

/// The folders above a path within its archive.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

/// Whether a symbolic link at `place` is relative, goes up at its beginning alone, and not above the folder.
fn stays_inside(place: &[u8], link: &[u8]) -> bool {
    if link.is_empty() || link.starts_with(b"/") {
        return false;
    }
    let parts = || link.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let ups = parts().take_while(|part| *part == b"..").count();
    let depth = place.iter().filter(|byte| **byte == b'/').count();
    ups <= depth && parts().skip(ups).all(|part| part != b"..")
}

/// A path of an archive without its first part.
fn below_first(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.skip(1).collect::<Vec<_>>().join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::fake::FakeBackend;
    use crate::{Image, SandboxBackend, SandboxSpec};

    fn entry(kind: EntryType, mode: u32, mtime: u64, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(mtime);
        header.set_size(size);
        header
    }

    type Entries<'a> = &'a [(EntryType, &'a str, &'a str)];

    fn make(path: &str, entries: Entries<'_>) -> (TempDir, Result<Option<Item>, SandboxError>) {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("raw");
        let mut builder = tar::Builder::new(File::create(&raw).unwrap());
        for (kind, name, link) in entries {
            let is_file = *kind == EntryType::Regular;
            let mut header = entry(*kind, 0o6755, u64::MAX >> 30, u64::from(is_file));
            if link.is_empty() {
                let content: &[u8] = if is_file { b"x" } else { b"" };
                builder.append_data(&mut header, name, content).unwrap();
            } else {
                builder.append_link(&mut header, name, link).unwrap();
            }
        }
        builder.finish().unwrap();
        let item = Item::make(path, &raw, folder.path().join("made"));
        (folder, item)
    }

    #[test]
    fn what_is_carried_leads_nowhere_else_changes_no_user_and_is_not_of_the_future() {
        use EntryType::{Directory, Link, Regular, Symlink};
        let (_folder, item) = make(
            "/task/out",
            &[
                (Directory, "out", ""),
                (Directory, "out/d", ""),
                (Regular, "out/d/a", ""),
                (Symlink, "out/d/b", "../c"),
                (Link, "out/hard", "out/d/a"),
            ],
        );
        let item = item.unwrap().unwrap();
        assert_eq!(item.into, "/task/out");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut archive = tar::Archive::new(File::open(&item.archive).unwrap());
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let link = entry.link_name().unwrap().map(|link| link.display().to_string());
            assert_eq!(entry.header().mode().unwrap(), 0o755);
            assert!(entry.header().mtime().unwrap() <= now);
            seen.push((entry.path().unwrap().display().to_string(), link.unwrap_or_default()));
        }
        let expected = [("d", ""), ("d/a", ""), ("d/b", "../c"), ("hard", "d/a")];
        assert_eq!(seen, expected.map(|(name, link)| (name.to_owned(), link.to_owned())));
        let (_folder, item) = make("/out.txt", &[(Regular, "out.txt", "")]);
        assert_eq!(item.unwrap().unwrap().into, "/");
        assert!(make("/pipe", &[]).1.unwrap().is_none());
        let refused: [Entries<'_>; 5] = [
            // To the folder of the verifier, by a way that is inside of what lies above.
            &[(Directory, "out", ""), (Symlink, "out/a", "../tests/expected")],
            &[(Symlink, "out", "tests")],
            &[(Directory, "out", ""), (Symlink, "out/a", "/etc/passwd")],
            &[(Regular, "out/a", "")],
            &[(Directory, "out", ""), (Link, "out/a", "elsewhere")],
        ];
        for entries in refused {
            let error = make("/out", entries).1.unwrap_err();
            assert!(matches!(error, SandboxError::PathRefused { .. }), "{entries:?}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_carried_is_left_out_where_that_is_asked_for() {
        use EntryType::{Directory, Fifo, Link, Regular, Symlink};
        let entries: Entries<'_> = &[
            (Directory, "out", ""),
            (Symlink, "out/python", "/usr/bin/python3"),
            (Symlink, "out/up", "../secret"),
            (Directory, "out/d", ""),
            (Regular, "out/d/a", ""),
            (Symlink, "out/d/b", "../c"),
            (Regular, "out/d/a.pyc", ""),
            (Link, "out/hard", "out/d/a"),
            (Link, "out/soft", "out/d/a.pyc"),
            (Fifo, "out/pipe", ""),
            (Directory, "out/node_modules", ""),
            (Regular, "out/node_modules/x", ""),
        ];
        let (folder, _) = make("/task/out", entries);
        let exclude = ["*.pyc", "node_modules"].map(str::to_owned);
        let raw = folder.path().join("raw");
        let archive = folder.path().join("fit");
        let item = Item::make_fit("/task/out", &raw, archive, &Exclusions::new(&exclude));
        let item = item.unwrap().unwrap();
        assert_eq!((item.into.as_str(), item.is_folder), ("/task/out", true));
        let mut archive = tar::Archive::new(File::open(&item.archive).unwrap());
        let names: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["d", "d/a", "d/b", "hard"]);
        let (folder, _) = make("/out", &[(Symlink, "out", "/etc")]);
        let raw = folder.path().join("raw");
        let none = Item::make_fit("/out", &raw, folder.path().join("fit"), &Exclusions::new(&[]));
        assert!(none.unwrap().is_none());
        let deep = format!("out{}", "/a".repeat(257));
        let (folder, _) = make("/out", &[(Directory, "out", ""), (Directory, deep.as_str(), "")]);
        let raw = folder.path().join("raw");
        let refused =
            Item::make_fit("/out", &raw, folder.path().join("fit"), &Exclusions::new(&[]));
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("more than 256 parts"), "{error}");
    }

    #[tokio::test]
    async fn files_go_from_one_sandbox_to_another_within_a_limit() {
        let backend = FakeBackend::new();
        let spec =
            SandboxSpec { workdir: Some("/task".into()), ..SandboxSpec::new(Image::Default) };
        let from = backend.create(&spec).await.unwrap();
        from.write_file("/task/a", b"one", 0o644).await.unwrap();
        from.write_file("/else/d/b", b"two", 0o644).await.unwrap();
        from.write_file("/task/left", b"three", 0o644).await.unwrap();
        let paths = ["a", "/else", "/missing"].map(str::to_owned);
        let carried = Carried::take(&*from, &paths, 1 << 20).await.unwrap();
        assert_eq!(carried.len(), 2);
        from.close().await.unwrap();
        let to = backend.create(&spec).await.unwrap();
        to.write_file("/task/a", b"before", 0o644).await.unwrap();
        carried.bring(&*to).await.unwrap();
        assert_eq!(to.read_file("/task/a", 100).await.unwrap(), b"one");
        assert_eq!(to.read_file("/else/d/b", 100).await.unwrap(), b"two");
        assert!(to.read_file("/task/left", 100).await.is_err());
        // The second of them is too much, though each alone is not.
        to.write_file("/task/b", &[7; 3000], 0o644).await.unwrap();
        to.write_file("/task/c", &[7; 3000], 0o644).await.unwrap();
        let paths = ["b", "c"].map(str::to_owned);
        let error = Carried::take(&*to, &paths, 8000).await.unwrap_err();
        assert!(matches!(error, SandboxError::TooLarge { limit_bytes: 8000, .. }), "{error}");
        let folder = carried.folder().to_owned();
        drop(carried);
        assert!(!folder.exists());
    }
}
