//! Files of a sandbox, through the helper: as its user, and seen from inside, where no path and no
//! link leads out.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tar::EntryType;
use tokio::sync::mpsc;

use super::conversation::{Input, Said, Status, Surroundings};
use super::sandbox::Shared;
use crate::archive::{PartFile, check_tar, normalise};
use crate::{FileEntry, FileKind, SandboxError, SandboxStats};

/// How long one file operation may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// What the names of a folder may take up, with eleven bytes for each.
const MAX_LIST_BYTES: u64 = 16 << 20;
/// What the helper may say beside its answer: the part of an archive that something is about.
const MAX_WORDS_BYTES: usize = 1 << 16;
/// What the files of the control group may take up.
const MAX_USAGE_BYTES: u64 = 1 << 20;
const ENTRY_BYTES: usize = 25;
const BLOCK: u64 = 512;

const CGROUP_FILES: [&str; 10] = [
    "/sys/fs/cgroup/cpu.stat",
    "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory.peak",
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/pids.current",
    "/sys/fs/cgroup/cpuacct/cpuacct.usage",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    "/sys/fs/cgroup/memory/memory.max_usage_in_bytes",
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/fs/cgroup/pids/pids.current",
];

impl Shared {
    pub(super) async fn read_file(
        &self,
        path: &str,
        limit_bytes: u64,
    ) -> Result<Vec<u8>, SandboxError> {
        let inside = normalise(path, &self.workdir)?;
        let operation = vec!["read".into(), inside, limit_bytes.to_string()];
        let told = (path, limit_bytes);
        self.gather(operation, Input::Bytes(&[]), told).await
    }

    pub(super) async fn write_file(
        &self,
        path: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), SandboxError> {
        let inside = normalise(path, &self.workdir)?;
        let operation = vec!["write".into(), inside, (mode & 0o7777).to_string()];
        self.gather(operation, Input::Bytes(bytes), (path, 0)).await.map(drop)
    }

