//! `spar tasks import`.

mod folders;
mod rows;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use spar::swe::{FOLDER_FORMATS, Instance};
use spar::tasks::{Suite, SweSuite};

use self::folders::TaskFolders;
use super::super::whole_file::write_whole;
use super::super::{print, print_json};
use crate::cli::ImportArguments;

/// The record of an import, in its folder.
const RECORD: &str = "import.json";
const OVERLAY: &str = "swe.toml";
const ROWS: &str = "rows.jsonl";
const SCRIPTS: &str = "run_scripts";
/// The folder of task folders.
const TASKS: &str = "tasks";
/// What was not taken that is told; the record has all of it.
const MAX_NAMED: usize = 50;
/// The largest record that is read.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The file or folder, as it was named.
    source: PathBuf,
    /// BLAKE3 of its bytes, in hexadecimal digits; of a folder, of the paths and bytes of all that lies in its tasks.
    hash: String,
    format: String,
    name: String,
    /// Rows or task folders that are in the suite.
    taken: usize,
    /// Of these, those whose results can be judged here.
    gradable: usize,
    /// Those that are not in it.
    refused: Vec<Refused>,
    /// What they say that is not honoured, with how many of them say it.
    unsupported: BTreeMap<String, usize>,
    /// How many there are of each language; those that tell none by `-`.
    languages: BTreeMap<String, usize>,
}

/// A row or task folder that is not in the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    id: Option<String>,
    why: String,
}

impl Report {
    /// Counts one that is in the suite.
    fn take(&mut self, instance: Instance) {
        self.taken += 1;
        self.gradable += usize::from(instance.is_gradable());
        *self.languages.entry(instance.language.unwrap_or_else(|| "-".to_owned())).or_default() +=
            1;
        for why in instance.unsupported {
            *self.unsupported.entry(why).or_default() += 1;
        }
    }

    fn is_of_folders(&self) -> bool {
        is_of_folders(&self.format)
    }
}

fn is_of_folders(format: &str) -> bool {
    FOLDER_FORMATS.iter().any(|known| known.name == format)
}

/// Where tasks come from.
enum Source {
    Rows,
    Folders(TaskFolders),
}

impl Source {
    /// What lies at a path, if a format can be of it.
    fn open(path: &Path, out: &Path, format: &str) -> anyhow::Result<Self> {
        let doing = || format!("import `{}`", path.display());
        let found = fs::metadata(path).with_context(doing)?;
        let names: Vec<&str> = FOLDER_FORMATS.iter().map(|known| known.name).collect();
        if found.is_dir() {
            ensure!(
                format == "auto" || is_of_folders(format),
                "{}: it is a folder, and rows of {format} stand in a file; task folders are of {}",
                doing(),
                names.join(", ")
            );
            return Ok(Self::Folders(TaskFolders::open(path, out)?));
        }
        ensure!(found.is_file(), "{}: it is neither a file nor a folder", doing());
        ensure!(
            !is_of_folders(format),
            "{}: it is a file, and tasks of {format} are folders: name one of them, or the folder that has them",
            doing()
        );
        Ok(Self::Rows)
    }

    fn hash(&self, path: &Path) -> anyhow::Result<String> {
        match self {
            Self::Rows => rows::hash_of(path).with_context(|| format!("read `{}`", path.display())),
            Self::Folders(folders) => Ok(folders.hash()),
        }
    }

    /// Where it is put in the folder of the suite.
    fn place(&self) -> &'static str {
        match self {
            Self::Rows => ROWS,
            Self::Folders(_) => TASKS,
        }
    }

    /// What one of its tasks stands in.
    fn what(&self) -> &'static str {
        match self {
            Self::Rows => "row",
            Self::Folders(_) => "task folder",
        }
    }
}

/// Makes a suite of published rows or task folders.
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
    let source = Source::open(path, out, format)?;
    let called = out.file_name().map(|name| name.to_string_lossy().into_owned());
    let name =
        name.clone().or(called).context("name the suite: its folder has no name, give --name")?;
    ensure!(
        !name.is_empty() && !name.contains(['/', '"', '\\']) && !name.contains(char::is_control),
        "name a suite `{}`: it has characters that no file of TOML would bear",
        name.escape_debug()
    );
    let hash = source.hash(path)?;
    let known = record(out)?;
    if let Some(known) = &known {
        let is_same = known.hash == hash
            && (known.format == *format || format == "auto")
            && known.name == name;
        if is_same && out.join(source.place()).exists() && out.join(OVERLAY).is_file() {
            return Ok((known.clone(), false));
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
    } else if matches!(source, Source::Folders(_)) {
        ensure!(
            *force || !out.join(TASKS).exists(),
            "import `{}` into `{}`: there is a `{TASKS}` already, which no import has recorded; name another folder, or --force takes \
             its place",
            path.display(),
            out.display()
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
    match &source {
        Source::Rows => {
            let ids = rows::write_rows(path, out, &mut report)?;
            rows::copy_scripts(path, out, &ids)?;
        }
        Source::Folders(folders) => folders.copy(out, &mut report)?,
    }
    if report.taken == 0 {
        if is_made {
            fs::remove_dir(out).context("remove the empty folder")?;
        }
        let why = report.refused.first().map_or("it has none", |refused| &refused.why);
        bail!("import `{}`: no {} of it can be taken: {why}", path.display(), source.what());
    }
    let overlay = format!("tasks = \"{}\"\nname = \"{}\"\n", source.place(), report.name);
    write_whole(&out.join(OVERLAY), overlay.as_bytes())?;
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
    // What was imported before in another form is of no use any more.
    if let Some(known) = known.filter(|known| known.is_of_folders() != report.is_of_folders()) {
        match known.is_of_folders() {
            true => remove(&out.join(TASKS))?,
            false => {
                remove(&out.join(ROWS))?;
                remove(&out.join(SCRIPTS))?;
            }
        }
    }
    Ok((report, true))
}

/// Removes a file, or a folder with all that is in it, if it is there.
fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != NotFound => {
            Err(error).with_context(|| format!("remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

/// The record of what was imported before, if there is one.
fn record(out: &Path) -> anyhow::Result<Option<Report>> {
    let path = out.join(RECORD);
    let doing = || format!("read `{}`", path.display());
    match fs::metadata(&path) {
        Err(error) if error.kind() == NotFound => return Ok(None),
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
    let what = if report.is_of_folders() { "task folder" } else { "row" };
    let counted = |count: usize| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
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
    if report.languages.keys().any(|language| language != "-") {
        text += &format!("  languages: {}\n", languages.join(", "));
    }
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
