//! The record of what was tried: a line each, whole or not there, by which a killed run goes on.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::MakeError;

/// What came of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is a task.
    Valid,
    /// No test fails.
    Survived,
    /// A run did not end in time.
    TimedOut,
    /// More tests fail than the options allow.
    TooBroad,
    /// No test passes beside those that fail.
    NothingPasses,
    /// A file of tests cannot be collected any more, or nothing can be built.
    Uncollectable,
    /// The runner ended before its tests did, or took the process that runs it along.
    Crashed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Valid,
        Self::Survived,
        Self::TimedOut,
        Self::TooBroad,
        Self::NothingPasses,
        Self::Uncollectable,
        Self::Crashed,
    ];

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Survived => "survived",
            Self::TimedOut => "timed out",
            Self::TooBroad => "too broad",
            Self::NothingPasses => "nothing passes",
            Self::Uncollectable => "uncollectable",
            Self::Crashed => "crashed",
        }
    }
}

/// The rows of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// As SWE-smith has it: its patch makes the bug.
    pub swe_smith: Map<String, Value>,
    /// As SWE-bench has it: its patch mends the bug.
    pub swe_bench: Map<String, Value>,
}

/// One candidate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Its kind and a hash of what it changes: `compare_changed__1a2b3c4d`.
    pub id: String,
    /// The operator, or `stacked`.
    pub kind: String,
    /// Files and functions that it changes.
    pub places: Vec<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// Tests that fail with it, as far as they were run.
    pub failing: usize,
    /// Processor seconds of its runs.
    pub cpu_seconds: f64,
    /// Seconds of its runs.
    pub seconds: f64,
    /// The rows of a task.
    pub rows: Option<Rows>,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    package: String,
    sha256: String,
    options: String,
}

/// A folder of results of one package: the record, and the rows.
pub(crate) struct TaskLog {
    folder: PathBuf,
    log: File,
    smith: File,
    bench: File,
    /// In the order in which they were written.
    known: Vec<Attempt>,
    places: BTreeMap<String, usize>,
}

const LOG: &str = "attempts.jsonl";
const SMITH: &str = "swe_smith.jsonl";
const BENCH: &str = "swe_bench.jsonl";

fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> MakeError {
    move |source| MakeError::Io { doing, path: path.to_owned(), source }
}

