//! Groups in a folder of compressed JSON lines.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spar_core::redaction::{self, Redactor};
use spar_core::{
    Group, StoreError, TRAJECTORY_VERSION, Trajectory, TrajectoryError, TrajectoryStore,
};

use crate::MediaStore;

/// How groups are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Bytes of a shard, beyond which the next one is begun; above 0. Default 64 MiB.
    pub shard_bytes: u64,
    /// Whether the lists of admissible actions are kept, which are most of a trajectory's text.
    /// Default true.
    pub keep_admissible: bool,
    /// The zstd level, 1 to 19. Default 3.
    pub compression_level: i32,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { shard_bytes: 64 << 20, keep_admissible: true, compression_level: 3 }
    }
}

/// An append-only store: zstd-compressed JSON lines in numbered shards.
///
/// One append is one zstd frame at the end of the last shard, such as `000003.jsonl.zst`, and is
/// on disk when it returns ([`JsonlStore::append_one`]: in the file). A line is a trajectory with two more fields, `iteration` and `group`,
/// so `zstdcat` and any JSON reader understand it. An append that a crash cut off is passed over on
/// reading, which tells of it, and cut off when the store is opened again. Bytes that are damaged elsewhere cost
/// the records that they held and no others. A group without trajectories leaves no line. Media that a trajectory shows
/// are kept in a folder beside the shards ([`MediaStore`]), before the line that names them. Secrets of this process are in
/// no line ([`spar_core::redaction`]).
#[derive(Debug)]
pub struct JsonlStore {
    folder: PathBuf,
    media: MediaStore,
    config: StoreConfig,
    /// Number of the last shard.
    number: u32,
    /// The last shard, opened, and its good bytes.
    shard: Option<(File, u64)>,
    /// Since when there is something that may not be on the disk.
    unsynced_since: Option<Instant>,
}

/// The longest that [`JsonlStore::append_one`] leaves to the system what it has written.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// One trajectory of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrajectory {
    /// The iteration that appended it.
    pub iteration: u64,
    /// Number of its group within that append, from 0.
    pub group: usize,
    /// The trajectory.
    pub trajectory: Trajectory,
}

#[derive(Serialize)]
struct Line<'a> {
    iteration: u64,
    group: usize,
    #[serde(flatten)]
    trajectory: &'a Trajectory,
}

#[derive(Deserialize)]
struct LineHead {
    iteration: u64,
    group: usize,
}

