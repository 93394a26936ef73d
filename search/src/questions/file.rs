//! Files of questions: a JSON array, an object on every line, or rows of Parquet.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::Deserializer as _;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};
use spar_parquet::ParquetFile;

use super::{QuestionFormat, QuestionRecord};
use crate::corpus::{LineReader, content_hash};
use crate::{CorpusError, Document};

/// The most bytes of a file of questions: 4 GiB.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The most bytes in which the first row of an array ends.
const MAX_FIRST_BYTES: u64 = 8 << 20;

/// The questions of a file, all of them read and checked; without their paragraphs.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionFile {
    /// Its form.
    pub format: QuestionFormat,
    /// The hash of the file, 64 hexadecimal digits.
    pub content_hash: String,
    /// The questions, in their order.
    pub questions: Vec<QuestionRecord>,
    /// Whether paragraphs stand beside them.
    pub has_paragraphs: bool,
}

type Row = Map<String, Value>;

impl QuestionFile {
    /// The form of a file, by its first row; absent where that is no object, or of no form that is known.
    ///
    /// # Errors
    ///
    /// [`CorpusError`] when it cannot be read.
    pub fn detect(path: &Path) -> Result<Option<QuestionFormat>, CorpusError> {
        let first = if ParquetFile::is_at(path) {
            open_parquet(path)?.next_row().unwrap_or(None)
        } else if is_lines(path) {
            LineReader::open(path)?.next_object().unwrap_or(None)
        } else {
            first_of_array(path)?
        };
        Ok(first.as_ref().and_then(QuestionFormat::detect))
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`CorpusError`] names the row and the field that is wrong.
    pub fn read(path: &Path) -> Result<Self, CorpusError> {
        let (mut format, mut questions, mut has_paragraphs) = (None, Vec::new(), false);
        let mut ids: HashSet<String> = HashSet::new();
        let content_hash = read_rows(path, &mut |row| {
            let known = || {
                let names: Vec<_> = QuestionFormat::ALL.iter().map(|it| it.name()).collect();
                format!("it is of no known form ({})", names.join(", "))
            };
            let format = match format {
                Some(format) => format,
                None => *format.insert(QuestionFormat::detect(row).ok_or_else(known)?),
            };
            let mut record = format.read(row).map_err(|error| error.to_string())?;
            if let Some(id) = &record.id
                && !ids.insert(id.clone())
            {
                return Err(format!("another question has the id `{id}` as well"));
            }
            has_paragraphs |= !record.paragraphs.is_empty();
            record.paragraphs = Vec::new();
            questions.push(record);
            Ok(())
        })?;
        let format = format.ok_or_else(|| CorpusError::Empty { path: path.to_owned() })?;
        Ok(Self { format, content_hash, questions, has_paragraphs })
    }
}

/// The paragraphs beside the questions of a file, each once, named by their number.
///
/// # Errors
///
/// As [`QuestionFile::read`].
pub fn read_paragraphs(path: &Path) -> Result<Vec<Document>, CorpusError> {
    let mut paragraphs: Vec<Document> = Vec::new();
    let mut known: HashSet<[u8; 32]> = HashSet::new();
    let mut format = None;
    read_rows(path, &mut |row| {
        let format = match format {
            Some(format) => format,
            None => *format.insert(QuestionFormat::detect(row).ok_or("it is of no known form")?),
        };
        for paragraph in format.read(row).map_err(|error| error.to_string())?.paragraphs {
            let hash = blake3::hash(paragraph.contents().as_bytes());
            if known.insert(*hash.as_bytes()) {
                let id = paragraphs.len().to_string();
                paragraphs.push(Document { id, ..paragraph });
            }
        }
        Ok(())
    })?;
    match paragraphs.is_empty() {
        true => Err(CorpusError::Empty { path: path.to_owned() }),
        false => Ok(paragraphs),
    }
}

fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jsonl")
}

/// Reads every row of a file, of which `each` tells what is wrong; its hash is returned.
fn read_rows(
    path: &Path,
    each: &mut dyn FnMut(&Row) -> Result<(), String>,
) -> Result<String, CorpusError> {
    if ParquetFile::is_at(path) {
        return read_parquet(path, each);
    }
    if !is_lines(path) {
        return read_array(path, each);
    }
    let mut lines = LineReader::open(path)?;
    while let Some(row) = lines.next_object()? {
        each(&row).map_err(|detail| lines.refuse(detail))?;
    }
    Ok(lines.content_hash())
}

fn open_parquet(path: &Path) -> Result<ParquetFile, CorpusError> {
    let fail = |source| CorpusError::Io { path: path.to_owned(), source };
    ParquetFile::open(File::open(path).map_err(fail)?).map_err(|detail| {
        let place = "the file, as Parquet".to_owned();
        CorpusError::Record { path: path.to_owned(), place, detail }
    })
}

fn read_parquet(
    path: &Path,
    each: &mut dyn FnMut(&Row) -> Result<(), String>,
) -> Result<String, CorpusError> {
    let mut rows = open_parquet(path)?;
    for number in 1_u64.. {
        let refuse = |detail| {
            let place = format!("row {number}");
            CorpusError::Record { path: path.to_owned(), place, detail }
        };
        match rows.next_row().map_err(refuse)? {
            Some(row) => each(&row).map_err(refuse)?,
            None => break,
        }
    }
    content_hash(path)
}

