//! Files with a JSON object on every line, of which only the places of lines are kept.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::SuiteError;

/// A line of a file.
pub(crate) struct Line<'a> {
    /// Where it is, in words.
    pub(crate) place: String,
    /// Its first byte.
    pub(crate) start: u64,
    pub(crate) bytes: &'a [u8],
}

/// Reads a file line by line, in memory for one line at a time, all of it going into the hash; blank lines are left out.
pub(crate) fn read(
    path: &Path,
    hasher: &mut blake3::Hasher,
    mut each: impl FnMut(Line<'_>) -> Result<(), SuiteError>,
) -> Result<(), SuiteError> {
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(fail)?);
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
    let mut file = File::open(path).map_err(fail)?;
    file.seek(SeekFrom::Start(start)).map_err(fail)?;
    let mut bytes = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut bytes).map_err(fail)?;
    let bytes = without_mark(start, &bytes);
    parse(&Line { place: format!("the line at byte {start}"), start, bytes })
}

/// What begins at a byte, without the mark of UTF-8 that some programs put at the beginning of a file.
fn without_mark(start: u64, bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| start == 0).unwrap_or(bytes)
}

/// The keys of the first line that is not blank; absent where there is none, or it is no object.
pub(crate) fn first(path: &Path) -> Result<Option<Map<String, Value>>, SuiteError> {
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let reader = BufReader::new(File::open(path).map_err(fail)?);
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
