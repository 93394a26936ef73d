//! Suites of tasks at a shell, in files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::graders::{GraderConfig, Graders};
use crate::lines::{self, Line};
use crate::suite_file::{SplitFile, SuiteFile};
use crate::task_folder::read_folder;
use crate::{
    CodeProblemSuite, QuestionSuite, SearchSuite, Suite, SuiteError, SuiteManifest, Task,
    TerminalTask, ToolSuite,
};

/// The environment of its tasks.
pub(crate) const ENVIRONMENT: &str = "terminal";
/// How to act, where a suite does not say.
const INSTRUCTION: &str = "You are at a POSIX shell in a sandbox. Solve the task that the first \
                           message names. Answer every message with one shell command; the next \
                           message is its output. When the task is solved, answer: submit";
const MAX_TURNS: u32 = 30;

/// Tasks at a shell, from a `.jsonl` file or from a folder whose `suite.toml` names such files or
/// folders of tasks.
///
/// ```toml
/// name = "chores"
/// version = "1"
/// about = "Small chores at a shell."
/// environment = "terminal"
///
/// [splits.train]
/// tasks = "train.jsonl"
///
/// [splits.test]
/// tasks = "test"          # a folder with a folder for each task
/// ```
///
/// Every task is read and checked on opening; only where each lies is kept.
#[derive(Debug)]
pub struct TerminalSuite {
    file: SuiteFile,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Vec<Listed>>,
    by_id: HashMap<String, (String, usize)>,
}

/// What is kept of a task.
#[derive(Debug)]
struct Listed {
    place: Place,
    /// Its own tags, joined.
    stratum: Box<str>,
}

impl Listed {
    fn new(place: Place, tags: &[String]) -> Self {
        Self { place, stratum: tags.join(" ").into() }
    }
}

/// Where a task lies.
#[derive(Debug)]
enum Place {
    /// A line of a file, by its first byte.
    Line {
        path: PathBuf,
        start: u64,
    },
    Folder(PathBuf),
}

/// What a task says beside what its environment needs.
#[derive(Debug, Deserialize)]
pub(crate) struct TaskHead {
    /// Its name within its split; that of its folder where it has one.
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) graders: Vec<GraderConfig>,
    #[serde(flatten)]
    pub(crate) rest: serde_json::Map<String, serde_json::Value>,
}

/// A task as it was read.
pub(crate) struct ReadTask {
    pub(crate) id: String,
    pub(crate) max_turns: Option<u32>,
    pub(crate) tags: Vec<String>,
    /// Who judges it, where it says so itself.
    pub(crate) graders: Vec<GraderConfig>,
    pub(crate) task: TerminalTask,
}

impl TerminalSuite {
    /// Opens the suite of a folder with a `suite.toml`.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read or a task of it is wrong.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let file = SuiteFile::open(folder, &mut hasher)?;
        if file.environment != ENVIRONMENT {
            let understand =
                [ENVIRONMENT, QuestionSuite::ENVIRONMENT, CodeProblemSuite::ENVIRONMENT]
                    .into_iter()
                    .chain(ToolSuite::ENVIRONMENTS)
                    .chain([SearchSuite::ENVIRONMENT])
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
            let detail = format!(
                "it is `{}`, and its tasks are files, which these environments understand: {understand}",
                file.environment
            );
            let path = folder.join("suite.toml");
            return Err(SuiteError::Task { path, place: "`environment`".to_owned(), detail });
        }
        Self::read(file, folder, hasher)
    }

    /// Opens a `.jsonl` file as a suite with the one split `test`, named like the file.
    ///
    /// # Errors
    ///
    /// As [`TerminalSuite::open`].
    pub fn open_file(path: &Path) -> Result<Self, SuiteError> {
        Self::read(SuiteFile::of_file(path, ENVIRONMENT), Path::new(""), blake3::Hasher::new())
    }

    fn read(
        file: SuiteFile,
        folder: &Path,
        mut hasher: blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let mut splits = BTreeMap::new();
        let mut by_id = HashMap::new();
        for (split, SplitFile { tasks }) in &file.splits {
            let path = folder.join(tasks);
            hasher.update(split.as_bytes());
            let found = if path.is_dir() {
                index_folder(&path, &mut hasher)?
            } else {
                index_lines(&path, &mut hasher)?
            };
            let mut places = Vec::with_capacity(found.len());
            for (index, (id, listed)) in found.into_iter().enumerate() {
                let full = format!("{}/{split}/{id}", file.name);
                if by_id.insert(full, (split.clone(), index)).is_some() {
                    let detail = format!("there are two tasks `{id}`");
                    return Err(SuiteError::Task {
                        path,
                        place: format!("split `{split}`"),
                        detail,
                    });
                }
                places.push(listed);
            }
            splits.insert(split.clone(), places);
        }
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: splits.iter().map(|(name, tasks)| (name.clone(), tasks.len())).collect(),
        };
        Ok(Self { file, manifest, splits, by_id })
    }
}

