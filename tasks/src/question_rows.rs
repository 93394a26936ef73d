//! Rows of questions in files of JSON.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::published::{Columns, recognise};
use crate::{Schema, SuiteError};

/// How large a file may be that is held in memory, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// How many files a folder may have.
const MAX_FILES: usize = 100_000;

/// Whether questions in published columns lie at a path, as its first row tells.
pub(crate) fn is_at(path: &Path) -> bool {
    match extension(path) {
        // Of programs it is told how they become lines.
        Some("json") if path.is_file() => {
            first(path).is_some_and(|row| recognise(&row).is_some() || Schema::of(&row).is_some())
        }
        _ if path.is_dir() => {
            first_file(path).and_then(|file| first(&file)).as_ref().and_then(recognise).is_some()
        }
        _ => false,
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|end| end.to_str())
}

/// All rows at a path, each with where it is in words; all that is read goes into the hash.
pub(crate) fn read(
    path: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<Vec<(String, Columns)>, SuiteError> {
    if !path.is_dir() {
        return read_file(path, hasher);
    }
    let mut rows = Vec::new();
    for file in files(path)? {
        let name = file.strip_prefix(path).unwrap_or(&file).display().to_string();
        for (place, row) in read_file(&file, hasher)? {
            rows.push((format!("{name}, {place}"), row));
        }
    }
    Ok(rows)
}

fn read_file(
    path: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<Vec<(String, Columns)>, SuiteError> {
    let fail = |source| SuiteError::Io { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(fail)?.len();
    if size > MAX_BYTES {
        let detail = format!(
            "it has {size} bytes, at most {MAX_BYTES} are held; write its rows as JSON lines"
        );
        return Err(refuse(path, "the file", detail));
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    hasher.update(&bytes);
    let all: Value = serde_json::from_slice(&bytes)
        .map_err(|error| refuse(path, "the file", error.to_string()))?;
    let rows = match all {
        Value::Array(rows) => rows,
        row => vec![row],
    };
    let each = (1..).zip(rows).map(|(number, row)| match row {
        Value::Object(row) => Ok((format!("row {number}"), row)),
        _ => Err(refuse(path, &format!("row {number}"), "it is no object".to_owned())),
    });
    each.collect()
}

/// The `.json` files of a folder and those right below it, in their order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>, SuiteError> {
        let fail = |source| SuiteError::Io { path: folder.to_owned(), source };
        let entries = std::fs::read_dir(folder).map_err(fail)?;
        let mut paths = Vec::new();
        for entry in entries.take(MAX_FILES) {
            paths.push(entry.map_err(fail)?.path());
        }
        paths.sort_by_key(|path| order(path));
        Ok(paths)
    };
    let mut found = Vec::new();
    for path in list(folder)? {
        let below = if path.is_dir() { list(&path)? } else { vec![path] };
        found.extend(
            below.into_iter().filter(|path| extension(path) == Some("json") && path.is_file()),
        );
        if found.len() > MAX_FILES {
            return Err(refuse(
                folder,
                "the folder",
                format!("it has more than {MAX_FILES} files"),
            ));
        }
    }
    Ok(found)
}

/// The first of them, without listing all.
fn first_file(folder: &Path) -> Option<PathBuf> {
    let is_json = |path: &PathBuf| extension(path) == Some("json") && path.is_file();
    let list = |folder: &Path| -> Option<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).ok()?;
        Some(entries.take(1000).filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    let here = list(folder)?;
    here.iter().find(|path| is_json(path)).cloned().or_else(|| {
        let below = here.iter().filter(|path| path.is_dir()).take(16);
        below.filter_map(|folder| list(folder)?.into_iter().find(is_json)).next()
    })
}

/// Names that are numbers by their value.
fn order(path: &Path) -> (u64, String) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    (name.parse().unwrap_or(u64::MAX), name)
}

/// The first row of a file, without reading what comes behind it.
fn first(path: &Path) -> Option<Columns> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(File::open(path).ok()?));
    // That the rest was not read is an error, which says nothing here.
    let _ = FirstRow(&mut found).deserialize(&mut reader);
    found
}

/// Puts the first row where it is told.
struct FirstRow<'a>(&'a mut Option<Columns>);

impl<'de> DeserializeSeed<'de> for FirstRow<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstRow<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of objects, or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        *self.0 = rows.next_element::<Columns>()?;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut columns: A) -> Result<(), A::Error> {
        let mut row = Columns::new();
        while let Some(name) = columns.next_key::<String>()? {
            if row.len() == 64 {
                columns.next_value::<IgnoredAny>()?;
                continue;
            }
            row.insert(name, columns.next_value()?);
        }
        *self.0 = Some(row);
        Ok(())
    }
}

