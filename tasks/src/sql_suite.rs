//! Suites of questions about databases, in the folders of Spider and BIRD.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use spar_sql::{Database, Rule, SpiderOptions};

use crate::{SqlTask, Suite, SuiteError, SuiteManifest, Task};

/// The largest file of questions that is read.
const MOST_BYTES: u64 = 1 << 30;

const INSTRUCTION: &str = "You answer questions about a SQLite database with one query. `schema TABLE` shows a table whole, `query SELECT ...` \
     tries a query, and the query that answers the question ends the task, in a ```sql block. Where there are tools, call \
     `sql_schema`, `sql_query` and `sql_submit` instead.";
const MAX_TURNS: u32 = 8;

/// How a benchmark lays out its questions and databases.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The suite's name.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Splits with their file and the folders in which their databases may lie, the first that is there.
    pub(crate) splits: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// Whether rows are BIRD's.
    pub(crate) is_bird: bool,
}

impl Layout {
    /// Whether a folder has questions and databases of it.
    pub(crate) fn matches(&self, folder: &Path) -> bool {
        self.splits.iter().any(|(_, file, databases)| {
            folder.join(file).is_file() && databases.iter().any(|it| folder.join(it).is_dir())
        })
    }
}

/// Questions about databases, in a folder of Spider or BIRD as it is released.
///
/// Every row is read and checked on opening, and that its database is there. That a gold query can be run is looked at when
/// its task is made: benchmarks have a few that cannot, and these are errors of their own.
#[derive(Debug)]
pub(crate) struct SqlSuite {
    layout: &'static Layout,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Split>,
}

#[derive(Debug)]
struct Split {
    file: PathBuf,
    rows: Vec<Row>,
    /// The files of every database, by its name.
    databases: HashMap<String, Vec<PathBuf>>,
}

#[derive(Debug)]
struct Row {
    database: String,
    question: String,
    gold: String,
    evidence: Option<String>,
    difficulty: Option<String>,
}

#[derive(Deserialize)]
struct SpiderRow {
    db_id: String,
    question: String,
    query: String,
}

#[derive(Deserialize)]
struct BirdRow {
    db_id: String,
    question: String,
    #[serde(rename = "SQL")]
    sql: String,
    #[serde(default)]
    evidence: Option<String>,
    #[serde(default)]
    difficulty: Option<String>,
}

impl SqlSuite {
    pub(crate) fn open(folder: &Path, layout: &'static Layout) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let mut splits = BTreeMap::new();
        let mut sizes = Vec::new();
        for (name, file, folders) in layout.splits {
            let file = folder.join(file);
            let databases = folders.iter().map(|it| folder.join(it)).find(|it| it.is_dir());
            let Some(databases) = databases.filter(|_| file.is_file()) else { continue };
            let split = Split::read(file, &databases, layout, &mut hasher)?;
            sizes.push(((*name).to_owned(), split.rows.len()));
            splits.insert((*name).to_owned(), split);
        }
        let manifest = SuiteManifest {
            name: layout.name.to_owned(),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes,
        };
        Ok(Self { layout, manifest, splits })
    }
}

impl Split {
    fn read(
        file: PathBuf,
        folder: &Path,
        layout: &Layout,
        hasher: &mut blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let fail = |source| SuiteError::Io { path: file.clone(), source };
        let length = std::fs::metadata(&file).map_err(fail)?.len();
        if length > MOST_BYTES {
            let detail = format!("it has {length} bytes, at most {MOST_BYTES} are read");
            return Err(refuse(&file, "all of it".to_owned(), detail));
        }
        let bytes = std::fs::read(&file).map_err(fail)?;
        hasher.update(&bytes);
        let all: Vec<Value> = serde_json::from_slice(&bytes).map_err(|error| {
            refuse(
                &file,
                "all of it".to_owned(),
                format!("{error}; it has to be a list of questions"),
            )
        })?;
        let mut rows = Vec::with_capacity(all.len());
        let mut databases = HashMap::new();
        for (number, row) in all.into_iter().enumerate() {
            let wrong = |detail: String| refuse(&file, place(number), detail);
            let row = Row::read(row, layout.is_bird).map_err(wrong)?;
            if !databases.contains_key(&row.database) {
                let found = files_of(folder, &row.database).map_err(wrong)?;
                for path in &found {
                    let length = std::fs::metadata(path).map_or(0, |found| found.len());
                    hasher.update(format!("{} {length}", row.database).as_bytes());
                }
                databases.insert(row.database.clone(), found);
            }
            rows.push(row);
        }
        Ok(Self { file, rows, databases })
    }
}