impl Suite for TerminalSuite {
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
        let found = match &self.splits[split][index].place {
            Place::Line { path, start } => {
                lines::read_at(path, *start, |line| parse_line(line, path))?
            }
            Place::Folder(path) => read_folder(path, &mut blake3::Hasher::new())?,
        };
        let mut tags = self.file.tags.clone();
        tags.extend(found.tags);
        Ok(Task {
            id: format!("{}/{split}/{}", self.file.name, found.id),
            environment: ENVIRONMENT.to_owned(),
            parameters: serde_json::to_value(&found.task).expect("a task has only string keys"),
            instruction: self.file.instruction.clone().unwrap_or_else(|| INSTRUCTION.to_owned()),
            max_turns: found.max_turns.or(self.file.max_turns).unwrap_or(MAX_TURNS),
            tags,
            graders: match found.graders.is_empty() {
                true => self.file.graders.clone(),
                false => found.graders,
            },
        })
    }

    /// The tags of a task beside those that the suite gives to all.
    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        Some(self.splits[split][index].stratum.to_string())
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        match self.by_id.get(id) {
            Some((split, index)) => self.task(split, *index),
            None => Err(SuiteError::UnknownTask {
                suite: self.manifest.name.clone(),
                id: id.to_owned(),
            }),
        }
    }
}

/// Understands a task and checks it; `place` is named in errors.
pub(crate) fn check_task(
    mut head: TaskHead,
    id: Option<String>,
    path: &Path,
    place: &str,
) -> Result<ReadTask, SuiteError> {
    let refuse = |detail: String| SuiteError::Task {
        path: path.to_owned(),
        place: place.to_owned(),
        detail,
    };
    let id = head.id.or(id).ok_or_else(|| refuse("it has no `id`".to_owned()))?;
    if !head.graders.is_empty() {
        let own = head.rest.entry("verifier").or_insert_with(|| serde_json::json!({}));
        let has_own = own.as_object().is_some_and(|own| !own.is_empty());
        if has_own && !head.graders.iter().any(|grader| grader.kind == "environment") {
            let detail = "`verifier` has no effect beside `graders` without `environment`: name that too, or write the \
                          verifier as one of them (`script`, `fresh_sandbox`)";
            return Err(refuse(detail.to_owned()));
        }
    }
    let task: TerminalTask =
        serde_json::from_value(head.rest.into()).map_err(|error| refuse(error.to_string()))?;
    let mut problems = task.problems();
    if id.is_empty() || id.chars().any(|c| c.is_whitespace() || c.is_control()) {
        problems.push(format!("`id` is {id:?}, must be a word"));
    }
    problems.extend(grader_problems(&head.graders, &task));
    if head.max_turns == Some(0) {
        problems.push("`max_turns` is 0, must be at least 1".to_owned());
    }
    if !problems.is_empty() {
        return Err(refuse(problems.join("; ")));
    }
    Ok(ReadTask { id, max_turns: head.max_turns, tags: head.tags, graders: head.graders, task })
}

/// All that is wrong with the graders that a task at a shell names.
fn grader_problems(graders: &[GraderConfig], task: &TerminalTask) -> Vec<String> {
    let opened = match Graders::open(graders) {
        Ok(opened) => opened,
        Err(error) => return vec![error.to_string()],
    };
    let carried = opened.scripts().flat_map(|script| task.carry_problems(script));
    let mut problems: Vec<String> = carried.collect();
    if opened.needs_reference() {
        problems.push(
            "a grader needs an answer that is right, and a task at a shell has none".to_owned(),
        );
    }
    problems
}

