//! `metrics.jsonl`: one JSON object per line.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::write_atomically;
use crate::RunFolderError;

/// One line of `metrics.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricRecord {
    /// Iteration it speaks of.
    pub iteration: u64,
    /// What it speaks of, such as `update`, `rollout` or `evaluation`.
    pub kind: String,
    /// The values, by name; in the file they stand beside the two above.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

impl MetricRecord {
    /// A record without values.
    pub fn new(iteration: u64, kind: &str) -> Self {
        Self { iteration, kind: kind.to_owned(), values: Map::new() }
    }

    /// Adds values; numbers that are not finite become `null`, as JSON has none, and the names
    /// `iteration` and `kind` are the record's own and passed over.
    #[must_use]
    pub fn with<N: Into<String>, V: Into<Value>>(
        mut self,
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in values {
            let name = name.into();
            if name != "iteration" && name != "kind" {
                self.values.insert(name, value.into());
            }
        }
        self
    }

    /// A value that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name)?.as_f64()
    }
}

/// Appends to `metrics.jsonl`.
///
/// A crash can leave half a line at the end; opening cuts it off. A record that could not be
/// written whole is taken back.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    len: u64,
}

impl MetricsLog {
    /// Opens or creates the file.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`] when it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, RunFolderError> {
        let refuse = || RunFolderError::write(path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(refuse())?;
        let bytes = fs::read(path).map_err(RunFolderError::read(path))?;
        let len = whole_lines(&bytes) as u64;
        if len < bytes.len() as u64 {
            tracing::warn!(path = %path.display(), "cut off a line that was not written whole");
            file.set_len(len).map_err(refuse())?;
        }
        Ok(Self { path: path.to_owned(), file, len })
    }

    /// Appends a record; other processes see it at once.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`]; the file is then as it was before.
    pub fn append(&mut self, record: &MetricRecord) -> Result<(), RunFolderError> {
        let line = spar_core::redaction::to_json(record);
        let mut line = line.expect("a map of JSON values can be written");
        line.push(b'\n');
        let written =
            self.file.seek(SeekFrom::Start(self.len)).and_then(|_| self.file.write_all(&line));
        if let Err(source) = written {
            // If this fails as well, the next opening cuts the line.
            let _ = self.file.set_len(self.len);
            return Err(RunFolderError::Write { path: self.path.clone(), source });
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Waits until all records are on the disk.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`].
    pub fn sync(&self) -> Result<(), RunFolderError> {
        self.file.sync_data().map_err(RunFolderError::write(&self.path))
    }

    /// Removes all records of iterations after `iteration`, so that a run resumed from there
    /// writes them anew.
    ///
    /// # Errors
    ///
    /// [`RunFolderError`]; the file is then as it was before.
    pub fn truncate_after(&mut self, iteration: u64) -> Result<(), RunFolderError> {
        let mut kept = Vec::new();
        for record in read_metrics(&self.path)? {
            let record = record?;
            if record.iteration <= iteration {
                serde_json::to_writer(&mut kept, &record)
                    .expect("a map of JSON values can be written");
                kept.push(b'\n');
            }
        }
        if kept.len() as u64 != self.len {
            write_atomically(&self.path, &kept)?;
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }
}

/// The records of a `metrics.jsonl`, oldest first; half a line at the end is passed over, so that
/// a run that is being written can be read.
///
/// # Errors
///
/// [`RunFolderError::Read`] when the file cannot be opened; each record can be
/// [`RunFolderError::Malformed`].
pub fn read_metrics(
    path: &Path,
) -> Result<impl Iterator<Item = Result<MetricRecord, RunFolderError>> + use<>, RunFolderError> {
    let mut reader = BufReader::new(File::open(path).map_err(RunFolderError::read(path))?);
    let (path, mut line) = (path.to_owned(), 0);
    Ok(std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        if let Err(error) = reader.read_until(b'\n', &mut bytes) {
            return Some(Err(RunFolderError::read(&path)(error)));
        }
        if bytes.last() != Some(&b'\n') {
            return None;
        }
        line += 1;
        Some(serde_json::from_slice(&bytes).map_err(|error| RunFolderError::Malformed {
            path: path.clone(),
            line,
            detail: error.to_string(),
        }))
    }))
}

/// Bytes up to the last line that is whole and a record.
fn whole_lines(bytes: &[u8]) -> usize {
    let mut len = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // A power cut can leave a block of zeros that was never filled.
    while len > 0 {
        let start = bytes[..len - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if serde_json::from_slice::<MetricRecord>(&bytes[start..len]).is_ok() {
            break;
        }
        len = start;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(iteration: u64) -> MetricRecord {
        MetricRecord::new(iteration, "update").with([("loss", 0.5), ("iteration", 9.0)])
    }

    fn iterations(path: &Path) -> Vec<u64> {
        read_metrics(path).unwrap().map(|record| record.unwrap().iteration).collect()
    }

    #[test]
    fn records_come_back_and_a_torn_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path).unwrap();
        log.append(&record(1)).unwrap();
        log.append(&record(2)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().next().unwrap(), r#"{"iteration":1,"kind":"update","loss":0.5}"#);
        for torn in ["{\"iteration\":3,\"ki", "\0\0\0\0\n", "{\"iteration\":3}\n\0\0"] {
            fs::write(&path, format!("{text}{torn}")).unwrap();
            let mut log = MetricsLog::open(&path).unwrap();
            log.append(&record(3)).unwrap();
            assert_eq!(iterations(&path), [1, 2, 3]);
        }
    }

    #[test]
    fn later_iterations_are_removed_for_a_resumed_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path).unwrap();
        (0..6).for_each(|iteration| log.append(&record(iteration)).unwrap());
        log.truncate_after(3).unwrap();
        log.append(&record(4)).unwrap();
        log.sync().unwrap();
        assert_eq!(iterations(&path), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "{\"iteration\":1,\"kind\":\"a\"}\nnonsense\n").unwrap();
        let error = read_metrics(&path).unwrap().nth(1).unwrap().unwrap_err();
        assert!(matches!(error, RunFolderError::Malformed { line: 2, .. }));
    }
}
