//! Reading the files of a task folder, within bounds and within the folder.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::columns::Columns;
use crate::error::{LoadError, Place};
use crate::instance::{Content, HiddenFile, HiddenFiles};

/// Bytes of a text that is read.
pub(super) const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Files of one task.
const MAX_FILES: usize = 100_000;
/// Folders inside each other.
const MAX_DEPTH: usize = 64;

/// The text of a file, line ends as they are.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, LoadError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(LoadError::io(path))?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(LoadError::io(path))?;
    if bytes.len() as u64 > limit {
        let (place, what) = (Box::new(Place::of(path)), "the file".to_owned());
        return Err(LoadError::TooLarge { place, what, bytes: bytes.len() as u64, limit });
    }
    String::from_utf8(bytes).map_err(|_| LoadError::file(path, "expected a text in UTF-8"))
}

/// The text of a file that need not be there.
pub(super) fn optional_text(path: &Path) -> Result<Option<String>, LoadError> {
    match path.is_file() {
        true => read_text(path, MAX_TEXT_BYTES).map(Some),
        false => Ok(None),
    }
}

/// The fields of a file of YAML.
pub(super) fn read_yaml(path: &Path) -> Result<Columns, LoadError> {
    let text = read_text(path, MAX_TEXT_BYTES)?;
    let value: Value = yaml_serde::from_str(&text).map_err(|error| syntax(path, "YAML", error))?;
    fields(path, "YAML", value)
}

/// The fields of a file of TOML.
pub(super) fn read_toml(path: &Path) -> Result<Columns, LoadError> {
    let text = read_text(path, MAX_TEXT_BYTES)?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| syntax(path, "TOML", error))?;
    let row = table.into_iter().map(|(key, value)| (key, of_toml(value))).collect();
    Ok(Columns::strict(Place::of(path), row))
}

/// The fields of a file of JSON.
pub(super) fn read_json(path: &Path) -> Result<Columns, LoadError> {
    let text = read_text(path, MAX_TEXT_BYTES)?;
    let value = serde_json::from_str(&text).map_err(|error| syntax(path, "JSON", error))?;
    fields(path, "JSON", value)
}

fn syntax(path: &Path, language: &'static str, error: impl std::fmt::Display) -> LoadError {
    let detail = error.to_string().trim().to_owned();
    LoadError::Syntax { place: Box::new(Place::of(path)), language, detail }
}

fn fields(path: &Path, language: &'static str, value: Value) -> Result<Columns, LoadError> {
    match value {
        Value::Object(row) => Ok(Columns::new(Place::of(path), row)),
        _ => Err(syntax(path, language, "expected fields by name")),
    }
}

/// What stands in TOML; numbers that JSON does not have become their words.
fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map_or_else(|| Value::String(number.to_string()), Value::Number),
        toml::Value::Boolean(is) => Value::Bool(is),
        toml::Value::Datetime(time) => {
            Value::Object(Map::from_iter([("time".to_owned(), time.to_string().into())]))
        }
        toml::Value::Array(entries) => entries.into_iter().map(of_toml).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(key, value)| (key, of_toml(value))).collect())
        }
    }
}

/// The files below a folder of a task, to be put into a folder of the sandbox; absent where there is none. Links may lead
/// to what lies in the task.
pub(super) fn collect(
    root: &Path,
    folder: &Path,
    into: &str,
) -> Result<Option<HiddenFiles>, LoadError> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let root = root.canonicalize().map_err(LoadError::io(root))?;
    let mut walk = Walk { root, files: BTreeMap::new(), above: HashSet::new() };
    walk.folder(folder, "", MAX_DEPTH)?;
    Ok(Some(HiddenFiles { into: into.to_owned(), files: walk.files }))
}

struct Walk {
    root: PathBuf,
    files: BTreeMap<String, HiddenFile>,
    /// The folders that the present one lies in, so that links in circles are found.
    above: HashSet<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), LoadError> {
        let real = folder.canonicalize().map_err(LoadError::io(folder))?;
        if depth == 0 || !self.above.insert(real.clone()) {
            return Err(LoadError::file(
                folder,
                "its folders lie inside each other without end, or too deep",
            ));
        }
        for entry in std::fs::read_dir(folder).map_err(LoadError::io(folder))? {
            let entry = entry.map_err(LoadError::io(folder))?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                return Err(LoadError::file(&path, "its name is no UTF-8"));
            };
            let name = format!("{prefix}{name}");
            let real = path.canonicalize().map_err(LoadError::io(&path))?;
            if !real.starts_with(&self.root) {
                return Err(LoadError::file(
                    &path,
                    "it is a link that leads out of the task's folder",
                ));
            }
            if real.is_dir() {
                self.folder(&path, &format!("{name}/"), depth - 1)?;
            } else if real.is_file() {
                if self.files.len() == MAX_FILES {
                    return Err(LoadError::file(
                        folder,
                        format!("the task has more than {MAX_FILES} files"),
                    ));
                }
                let metadata = std::fs::metadata(&real).map_err(LoadError::io(&real))?;
                let file = HiddenFile {
                    content: Content::Host(real),
                    executable: is_executable(&metadata),
                };
                self.files.insert(name, file);
            } else {
                return Err(LoadError::file(&path, "it is neither a file nor a folder"));
            }
        }
        self.above.remove(&real);
        Ok(())
    }
}

/// The name of a task's folder.
pub(super) fn folder_name(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A folder of the host, for building images in.
pub(super) fn absolute(folder: &Path) -> Result<PathBuf, LoadError> {
    std::path::absolute(folder).map_err(LoadError::io(folder))
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