impl Row {
    /// Reads a row; what else it has is left alone. An error is what is wrong.
    fn read(row: Value, is_bird: bool) -> Result<Self, String> {
        let found = if is_bird {
            let row: BirdRow = serde_json::from_value(row).map_err(|error| error.to_string())?;
            let evidence = row.evidence.filter(|text| !text.trim().is_empty());
            Self {
                database: row.db_id,
                question: row.question,
                gold: row.sql,
                evidence,
                difficulty: row.difficulty,
            }
        } else {
            let row: SpiderRow = serde_json::from_value(row).map_err(|error| error.to_string())?;
            Self {
                database: row.db_id,
                question: row.question,
                gold: row.query,
                evidence: None,
                difficulty: None,
            }
        };
        if found.question.trim().is_empty() {
            return Err("`question` is empty".to_owned());
        }
        if found.gold.trim().is_empty() {
            return Err(format!("`{}` is empty", if is_bird { "SQL" } else { "query" }));
        }
        let is_name = |name: &str| {
            !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
        };
        if !is_name(&found.database) {
            return Err(format!("`db_id` is {:?}, must be the name of a folder", found.database));
        }
        Ok(found)
    }
}

/// The files of a database: `NAME/NAME.sqlite`, and behind it the others of its folder, which have other contents. An error is
/// what is wrong.
fn files_of(folder: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    let folder = folder.join(name);
    let first = folder.join(format!("{name}.sqlite"));
    if !first.is_file() {
        return Err(format!("its database `{}` is not there", first.display()));
    }
    let entries = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let mut others: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "sqlite") && *path != first)
        .collect();
    others.sort();
    others.insert(0, first);
    Ok(others)
}

/// Tag of a task whose right query does not run on its own database, of which both benchmarks have some: nobody solves it.
const GOLD_FAILS: &str = "right-query-fails";

/// Where a row stands, from 0, as the benchmarks count.
fn place(number: usize) -> String {
    format!("row {number}, from 0")
}

fn refuse(file: &Path, place: String, detail: String) -> SuiteError {
    SuiteError::Task { path: file.to_owned(), place, detail }
}