impl JsonlStore {
    /// Opens the store in `folder`, which is made where it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the folder cannot be used.
    pub fn open(folder: impl Into<PathBuf>, config: StoreConfig) -> Result<Self, StoreError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|source| io_error(&folder, source))?;
        let media = MediaStore::beside(&folder);
        let mut store =
            Self { number: 0, shard: None, config, folder, media, unsynced_since: None };
        if let Some((number, path)) = shards(&store.folder)?.pop() {
            let bytes = fs::read(&path).map_err(|source| io_error(&path, source))?;
            let len = bytes.len() - scan(&bytes, true).num_cut_off;
            store.open_shard(number, len as u64)?;
        }
        Ok(store)
    }

    /// Forgets what was appended after `iteration`, so that a run can go on from there. Returns how many places
    /// before that are damaged: what they held is lost, and stays where it is.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the shards cannot be read or cut.
    pub fn truncate_after(&mut self, iteration: u64) -> Result<usize, StoreError> {
        let shards = shards(&self.folder)?;
        let (mut cut, mut num_damaged) = (None, 0);
        'shards: for (index, (number, path)) in shards.iter().enumerate() {
            let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
            for piece in scan(&bytes, index + 1 == shards.len()).pieces {
                let found = match &piece {
                    Piece::Frame(frame) => first_iteration(&bytes[frame.clone()]),
                    Piece::Damage(_) => Err(malformed("damaged")),
                };
                match found {
                    Ok(Some(found)) if found > iteration => {
                        cut = Some((index, *number, piece.range().start as u64));
                        break 'shards;
                    }
                    Ok(_) => {}
                    Err(_) => num_damaged += 1,
                }
            }
        }
        let Some((index, number, len)) = cut else { return Ok(num_damaged) };
        self.shard = None;
        // From the back, so that a crash in between leaves a shorter store, not one with a hole.
        for (_, path) in shards[index + 1..].iter().rev() {
            fs::remove_file(path).map_err(|source| io_error(path, source))?;
        }
        self.open_shard(number, len)?;
        sync_folder(&self.folder)?;
        Ok(num_damaged)
    }

    /// Reads the store in a folder, or a single shard of one, oldest trajectory first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the folder cannot be listed.
    pub fn read(path: impl AsRef<Path>) -> Result<StoreReader, StoreError> {
        let path = path.as_ref();
        let mut shards = if path.is_file() { vec![(0, path.to_owned())] } else { shards(path)? };
        shards.reverse();
        Ok(StoreReader { shards, lines: None, has_failed: false, cut_off: None })
    }

    /// Appends one trajectory, of the group of this number, as soon as it is there; those of other groups
    /// may come in between. When this returns it outlives the process, within a second or with
    /// [`JsonlStore::sync`] also the machine.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it could not be kept; the store is then as it was before.
    pub fn append_one(
        &mut self,
        iteration: u64,
        group: usize,
        trajectory: &Trajectory,
    ) -> Result<(), StoreError> {
        let lines = [(group, trajectory)];
        self.write(iteration, lines.into_iter(), false)?;
        match self.unsynced_since {
            Some(since) if since.elapsed() >= SYNC_EVERY => self.sync(),
            Some(_) => Ok(()),
            None => {
                self.unsynced_since = Some(Instant::now());
                Ok(())
            }
        }
    }

    /// Waits until all that was appended is on the disk.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the system says that it could not be written.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.unsynced_since = None;
        let path = self.shard_path(self.number);
        match &mut self.shard {
            Some((file, _)) => file.sync().map_err(|source| io_error(&path, source)),
            None => Ok(()),
        }
    }

    /// Writes trajectories as one frame, and waits for the disk where `sync` says so.
    fn write<'a>(
        &mut self,
        iteration: u64,
        lines: impl Iterator<Item = (usize, &'a Trajectory)> + Clone,
        sync: bool,
    ) -> Result<(), StoreError> {
        let mut media = lines.clone().flat_map(|(_, trajectory)| trajectory.media());
        media.try_for_each(|media| self.media.keep(media))?;
        let path = self.shard_path(self.number);
        let bytes = self.compress(iteration, lines).map_err(|source| io_error(&path, source))?;
        let is_full = |(_, len): &(File, u64)| *len >= self.config.shard_bytes;
        if self.shard.as_ref().is_none_or(is_full) {
            self.sync()?;
            let number = if self.shard.is_some() { self.number + 1 } else { self.number };
            self.open_shard(number, 0)?;
            sync_folder(&self.folder)?;
        }
        let path = self.shard_path(self.number);
        let Some((file, len)) = &mut self.shard else {
            return Err(io_error(&path, io::Error::other("the shard is not open")));
        };
        append_bytes(file, len, &bytes, sync).map_err(|source| io_error(&path, source))
    }

    /// Opens a shard of which `len` bytes are good, and cuts off the rest.
    fn open_shard(&mut self, number: u32, len: u64) -> Result<(), StoreError> {
        let path = self.shard_path(number);
        let open = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            if file.metadata()?.len() != len {
                file.set_len(len)?;
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = open().map_err(|source| io_error(&path, source))?;
        (self.number, self.shard) = (number, Some((file, len)));
        Ok(())
    }

    fn shard_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:06}.jsonl.zst"))
    }

    fn compress<'a>(
        &self,
        iteration: u64,
        lines: impl Iterator<Item = (usize, &'a Trajectory)>,
    ) -> io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(Vec::new(), self.config.compression_level)?;
        encoder.include_checksum(true)?;
        let redactor = redaction::current();
        for (group, trajectory) in lines {
            let slim;
            let trajectory = if self.config.keep_admissible {
                trajectory
            } else {
                slim = without_admissible(trajectory);
                &slim
            };
            match &redactor {
                None => {
                    serde_json::to_writer(&mut encoder, &Line { iteration, group, trajectory })?
                }
                Some(redactor) => {
                    let mut written = serde_json::to_vec(&Line { iteration, group, trajectory })?;
                    if redactor.is_match(&written) {
                        let mut trajectory = trajectory.clone();
                        redactor.trajectory(&mut trajectory);
                        let trajectory = &trajectory;
                        written = serde_json::to_vec(&Line { iteration, group, trajectory })?;
                    }
                    encoder.write_all(&written)?;
                }
            }
            encoder.write_all(b"\n")?;
        }
        encoder.finish()
    }
}

