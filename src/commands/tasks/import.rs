//! `spar tasks import`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar::swe::{Instance, RowFile, RowOptions};
use spar::tasks::{Suite, SweSuite};

use super::super::whole_file::write_whole;
use super::super::{print, print_json};
use crate::cli::ImportArguments;

/// The record of an import, in its folder.
const RECORD: &str = "import.json";
const ROWS: &str = "rows.jsonl";
const SCRIPTS: &str = "run_scripts";
/// Rows that were not taken which are told; the record has all of them.
const MAX_NAMED: usize = 50;
/// The largest record that is read.
const MAX_RECORD_BYTES: u64 = 256 << 20;
/// Bytes of one row.
const MAX_ROW_BYTES: u64 = 256 << 20;

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The file, as it was named.
    source: PathBuf,
    /// BLAKE3 of its bytes, in hexadecimal digits.
    hash: String,
    format: String,
    name: String,
    /// Rows that are in the suite.
    taken: usize,
    /// Of these, rows whose results can be judged here.
    gradable: usize,
    /// Rows that are not in it.
    refused: Vec<Refused>,
    /// What rows say that is not honoured, with how many of them say it.
    unsupported: BTreeMap<String, usize>,
    /// Rows by language; those that tell none by `-`.
    languages: BTreeMap<String, usize>,
}

/// A row that is not in the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    id: Option<String>,
    why: String,
}

/// Makes a suite of published rows.
pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let (report, is_new) = into_folder(arguments)?;
    match arguments.json {
        true => print_json(&report)?,
        false => print(&text(&report, &arguments.out, is_new))?,
    }
    Ok(if report.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of it, now or before.
fn into_folder(arguments: &ImportArguments) -> anyhow::Result<(Report, bool)> {
    let ImportArguments { format, path, out, name, force, .. } = arguments;
    let found = fs::metadata(path).with_context(|| format!("import `{}`", path.display()))?;
    ensure!(
        !found.is_dir(),
        "import `{}`: it is a folder, and rows stand in a file; a folder of tasks is a suite as it is, for `spar tasks ls {}`",
        path.display(),
        path.display()
    );
    ensure!(found.is_file(), "import `{}`: it is no file", path.display());
    let called = out.file_name().map(|name| name.to_string_lossy().into_owned());
    let name =
        name.clone().or(called).context("name the suite: its folder has no name, give --name")?;
    ensure!(
        !name.is_empty() && !name.contains(['/', '"', '\\']) && !name.contains(char::is_control),
        "name a suite `{}`: it has characters that no file of TOML would bear",
        name.escape_debug()
    );
    let hash = hash_of(path).with_context(|| format!("read `{}`", path.display()))?;
    if let Some(known) = record(out)? {
        let is_same = known.hash == hash
            && (known.format == *format || format == "auto")
            && known.name == name;
        if is_same && out.join(ROWS).is_file() && out.join("swe.toml").is_file() {
            return Ok((known, false));
        }
        ensure!(
            is_same || *force,
            "import `{}` into `{}`: `{}` was imported there, with format {} and name `{}`; --force takes its place",
            path.display(),
            out.display(),
            known.source.display(),
            known.format,
            known.name
        );
    }
    let is_made = !out.exists();
    fs::create_dir_all(out).with_context(|| format!("make folder `{}`", out.display()))?;
    let mut report = Report {
        source: path.clone(),
        hash,
        format: format.clone(),
        name,
        taken: 0,
        gradable: 0,
        refused: Vec::new(),
        unsupported: BTreeMap::new(),
        languages: BTreeMap::new(),
    };
    let ids = write_rows(path, out, &mut report)?;
    if report.taken == 0 {
        fs::remove_file(out.join(ROWS)).context("remove the empty file of rows")?;
        if is_made {
            fs::remove_dir(out).context("remove the empty folder")?;
        }
        let why = report.refused.first().map_or("it has none", |refused| &refused.why);
        bail!("import `{}`: no row of it can be taken: {why}", path.display());
    }
    copy_scripts(path, out, &ids)?;
    let overlay = format!("tasks = \"{ROWS}\"\nname = \"{}\"\n", report.name);
    write_whole(&out.join("swe.toml"), overlay.as_bytes())?;
    // What was written is what will be read.
    let suite = SweSuite::open(out).context("open what was imported")?;
    let len = suite.len("test")?;
    ensure!(
        len == report.taken,
        "open what was imported: it has {len} tasks, and {} were written",
        report.taken
    );
    write_whole(
        &out.join(RECORD),
        &serde_json::to_vec_pretty(&report).context("write the record")?,
    )?;
    Ok((report, true))
}

/// Checks every row, and writes those that can be taken; their ids.
fn write_rows(path: &Path, out: &Path, report: &mut Report) -> anyhow::Result<Vec<String>> {
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
        report.taken += 1;
        report.gradable += usize::from(instance.is_gradable());
        *report
            .languages
            .entry(instance.language.unwrap_or_else(|| "-".to_owned()))
            .or_default() += 1;
        for why in instance.unsupported {
            *report.unsupported.entry(why).or_default() += 1;
        }
        ids.push(instance.id);
    }
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(io)?;
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
fn copy_scripts(path: &Path, out: &Path, ids: &[String]) -> anyhow::Result<()> {
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

fn hash_of(path: &Path) -> std::io::Result<String> {
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

/// The record of what was imported before, if there is one.
fn record(out: &Path) -> anyhow::Result<Option<Report>> {
    let path = out.join(RECORD);
    let doing = || format!("read `{}`", path.display());
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(doing),
        Ok(told) => ensure!(
            told.len() <= MAX_RECORD_BYTES,
            "{}: it is larger than {MAX_RECORD_BYTES} bytes",
            doing()
        ),
    }
    let bytes = fs::read(&path).with_context(doing)?;
    serde_json::from_slice(&bytes).map(Some).with_context(doing)
}

fn text(report: &Report, out: &Path, is_new: bool) -> String {
    let mut text = format!(
        "{}: {} of {} {} `{}`, {} of them gradable here\n",
        report.name,
        counted(report.taken),
        report.format,
        if is_new { "imported into" } else { "are already in" },
        out.display(),
        report.gradable
    );
    let languages: Vec<String> =
        report.languages.iter().map(|(language, count)| format!("{language} {count}")).collect();
    text += &format!("  languages: {}\n", languages.join(", "));
    for (why, count) in &report.unsupported {
        text += &format!("  not honoured in {count}: {why}\n");
    }
    if !report.refused.is_empty() {
        let were = if report.refused.len() == 1 { "was" } else { "were" };
        text += &format!("{} {were} not taken:\n", counted(report.refused.len()));
    }
    for refused in report.refused.iter().take(MAX_NAMED) {
        text += &format!("  {}\n", refused.why);
    }
    if report.refused.len() > MAX_NAMED {
        text += &format!("  and {} more, which `{RECORD}` has\n", report.refused.len() - MAX_NAMED);
    }
    text + &format!("play them with `spar eval --suite {}`\n", out.display())
}

fn counted(rows: usize) -> String {
    format!("{rows} row{}", if rows == 1 { "" } else { "s" })
}