impl Suite for SqlSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        self.layout.about
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let Split { file, rows, databases } = &self.splits[split];
        let row = &rows[index];
        let databases = &databases[&row.database];
        // BIRD judges on the one database, Spider on all that lie beside each other.
        let used = if self.layout.is_bird { &databases[..1] } else { &databases[..] };
        let mut runs = true;
        for path in used {
            let database = Database::open_shared(path)
                .map_err(|error| refuse(file, place(index), error.to_string()))?;
            runs &= database.reads(&row.gold).is_ok();
        }
        let descriptions = used[0].with_file_name("database_description");
        let rule = match self.layout.is_bird {
            true => Rule::Bird,
            false => Rule::Spider(SpiderOptions::default()),
        };
        let task = SqlTask {
            question: row.question.clone(),
            gold: row.gold.clone(),
            databases: used.to_vec(),
            rule,
            evidence: row.evidence.clone(),
            descriptions: Some(descriptions)
                .filter(|folder| self.layout.is_bird && folder.is_dir()),
            shows_schema: true,
        };
        let fails = (!runs).then(|| GOLD_FAILS.to_owned());
        let tags = [Some(row.database.clone()), row.difficulty.clone(), fails];
        Ok(Task {
            id: format!("{}/{split}/{index}", self.layout.name),
            environment: SqlTask::ENVIRONMENT.to_owned(),
            parameters: serde_json::to_value(&task).expect("it has only string keys"),
            instruction: INSTRUCTION.to_owned(),
            max_turns: MAX_TURNS,
            tags: tags.into_iter().flatten().collect(),
            graders: Vec::new(),
        })
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        self.splits[split].rows[index].difficulty.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use crate::{SuiteOptions, open_suite};

    /// Writes a database of books; SQLite is not there to write files, so that it comes from the one in memory.
    pub(crate) fn write_database(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let image = include_bytes!("../tests/fixtures/books.sqlite");
        fs::write(path, image).unwrap();
    }

    pub(crate) fn write_spider(folder: &Path, rows: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("dev.json"), rows).unwrap();
        fs::write(folder.join("tables.json"), "[]").unwrap();
        write_database(&folder.join("database/shelf/shelf.sqlite"));
    }

    pub(crate) fn write_bird(folder: &Path, rows: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("dev.json"), rows).unwrap();
        write_database(&folder.join("dev_databases/shelf/shelf.sqlite"));
        let described = folder.join("dev_databases/shelf/database_description");
        fs::create_dir_all(&described).unwrap();
        fs::write(
            described.join("books.csv"),
            "original_column_name,column_description\npages,how long it is\n",
        )
        .unwrap();
    }

    pub(crate) const SPIDER: &str = r#"[{"db_id": "shelf", "question": "How many books?", "query": "SELECT count(*) FROM books",
        "query_toks": ["SELECT"], "sql": {"from": {}}}]"#;
    pub(crate) const BIRD: &str = r#"[{"question_id": 0, "db_id": "shelf", "question": "How many books?", "evidence": "long means pages > 100",
        "SQL": "SELECT COUNT(*) FROM books WHERE pages > 100", "difficulty": "simple"}]"#;

    fn open(folder: &Path) -> Result<Box<dyn Suite>, String> {
        open_suite(folder.to_str().unwrap(), &SuiteOptions::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn folders_of_spider_and_bird_load_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (spider, bird) = (folder.path().join("s"), folder.path().join("b"));
        write_spider(&spider, SPIDER);
        write_database(&spider.join("database/shelf/more.sqlite"));
        write_bird(&bird, BIRD);
        let suite = open(&spider).unwrap();
        let task = suite.task("dev", 0).unwrap();
        assert_eq!(
            (&*task.id, &*task.environment, &*task.tags[0]),
            ("spider/dev/0", "sql", "shelf")
        );
        let parameters: SqlTask = serde_json::from_value(task.parameters.clone()).unwrap();
        assert_eq!(parameters.databases.len(), 2);
        assert!(parameters.databases[0].ends_with("shelf/shelf.sqlite"));
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        let suite = open(&bird).unwrap();
        let task = suite.task("dev", 0).unwrap();
        let parameters: SqlTask = serde_json::from_value(task.parameters).unwrap();
        assert_eq!((parameters.rule, parameters.databases.len()), (Rule::Bird, 1));
        assert_eq!(parameters.evidence.as_deref(), Some("long means pages > 100"));
        assert!(parameters.descriptions.is_some());
        assert_eq!(suite.stratum("dev", 0).as_deref(), Some("simple"));
    }

    #[test]
    fn a_right_query_that_does_not_run_is_a_task_that_nobody_solves() {
        let folder = tempfile::tempdir().unwrap();
        let good = &SPIDER[1..SPIDER.len() - 1];
        let row = r#"{"db_id": "shelf", "question": "q", "query": "SELECT x FROM books"}"#;
        write_spider(folder.path(), &format!("[{good}, {row}]"));
        let suite = open(folder.path()).unwrap();
        let last = suite.len("dev").unwrap() - 1;
        assert!(suite.task("dev", last).unwrap().tags.contains(&GOLD_FAILS.to_owned()));
        assert!(!suite.task("dev", 0).unwrap().tags.contains(&GOLD_FAILS.to_owned()));
    }

    #[test]
    fn rows_that_are_wrong_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let good = &SPIDER[1..SPIDER.len() - 1];
        let told = |row: &str| {
            write_spider(folder.path(), &format!("[{good}, {row}]"));
            match open(folder.path())
                .and_then(|suite| suite.task("dev", 1).map_err(|error| error.to_string()))
            {
                Ok(_) => panic!("it opened: {row}"),
                Err(told) => told,
            }
        };
        for (row, part) in [
            (r#"{"db_id": "shelf", "question": "q"}"#, "missing field `query`"),
            (r#"{"db_id": "shelf", "question": 7, "query": "SELECT 1"}"#, "expected a string"),
            (
                r#"{"db_id": "none", "question": "q", "query": "SELECT 1"}"#,
                "none.sqlite` is not there",
            ),
            (
                r#"{"db_id": "../shelf", "question": "q", "query": "SELECT 1"}"#,
                "must be the name of a folder",
            ),
            (r#"{"db_id": "shelf", "question": " ", "query": "SELECT 1"}"#, "`question` is empty"),
            (r#"{"db_id": "shelf", "question": "q", "query": ""}"#, "`query` is empty"),
            ("7", "invalid type"),
        ] {
            let told = told(row);
            assert!(told.contains(part) && told.contains("row 1, from 0"), "{told}");
        }
        write_spider(folder.path(), "{}");
        assert!(open(folder.path()).err().unwrap().contains("list of questions"));
        write_spider(folder.path(), SPIDER);
        fs::write(folder.path().join("database/shelf/shelf.sqlite"), "no database").unwrap();
        let told = open(folder.path()).unwrap().task("dev", 0).unwrap_err().to_string();
        assert!(told.contains("row 0") && told.contains("not a database"), "{told}");
    }
}
