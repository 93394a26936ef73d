//! Suites of questions with answers, in files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::graders::{GraderConfig, Graders};
use crate::lines::{self, Line};
use crate::published::{Columns, QuestionSchema, recognise};
use crate::question_rows;
use crate::suite::task_by_key;
use crate::suite_file::{SplitFile, SuiteFile};
use crate::{Schema, Suite, SuiteError, SuiteManifest, Task, WrapperConfig};

const INSTRUCTION: &str = "Answer the question of the first message.";

/// A question with its answer: the parameters of the environment `question`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionTask {
    /// What is asked.
    pub prompt: String,
    /// What is right; absent where a grader has to tell without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ReferenceAnswer>,
    /// What else is known of the question, for graders and whoever reads it; never shown to the policy. Default empty.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What is the right answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReferenceAnswer {
    /// A text.
    Text(String),
    /// A number, as it is written.
    Number(serde_json::Number),
    /// Any of these.
    AnyOf(Vec<String>),
}

impl ReferenceAnswer {
    /// The texts any of which is right.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Number(number) => vec![number.to_string()],
            Self::AnyOf(texts) => texts.clone(),
        }
    }
}

/// Questions from a `.jsonl` file, or from a folder whose `suite.toml` names such files; every line is one.
///
/// ```json
/// {"id": "sum", "prompt": "What is 1 + 1?", "answer": "2", "tags": ["easy"], "metadata": {"from": "a book"}}
/// ```
///
/// Only `prompt` has to be there; without an `id`, a question is called by its number among them, from 0. Every line is read and
/// checked on opening; of those without an `id` only where they begin is kept.
///
/// Files with published columns ([`question_schemas`](crate::question_schemas)) are read as they are: `.jsonl`, Parquet, `.json` with a list of
/// objects, and folders of `.json` files with an object each. The first row tells which columns; every other one is held to them.
#[derive(Debug)]
pub struct QuestionSuite {
    file: SuiteFile,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Questions>,
}

/// The questions of a split.
#[derive(Debug)]
struct Questions {
    path: PathBuf,
    /// The published columns that they have; absent where they are spar's own.
    schema: Option<&'static QuestionSchema>,
    rows: Rows,
    /// Of those that have an id.
    by_id: HashMap<String, usize>,
    /// Their tags, joined; empty altogether where none has any.
    strata: Vec<Box<str>>,
}

/// Where rows are.
#[derive(Debug)]
enum Rows {
    /// First bytes of their lines.
    Lines(Vec<u64>),
    /// In memory.
    Held(Vec<Columns>),
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Self::Lines(starts) => starts.len(),
            Self::Held(rows) => rows.len(),
        }
    }
}

/// A line as it is written.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    graders: Vec<GraderConfig>,
    #[serde(flatten)]
    question: Map<String, Value>,
}

impl QuestionSuite {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = "question";

    /// Opens the suite of a folder with a `suite.toml` whose splits name `.jsonl` or Parquet files.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read or a line of it is wrong.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let file = SuiteFile::open(folder, &mut hasher)?;
        Self::read(file, folder, hasher)
    }

    /// Opens a `.jsonl`, `.json` or Parquet file, or a folder of `.json` files, as a suite with the one split `test`, named like it.
    ///
    /// # Errors
    ///
    /// As [`QuestionSuite::open`].
    pub fn open_file(path: &Path) -> Result<Self, SuiteError> {
        let file = SuiteFile::of_file(path, Self::ENVIRONMENT);
        Self::read(file, Path::new(""), blake3::Hasher::new())
    }

    fn read(
        file: SuiteFile,
        folder: &Path,
        mut hasher: blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let mut splits = BTreeMap::new();
        for (split, SplitFile { tasks }) in &file.splits {
            hasher.update(split.as_bytes());
            let found = Questions::read(folder.join(tasks), &file.graders, &mut hasher)?;
            splits.insert(split.clone(), found);
        }
        let sizes = splits.iter().map(|(name, found)| (name.clone(), found.rows.len()));
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes.collect(),
        };
        Ok(Self { file, manifest, splits })
    }
}