impl TaskLog {
    /// Opens the record in a folder, or begins it. What a killed run left of a line is cut off, and the files of rows are
    /// written anew by the record.
    pub(crate) fn open(
        folder: &Path,
        package: &str,
        sha256: &str,
        options: String,
    ) -> Result<Self, MakeError> {
        fs::create_dir_all(folder).map_err(io("make the folder", folder))?;
        let path = folder.join(LOG);
        let header =
            Header { version: 1, package: package.to_owned(), sha256: sha256.to_owned(), options };
        let mut log = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io("open", &path))?;
        // Two processes would write into each other's lines.
        if log.try_lock().is_err() {
            return Err(MakeError::Elsewhere {
                path: folder.to_owned(),
                what: "another process is at work there".to_owned(),
            });
        }
        let (mut known, mut places) = (Vec::new(), BTreeMap::new());
        let (mut whole, mut first) = (0, true);
        let mut reader = BufReader::new(&mut log);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(io("read", &path))?;
            if read == 0 || line.last() != Some(&b'\n') {
                break;
            }
            if first {
                let found: Option<Header> = serde_json::from_slice(&line).ok();
                if found.as_ref() != Some(&header) {
                    let what = match found {
                        None => "its record cannot be read".to_owned(),
                        Some(found) if found.sha256 != sha256 => "they are of other sources of the package".to_owned(),
                        Some(_) => "they were made with other options; choose another folder, or the same options".to_owned(),
                    };
                    return Err(MakeError::Elsewhere { path: folder.to_owned(), what });
                }
                first = false;
            } else {
                let attempt: Attempt =
                    serde_json::from_slice(&line).map_err(|error| MakeError::Elsewhere {
                        path: folder.to_owned(),
                        what: format!("a line of its record cannot be read: {error}"),
                    })?;
                places.insert(attempt.id.clone(), known.len());
                known.push(attempt);
            }
            whole += read as u64;
        }
        log.set_len(whole).map_err(io("cut", &path))?;
        log.seek(SeekFrom::Start(whole)).map_err(io("read", &path))?;
        if first {
            append(&mut log, &header).map_err(io("write", &path))?;
        }
        let mut this = Self {
            log,
            smith: Self::rows_file(folder, SMITH)?,
            bench: Self::rows_file(folder, BENCH)?,
            folder: folder.to_owned(),
            known,
            places,
        };
        let rows: Vec<Rows> =
            this.known.iter().filter_map(|attempt| attempt.rows.clone()).collect();
        rows.iter().try_for_each(|rows| this.write_rows(rows))?;
        Ok(this)
    }

    fn rows_file(folder: &Path, name: &str) -> Result<File, MakeError> {
        let path = folder.join(name);
        File::create(&path).map_err(io("write", &path))
    }

    /// What was tried before.
    pub(crate) fn known(&self, id: &str) -> Option<&Attempt> {
        self.places.get(id).map(|place| &self.known[*place])
    }

    /// Writes what was tried.
    pub(crate) fn append(&mut self, attempt: &Attempt) -> Result<(), MakeError> {
        append(&mut self.log, attempt).map_err(io("write", &self.folder.join(LOG)))?;
        if let Some(rows) = &attempt.rows {
            self.write_rows(rows)?;
        }
        Ok(())
    }

    fn write_rows(&mut self, rows: &Rows) -> Result<(), MakeError> {
        append(&mut self.smith, &rows.swe_smith).map_err(io("write", &self.folder.join(SMITH)))?;
        append(&mut self.bench, &rows.swe_bench).map_err(io("write", &self.folder.join(BENCH)))
    }
}

/// Appends a line by one write, so that it is whole unless the machine stops.
fn append(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(id: &str, outcome: Outcome) -> Attempt {
        let row: Map<String, Value> = [("instance_id".to_owned(), id.into())].into_iter().collect();
        let rows =
            (outcome == Outcome::Valid).then(|| Rows { swe_smith: row.clone(), swe_bench: row });
        let places = vec!["a.py f".to_owned()];
        Attempt {
            id: id.into(),
            kind: "k".into(),
            places,
            outcome,
            failing: 1,
            cpu_seconds: 0.5,
            seconds: 1.0,
            rows,
        }
    }

    #[test]
    fn a_killed_run_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let open = |options: &str| TaskLog::open(folder.path(), "p", "00", options.to_owned());
        let mut log = open("o").unwrap();
        log.append(&attempt("a", Outcome::Valid)).unwrap();
        log.append(&attempt("b", Outcome::Survived)).unwrap();
        assert!(matches!(open("o"), Err(MakeError::Elsewhere { .. })), "the other one is at work");
        drop(log);
        let path = folder.path().join(LOG);
        let whole = fs::read(&path).unwrap();
        let rows = fs::read(folder.path().join(BENCH)).unwrap();
        // Killed at any byte of a third line, and with rows that are half written.
        let mut third = whole.clone();
        third.extend_from_slice(b"{\"id\": \"c\"");
        fs::write(&path, &third).unwrap();
        fs::write(folder.path().join(SMITH), "{\"half").unwrap();
        let log = open("o").unwrap();
        assert_eq!(log.known("a"), Some(&attempt("a", Outcome::Valid)));
        assert!(log.known("b").is_some() && log.known("c").is_none());
        drop(log);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(fs::read(folder.path().join(SMITH)).unwrap(), rows);
        assert!(matches!(open("other"), Err(MakeError::Elsewhere { .. })));
    }
}