impl TrajectoryStore for JsonlStore {
    fn append(&mut self, iteration: u64, groups: &[Group]) -> Result<(), StoreError> {
        if groups.iter().all(|group| group.trajectories.is_empty()) {
            return Ok(());
        }
        let lines = groups
            .iter()
            .enumerate()
            .flat_map(|(index, group)| group.trajectories.iter().map(move |t| (index, t)));
        self.write(iteration, lines, true)
    }
}

/// Bytes that a frame of a shard may unpack to, where secrets are taken out of it.
const MAX_FRAME_BYTES: u64 = 4 << 30;

/// Counts the records of a shard in which secrets stand, and takes them out where `change`, in a file that is renamed into
/// its place. Appends stay apart, and what is damaged stays as it is. Nobody may write to the shard meanwhile.
///
/// # Errors
///
/// [`StoreError`] when it cannot be read or written, or a record with secrets is none that this build reads.
pub fn redact_shard(path: &Path, redactor: &Redactor, change: bool) -> Result<usize, StoreError> {
    let fail = |source| io_error(path, source);
    let bytes = fs::read(path).map_err(fail)?;
    let Scan { pieces, num_cut_off } = scan(&bytes, true);
    let (mut written, mut count, mut record) = (Vec::with_capacity(bytes.len()), 0, 0);
    for piece in pieces {
        let frame = &bytes[piece.range().clone()];
        if let Piece::Damage(_) = piece {
            written.extend_from_slice(frame);
            continue;
        }
        let mut lines = Vec::new();
        let decoder = zstd::Decoder::with_buffer(frame).map_err(fail)?;
        decoder.take(MAX_FRAME_BYTES + 1).read_to_end(&mut lines).map_err(fail)?;
        if lines.len() as u64 > MAX_FRAME_BYTES {
            let detail = format!("a frame unpacks to more than {MAX_FRAME_BYTES} bytes");
            return Err(fail(io::Error::new(io::ErrorKind::FileTooLarge, detail)));
        }
        let before = count;
        if redactor.is_match(&lines) {
            let mut cleaned = Vec::with_capacity(lines.len());
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                record += 1;
                if !redactor.is_match(line) {
                    cleaned.extend_from_slice(line);
                    continue;
                }
                let wrong = |source| StoreError::Record {
                    path: path.display().to_string(),
                    record,
                    source,
                };
                let mut trajectory = Trajectory::from_json(line).map_err(wrong)?;
                let LineHead { iteration, group } = serde_json::from_slice(line)
                    .map_err(|error| wrong(TrajectoryError::Malformed(error)))?;
                count += usize::from(redactor.trajectory(&mut trajectory));
                // It is written as this build writes.
                trajectory.version = TRAJECTORY_VERSION;
                let line = Line { iteration, group, trajectory: &trajectory };
                serde_json::to_writer(&mut cleaned, &line).map_err(|error| fail(error.into()))?;
                cleaned.push(b'\n');
            }
            lines = cleaned;
        }
        if count == before {
            written.extend_from_slice(frame);
            continue;
        }
        let mut encoder =
            zstd::Encoder::new(written, StoreConfig::default().compression_level).map_err(fail)?;
        encoder.include_checksum(true).and_then(|()| encoder.write_all(&lines)).map_err(fail)?;
        written = encoder.finish().map_err(fail)?;
    }
    written.extend_from_slice(&bytes[bytes.len() - num_cut_off..]);
    if change && count > 0 {
        let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&written)?;
            file.sync_all()?;
            fs::rename(&unfinished, path)
        };
        write().map_err(fail)?;
    }
    Ok(count)
}

/// Reads the trajectories of a store, oldest first. What is damaged is an error among them, and it goes on behind
/// that where [`StoreError::is_local`] says so; it ends after any other error.
#[derive(Debug)]
pub struct StoreReader {
    /// Shards that come, the next one last.
    shards: Vec<(u32, PathBuf)>,
    lines: Option<ShardLines>,
    has_failed: bool,
    cut_off: Option<(PathBuf, usize)>,
}

