//! Documents in files with a JSON object on every line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{CorpusError, Document};

/// The most bytes that a line may have: 8 MiB.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// The documents of a file with a JSON object on every line, read one by one; blank lines are left out. After the first
/// error there is nothing more.
///
/// ```json
/// {"id": "0", "contents": "\"Evan Morris\"\nEvan L. Morris was a lobbyist ..."}
/// ```
pub struct CorpusReader {
    lines: LineReader,
    is_over: bool,
}

impl CorpusReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`CorpusError::Io`] when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, CorpusError> {
        Ok(Self { lines: LineReader::open(path)?, is_over: false })
    }

    /// The hash of all that was read, 64 hexadecimal digits: behind the last document, that of the file.
    pub fn content_hash(&self) -> String {
        self.lines.content_hash()
    }
}

impl Iterator for CorpusReader {
    type Item = Result<Document, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = self.lines.next_object().and_then(|object| {
            let Some(object) = object else { return Ok(None) };
            let refuse = |error: crate::FieldError| self.lines.refuse(error.to_string());
            Document::from_json(&object).map(Some).map_err(refuse)
        });
        self.is_over = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

/// The hash of a file, 64 hexadecimal digits.
///
/// # Errors
///
/// [`CorpusError::Io`] when it cannot be read.
pub fn content_hash(path: &Path) -> Result<String, CorpusError> {
    let fail = |source| CorpusError::Io { path: path.to_owned(), source };
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).map_err(fail)?;
    io::copy(&mut file, &mut hasher).map_err(fail)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Lines of a file, each a JSON object, in bounded memory.
pub(crate) struct LineReader {
    path: PathBuf,
    reader: BufReader<File>,
    bytes: Vec<u8>,
    number: u64,
    hasher: blake3::Hasher,
}

impl LineReader {
    pub(crate) fn open(path: &Path) -> Result<Self, CorpusError> {
        let file =
            File::open(path).map_err(|source| CorpusError::Io { path: path.to_owned(), source })?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 16, file),
            bytes: Vec::new(),
            number: 0,
            hasher: blake3::Hasher::new(),
        })
    }

    /// What the next line says that is not blank; absent behind the last one.
    pub(crate) fn next_object(&mut self) -> Result<Option<Map<String, Value>>, CorpusError> {
        loop {
            self.bytes.clear();
            self.number += 1;
            let most = MAX_LINE_BYTES as u64 + 1;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.bytes);
            let len = read.map_err(|source| CorpusError::Io { path: self.path.clone(), source })?;
            if len == 0 {
                return Ok(None);
            }
            if len > MAX_LINE_BYTES {
                return Err(self.refuse(format!("it has more than {MAX_LINE_BYTES} bytes")));
            }
            self.hasher.update(&self.bytes);
            if self.bytes.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&self.bytes) {
                Ok(object) => Ok(Some(object)),
                Err(error) => {
                    let is_cut_off = error.is_eof() && !self.bytes.ends_with(b"\n");
                    let cut =
                        if is_cut_off { "; the file ends within it, as if cut off" } else { "" };
                    Err(self.refuse(format!("{error}{cut}")))
                }
            };
        }
    }

    /// The hash of all that was read.
    pub(crate) fn content_hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// That something is wrong with the line that was read last.
    pub(crate) fn refuse(&self, detail: String) -> CorpusError {
        let place = format!("line {}", self.number);
        CorpusError::Record { path: self.path.clone(), place, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<Document, String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpus.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut reader = CorpusReader::open(&path).unwrap();
        let documents: Vec<_> =
            reader.by_ref().map(|it| it.map_err(|error| error.to_string())).collect();
        if documents.iter().all(Result::is_ok) {
            assert_eq!(reader.content_hash(), content_hash(&path).unwrap());
        }
        documents
    }

    #[test]
    fn lines_are_documents_and_wrong_ones_are_told_with_their_number() {
        let good = "{\"id\": \"0\", \"contents\": \"\\\"A\\\"\\ntext\"}\n";
        let two = read(&format!("{good}\n{{\"id\": 1, \"title\": \"B\", \"text\": \"x\"}}"));
        assert_eq!(two.len(), 2);
        assert_eq!(two[1].as_ref().unwrap().contents(), "B\nx");
        for (line, part) in [
            ("{\"id\": 1}", "`contents` is absent"),
            ("[]", "invalid type"),
            ("{\"id\": 1, \"cont", "cut off"),
            ("{\"id\": null, \"contents\": \"\"}\n", "`id` is null"),
        ] {
            let documents = read(&format!("{good}{line}"));
            assert_eq!(documents.len(), 2, "an error ends it");
            let told = documents[1].as_ref().unwrap_err();
            assert!(told.contains("line 2") && told.contains(part), "{told}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_in_bounded_memory() {
        let told = read(&"x".repeat(MAX_LINE_BYTES + 2)).remove(0).unwrap_err();
        assert!(told.contains("more than 8388608 bytes"), "{told}");
        assert!(CorpusReader::open(Path::new("/no/such")).is_err());
    }
}