    pub(super) async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        let inside = normalise(path, &self.workdir)?;
        let operation = vec!["list".into(), inside, MAX_LIST_BYTES.to_string()];
        let bytes = self.gather(operation, Input::Bytes(&[]), (path, MAX_LIST_BYTES)).await?;
        let mut entries = parse_list(&bytes);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    pub(super) async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        let operation = vec!["unpack".into(), normalise(path, &self.workdir)?];
        self.check_open()?;
        let (sender, receiver) = mpsc::channel(8);
        let source = archive.to_owned();
        let host = |source: io::Error| SandboxError::Host {
            doing: "read archive",
            path: archive.into(),
            source,
        };
        let checked = {
            let source = source.clone();
            tokio::task::spawn_blocking(move || check_tar(&source)).await
        };
        checked.map_err(|error| host(io::Error::other(error)))??;
        let reader = tokio::task::spawn_blocking(move || send_entries(&source, &sender));
        let unpacked = self.gather(operation, Input::Channel(receiver), (path, 0)).await;
        // When unpacking failed, the reader found its channel closed.
        let read = reader.await.map_err(|error| host(io::Error::other(error)))?;
        unpacked?;
        read.map_err(host)
    }

    pub(super) async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        let inside = normalise(path, &self.workdir)?;
        let name = inside.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
        let mut packer = Packer::new(name);
        let mut file = PartFile::create(path, archive, limit_bytes).await?;
        let operation = vec!["pack".into(), inside.clone(), limit_bytes.to_string()];
        let packed = async {
            let surroundings = Surroundings::default();
            let mut conversation =
                self.converse(operation, surroundings, Input::Bytes(&[])).await?;
            let mut words = Vec::new();
            loop {
                match conversation.next().await {
                    Said::Stdout(bytes) => {
                        // Whoever may look into the helper may speak in its place: nothing of the host failed.
                        let bytes = packer.take(bytes).map_err(|source| {
                            let doing = format!("take `{path}` out of the sandbox");
                            SandboxError::Backend { doing, source: source.into() }
                        })?;
                        file.write(&bytes).await?;
                    }
                    Said::Stderr(bytes) => take_words(&mut words, &bytes),
                    Said::Status(status) => return judge(status, &words, (path, limit_bytes)),
                    Said::Broken(said) => return Err(self.broken("pack files", said).await),
                }
            }
        };
        tokio::time::timeout(PATIENCE, packed).await.unwrap_or_else(|_| Err(too_long(path)))?;
        file.write(&[0; 2 * BLOCK as usize]).await?;
        file.finish().await
    }

    /// Processor time, memory and processes, as the container's own control group tells them.
    pub(super) async fn usage(&self) -> Result<SandboxStats, SandboxError> {
        let mut operation = vec!["usage".to_owned()];
        operation.extend(CGROUP_FILES.map(str::to_owned));
        let bytes =
            self.gather(operation, Input::Bytes(&[]), ("/sys/fs/cgroup", MAX_USAGE_BYTES)).await?;
        Ok(parse_usage(bytes.into()))
    }

    /// Bytes that have been written below folders in this time, as the helper counts them: 4096 at least of each file and folder,
    /// no more once they are `enough`, and what was found up to then where `patience` is over.
    pub(super) async fn written(
        &self,
        folders: &[String],
        since: Duration,
        enough: u64,
        patience: Duration,
    ) -> Result<u64, SandboxError> {
        let mut operation = vec!["written".to_owned()];
        operation.extend([since.as_secs(), enough].map(|number| number.to_string()));
        operation.push(patience.as_millis().to_string());
        operation.extend(folders.iter().cloned());
        let bytes = self.gather(operation, Input::Bytes(&[]), ("/", 8)).await?;
        let bytes = bytes.try_into().map_err(|_| SandboxError::Backend {
            doing: "count what has been written".into(),
            source: "the helper told no number".into(),
        })?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Runs an operation to its end and gives what it wrote; `told` is the path as the caller
    /// wrote it, and the most bytes that are taken, whatever the helper is made to say.
    async fn gather(
        &self,
        operation: Vec<String>,
        input: Input<'_>,
        told: (&str, u64),
    ) -> Result<Vec<u8>, SandboxError> {
        self.gather_as(None, operation, input, told).await
    }

    /// The same as another user than the container's.
    pub(super) async fn gather_as(
        &self,
        user: Option<&str>,
        operation: Vec<String>,
        input: Input<'_>,
        told: (&str, u64),
    ) -> Result<Vec<u8>, SandboxError> {
        let whole = async {
            let user = user.map(str::to_owned);
            let surroundings = Surroundings { user, ..Surroundings::default() };
            let mut conversation = self.converse(operation, surroundings, input).await?;
            let (mut bytes, mut words) = (Vec::new(), Vec::new());
            loop {
                match conversation.next().await {
                    Said::Stdout(more) => {
                        let (path, limit_bytes) = (told.0.to_owned(), told.1);
                        // An engine that cannot begin or is ending says why in the helper's place, where nothing
                        // was to be said: what became of it comes behind that.
                        let most = limit_bytes.max(MAX_WORDS_BYTES as u64);
                        if (bytes.len() + more.len()) as u64 > most {
                            return Err(SandboxError::TooLarge { path, limit_bytes });
                        }
                        bytes.extend_from_slice(&more);
                    }
                    Said::Stderr(more) => take_words(&mut words, &more),
                    Said::Status(status) => {
                        judge(status, &words, told)?;
                        let (path, limit_bytes) = (told.0.to_owned(), told.1);
                        let is_within = bytes.len() as u64 <= limit_bytes;
                        return if is_within {
                            Ok(bytes)
                        } else {
                            Err(SandboxError::TooLarge { path, limit_bytes })
                        };
                    }
                    Said::Broken(said) => return Err(self.broken("reach files", said).await),
                }
            }
        };
        tokio::time::timeout(PATIENCE, whole).await.unwrap_or_else(|_| Err(too_long(told.0)))
    }
}

/// Keeps the beginning of what is said.
fn take_words(words: &mut Vec<u8>, more: &[u8]) {
    let room = MAX_WORDS_BYTES.saturating_sub(words.len());
    words.extend_from_slice(&more[..room.min(more.len())]);
}