fn refuse(path: &Path, place: &str, detail: String) -> SuiteError {
    SuiteError::Task { path: path.to_owned(), place: place.to_owned(), detail }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::{SuiteOptions, open_suite};

    fn open(path: &std::path::Path) -> Result<Box<dyn crate::Suite>, String> {
        open_suite(path.to_str().unwrap(), &SuiteOptions::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn published_files_are_suites() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let gsm8k = write(
            "gsm8k.jsonl",
            "{\"question\": \"1 + 1?\", \"answer\": \"It is 2.\\n#### 2\"}\n{\"question\": \"2?\", \"answer\": \"#### 1,000\"}\n",
        );
        let suite = open(&gsm8k).unwrap();
        let task = suite.task("test", 1).unwrap();
        assert_eq!((suite.len("test").unwrap(), task.id.as_str()), (2, "gsm8k/test/1"));
        assert_eq!(
            (task.graders[0].kind.as_str(), &task.parameters["answer"]),
            ("math", &"1,000".into())
        );
        assert!(
            task.instruction.contains("####")
                && task.parameters["metadata"]["solution"].is_string()
        );
        assert_eq!(suite.task_by_id("gsm8k/test/1").unwrap(), task);

        let row = |answer: &str| {
            format!(
                "{{\"problem\": \"P\", \"level\": \"Level 1\", \"type\": \"Algebra\", \"solution\": \"\\\\boxed{{{answer}}}\"}}"
            )
        };
        write("math/algebra/10.json", &row("10"));
        write("math/algebra/2.json", &row("2"));
        write("math/geometry/1.json", &row("1"));
        let suite = open(&root.path().join("math")).unwrap();
        let answers: Vec<_> =
            (0..3).map(|at| suite.task("test", at).unwrap().parameters["answer"].clone()).collect();
        assert_eq!(answers, ["2", "10", "1"]);
        assert_eq!(suite.stratum("test", 0).as_deref(), Some("algebra level-1"));

        let choices = write(
            "mmlu.json",
            "[{\"question\": \"Q\", \"choices\": [\"a\", \"b\"], \"answer\": 1}]",
        );
        let task = open(&choices).unwrap().task("test", 0).unwrap();
        assert_eq!(
            (task.graders[0].kind.as_str(), &task.parameters["answer"]),
            ("choice", &"B".into())
        );
    }

    #[test]
    fn parquet_is_read_as_the_lines_of_its_rows() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet");
        let temporary = tempfile::tempdir().unwrap();
        for (name, count, grader, environment) in [
            ("gsm8k", 40, "math", "question"),
            ("arc", 1, "choice", "question"),
            ("mbpp", 2, "", "code"),
            ("hotpotqa", 3, "", "search"),
        ] {
            let suite = open(&folder.join(format!("{name}.parquet"))).unwrap();
            assert_eq!(suite.len("test").unwrap(), count, "{name}");
            let rows = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
            let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).unwrap();
            let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
            let path = temporary.path().join(format!("{name}.jsonl"));
            fs::write(&path, lines.join("\n")).unwrap();
            let of_lines = open(&path).unwrap();
            for index in 0..count {
                let (mut task, told) =
                    (suite.task("test", index).unwrap(), of_lines.task("test", index).unwrap());
                assert_eq!(task.environment, environment);
                assert_eq!(task.graders.first().map_or("", |it| &it.kind), grader);
                // Paragraphs are found where the questions stand.
                if environment == "search" {
                    task.parameters["corpus"] = told.parameters["corpus"].clone();
                }
                assert_eq!(task, told);
            }
        }
    }

    #[test]
    fn wrong_rows_are_told_with_row_and_column() {
        let root = tempfile::tempdir().unwrap();
        let told = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::write(&path, text).unwrap();
            open(&path).err().unwrap()
        };
        let first = "{\"question\": \"Q\", \"answer\": \"#### 1\"}";
        for (name, rest, parts) in [
            ("a.jsonl", "\n{\"question\": \"Q\"}", ["line 2", "column `answer` is missing"]),
            (
                "b.jsonl",
                "\n{\"problem\": \"P\", \"answer\": \"1\"}",
                ["line 2", "column `question` is missing"],
            ),
            (
                "c.jsonl",
                "\n{\"question\": [], \"answer\": \"#### 1\"}",
                ["column `question` is a list", "`gsm8k`"],
            ),
            ("d.jsonl", "\n[1]", ["line 2", "invalid type"]),
        ] {
            let told = told(name, &format!("{first}{rest}\n"));
            assert!(parts.iter().all(|part| told.contains(part)), "{name}: {told}");
        }
        let told_json =
            told("e.json", &format!("[{first}, {{\"question\": \"Q\", \"answer\": 5}}]"));
        assert!(
            told_json.contains("row 2") && told_json.contains("column `answer` is a number"),
            "{told_json}"
        );
        let not_rows = told("f.json", &format!("[{first}, 7]"));
        assert!(not_rows.contains("row 2") && not_rows.contains("no object"), "{not_rows}");
        let parquet = told("g.parquet", "PAR1");
        assert!(parquet.contains("as Parquet: it is too short"), "{parquet}");
        let unknown = told("h.json", "[{\"question\": \"Q\", \"answer\": \"Paris\"}]");
        assert!(unknown.contains("published columns"), "{unknown}");
        let cut = told("i.json", &format!("[{first}, {{\"que"));
        assert!(cut.contains("EOF") && cut.contains("line 1"), "{cut}");
    }
}