impl Questions {
    fn read(
        path: PathBuf,
        graders: &[GraderConfig],
        hasher: &mut blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        if path.is_dir() || path.extension().is_some_and(|end| end == "json") {
            return Self::hold(path, graders, hasher);
        }
        let schema = lines::first(&path)?.as_ref().and_then(published);
        let (mut starts, mut strata) = (Vec::new(), Vec::new());
        let mut by_id: HashMap<String, usize> = HashMap::new();
        lines::read(&path, hasher, |line| {
            let ReadQuestion { id, tags, .. } = read_line(&line, &path, schema, graders)?;
            if let Some(id) = id
                && let Some(other) = by_id.insert(id.clone(), starts.len())
            {
                let detail = format!("question {other}, from 0, has the id `{id}` as well");
                return Err(line.refuse(&path, detail));
            }
            starts.push(line.start);
            strata.push(tags.join(" ").into_boxed_str());
            Ok(())
        })?;
        Ok(Self { path, schema, rows: Rows::Lines(starts), by_id, strata: unless_empty(strata) })
    }

    /// Those of a file, or a folder of files, of JSON with published columns.
    fn hold(
        path: PathBuf,
        graders: &[GraderConfig],
        hasher: &mut blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let (mut rows, mut strata) = (Vec::new(), Vec::new());
        let mut schema = None;
        for (place, row) in question_rows::read(&path, hasher)? {
            let refuse =
                |detail| SuiteError::Task { path: path.clone(), place: place.clone(), detail };
            let known = match schema.or_else(|| published(&row)) {
                Some(known) => *schema.insert(known),
                None => {
                    let detail = match Schema::of(&row) {
                        Some(schema) => format!(
                            "programs (`{}`) are read from JSON lines: jq -c '.[]' in.json > out.jsonl",
                            schema.name()
                        ),
                        None => "its columns are none that are known; what is spar's own is a .jsonl file with `prompt`"
                            .to_owned(),
                    };
                    return Err(refuse(detail));
                }
            };
            let read = of_row(&row, known, graders).map_err(refuse)?;
            strata.push(read.tags.join(" ").into_boxed_str());
            rows.push(row);
        }
        let strata = unless_empty(strata);
        Ok(Self { path, schema, rows: Rows::Held(rows), by_id: HashMap::new(), strata })
    }
}

/// The schema of a row, unless it is one of spar's own.
fn published(row: &Columns) -> Option<&'static QuestionSchema> {
    let is_own =
        row.get("prompt").is_some_and(Value::is_string) && !row.contains_key("reward_model");
    recognise(row).filter(|_| !is_own)
}

/// Labels, or none altogether where none has any.
fn unless_empty(strata: Vec<Box<str>>) -> Vec<Box<str>> {
    match strata.iter().all(|stratum| stratum.is_empty()) {
        true => Vec::new(),
        false => strata,
    }
}

/// A question as it was read.
struct ReadQuestion {
    id: Option<String>,
    tags: Vec<String>,
    /// Those of the suite, where it names none itself.
    graders: Vec<GraderConfig>,
    question: QuestionTask,
}

fn read_line(
    line: &Line<'_>,
    path: &Path,
    schema: Option<&'static QuestionSchema>,
    of_suite: &[GraderConfig],
) -> Result<ReadQuestion, SuiteError> {
    match schema {
        None => parse(line, path, of_suite),
        Some(schema) => {
            let row: Columns = line.parse(path)?;
            of_row(&row, schema, of_suite).map_err(|detail| line.refuse(path, detail))
        }
    }
}

/// The question of a row with published columns.
fn of_row(
    row: &Columns,
    schema: &QuestionSchema,
    of_suite: &[GraderConfig],
) -> Result<ReadQuestion, String> {
    let found = schema.read(row).map_err(|error| {
        format!("{error}; the first row has the columns of `{}`: {}", schema.name, schema.about)
    })?;
    let graders = if of_suite.is_empty() { vec![found.grader] } else { of_suite.to_vec() };
    let question =
        QuestionTask { prompt: found.prompt, answer: Some(found.answer), metadata: found.metadata };
    Ok(ReadQuestion { id: None, tags: found.tags, graders, question })
}

