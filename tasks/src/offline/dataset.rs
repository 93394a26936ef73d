//! A folder of recorded episodes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spar_core::redaction;

use super::Recording;
use crate::SuiteError;

/// Version of `dataset.json` that this code writes and reads.
pub const DATASET_VERSION: u32 = 1;

/// The file that tells what a dataset is of.
const FILE: &str = "dataset.json";

/// The split that is made of two tiers: the episodes of `medium`, and those of `expert` behind them.
pub const MEDIUM_EXPERT: &str = "medium-expert";

/// How good who played a part of a dataset was; the names are those of D4RL (arXiv 2004.07219).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Actions drawn at random.
    Random,
    /// Somebody half as good as an expert.
    Medium,
    /// All that a learner did on its way to there.
    MediumReplay,
    /// Somebody who solves the tasks.
    Expert,
}

impl Tier {
    /// All of them, in the order in which they are collected.
    pub const ALL: [Self; 4] = [Self::Random, Self::Medium, Self::MediumReplay, Self::Expert];

    /// Its name, which is that of a split.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Medium => "medium",
            Self::MediumReplay => "medium-replay",
            Self::Expert => "expert",
        }
    }

    /// The tier of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// Whether there is none of something.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What came of a tier.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetTier {
    /// Who played, in words.
    pub player: String,
    /// How many of the dataset's tasks were played; the tier is whole with all of them.
    pub tasks: usize,
    /// How many episodes there are.
    pub episodes: usize,
    /// How many of them solved their task.
    pub successes: usize,
    /// The mean of their rewards.
    pub mean_return: f64,
    /// The mean number of their turns.
    pub mean_turns: f64,
    /// How many further episodes could not be played, or not judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
}

impl DatasetTier {
    /// Counts recordings of so many further tasks.
    pub fn add(&mut self, tasks: usize, recordings: &[Recording]) {
        let (before, all) = (self.episodes as f64, (self.episodes + recordings.len()) as f64);
        if recordings.is_empty() {
            self.tasks += tasks;
            return;
        }
        let rewards: f64 = recordings.iter().map(Recording::total_reward).sum();
        let turns: usize = recordings.iter().map(|recording| recording.turns.len()).sum();
        self.mean_return = (self.mean_return * before + rewards) / all;
        self.mean_turns = (self.mean_turns * before + turns as f64) / all;
        self.tasks += tasks;
        self.episodes += recordings.len();
        self.successes += recordings.iter().filter(|recording| recording.success).count();
    }
}

/// What players of two qualities earn in a suite, between which scores are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreReferences {
    /// The mean return of random actions.
    pub random: f64,
    /// That of the expert.
    pub expert: f64,
}

impl ScoreReferences {
    /// `100 (score - random) / (expert - random)`, D4RL's normalised score (arXiv 2004.07219, section 5): 0 for random actions and
    /// 100 for the expert. `None` where the expert is no better than chance.
    pub fn normalized(&self, score: f64) -> Option<f64> {
        let span = self.expert - self.random;
        (span > 0.0).then(|| 100.0 * (score - self.random) / span)
    }
}

/// What a dataset is of, and how it came about: its file `dataset.json`.
///
/// Beside it stand `TIER.jsonl`, a [`Recording`] a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Version of this file, [`DATASET_VERSION`] when written by this code.
    pub version: u32,
    /// The suite that was played.
    pub suite: String,
    /// Hash of what determined its tasks.
    pub suite_hash: String,
    /// The split of it that was played.
    pub split: String,
    /// What all random choices derive from.
    pub seed: u64,
    /// Tasks that every tier has episodes of.
    pub tasks: usize,
    /// Episodes of each of them.
    pub episodes_per_task: usize,
    /// How it was collected beside that, in words that have to stay the same where it is gone on with.
    pub settings: BTreeMap<String, String>,
    /// What has come of the tiers so far, by their names.
    pub tiers: BTreeMap<Tier, DatasetTier>,
}

impl Dataset {
    /// Whether there is one in a folder.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// The file of a tier in the folder of a dataset.
    pub fn file_of(folder: &Path, tier: Tier) -> PathBuf {
        folder.join(format!("{}.jsonl", tier.name()))
    }

    /// Reads what the dataset in a folder is of.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when it cannot be read, is no dataset, or of another version.
    pub fn read(folder: &Path) -> Result<Self, SuiteError> {
        let path = folder.join(FILE);
        let bytes = fs::read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SuiteError::NoDataset { path: folder.to_owned() },
            _ => SuiteError::Io { path: path.clone(), source },
        })?;
        let refuse = |detail: String| SuiteError::Task {
            path: path.clone(),
            place: "the file".to_owned(),
            detail,
        };
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let Head { version } = serde_json::from_slice(&bytes)
            .map_err(|error| refuse(format!("it is no dataset: {error}")))?;
        if version != DATASET_VERSION {
            let detail =
                format!("it is of version {version}, and this build reads {DATASET_VERSION}");
            return Err(refuse(detail));
        }
        serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))
    }

    /// Writes it into a folder, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Io`] when it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), SuiteError> {
        let path = folder.join(FILE);
        let written = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            let text = serde_json::to_string_pretty(self).expect("it is plain data");
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        written().map_err(|source| SuiteError::Io { path: path.clone(), source })
    }

    /// Between which returns scores are normalised; `None` where one of the two tiers is not there.
    pub fn references(&self) -> Option<ScoreReferences> {
        let whole = |tier| self.tiers.get(&tier).filter(|it| it.tasks == self.tasks);
        let mean = |tier| whole(tier).map(|it| it.mean_return);
        Some(ScoreReferences { random: mean(Tier::Random)?, expert: mean(Tier::Expert)? })
    }
}

/// The file of a tier while it is collected.
#[derive(Debug)]
pub struct RecordingFile {
    path: PathBuf,
    file: File,
    /// The byte behind what is kept.
    end: u64,
}

impl RecordingFile {
    /// Opens the file of a tier that has so many recordings, or makes one where there is none; what stands there beyond these is cut off.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Io`] when it cannot be read or written, or has fewer.
    pub fn open(path: PathBuf, kept: usize) -> Result<Self, SuiteError> {
        let opened = || -> io::Result<(File, u64)> {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
            let end = end_of_line(&file, kept)?;
            file.set_len(end)?;
            Ok((file, end))
        };
        match opened() {
            Ok((file, end)) => Ok(Self { path, file, end }),
            Err(source) => Err(SuiteError::Io { path, source }),
        }
    }

    /// Appends recordings, all of them or none: what a write that failed has left is written over by the next one, and cut off where the file is opened anew.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Io`] when they cannot be written.
    pub fn append(&mut self, recordings: &[Recording]) -> Result<(), SuiteError> {
        let mut text = Vec::new();
        for recording in recordings {
            text.extend(redaction::to_json(recording).expect("a recording is plain data"));
            text.push(b'\n');
        }
        let mut written = || -> io::Result<()> {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.write_all(&text)?;
            self.file.sync_all()
        };
        written().map_err(|source| SuiteError::Io { path: self.path.clone(), source })?;
        self.end += text.len() as u64;
        Ok(())
    }
}

/// The byte behind so many lines.
fn end_of_line(file: &File, lines: usize) -> io::Result<u64> {
    let (mut reader, mut line, mut end) = (BufReader::new(file), Vec::new(), 0);
    for number in 0..lines {
        line.clear();
        end += reader.read_until(b'\n', &mut line)? as u64;
        if !line.ends_with(b"\n") {
            let detail = format!("it has {number} recordings, and dataset.json tells of {lines}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail));
        }
    }
    Ok(end)
}