/// The lines of one shard.
struct ShardLines {
    path: PathBuf,
    bytes: Vec<u8>,
    /// What comes, the next one last.
    pieces: Vec<Piece>,
    lines: Option<Box<dyn BufRead + Send>>,
    record: usize,
}

impl std::fmt::Debug for ShardLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardLines")
            .field("path", &self.path)
            .field("record", &self.record)
            .finish()
    }
}

impl StoreReader {
    /// The last file and how many bytes at its end are an append that was not written to its end, or is being
    /// written; once everything was read.
    pub fn cut_off(&self) -> Option<(&Path, usize)> {
        self.cut_off.as_ref().map(|(path, bytes)| (path.as_path(), *bytes))
    }

    /// The same as groups, each with the iteration that appended it, in the order in which they are
    /// complete. The shards are read twice, so that no more is held than the groups that are not.
    pub fn groups(self) -> impl Iterator<Item = Result<(u64, Group), StoreError>> {
        let key = |stored: &StoredTrajectory| (stored.iteration, stored.group);
        let mut left: HashMap<(u64, usize), usize> = HashMap::new();
        let shards = self.shards.clone();
        let first = Self { shards, lines: None, has_failed: false, cut_off: None };
        for stored in first.flatten() {
            *left.entry(key(&stored)).or_default() += 1;
        }
        let mut begun: HashMap<(u64, usize), Group> = HashMap::new();
        let mut trajectories = self;
        std::iter::from_fn(move || {
            loop {
                let stored = match trajectories.next()? {
                    Ok(stored) => stored,
                    Err(error) => return Some(Err(error)),
                };
                let key = key(&stored);
                let group = begun.entry(key).or_insert_with(|| Group {
                    task: stored.trajectory.task.clone(),
                    trajectories: Vec::new(),
                });
                group.trajectories.push(stored.trajectory);
                let left = left.entry(key).or_insert(1);
                *left = left.saturating_sub(1);
                if *left == 0 {
                    return begun.remove(&key).map(|group| Ok((key.0, group)));
                }
            }
        })
    }

    fn next_line(&mut self) -> Result<Option<StoredTrajectory>, StoreError> {
        loop {
            if self.lines.is_none() {
                let Some((_, path)) = self.shards.pop() else { return Ok(None) };
                let bytes = fs::read(&path).map_err(|source| io_error(&path, source))?;
                let Scan { mut pieces, num_cut_off } = scan(&bytes, self.shards.is_empty());
                if num_cut_off > 0 {
                    self.cut_off = Some((path.clone(), num_cut_off));
                }
                pieces.reverse();
                self.lines = Some(ShardLines { path, bytes, pieces, lines: None, record: 0 });
            }
            if let Some(lines) = &mut self.lines {
                match lines.next()? {
                    Some(trajectory) => return Ok(Some(trajectory)),
                    None => self.lines = None,
                }
            }
        }
    }
}

impl Iterator for StoreReader {
    type Item = Result<StoredTrajectory, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.next_line().transpose();
        self.has_failed = matches!(&next, Some(Err(error)) if !error.is_local());
        next
    }
}

impl ShardLines {
    fn next(&mut self) -> Result<Option<StoredTrajectory>, StoreError> {
        loop {
            let Some(lines) = &mut self.lines else {
                let frame = match self.pieces.pop() {
                    None => return Ok(None),
                    Some(Piece::Frame(frame)) => frame,
                    Some(Piece::Damage(range)) => {
                        let (path, bytes) = (self.path.display().to_string(), range.len());
                        return Err(StoreError::Damaged { path, start: range.start, bytes });
                    }
                };
                let frame = io::Cursor::new(self.bytes[frame].to_vec());
                let decoder =
                    zstd::Decoder::new(frame).map_err(|source| io_error(&self.path, source))?;
                self.lines = Some(Box::new(BufReader::new(decoder)));
                continue;
            };
            let record = self.record + 1;
            let fail = |source| StoreError::Record {
                path: self.path.display().to_string(),
                record,
                source,
            };
            let mut line = Vec::new();
            let count = match lines.read_until(b'\n', &mut line) {
                Ok(count) => count,
                Err(error) => {
                    // Of this frame nothing more can be read.
                    self.lines = None;
                    return Err(fail(malformed(&format!("decompress: {error}"))));
                }
            };
            if count == 0 {
                self.lines = None;
                continue;
            }
            self.record = record;
            let trajectory = Trajectory::from_json(&line).map_err(&fail)?;
            let LineHead { iteration, group } = serde_json::from_slice(&line)
                .map_err(|error| fail(TrajectoryError::Malformed(error)))?;
            return Ok(Some(StoredTrajectory { iteration, group, trajectory }));
        }
    }
}