fn parse(
    line: &Line<'_>,
    path: &Path,
    of_suite: &[GraderConfig],
) -> Result<ReadQuestion, SuiteError> {
    let Written { id, tags, graders, question } = line.parse(path)?;
    let graders = if graders.is_empty() { of_suite.to_vec() } else { graders };
    let question: QuestionTask = serde_json::from_value(question.into())
        .map_err(|error| line.refuse(path, error.to_string()))?;
    let mut problems = Vec::new();
    if question.prompt.trim().is_empty() {
        problems.push("`prompt` is empty".to_owned());
    }
    let is_empty = |answer: &ReferenceAnswer| {
        let texts = answer.texts();
        texts.is_empty() || texts.iter().any(|text| text.trim().is_empty())
    };
    if question.answer.as_ref().is_some_and(is_empty) {
        problems.push("`answer` is empty; leave it out where a grader tells".to_owned());
    }
    if let Some(id) = &id
        && (id.is_empty()
            || id.chars().any(|c| c.is_whitespace() || c.is_control())
            || id.bytes().all(|byte| byte.is_ascii_digit()))
    {
        problems.push(format!("`id` is {id:?}, must be a word and no number"));
    }
    match Graders::open(&graders) {
        Ok(graders) if graders.needs_reference() && question.answer.is_none() => {
            problems.push(
                "a grader needs an answer that is right, and there is no `answer`".to_owned(),
            );
        }
        Ok(graders) if graders.scripts().next().is_some() => {
            problems
                .push("a script of a grader needs a sandbox, and a question has none".to_owned());
        }
        Ok(_) => {}
        Err(error) => problems.push(error.to_string()),
    }
    if problems.is_empty() {
        Ok(ReadQuestion { id, tags, graders, question })
    } else {
        Err(line.refuse(path, problems.join("; ")))
    }
}

