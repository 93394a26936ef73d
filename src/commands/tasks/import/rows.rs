//! Rows of a file, as a suite.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Map, Value};
use spar::swe::{Instance, RowFile, RowOptions};

use super::{ROWS, Refused, Report, SCRIPTS};

/// Bytes of one row.
const MAX_ROW_BYTES: u64 = 256 << 20;

/// Checks every row, and writes those that can be taken, if there is any; their ids.
pub(super) fn write_rows(
    path: &Path,
    out: &Path,
    report: &mut Report,
) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    let wanted = (report.format != "auto").then(|| report.format.clone());
    let target = out.join(ROWS);
    let partial = out.join(format!("{ROWS}.part"));
    let io = || format!("write `{}`", partial.display());
    let mut file = BufWriter::new(File::create(&partial).with_context(io)?);
    let reader = RowReader::beside(path)?;
    let mut rows = Rows::open(path)?;
    let mut seen = BTreeSet::new();
    while let Some((place, row)) = rows.next()? {
        let columns = match row {
            Ok(columns) => columns,
            Err(why) => {
                report.refused.push(Refused { id: None, why: format!("{place}: {why}") });
                continue;
            }
        };
        let id = columns.get("instance_id").and_then(Value::as_str).map(str::to_owned);
        let (format, instance) = match reader.read(&columns, &place)? {
            Ok(read) => read,
            Err(why) => {
                report.refused.push(Refused { id, why });
                continue;
            }
        };
        if !seen.insert(instance.id.clone()) {
            let why = format!("{place}: another row has the id `{}` as well", instance.id);
            report.refused.push(Refused { id, why });
            continue;
        }
        let expected =
            wanted.as_deref().unwrap_or(if ids.is_empty() { format } else { &*report.format });
        if format != expected {
            let why = format!("{place}: it is a row of {format}, not of {expected}");
            report.refused.push(Refused { id: Some(instance.id), why });
            continue;
        }
        format.clone_into(&mut report.format);
        serde_json::to_writer(&mut file, &columns).with_context(io)?;
        file.write_all(b"\n").with_context(io)?;
        ids.push(instance.id.clone());
        report.take(instance);
    }
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(io)?;
    if ids.is_empty() {
        // What was imported before stays.
        fs::remove_file(&partial).with_context(|| format!("remove `{}`", partial.display()))?;
        return Ok(ids);
    }
    file.sync_all().with_context(io)?;
    fs::rename(&partial, &target).with_context(|| format!("write `{}`", target.display()))?;
    Ok(ids)
}

/// The rows of a file, of which one that cannot be read keeps none of the others from it.
enum Rows {
    Lines {
        reader: BufReader<File>,
        line: usize,
    },
    Array {
        rows: std::vec::IntoIter<Value>,
        number: usize,
    },
    /// What is broken in such a file keeps all that is behind it from being read.
    Parquet {
        file: Box<RowFile>,
        number: usize,
    },
}

/// A row, or why it is none.
type Row = Result<Map<String, Value>, String>;