/// What an append needs of a file.
trait ShardFile: Write + Seek {
    fn cut(&mut self, len: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl ShardFile for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Appends behind the first `len` bytes, or leaves the file with just these.
fn append_bytes(
    file: &mut impl ShardFile,
    len: &mut u64,
    bytes: &[u8],
    sync: bool,
) -> io::Result<()> {
    // What an append before left behind that could not even be cut off is overwritten.
    let written = file
        .seek(SeekFrom::Start(*len))
        .and_then(|_| file.write_all(bytes))
        .and_then(|()| file.cut(*len + bytes.len() as u64))
        .and_then(|()| if sync { file.sync() } else { Ok(()) });
    match written {
        Ok(()) => *len += bytes.len() as u64,
        // The first failure tells more than a second one here.
        Err(_) => drop(file.cut(*len)),
    }
    written
}

/// The shards of a folder by number.
fn shards(folder: &Path) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let list = || -> io::Result<Vec<(u32, PathBuf)>> {
        let mut shards = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl.zst"));
            if let Some(number) = number.filter(|n| n.len() >= 6).and_then(|n| n.parse().ok()) {
                shards.push((number, folder.join(&name)));
            }
        }
        shards.sort();
        Ok(shards)
    };
    list().map_err(|source| io_error(folder, source))
}

/// What the bytes of a shard are.
struct Scan {
    /// In their order, without gaps.
    pieces: Vec<Piece>,
    /// Bytes behind them: an append that was cut off.
    num_cut_off: usize,
}

/// Bytes of a shard.
enum Piece {
    /// A whole frame.
    Frame(Range<usize>),
    /// What is none.
    Damage(Range<usize>),
}

impl Piece {
    fn range(&self) -> &Range<usize> {
        match self {
            Self::Frame(range) | Self::Damage(range) => range,
        }
    }
}

/// The frames of a shard, and what is damaged between them.
///
/// What follows the last whole frame is an append that was cut off where one may have been: in the last shard.
fn scan(bytes: &[u8], is_last: bool) -> Scan {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        if let Some(len) = whole_frame(&bytes[start..]) {
            pieces.push(Piece::Frame(start..start + len));
            start += len;
            continue;
        }
        match next_whole_frame(&bytes[start + 1..]) {
            Some(behind) => {
                pieces.push(Piece::Damage(start..start + 1 + behind));
                start += 1 + behind;
            }
            None if is_last => break,
            None => {
                pieces.push(Piece::Damage(start..bytes.len()));
                start = bytes.len();
            }
        }
    }
    Scan { pieces, num_cut_off: bytes.len() - start }
}

/// How long the frame is that these bytes begin with, if it decompresses, checksum included.
fn whole_frame(bytes: &[u8]) -> Option<usize> {
    let len = zstd::zstd_safe::find_frame_compressed_size(bytes).ok().filter(|len| *len > 0)?;
    is_whole(&bytes[..len]).then_some(len)
}

/// Whether a frame decompresses, checksum included.
fn is_whole(frame: &[u8]) -> bool {
    zstd::Decoder::with_buffer(frame)
        .and_then(|decoder| io::copy(&mut decoder.single_frame(), &mut io::sink()))
        .is_ok()
}

/// Where the first whole frame begins.
fn next_whole_frame(bytes: &[u8]) -> Option<usize> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut starts = bytes.windows(MAGIC.len()).enumerate().filter(|(_, window)| *window == MAGIC);
    starts.find_map(|(start, _)| whole_frame(&bytes[start..]).map(|_| start))
}