/// The tasks of a folder of folders, by name.
fn index_folder(
    folder: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<Vec<(String, Listed)>, SuiteError> {
    let fail = |source| SuiteError::Io { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let task = read_folder(&path, hasher)?;
        found.push((task.id, Listed::new(Place::Folder(path), &task.tags)));
    }
    Ok(found)
}

/// The tasks of a `.jsonl` file, in order.
fn index_lines(
    path: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<Vec<(String, Listed)>, SuiteError> {
    let mut found = Vec::new();
    lines::read(path, hasher, |line| {
        let task = parse_line(&line, path)?;
        let place = Place::Line { path: path.to_owned(), start: line.start };
        found.push((task.id, Listed::new(place, &task.tags)));
        Ok(())
    })?;
    Ok(found)
}

fn parse_line(line: &Line<'_>, path: &Path) -> Result<ReadTask, SuiteError> {
    let found = check_task(line.parse(path)?, None, path, &line.place)?;
    let task = &found.task;
    let mut files = task.files.iter().chain(&task.verifier.files);
    // A file of tasks from elsewhere must not read this machine's files.
    if let Some((name, _)) = files.find(|(_, file)| file.host().is_some()) {
        let detail = format!("file `{name}` names a place on the host; give its text");
        return Err(line.refuse(path, detail));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"id": "one", "instruction": "make a", "verifier": {"command": "test -e a"}}"#,
        "\n\n",
        r#"{"id": "two", "instruction": "make b", "max_turns": 3, "tags": ["t"], "#,
        r#""files": {"x": "1"}, "verifier": {"command": "test -e b"}}"#,
    );

    const SUITE: &str = r#"
        name = "s"
        version = "1"
        about = "a"
        environment = "terminal"
        tags = ["all"]
        [splits.train]
        tasks = "train.jsonl"
    "#;

    #[test]
    fn lines_are_tasks_of_one_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chores.jsonl");
        std::fs::write(&path, LINES).unwrap();
        let suite = TerminalSuite::open_file(&path).unwrap();
        assert_eq!(suite.len("test").unwrap(), 2);
        let task = suite.task("test", 1).unwrap();
        assert_eq!((task.id.as_str(), task.max_turns), ("chores/test/two", 3));
        assert_eq!(task.tags, ["t"]);
        assert!(task.instruction.contains("submit"));
        assert_eq!(suite.task_by_id("chores/test/two").unwrap(), task);
        let parameters: TerminalTask = serde_json::from_value(task.parameters).unwrap();
        assert_eq!(parameters.files["x"], "1".into());
        assert!(suite.task_by_id("chores/test/three").is_err());
    }

    #[test]
    fn a_suite_file_names_its_splits_and_the_hash_follows_the_tasks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("suite.toml"), SUITE).unwrap();
        std::fs::write(folder.path().join("train.jsonl"), LINES).unwrap();
        let suite =
            crate::open_suite(folder.path().to_str().unwrap(), &Default::default()).unwrap();
        let task = suite.task("train", 0).unwrap();
        assert_eq!((task.id.as_str(), task.max_turns), ("s/train/one", MAX_TURNS));
        assert_eq!(task.tags, ["all"]);
        let changed = LINES.replace("make a", "make c");
        std::fs::write(folder.path().join("train.jsonl"), changed).unwrap();
        let again = TerminalSuite::open(folder.path()).unwrap();
        assert_ne!(again.manifest().content_hash, suite.manifest().content_hash);
        std::fs::write(folder.path().join("suite.toml"), SUITE.replace("terminal\"", "x\""))
            .unwrap();
        assert!(TerminalSuite::open(folder.path()).is_err());
    }

    #[test]
    fn wrong_lines_are_told_with_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let says = |line: &str, part: &str| {
            std::fs::write(&path, format!("{LINES}\n{line}\n")).unwrap();
            let error = TerminalSuite::open_file(&path).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        let verifier = r#""verifier": {"command": "true"}"#;
        says("{", "line 4");
        std::fs::write(&path, format!("{LINES}\n{{\"id\": \"thr")).unwrap();
        let error = TerminalSuite::open_file(&path).unwrap_err().to_string();
        assert!(error.contains("line 4") && error.contains("cut off"), "{error}");
        says(&format!(r#"{{"instruction": "a", {verifier}}}"#), "no `id`");
        says(&format!(r#"{{"id": "one", "instruction": "a", {verifier}}}"#), "two tasks `one`");
        says(&format!(r#"{{"id": "a", "instruktion": "a", {verifier}}}"#), "instruktion");
        let host = r#""files": {"x": {"host": "/etc/shadow"}}"#;
        says(&format!(r#"{{"id": "a", "instruction": "a", {host}, {verifier}}}"#), "the host");
    }
}