fn too_long(path: &str) -> SandboxError {
    SandboxError::Backend {
        doing: format!("reach `{path}` within {} s", PATIENCE.as_secs()),
        source: Box::new(io::Error::from(io::ErrorKind::TimedOut)),
    }
}

/// What the status of a file operation means; `words` name the part of an archive it is about.
fn judge(status: Status, words: &[u8], told: (&str, u64)) -> Result<(), SandboxError> {
    const ENOENT: u32 = 2;
    const ENOSPC: u32 = 28;
    const EDQUOT: u32 = 122;
    const EIO: u32 = 5;
    let (path, limit_bytes) = told;
    let path = if words.is_empty() {
        path.to_owned()
    } else {
        String::from_utf8_lossy(words).into_owned()
    };
    let reason = io::Error::from_raw_os_error(status.value as i32);
    match (status.kind, status.value) {
        (Status::DONE, _) => Ok(()),
        (Status::TOO_LARGE, _) => Err(SandboxError::TooLarge { path, limit_bytes }),
        (Status::FAILED, ENOENT) => Err(SandboxError::NotFound { path }),
        (Status::FAILED, errno) if ![ENOSPC, EDQUOT, EIO].contains(&errno) => {
            Err(SandboxError::PathRefused { path, reason: reason.to_string() })
        }
        _ => Err(SandboxError::Backend {
            doing: format!("reach `{path}`"),
            source: Box::new(reason),
        }),
    }
}

fn parse_list(mut bytes: &[u8]) -> Vec<FileEntry> {
    let mut entries = Vec::new();
    while bytes.len() >= 11 {
        let kind = match bytes.get_u8() {
            b'f' => FileKind::File,
            b'd' => FileKind::Folder,
            b'l' => FileKind::Link,
            _ => FileKind::Other,
        };
        let size_bytes = bytes.get_u64_le();
        let length = usize::from(bytes.get_u16_le()).min(bytes.len());
        let (name, rest) = bytes.split_at(length);
        bytes = rest;
        let name = String::from_utf8_lossy(name).into_owned();
        entries.push(FileEntry { name, kind, size_bytes });
    }
    entries
}