impl Suite for QuestionSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        &self.file.about
    }

    fn is_for_evaluation(&self) -> bool {
        self.file.evaluation_only
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let Questions { path, schema, rows, .. } = &self.splits[split];
        let of_suite = &self.file.graders;
        let read = match (rows, schema) {
            (Rows::Lines(starts), schema) => lines::read_at(path, starts[index], |line| {
                read_line(line, path, *schema, of_suite)
            })?,
            (Rows::Held(rows), Some(schema)) => {
                of_row(&rows[index], schema, of_suite).map_err(|detail| SuiteError::Task {
                    path: path.clone(),
                    place: format!("row {}", index + 1),
                    detail,
                })?
            }
            (Rows::Held(_), None) => unreachable!("rows are held where their columns are known"),
        };
        let ReadQuestion { id, tags: own_tags, graders, question } = read;
        let mut tags = self.file.tags.clone();
        tags.extend(own_tags);
        let key = id.unwrap_or_else(|| index.to_string());
        let mut parameters =
            serde_json::to_value(&question).expect("a question has only string keys");
        if let Some(parameters) = parameters.as_object_mut() {
            WrapperConfig::put(&self.file.wrappers, parameters);
        }
        Ok(Task {
            id: format!("{}/{split}/{key}", self.file.name),
            environment: Self::ENVIRONMENT.to_owned(),
            parameters,
            instruction: self.file.instruction.clone().unwrap_or_else(|| {
                schema.map_or(INSTRUCTION, |schema| schema.instruction).to_owned()
            }),
            max_turns: self.file.max_turns.unwrap_or(1),
            tags,
            graders,
        })
    }

    /// The tags of a question beside those that the suite gives to all.
    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        self.splits[split].strata.get(index).map(ToString::to_string)
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        task_by_key(self, &self.file.name, id, |split, key| {
            self.splits.get(split)?.by_id.get(key).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"prompt": "1 + 1?", "answer": 2}"#,
        "\n\n",
        r#"{"id": "tea", "prompt": "Tea?", "answer": ["yes", "please"], "tags": ["drinks"], "metadata": {"by": "me"}}"#,
    );

    fn suite_of(text: &str) -> Result<(tempfile::TempDir, QuestionSuite), SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quiz.jsonl");
        std::fs::write(&path, text).unwrap();
        QuestionSuite::open_file(&path).map(|suite| (folder, suite))
    }

    #[test]
    fn lines_are_questions() {
        let (_folder, suite) = suite_of(LINES).unwrap();
        assert_eq!(suite.len("test").unwrap(), 2);
        let sum = suite.task("test", 0).unwrap();
        assert_eq!((sum.id.as_str(), sum.environment.as_str()), ("quiz/test/0", "question"));
        assert_eq!(sum.parameters, serde_json::json!({ "prompt": "1 + 1?", "answer": 2 }));
        let tea = suite.task("test", 1).unwrap();
        assert_eq!((tea.id.as_str(), &*tea.tags), ("quiz/test/tea", &["drinks".to_owned()][..]));
        let question: QuestionTask = serde_json::from_value(tea.parameters.clone()).unwrap();
        assert_eq!(question.answer.unwrap().texts(), ["yes", "please"]);
        for task in [sum, tea] {
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        }
        for id in ["quiz/test/1", "quiz/test/2", "quiz/test/00", "quiz/dev/0", "0", ""] {
            assert!(matches!(suite.task_by_id(id), Err(SuiteError::UnknownTask { .. })), "{id}");
        }
        assert_eq!(suite.stratum("test", 1).as_deref(), Some("drinks"));
    }

    #[test]
    fn wrong_lines_are_told_with_their_number() {
        let says = |line: &str, parts: &[&str]| {
            let error = suite_of(&format!("{LINES}\n{line}")).unwrap_err().to_string();
            assert!(error.contains("line 4"), "{error}");
            parts.iter().for_each(|part| assert!(error.contains(part), "{error}"));
        };
        says(r#"{"prompt": "a", "ans"#, &["cut off"]);
        says("{\"prompt\": \"a\"\n", &["EOF"]);
        says(r#"{"answer": "a"}"#, &["prompt"]);
        says(r#"{"prompt": "a", "anser": "b"}"#, &["anser"]);
        says(r#"{"prompt": " ", "answer": "", "id": "7"}"#, &["`prompt`", "`answer`", "`id`"]);
        says(r#"{"prompt": "a", "id": "tea"}"#, &["`tea`"]);
        // Whole, though the file does not end in a line break.
        assert_eq!(suite_of(r#"{"prompt": "a"}"#).unwrap().1.len("test").unwrap(), 1);
    }

    #[test]
    fn questions_name_their_graders_or_have_those_of_the_suite() {
        let folder = tempfile::tempdir().unwrap();
        let text = "name = 'q'\nversion = '1'\nabout = 'a'\nenvironment = 'question'\n[[graders]]\nkind = 'exact'\n\
                    ignore_case = true\n[splits.dev]\ntasks = 'd.jsonl'\n";
        std::fs::write(folder.path().join("suite.toml"), text).unwrap();
        let open = |lines: &str| {
            std::fs::write(folder.path().join("d.jsonl"), lines).unwrap();
            QuestionSuite::open(folder.path())
        };
        let own = r#"{"prompt": "Tea?", "graders": [{"kind": "judge", "mode": "criteria", "criteria": [{"name": "a", "text": "b"}]}]}"#;
        let suite = open(&format!("{LINES}\n{own}")).unwrap();
        let kinds = |index| suite.task("dev", index).unwrap().graders[0].kind.clone();
        assert_eq!([kinds(0), kinds(1), kinds(2)], ["exact", "exact", "judge"]);
        for (line, part) in [
            (r#"{"prompt": "Tea?"}"#, "there is no `answer`"),
            (r#"{"prompt": "Tea?", "graders": [{"kind": "script"}]}"#, "needs a sandbox"),
            (r#"{"prompt": "Tea?", "graders": [{"kind": "jugde"}]}"#, "known are"),
            (r#"{"prompt": "Tea?", "graders": [{"kind": "judge", "mood": 1}]}"#, "mood"),
        ] {
            let told = open(line).unwrap_err().to_string();
            assert!(told.contains(part) && told.contains("line 1"), "{told}");
        }
    }

    #[test]
    fn a_suite_file_names_files_of_questions() {
        let folder = tempfile::tempdir().unwrap();
        let text = "name = 'q'\nversion = '1'\nabout = 'a'\nenvironment = 'question'\n[splits.dev]\ntasks = 'd.jsonl'\n";
        std::fs::write(folder.path().join("suite.toml"), text).unwrap();
        std::fs::write(folder.path().join("d.jsonl"), LINES).unwrap();
        let path = folder.path().to_str().unwrap();
        let suite = crate::open_suite(path, &Default::default()).unwrap();
        assert_eq!(suite.task("dev", 1).unwrap().id, "q/dev/tea");
        let before = suite.manifest().content_hash.clone();
        std::fs::write(folder.path().join("d.jsonl"), LINES.replace("please", "no")).unwrap();
        let again = crate::open_suite(path, &Default::default()).unwrap();
        assert_ne!(again.manifest().content_hash, before);
    }
}