impl Rows {
    /// Opens a file of JSON lines, of Parquet, or with an array.
    fn open(path: &Path) -> anyhow::Result<Self> {
        // It knows what a file must not be, such as too large an array.
        let file = RowFile::open(path, RowOptions::default())?;
        if file.is_parquet() {
            return Ok(Self::Parquet { file: Box::new(file), number: 0 });
        }
        let file = File::open(path).with_context(|| format!("read `{}`", path.display()))?;
        let mut reader = BufReader::new(file);
        let start = reader.fill_buf().with_context(|| format!("read `{}`", path.display()))?;
        if start.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
            return Ok(Self::Lines { reader, line: 0 });
        }
        let rows: Vec<Value> = serde_json::from_reader(reader)
            .with_context(|| format!("read `{}`", path.display()))?;
        Ok(Self::Array { rows: rows.into_iter(), number: 0 })
    }

    /// The next one, with words for where it stands; absent behind the last.
    fn next(&mut self) -> anyhow::Result<Option<(String, Row)>> {
        let (place, value) = match self {
            Self::Lines { reader, line } => {
                let mut bytes = Vec::new();
                loop {
                    bytes.clear();
                    *line += 1;
                    let limited = &mut reader.by_ref().take(MAX_ROW_BYTES + 1);
                    limited.read_until(b'\n', &mut bytes).context("read the rows")?;
                    if bytes.is_empty() {
                        return Ok(None);
                    }
                    ensure!(
                        bytes.len() as u64 <= MAX_ROW_BYTES,
                        "read line {line}: it is longer than {MAX_ROW_BYTES} bytes"
                    );
                    if !bytes.iter().all(u8::is_ascii_whitespace) {
                        break;
                    }
                }
                (
                    format!("line {line}"),
                    serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
                )
            }
            Self::Array { rows, number } => {
                let Some(value) = rows.next() else { return Ok(None) };
                *number += 1;
                (format!("row {number}"), Ok(value))
            }
            Self::Parquet { file, number } => {
                let Some(row) = file.next_columns()? else { return Ok(None) };
                *number += 1;
                (format!("row {number}"), Ok(Value::Object(row)))
            }
        };
        let row = value.and_then(|value| match value {
            Value::Object(row) => Ok(row),
            _ => Err("it is no object".to_owned()),
        });
        Ok(Some((place, row)))
    }
}

/// Reads rows one by one, each from a file of its own: reading a file ends with its first error.
struct RowReader {
    folder: tempfile::TempDir,
    scripts: Option<PathBuf>,
}

impl RowReader {
    /// Scripts of instances are those beside a file.
    fn beside(path: &Path) -> anyhow::Result<Self> {
        let scripts = path.parent().unwrap_or(Path::new("")).join(SCRIPTS);
        let folder = tempfile::tempdir().context("make a folder")?;
        Ok(Self { folder, scripts: scripts.is_dir().then_some(scripts) })
    }

    /// A row's format and instance, or why it has none.
    fn read(
        &self,
        row: &Map<String, Value>,
        place: &str,
    ) -> anyhow::Result<Result<(&'static str, Instance), String>> {
        let path = self.folder.path().join("row.jsonl");
        let bytes = serde_json::to_vec(row).context("write a row")?;
        fs::write(&path, bytes).with_context(|| format!("write `{}`", path.display()))?;
        let options = RowOptions { scripts: self.scripts.clone(), ..RowOptions::default() };
        let mut file = RowFile::open(&path, options)?;
        Ok(match file.next() {
            Some(Ok(instance)) => Ok((file.format().map_or("", |format| format.name), instance)),
            Some(Err(error)) => {
                let own = format!("`{}`, line 1", path.display());
                Err(error.to_string().replace(&own, place))
            }
            None => Err(format!("{place}: it is empty")),
        })
    }
}

/// Scripts that lie beside the file, for the rows that were taken.
pub(super) fn copy_scripts(path: &Path, out: &Path, ids: &[String]) -> anyhow::Result<()> {
    let from = path.parent().unwrap_or(Path::new("")).join(SCRIPTS);
    if !from.is_dir() || out.join(SCRIPTS).canonicalize().ok() == from.canonicalize().ok() {
        return Ok(());
    }
    for id in ids {
        let folder = from.join(id);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let target = out.join(SCRIPTS).join(id);
        fs::create_dir_all(&target)
            .with_context(|| format!("make folder `{}`", target.display()))?;
        for entry in
            entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        {
            let to = target.join(entry.file_name());
            fs::copy(entry.path(), &to).with_context(|| format!("write `{}`", to.display()))?;
        }
    }
    Ok(())
}

/// BLAKE3 of the bytes of a file, in hexadecimal digits.
pub(super) fn hash_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            read => hasher.update(&buffer[..read]),
        };
    }
}