/// Sends the entries of a checked archive as the helper wants them.
fn send_entries(archive: &Path, sender: &mpsc::Sender<Bytes>) -> io::Result<()> {
    let mut archive =
        tar::Archive::new(io::BufReader::with_capacity(1 << 18, File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => b'f',
            EntryType::Directory => b'd',
            EntryType::Symlink => b'l',
            EntryType::Link => b'h',
            _ => continue,
        };
        let path = entry.path_bytes().into_owned();
        let path = relative(&path);
        let link = entry.link_name_bytes().map(|link| link.into_owned()).unwrap_or_default();
        let link = if kind == b'h' { relative(&link) } else { link };
        let size = if kind == b'f' { entry.size() } else { 0 };
        let time = entry.header().mtime().unwrap_or(0);
        let mut header = BytesMut::with_capacity(ENTRY_BYTES + path.len() + link.len());
        header.extend_from_slice(&[kind]);
        header.extend_from_slice(&entry.header().mode().unwrap_or(0o644).to_le_bytes());
        header.extend_from_slice(&time.to_le_bytes());
        header.extend_from_slice(&(path.len() as u16).to_le_bytes());
        header.extend_from_slice(&(link.len() as u16).to_le_bytes());
        header.extend_from_slice(&size.to_le_bytes());
        header.extend_from_slice(&path);
        header.extend_from_slice(&link);
        if sender.blocking_send(header.freeze()).is_err() {
            return Ok(());
        }
        let mut left = size;
        while left > 0 {
            let mut chunk = vec![0; left.min(1 << 18) as usize];
            entry.read_exact(&mut chunk)?;
            left -= chunk.len() as u64;
            if sender.blocking_send(chunk.into()).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A path of an archive without `.` and empty parts; the check has refused everything worse.
fn relative(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.collect::<Vec<_>>().join(&b'/')
}

/// Turns the helper's entries into a tar archive as they come.
struct Packer {
    name: String,
    pending: BytesMut,
    /// Bytes of the present file that are still to come, and the padding after them.
    left: u64,
    padding: u64,
}

impl Packer {
    /// The whole is called `name`.
    fn new(name: &str) -> Self {
        Self { name: name.into(), pending: BytesMut::new(), left: 0, padding: 0 }
    }

    /// The archive's bytes that follow from these.
    fn take(&mut self, mut bytes: Bytes) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len());
        while !bytes.is_empty() || !self.pending.is_empty() {
            if self.left > 0 {
                let count = (self.left.min(bytes.len() as u64)) as usize;
                if count == 0 {
                    break;
                }
                out.extend_from_slice(&bytes.split_to(count));
                self.left -= count as u64;
                if self.left == 0 {
                    out.resize(out.len() + self.padding as usize, 0);
                }
                continue;
            }
            let Some(wanted) = self.wanted() else {
                self.header(&mut out)?;
                continue;
            };
            if bytes.is_empty() {
                break;
            }
            self.pending.extend_from_slice(&bytes.split_to(wanted.min(bytes.len())));
        }
        Ok(out)
    }

    /// Bytes that the present header lacks; absent when it is whole.
    fn wanted(&self) -> Option<usize> {
        if self.pending.len() < ENTRY_BYTES {
            return Some(ENTRY_BYTES - self.pending.len());
        }
        let whole = ENTRY_BYTES + self.lengths().0 + self.lengths().1;
        (self.pending.len() < whole).then(|| whole - self.pending.len())
    }

    fn lengths(&self) -> (usize, usize) {
        let number =
            |at: usize| usize::from(u16::from_le_bytes([self.pending[at], self.pending[at + 1]]));
        (number(13), number(15))
    }

    fn header(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (path_length, link_length) = self.lengths();
        let mut record = self.pending.split().freeze();
        let kind = record.get_u8();
        let mode = record.get_u32_le();
        let time = record.get_i64_le();
        record.advance(4);
        let size = record.get_u64_le();
        let path = record.split_to(path_length);
        let link = record.split_to(link_length);
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_mtime(time.max(0) as u64);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(size);
        header.set_entry_type(match kind {
            b'd' => EntryType::Directory,
            b'l' => EntryType::Symlink,
            _ => EntryType::Regular,
        });
        let mut name = self.name.clone().into_bytes();
        if !path.is_empty() {
            name.push(b'/');
            name.extend_from_slice(&path);
        }
        let name = Path::new(OsStr::from_bytes(&name));
        // Only headers: the builder pads what it copies itself, which is nothing.
        let mut builder = tar::Builder::new(Vec::new());
        if kind == b'l' {
            builder.append_link(&mut header, name, Path::new(OsStr::from_bytes(&link)))?;
        } else {
            builder.append_data(&mut header, name, io::empty())?;
        }
        out.extend_from_slice(builder.get_ref());
        self.left = size;
        self.padding = (BLOCK - size % BLOCK) % BLOCK;
        Ok(())
    }
}

fn parse_usage(mut bytes: Bytes) -> SandboxStats {
    let mut files = HashMap::new();
    for path in CGROUP_FILES {
        if bytes.len() < 4 {
            break;
        }
        let length = bytes.get_u32_le();
        if length == u32::MAX {
            continue;
        }
        let text = bytes.split_to((length as usize).min(bytes.len()));
        files.insert(path, String::from_utf8_lossy(&text).into_owned());
    }
    let free = (bytes.len() >= 8).then(|| bytes.get_u64_le()).filter(|&free| free != u64::MAX);
    let [cpu2, now2, peak2, events2, pids2, cpu1, now1, peak1, events1, pids1] = CGROUP_FILES;
    let whole = |paths: [&str; 2]| {
        paths.iter().find_map(|path| files.get(path)?.trim().parse::<u64>().ok())
    };
    let line = |path: &str, name: &str| {
        let line = files.get(path)?.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    let cpu = line(cpu2, "usage_usec ")
        .map(Duration::from_micros)
        .or_else(|| whole([cpu1, cpu1]).map(Duration::from_nanos));
    SandboxStats {
        cpu,
        memory_bytes: whole([now2, now1]),
        peak_memory_bytes: whole([peak2, peak1]),
        // The first process and the helper that reads this are not the sandbox's.
        pids: whole([pids2, pids1]).map(|pids| pids.saturating_sub(2) as u32),
        disk_bytes: None,
        free_disk_bytes: free,
        network: None,
        out_of_memory_kills: line(events2, "oom_kill ").or_else(|| line(events1, "oom_kill ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, path: &str, link: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(0o640u32.to_le_bytes());
        bytes.extend(1_000_000i64.to_le_bytes());
        bytes.extend((path.len() as u16).to_le_bytes());
        bytes.extend((link.len() as u16).to_le_bytes());
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(path.bytes().chain(link.bytes()).chain(content.iter().copied()));
        bytes
    }

    #[test]
    fn entries_become_an_archive_wherever_they_are_cut() {
        let long = "n".repeat(150);
        let mut entries = record(b'd', "", "", b"");
        entries.extend(record(b'f', "a", "", &[7; 700]));
        entries.extend(record(b'f', "empty", "", b""));
        entries.extend(record(b'f', &long, "", b"x"));
        entries.extend(record(b'l', "link", "a", b""));
        for size in [1, 3, 26, 511, 5000] {
            let mut packer = Packer::new("work");
            let mut archive = Vec::new();
            for piece in entries.chunks(size) {
                archive.extend(packer.take(Bytes::copy_from_slice(piece)).unwrap());
            }
            archive.extend([0; 1024]);
            let mut archive = tar::Archive::new(archive.as_slice());
            let found: Vec<_> = archive
                .entries()
                .unwrap()
                .map(|entry| {
                    let mut entry = entry.unwrap();
                    let mut content = Vec::new();
                    entry.read_to_end(&mut content).unwrap();
                    (entry.path().unwrap().display().to_string(), content.len())
                })
                .collect();
            let names = ["work", "work/a", "work/empty", &format!("work/{long}"), "work/link"];
            let sizes = [0, 700, 0, 1, 0];
            let expected: Vec<_> = names.iter().map(|name| name.to_string()).zip(sizes).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn usage_is_read_from_both_versions_of_control_groups() {
        let bytes = |texts: [Option<&str>; 10], free: u64| {
            let mut bytes = Vec::new();
            for text in texts {
                let length = text.map_or(u32::MAX, |text| text.len() as u32);
                bytes.extend(length.to_le_bytes());
                bytes.extend(text.unwrap_or("").bytes());
            }
            bytes.extend(free.to_le_bytes());
            Bytes::from(bytes)
        };
        let (none, second) = (
            None,
            [
                Some("usage_usec 5\nuser_usec 3\n"),
                Some("10\n"),
                Some("20\n"),
                Some("low 0\noom 2\noom_kill 1\n"),
                Some("4\n"),
            ],
        );
        let [a, b, c, d, e] = second;
        let stats = parse_usage(bytes([a, b, c, d, e, none, none, none, none, none], 7));
        assert_eq!(stats.free_disk_bytes, Some(7));
        assert_eq!(stats.cpu, Some(Duration::from_micros(5)));
        assert_eq!((stats.memory_bytes, stats.peak_memory_bytes), (Some(10), Some(20)));
        assert_eq!((stats.out_of_memory_kills, stats.pids), (Some(1), Some(2)));
        let first = [
            Some("7000\n"),
            Some("1\n"),
            Some("2\n"),
            Some("under_oom 0\noom_kill 3\n"),
            Some("2\n"),
        ];
        let [a, b, c, d, e] = first;
        let stats = parse_usage(bytes([none, none, none, none, none, a, b, c, d, e], u64::MAX));
        assert_eq!(stats.free_disk_bytes, None);
        assert_eq!(stats.cpu, Some(Duration::from_micros(7)));
        assert_eq!((stats.out_of_memory_kills, stats.pids), (Some(3), Some(0)));
    }

    #[test]
    fn folders_are_listed_from_their_records() {
        let mut bytes = vec![b'f'];
        bytes.extend(5u64.to_le_bytes());
        bytes.extend(1u16.to_le_bytes());
        bytes.push(b'a');
        let entries = parse_list(&bytes);
        assert_eq!(entries, [FileEntry { name: "a".into(), kind: FileKind::File, size_bytes: 5 }]);
    }
}