/// The iteration of a frame's first line; `None` in an empty frame.
fn first_iteration(frame: &[u8]) -> Result<Option<u64>, TrajectoryError> {
    let fail = |error: io::Error| malformed(&format!("decompress: {error}"));
    let mut line = Vec::new();
    let decoder = zstd::Decoder::with_buffer(frame).map_err(fail)?;
    BufReader::new(decoder.single_frame()).read_until(b'\n', &mut line).map_err(fail)?;
    if line.is_empty() {
        return Ok(None);
    }
    let head: LineHead = serde_json::from_slice(&line).map_err(TrajectoryError::Malformed)?;
    Ok(Some(head.iteration))
}

fn without_admissible(trajectory: &Trajectory) -> Trajectory {
    let mut trajectory = trajectory.clone();
    trajectory.first_observation.admissible = None;
    for turn in &mut trajectory.turns {
        turn.step.observation.admissible = None;
    }
    trajectory
}

fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| io_error(folder, e))
}

fn malformed(detail: &str) -> TrajectoryError {
    TrajectoryError::Malformed(serde::de::Error::custom(detail))
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::{Seat, Seed};

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{Cancellation, Episode, EpisodeConfig, Player, run_episode};

    fn trajectory(id: u64) -> Trajectory {
        let policy = ScriptedPolicy::new(["left", "right"]);
        let (task, seed) = (fake_task(id as usize), Seed::from_u64(id));
        let episode = Episode {
            id,
            task: &task,
            player: Player::Policy(&policy),
            seat: Seat::FIRST,
            seed,
            environment_seed: seed,
            cancellation: &Cancellation::new(),
        };
        let config = EpisodeConfig::default();
        let mut environment = FakeEnvironment::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run_episode(&mut environment, &episode, &config))
    }

    fn group(id: u64) -> Group {
        let first = trajectory(id);
        let mut second = first.clone();
        second.episode += 1000;
        Group { task: first.task.clone(), trajectories: vec![first, second] }
    }

    fn open(folder: &Path) -> JsonlStore {
        JsonlStore::open(folder, StoreConfig::default()).unwrap()
    }

    #[test]
    fn trajectories_are_kept_one_by_one_and_found_as_groups() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        let groups = [group(1), group(2), group(3)];
        // As they end: the groups' members come in between each other, and group 1 lacks its second.
        for (number, member) in [(0, 0), (1, 0), (2, 0), (2, 1), (0, 1)] {
            store.append_one(7, number, &groups[number].trajectories[member]).unwrap();
            // Whoever kills the process now finds it there.
            let last = JsonlStore::read(folder.path()).unwrap().last().unwrap().unwrap();
            assert_eq!(last.trajectory, groups[number].trajectories[member]);
        }
        drop(store);
        let mut store = open(folder.path());
        store.append_one(8, 0, &groups[0].trajectories[0]).unwrap();
        store.sync().unwrap();
        let found: Vec<_> =
            JsonlStore::read(folder.path()).unwrap().groups().map(Result::unwrap).collect();
        let half = |group: &Group| Group {
            trajectories: group.trajectories[..1].to_vec(),
            ..group.clone()
        };
        let expected = [
            (7, half(&groups[1])),
            (7, groups[2].clone()),
            (7, groups[0].clone()),
            (8, half(&groups[0])),
        ];
        assert_eq!(found, expected);
        store.truncate_after(7).unwrap();
        assert_eq!(JsonlStore::read(folder.path()).unwrap().count(), 5);
    }

    fn groups(folder: &Path) -> Vec<(u64, Group)> {
        JsonlStore::read(folder).unwrap().groups().map(Result::unwrap).collect()
    }

    #[test]
    fn what_is_appended_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        store.append(1, &[group(1), group(2)]).unwrap();
        store.append(2, &[]).unwrap();
        drop(store);
        open(folder.path()).append(3, &[group(3)]).unwrap();
        let expected = vec![(1, group(1)), (1, group(2)), (3, group(3))];
        let found = groups(folder.path());
        for ((iteration, group), (expected_iteration, expected)) in found.iter().zip(&expected) {
            assert_eq!((iteration, &group.task), (expected_iteration, &expected.task));
            let turns = |group: &Group| group.trajectories[1].turns.len();
            assert_eq!(turns(group), turns(expected));
            assert_eq!(
                group.trajectories[0].turns[0].sampled,
                expected.trajectories[0].turns[0].sampled
            );
        }
        assert_eq!(found.len(), 3);
        assert!(JsonlStore::read(folder.path().join("none")).is_err());
        let shard = JsonlStore::read(folder.path().join("000000.jsonl.zst")).unwrap();
        assert_eq!(shard.groups().count(), 3);
    }

    #[test]
    fn a_record_equals_what_was_appended() {
        let folder = tempfile::tempdir().unwrap();
        let group = group(5);
        open(folder.path()).append(1, std::slice::from_ref(&group)).unwrap();
        assert_eq!(groups(folder.path()), [(1, group)]);
    }

    #[test]
    fn lists_of_admissible_actions_can_be_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig { keep_admissible: false, ..StoreConfig::default() };
        JsonlStore::open(folder.path(), config).unwrap().append(1, &[group(1)]).unwrap();
        let found = &groups(folder.path())[0].1.trajectories[0];
        assert!(found.first_observation.admissible.is_none());
        assert!(found.turns.iter().all(|turn| turn.step.observation.admissible.is_none()));
    }

    #[test]
    fn shards_roll_and_truncation_goes_back_over_them() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig { shard_bytes: 1, ..StoreConfig::default() };
        let mut store = JsonlStore::open(folder.path(), config.clone()).unwrap();
        for iteration in 0..4 {
            store.append(iteration, &[group(iteration)]).unwrap();
        }
        assert_eq!(shards(folder.path()).unwrap().len(), 4);
        store.truncate_after(9).unwrap();
        store.truncate_after(1).unwrap();
        let iterations = |folder: &Path| groups(folder).iter().map(|g| g.0).collect::<Vec<_>>();
        assert_eq!(iterations(folder.path()), [0, 1]);
        store.append(2, &[group(2)]).unwrap();
        assert_eq!(iterations(folder.path()), [0, 1, 2]);
        // Within one shard.
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        for iteration in 0..4 {
            store.append(iteration, &[group(iteration)]).unwrap();
        }
        store.truncate_after(2).unwrap();
        store.append(7, &[group(7)]).unwrap();
        assert_eq!(iterations(folder.path()), [0, 1, 2, 7]);
    }

    #[test]
    fn an_append_that_was_cut_off_is_ignored_and_then_cut() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        store.append(1, &[group(1)]).unwrap();
        let path = store.shard_path(0);
        let good = fs::metadata(&path).unwrap().len();
        store.append(2, &[group(2)]).unwrap();
        let bytes = fs::read(&path).unwrap();
        for len in [good + 1, good + 3, good + 20, bytes.len() as u64 - 1] {
            fs::write(&path, &bytes[..len as usize]).unwrap();
            assert_eq!(groups(folder.path()).len(), 1);
            let mut store = open(folder.path());
            assert_eq!(fs::metadata(&path).unwrap().len(), good);
            store.append(2, &[group(2)]).unwrap();
            assert_eq!(groups(folder.path()).len(), 2);
        }
    }

    #[test]
    fn damage_costs_what_it_hit_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        for iteration in 1..=3 {
            store.append(iteration, &[group(iteration)]).unwrap();
        }
        let path = store.shard_path(0);
        let good = fs::read(&path).unwrap();
        let second = scan(&good, true).pieces[1].range().clone();
        let mut bytes = good.clone();
        bytes[second.start + 40] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let read: Vec<_> = JsonlStore::read(folder.path()).unwrap().collect();
        let iterations: Vec<_> =
            read.iter().flatten().map(|stored: &StoredTrajectory| stored.iteration).collect();
        assert_eq!(iterations, [1, 1, 3, 3]);
        let errors: Vec<_> = read.iter().filter_map(|stored| stored.as_ref().err()).collect();
        let expected = format!(
            "read {} bytes of `{}` from byte {} on: they are damaged",
            second.len(),
            path.display(),
            second.start
        );
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        // A run goes on behind it, and what was damaged stays for whoever can mend it.
        let mut store = open(folder.path());
        assert_eq!(store.truncate_after(2).unwrap(), 1);
        store.append(3, &[group(3)]).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(&bytes[..second.end]));
        let kept: Vec<_> =
            JsonlStore::read(folder.path()).unwrap().groups().flatten().map(|g| g.0).collect();
        assert_eq!(kept, [1, 3]);
    }

    #[test]
    fn a_file_that_lost_its_end_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        store.append(1, &[group(1)]).unwrap();
        store.append(2, &[group(2)]).unwrap();
        let path = store.shard_path(0);
        let bytes = fs::read(&path).unwrap();
        let cut_off = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let mut reader = JsonlStore::read(folder.path()).unwrap();
            let count = reader.by_ref().map(Result::unwrap).count();
            (count, reader.cut_off().map(|(file, bytes)| (file == path, bytes)))
        };
        assert_eq!(cut_off(&bytes), (4, None));
        let first = scan(&bytes, true).pieces[0].range().end;
        assert_eq!(cut_off(&bytes[..first + 9]), (2, Some((true, 9))));
    }

    #[test]
    fn a_record_that_is_no_trajectory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        store.append(1, &[group(1)]).unwrap();
        let path = store.shard_path(0);
        for (text, wanted) in [("{}\n", "missing field"), ("{\"version\": 99}\n", "format 99")] {
            let mut bytes = fs::read(&path).unwrap();
            let good = bytes.clone();
            bytes.extend(zstd::encode_all(text.as_bytes(), 1).unwrap());
            fs::write(&path, bytes).unwrap();
            let error = JsonlStore::read(folder.path()).unwrap().last().unwrap().unwrap_err();
            let text = crate::error_chain(&error);
            assert!(text.contains("record 3 of") && text.contains(wanted), "{text}");
            fs::write(&path, good).unwrap();
        }
    }

    /// A disk with little room.
    struct FullDisk {
        bytes: io::Cursor<Vec<u8>>,
        room: usize,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.room.saturating_sub(self.bytes.position() as usize);
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.write(&bytes[..bytes.len().min(room)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for FullDisk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.bytes.seek(to)
        }
    }

    impl ShardFile for FullDisk {
        fn cut(&mut self, len: u64) -> io::Result<()> {
            self.bytes.get_mut().truncate(len as usize);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_leaves_the_store_as_it_was() {
        let mut disk = FullDisk { bytes: io::Cursor::new(Vec::new()), room: 6 };
        let mut len = 0;
        append_bytes(&mut disk, &mut len, b"abcd", true).unwrap();
        let error = append_bytes(&mut disk, &mut len, b"efgh", true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((len, disk.bytes.get_ref().as_slice()), (4, &b"abcd"[..]));
        append_bytes(&mut disk, &mut len, b"ef", true).unwrap();
        assert_eq!((len, disk.bytes.get_ref().as_slice()), (6, &b"abcdef"[..]));
    }

    fn read_all(folder: &Path) {
        if let Ok(reader) = JsonlStore::read(folder) {
            reader.for_each(|_| {});
        }
        if let Ok(mut store) = JsonlStore::open(folder, StoreConfig::default()) {
            let _ = store.truncate_after(1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn arbitrary_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300), magic: bool) {
            let folder = tempfile::tempdir().unwrap();
            let mut shard = if magic { vec![0x28, 0xb5, 0x2f, 0xfd] } else { Vec::new() };
            shard.extend(&bytes);
            fs::write(folder.path().join("000000.jsonl.zst"), &shard).unwrap();
            read_all(folder.path());
            fs::write(folder.path().join("000000.jsonl.zst"), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
            read_all(folder.path());
        }

        #[test]
        fn flipped_bits_and_cuts_break_nothing(place in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let folder = tempfile::tempdir().unwrap();
            let path = {
                let mut store = open(folder.path());
                store.append(1, &[group(1)]).unwrap();
                store.append(2, &[group(2)]).unwrap();
                store.shard_path(0)
            };
            let mut bytes = fs::read(&path).unwrap();
            let place = place.index(bytes.len());
            bytes[place] ^= 1_u8 << bit;
            bytes.truncate(cut.index(bytes.len() + 1));
            fs::write(&path, &bytes).unwrap();
            read_all(folder.path());
        }
    }
}