fn first_of_array(path: &Path) -> Result<Option<Row>, CorpusError> {
    let fail = |source| CorpusError::Io { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(fail)?.take(MAX_FIRST_BYTES));
    let mut byte = [0];
    loop {
        match reader.read(&mut byte).map_err(fail)? {
            0 => return Ok(None),
            _ if byte[0].is_ascii_whitespace() => {}
            _ if byte[0] == b'[' => break,
            _ => return Ok(None),
        }
    }
    let mut rows = serde_json::Deserializer::from_reader(reader).into_iter::<Row>();
    Ok(rows.next().and_then(Result::ok))
}

fn read_array(
    path: &Path,
    each: &mut dyn FnMut(&Row) -> Result<(), String>,
) -> Result<String, CorpusError> {
    let fail = |source| CorpusError::Io { path: path.to_owned(), source };
    let refuse = |place: String, detail: String| CorpusError::Record {
        path: path.to_owned(),
        place,
        detail,
    };
    let file = File::open(path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    if len > MAX_FILE_BYTES {
        let detail = format!("it has {len} bytes, allowed are {MAX_FILE_BYTES}");
        return Err(refuse("its size".to_owned(), detail));
    }
    let mut reader = BufReader::new(Hashing { reader: file, hasher: blake3::Hasher::new() });
    let mut rows = Rows { each, number: 0, refused: None };
    let mut json = serde_json::Deserializer::from_reader(&mut reader);
    let read = json.deserialize_seq(&mut rows).and_then(|()| json.end());
    match (rows.refused, read) {
        (Some(detail), _) => Err(refuse(format!("row {}", rows.number), detail)),
        (None, Err(error)) => Err(refuse(format!("behind row {}", rows.number), error.to_string())),
        (None, Ok(())) => Ok(reader.get_ref().hasher.finalize().to_hex().to_string()),
    }
}

/// Reads the rows of an array one by one.
struct Rows<'a> {
    each: &'a mut dyn FnMut(&Row) -> Result<(), String>,
    /// How many were read.
    number: u64,
    /// What is wrong with the last one.
    refused: Option<String>,
}

impl<'de> Visitor<'de> for &mut Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<Row>()? {
            self.number += 1;
            if let Err(detail) = (self.each)(&row) {
                self.refused = Some(detail);
                return Err(A::Error::custom("a row is wrong"));
            }
        }
        Ok(())
    }
}

/// A reader that hashes what goes through it.
struct Hashing<R> {
    reader: R,
    hasher: blake3::Hasher,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..len]);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    const ROW: &str = r#"{"_id": "1", "question": "Q?", "answer": "x", "supporting_facts": [["A", 0]],
        "context": [["A", ["a."]], ["B", ["b."]]]}"#;

    #[test]
    fn arrays_and_lines_are_read() {
        let second = ROW.replace("\"1\"", "\"2\"").replace("\"B\"", "\"C\"");
        let (_folder, array) = file("dev.json", &format!("\n [{ROW},\n{second}]\n"));
        assert_eq!(QuestionFile::detect(&array).unwrap(), Some(QuestionFormat::HotpotQa));
        let read = QuestionFile::read(&array).unwrap();
        assert_eq!((read.questions.len(), read.has_paragraphs), (2, true));
        assert_eq!(read.content_hash, content_hash(&array).unwrap());
        let titles: Vec<_> =
            read_paragraphs(&array).unwrap().into_iter().map(|it| it.id + &it.title).collect();
        assert_eq!(titles, ["0A", "1B", "2C"], "each once");
        let (_folder, lines) = file(
            "nq.jsonl",
            "{\"question\": \"q\", \"answer\": [\"a\"]}\n\n{\"question\": \"r\", \"answer\": [\"b\"]}\n",
        );
        assert_eq!(QuestionFile::detect(&lines).unwrap(), Some(QuestionFormat::NqOpen));
        let read = QuestionFile::read(&lines).unwrap();
        assert_eq!((read.questions.len(), read.has_paragraphs), (2, false));
        assert!(read_paragraphs(&lines).unwrap_err().to_string().contains("it is empty"));
    }

    #[test]
    fn errors_name_row_and_field() {
        let told = |name: &str, text: &str| {
            let (_folder, path) = file(name, text);
            QuestionFile::read(&path).unwrap_err().to_string()
        };
        let wrong = ROW.replace("\"x\"", "7").replace("\"1\"", "\"2\"");
        let says = told("dev.json", &format!("[{ROW}, {wrong}]"));
        assert!(says.contains("row 2: `answer` is a number"), "{says}");
        let says = told("dev.json", &format!("[{ROW}, {ROW}]"));
        assert!(says.contains("row 2: another question has the id `1` as well"), "{says}");
        let says = told("dev.json", &format!("[{ROW}, {{\"_id\""));
        assert!(says.contains("behind row 1: EOF"), "{says}");
        let says = told("dev.json", "{}");
        assert!(says.contains("an array of objects"), "{says}");
        let says = told(
            "q.jsonl",
            "{\"question\": \"q\", \"answer\": [\"a\"]}\n{\"question\": \"\", \"answer\": []}",
        );
        assert!(says.contains("line 2: `question` is empty"), "{says}");
        let says = told("q.jsonl", "{\"question\": \"q\"}");
        assert!(says.contains("line 1: it is of no known form (hotpotqa"), "{says}");
        assert!(told("q.json", "[]").contains("it is empty"));
        for hostile in
            ["[[[[", "[1]", "[null", "\u{0}", "[{\"question\": \"q\", \"answer\": [\"a\"]}] x"]
        {
            let (_folder, path) = file("h.json", hostile);
            assert!(QuestionFile::read(&path).is_err());
            QuestionFile::detect(&path).unwrap();
        }
    }
}
