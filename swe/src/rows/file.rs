use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use spar_parquet::ParquetFile;

use super::format::{Companions, RowFormat, read_row};
use crate::error::{LoadError, Place, Row};
use crate::instance::Instance;

/// Bytes of one row.
const MAX_ROW_BYTES: u64 = 256 << 20;
/// Bytes of a file that is read whole.
const MAX_WHOLE_BYTES: u64 = 1 << 30;

/// How rows are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowOptions {
    /// A folder with a folder of scripts for each instance (`run_script.sh`, `parser.py`), for formats whose rows do not
    /// have them. Default: `run_scripts` beside the file, where it is there.
    pub scripts: Option<PathBuf>,
    /// Whether rows of several formats may stand in one file, each read as what it is. Default false.
    pub mixed: bool,
}

/// A file of rows, read one by one.
///
/// ```no_run
/// use spar_swe::{RowFile, RowOptions};
///
/// for instance in RowFile::open("rows.jsonl".as_ref(), RowOptions::default())? {
///     println!("{}", instance?.id);
/// }
/// # Ok::<(), spar_swe::LoadError>(())
/// ```
pub struct RowFile {
    path: PathBuf,
    rows: Rows,
    mixed: bool,
    scripts: Option<PathBuf>,
    format: Option<&'static RowFormat>,
    seen: HashSet<String>,
    failed: bool,
}

/// A row, and where it lies.
type PlacedRow = (Place, Map<String, Value>);

/// How the rows of a file come.
enum Rows {
    Lines { reader: BufReader<File>, line: u64 },
    Array { rows: std::vec::IntoIter<Value>, number: u64 },
    Parquet { file: Box<ParquetFile>, number: u64 },
}

