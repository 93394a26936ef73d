//! Files with a JSON object on every line, of which only the places of lines are kept. Rows of a Parquet file are such lines too.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use spar_parquet::ParquetFile;

use crate::SuiteError;

/// A line of a file.
pub(crate) struct Line<'a> {
    /// Where it is, in words.
    pub(crate) place: String,
    /// Its first byte.
    pub(crate) start: u64,
    pub(crate) bytes: &'a [u8],
}

/// Whether a path is named as a file of lines is, or holds Parquet.
pub(crate) fn is_at(path: &Path) -> bool {
    (path.extension().is_some_and(|end| end == "jsonl") && path.is_file())
        || ParquetFile::is_at(path)
}

/// The text of a file of lines, from a byte on.
struct Text {
    file: Arc<File>,
    at: u64,
}

impl Text {
    fn open(path: &Path, at: u64) -> Result<BufReader<Self>, SuiteError> {
        let fail = |source| SuiteError::Io { path: path.to_owned(), source };
        let file = match ParquetFile::is_at(path) {
            true => rows_of(path)?,
            false => Arc::new(File::open(path).map_err(fail)?),
        };
        Ok(BufReader::new(Self { file, at }))
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The file may be read elsewhere at the same time, so its own position says nothing.
        let len = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

/// A Parquet file whose rows were written out: its length, when it was changed, and the lines in a file without a name, which ends
/// with the process.
type WrittenOut = Option<(u64, Option<SystemTime>, Arc<File>)>;

fn open_rows(path: &Path) -> Result<ParquetFile, SuiteError> {
    let file =
        File::open(path).map_err(|source| SuiteError::Io { path: path.to_owned(), source })?;
    ParquetFile::open(file).map_err(|detail| {
        let place = "the file, as Parquet".to_owned();
        SuiteError::Task { path: path.to_owned(), place, detail }
    })
}

fn next_row(
    rows: &mut ParquetFile,
    number: u64,
    path: &Path,
) -> Result<Option<Map<String, Value>>, SuiteError> {
    rows.next_row().map_err(|detail| {
        let place = format!("row {number}");
        SuiteError::Task { path: path.to_owned(), place, detail }
    })
}

/// The rows of a Parquet file as lines. They are written out once in a process, since rows of Parquet cannot be read one by one.
fn rows_of(path: &Path) -> Result<Arc<File>, SuiteError> {
    static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<WrittenOut>>>>> =
        LazyLock::new(Mutex::default);
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let about = std::fs::metadata(path).map_err(fail)?;
    let (len, changed) = (about.len(), about.modified().ok());
    // Only who wants the same file waits for it.
    let known = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(path.to_owned()).or_default().clone()
    };
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known_len, known_changed, lines)) = &*known
        && (*known_len, *known_changed) == (len, changed)
    {
        return Ok(lines.clone());
    }
    let mut rows = open_rows(path)?;
    let mut lines = BufWriter::new(tempfile::tempfile().map_err(fail)?);
    for number in 1_u64.. {
        let Some(row) = next_row(&mut rows, number, path)? else { break };
        let line = serde_json::to_vec(&row).expect("a row has only string keys");
        lines.write_all(&line).and_then(|()| lines.write_all(b"\n")).map_err(fail)?;
    }
    let lines = Arc::new(lines.into_inner().map_err(|error| fail(error.into_error()))?);
    *known = Some((len, changed, lines.clone()));
    Ok(lines)
}

/// Reads a file line by line, in memory for one line at a time, all of it going into the hash; blank lines are left out.
pub(crate) fn read(
    path: &Path,
    hasher: &mut blake3::Hasher,
    mut each: impl FnMut(Line<'_>) -> Result<(), SuiteError>,
) -> Result<(), SuiteError> {
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let mut reader = Text::open(path, 0)?;
    let (mut start, mut bytes) = (0, Vec::new());
    for number in 1.. {
        bytes.clear();
        let len = reader.read_until(b'\n', &mut bytes).map_err(fail)?;
        if len == 0 {
            break;
        }
        hasher.update(&bytes);
        let said = without_mark(start, &bytes);
        if !said.trim_ascii().is_empty() {
            each(Line { place: format!("line {number}"), start, bytes: said })?;
        }
        start += len as u64;
    }
    Ok(())
}

/// What the line that begins at a byte holds.
pub(crate) fn read_at<T>(
    path: &Path,
    start: u64,
    parse: impl FnOnce(&Line<'_>) -> Result<T, SuiteError>,
) -> Result<T, SuiteError> {
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    Text::open(path, start)?.read_until(b'\n', &mut bytes).map_err(fail)?;
    let bytes = without_mark(start, &bytes);
    parse(&Line { place: format!("the line at byte {start}"), start, bytes })
}

/// What begins at a byte, without the mark of UTF-8 that some programs put at the beginning of a file.
fn without_mark(start: u64, bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| start == 0).unwrap_or(bytes)
}

/// The keys of the first line that is not blank; absent where there is none, or it is no object.
pub(crate) fn first(path: &Path) -> Result<Option<Map<String, Value>>, SuiteError> {
    if ParquetFile::is_at(path) {
        return next_row(&mut open_rows(path)?, 1, path);
    }
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let reader = Text::open(path, 0)?;
    let mut start = 0;
    for line in reader.split(b'\n') {
        let line = line.map_err(fail)?;
        let said = without_mark(start, &line);
        if !said.trim_ascii().is_empty() {
            return Ok(serde_json::from_slice(said).ok());
        }
        start += line.len() as u64 + 1;
    }
    Ok(None)
}

impl Line<'_> {
    /// What it says.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Task`] tells the line; of the last one of a file that was cut off, that it was.
    pub(crate) fn parse<T: DeserializeOwned>(&self, path: &Path) -> Result<T, SuiteError> {
        serde_json::from_slice(self.bytes).map_err(|error| {
            let is_cut_off = error.is_eof() && !self.bytes.ends_with(b"\n");
            let cut_off = if is_cut_off { "; the file ends within it, as if cut off" } else { "" };
            self.refuse(path, format!("{error}{cut_off}"))
        })
    }

    /// That something is wrong with it.
    pub(crate) fn refuse(&self, path: &Path, detail: String) -> SuiteError {
        SuiteError::Task { path: path.to_owned(), place: self.place.clone(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_beginning_of_a_file_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "\u{feff}{\"a\": 1}\n\u{feff}{\"a\": 2}\n").unwrap();
        assert_eq!(first(&path).unwrap().unwrap()["a"], 1);
        let mut read_values = Vec::new();
        let read_all = read(&path, &mut blake3::Hasher::new(), |line| {
            read_values.push(line.parse::<Value>(&path)?);
            Ok(())
        });
        // Elsewhere it is no blank of JSON.
        assert!(read_all.unwrap_err().to_string().contains("line 2"));
        assert_eq!(read_values, [serde_json::json!({ "a": 1 })]);
        let again = read_at(&path, 0, |line| line.parse::<Value>(&path)).unwrap();
        assert_eq!(again, read_values[0]);
    }
}