impl RowFile {
    /// Opens a file: by its content JSON lines, a JSON array of rows, or Parquet.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when it cannot be read, an array is larger than 1 GiB or no JSON, or a file of Parquet is broken.
    pub fn open(path: &Path, options: RowOptions) -> Result<Self, LoadError> {
        let mut file = File::open(path).map_err(LoadError::io(path))?;
        let mut start = Vec::new();
        file.by_ref().take(4096).read_to_end(&mut start).map_err(LoadError::io(path))?;
        file.rewind().map_err(LoadError::io(path))?;
        let rows = if start.starts_with(b"PAR1") {
            let opened = ParquetFile::open(file);
            let file = opened.map_err(|detail| broken(Place::of(path), detail))?;
            Rows::Parquet { file: Box::new(file), number: 0 }
        } else if start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            Self::open_array(path, file)?
        } else {
            Rows::Lines { reader: BufReader::new(file), line: 0 }
        };
        let beside = path.parent().unwrap_or(Path::new("")).join("run_scripts");
        let scripts = options.scripts.or_else(|| beside.is_dir().then_some(beside));
        Ok(Self {
            path: path.to_owned(),
            rows,
            mixed: options.mixed,
            scripts,
            format: None,
            seen: HashSet::new(),
            failed: false,
        })
    }

    /// Whether a file looks like one of rows of software engineering: its first row has the columns of a format, or so many that
    /// reading it tells what it lacks of one, which are an `instance_id` and a `repo` or a `patch`.
    pub fn matches(path: &Path) -> bool {
        let Ok(mut file) = Self::open(path, RowOptions::default()) else {
            return false;
        };
        match file.next_row() {
            Ok(Some((place, row))) => {
                let is_near = row.contains_key("instance_id")
                    && (row.contains_key("repo") || row.contains_key("patch"));
                is_near || RowFormat::of(&row, &place).is_ok()
            }
            _ => false,
        }
    }

    /// Whether the file is one of Parquet.
    pub fn is_parquet(&self) -> bool {
        matches!(self.rows, Rows::Parquet { .. })
    }

    /// The format of the rows so far.
    pub fn format(&self) -> Option<&'static RowFormat> {
        self.format
    }

    /// The next row as it stands, by its columns: nothing is read into it. Absent behind the last.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when it is none.
    pub fn next_columns(&mut self) -> Result<Option<Map<String, Value>>, LoadError> {
        Ok(self.next_row()?.map(|(_, row)| row))
    }

    fn open_array(path: &Path, file: File) -> Result<Rows, LoadError> {
        let bytes = file.metadata().map_err(LoadError::io(path))?.len();
        if bytes > MAX_WHOLE_BYTES {
            let (what, limit) = (
                "the array; write it as JSON lines, which are read one by one".to_owned(),
                MAX_WHOLE_BYTES,
            );
            return Err(LoadError::TooLarge {
                place: Box::new(Place::of(path)),
                what,
                bytes,
                limit,
            });
        }
        // A pipe tells no length, and has to end as well.
        let whole = BufReader::new(file.take(MAX_WHOLE_BYTES));
        let rows: Vec<Value> =
            serde_json::from_reader(whole).map_err(|error| LoadError::Syntax {
                place: Box::new(Place::of(path)),
                language: "JSON",
                detail: error.to_string(),
            })?;
        Ok(Rows::Array { rows: rows.into_iter(), number: 0 })
    }

    fn next_row(&mut self) -> Result<Option<PlacedRow>, LoadError> {
        let path = self.path.clone();
        let at = |row| Place { path: path.clone(), row: Some(row), id: None };
        let (mut place, value) = match &mut self.rows {
            Rows::Lines { reader, line } => {
                let mut text = Vec::new();
                loop {
                    text.clear();
                    *line += 1;
                    let read = reader.by_ref().take(MAX_ROW_BYTES + 1).read_until(b'\n', &mut text);
                    let bytes = read.map_err(LoadError::io(&path))? as u64;
                    if bytes == 0 {
                        return Ok(None);
                    }
                    if bytes > MAX_ROW_BYTES {
                        let (place, what) = (Box::new(at(Row::Line(*line))), "the row".to_owned());
                        return Err(LoadError::TooLarge {
                            place,
                            what,
                            bytes,
                            limit: MAX_ROW_BYTES,
                        });
                    }
                    if !text.iter().all(u8::is_ascii_whitespace) {
                        break;
                    }
                }
                let place = at(Row::Line(*line));
                let value = serde_json::from_slice(&text).map_err(|error| LoadError::Syntax {
                    place: Box::new(place.clone()),
                    language: "JSON",
                    detail: error.to_string(),
                })?;
                (place, value)
            }
            Rows::Array { rows, number } => {
                let Some(value) = rows.next() else {
                    return Ok(None);
                };
                *number += 1;
                (at(Row::Number(*number)), value)
            }
            Rows::Parquet { file, number } => {
                *number += 1;
                let place = at(Row::Number(*number));
                match file.next_row() {
                    Ok(Some(row)) => (place, Value::Object(row)),
                    Ok(None) => return Ok(None),
                    Err(detail) => return Err(broken(place, detail)),
                }
            }
        };
        let Value::Object(row) = value else {
            return Err(LoadError::Syntax {
                place: Box::new(place),
                language: "JSON",
                detail: format!(
                    "expected a row, which is an object, found {}",
                    crate::columns::described(&value)
                ),
            });
        };
        place.id = row.get("instance_id").and_then(Value::as_str).map(str::to_owned);
        Ok(Some((place, row)))
    }

    fn next_instance(&mut self) -> Result<Option<Instance>, LoadError> {
        let Some((place, row)) = self.next_row()? else {
            return Ok(None);
        };
        let companions = Companions { scripts: self.scripts.as_deref() };
        let (format, instance) = read_row(row, &place, &companions)?;
        let first = *self.format.get_or_insert(format);
        if first.name != format.name && !self.mixed {
            return Err(LoadError::MixedFormats {
                place: Box::new(place),
                found: format.name,
                first: first.name,
            });
        }
        if !self.seen.insert(instance.id.clone()) {
            return Err(LoadError::SameId {
                place: Box::new(Place { id: Some(instance.id), ..place }),
            });
        }
        Ok(Some(instance))
    }
}

/// That a file of Parquet cannot be read.
fn broken(place: Place, detail: String) -> LoadError {
    LoadError::Syntax { place: Box::new(place), language: "Parquet", detail }
}

/// Ends after the first error.
impl Iterator for RowFile {
    type Item = Result<Instance, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_instance();
        self.failed = next.is_err();
        next.transpose()
    }
}
