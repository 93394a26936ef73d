//! Suites of questions over a corpus, in files that others publish.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use spar_search::questions::{QuestionFile, QuestionRecord};
use spar_search::{CorpusError, CorpusSource};

use crate::graders::GraderConfig;
use crate::search_task::three;
use crate::suite::task_by_key;
use crate::suite_file::{SplitFile, check_graders};
use crate::{SearchPrompt, SearchTask, Suite, SuiteError, SuiteManifest, Task};

const INSTRUCTION: &str =
    "Answer the question of the first message. Search for what you do not know before you answer.";
/// Searches and answers of the longest questions, with some to spare.
const MAX_TURNS: u32 = 10;
/// Names the corpus of questions beside which nothing stands.
const CORPUS_VARIABLE: &str = "SPAR_SEARCH_CORPUS";
/// Names a retrieval server for them.
const SERVER_VARIABLE: &str = "SPAR_SEARCH_SERVER";

/// Questions over a corpus, from files as HotpotQA, 2WikiMultihopQA, MuSiQue, Natural Questions (open) and Search-R1 publish
/// them: JSON arrays and JSON lines.
///
/// What is searched is, in this order: what `suite.toml` names as `corpus` (a file of documents) or `server` (an address); the
/// paragraphs that stand beside the file's questions, all of them together; what `SPAR_SEARCH_CORPUS` or `SPAR_SEARCH_SERVER`
/// name. Every question is read and checked on opening.
///
/// ```toml
/// name = "nq"
/// version = "1"
/// about = "Questions of Natural Questions, over Wikipedia."
/// environment = "search"
/// corpus = "wiki-18.jsonl"
///
/// [splits.test]
/// tasks = "NQ-open.dev.jsonl"
/// ```
#[derive(Debug)]
pub struct SearchSuite {
    file: SearchSuiteFile,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Questions>,
}

/// The `suite.toml` of such a suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchSuiteFile {
    name: String,
    version: String,
    about: String,
    environment: String,
    #[serde(default)]
    instruction: Option<String>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    evaluation_only: bool,
    #[serde(default)]
    graders: Vec<GraderConfig>,
    /// A file with a document on every line.
    #[serde(default)]
    corpus: Option<PathBuf>,
    /// The address of a retrieval server.
    #[serde(default)]
    server: Option<String>,
    /// How many documents a search shows.
    #[serde(default = "three")]
    results: usize,
    splits: BTreeMap<String, SplitFile>,
}

/// The questions of a split.
#[derive(Debug)]
struct Questions {
    records: Vec<QuestionRecord>,
    corpus: CorpusSource,
    by_id: HashMap<String, usize>,
}

impl SearchSuite {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = "search";

    /// Opens the suite of a folder with a `suite.toml` whose splits name files of questions.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read, a row of it is wrong, or there is nothing to search.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let path = folder.join("suite.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
        let file: SearchSuiteFile = toml::from_str(&text).map_err(|source| {
            SuiteError::Manifest { path: path.clone(), source: Box::new(source) }
        })?;
        check_graders(&file.graders, &path)?;
        let refuse = |place: &str, detail: &str| SuiteError::Task {
            path: path.clone(),
            place: format!("`{place}`"),
            detail: detail.to_owned(),
        };
        if file.corpus.is_some() && file.server.is_some() {
            return Err(refuse("server", "a `corpus` is named as well, and only one is searched"));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        Self::read(file, folder, hasher)
    }

    /// Opens a file of questions as a suite with the one split `test`, named like the file.
    ///
    /// # Errors
    ///
    /// As [`SearchSuite::open`].
    pub fn open_file(path: &Path) -> Result<Self, SuiteError> {
        let file = SearchSuiteFile {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            version: "1".to_owned(),
            about: format!("The questions of {}.", path.display()),
            environment: Self::ENVIRONMENT.to_owned(),
            instruction: None,
            max_turns: None,
            tags: Vec::new(),
            evaluation_only: false,
            graders: Vec::new(),
            corpus: None,
            server: None,
            results: three(),
            splits: [("test".to_owned(), SplitFile { tasks: path.to_owned() })].into(),
        };
        Self::read(file, Path::new(""), blake3::Hasher::new())
    }

    fn read(
        file: SearchSuiteFile,
        folder: &Path,
        mut hasher: blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let mut splits = BTreeMap::new();
        for (split, SplitFile { tasks }) in &file.splits {
            let path = folder.join(tasks);
            let found = QuestionFile::read(&path).map_err(suite_error)?;
            let corpus = file.source(folder, &path, found.has_paragraphs)?;
            hasher.update(split.as_bytes());
            hasher.update(found.content_hash.as_bytes());
            hasher.update(found.format.name().as_bytes());
            let ids = found.questions.iter().enumerate();
            let by_id = ids.filter_map(|(place, record)| Some((key_of(record)?.to_owned(), place)));
            let by_id = by_id.collect();
            splits.insert(split.clone(), Questions { records: found.questions, corpus, by_id });
        }
        let sizes = splits.iter().map(|(name, found)| (name.clone(), found.records.len()));
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes.collect(),
        };
        let suite = Self { file, manifest, splits };
        // What is wrong with the settings is wrong with every task.
        for (split, questions) in &suite.splits {
            if !questions.records.is_empty() {
                let problems = suite.parameters(split, 0).problems();
                if !problems.is_empty() {
                    return Err(SuiteError::Task {
                        path: folder.join(&suite.file.splits[split].tasks),
                        place: "its first question".to_owned(),
                        detail: problems.join("; "),
                    });
                }
            }
        }
        Ok(suite)
    }

    fn parameters(&self, split: &str, index: usize) -> SearchTask {
        let Questions { records, corpus, .. } = &self.splits[split];
        let record = &records[index];
        SearchTask {
            question: record.question.clone(),
            answers: record.answers.clone(),
            supporting: record.supporting.clone(),
            corpus: corpus.clone(),
            results: self.file.results,
            max_chars: 4000,
            prompt: SearchPrompt::SearchR1,
        }
    }
}

impl SearchSuiteFile {
    /// What is searched for the questions of a file.
    fn source(
        &self,
        folder: &Path,
        path: &Path,
        has_paragraphs: bool,
    ) -> Result<CorpusSource, SuiteError> {
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .map_err(|source| SuiteError::Io { path: path.to_owned(), source })
        };
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let source = if let Some(corpus) = &self.corpus {
            CorpusSource::File(absolute(&folder.join(corpus))?)
        } else if let Some(server) = &self.server {
            CorpusSource::Server(server.clone())
        } else if has_paragraphs {
            CorpusSource::Paragraphs(absolute(path)?)
        } else if let Some(corpus) = variable(CORPUS_VARIABLE) {
            CorpusSource::File(absolute(Path::new(&corpus))?)
        } else if let Some(server) = variable(SERVER_VARIABLE) {
            CorpusSource::Server(server.to_string_lossy().into_owned())
        } else {
            return Err(SuiteError::Task {
                path: path.to_owned(),
                place: "its corpus".to_owned(),
                detail: format!(
                    "nothing to read stands beside its questions: name a file of documents as {CORPUS_VARIABLE}, a \
                     retrieval server as {SERVER_VARIABLE}, or either in a suite.toml (`corpus`, `server`)"
                ),
            });
        };
        match &source {
            CorpusSource::File(path) if !path.is_file() => {
                let source = std::io::ErrorKind::NotFound.into();
                Err(SuiteError::Io { path: path.clone(), source })
            }
            _ => Ok(source),
        }
    }
}

/// The name of a question in ids of tasks, where it has one that fits there.
fn key_of(record: &QuestionRecord) -> Option<&str> {
    let is_word = |id: &&str| {
        !id.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/')
            && !id.bytes().all(|byte| byte.is_ascii_digit())
    };
    record.id.as_deref().filter(is_word)
}

fn suite_error(error: CorpusError) -> SuiteError {
    match error {
        CorpusError::Io { path, source } => SuiteError::Io { path, source },
        CorpusError::Record { path, place, detail } => SuiteError::Task { path, place, detail },
        CorpusError::Empty { path } => SuiteError::EmptyData { path, what: "any question" },
        error @ CorpusError::Changed { .. } => {
            SuiteError::Io { path: PathBuf::new(), source: std::io::Error::other(error) }
        }
        error => SuiteError::Io { path: PathBuf::new(), source: std::io::Error::other(error) },
    }
}

impl Suite for SearchSuite {
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
        let record = &self.splits[split].records[index];
        let mut tags = self.file.tags.clone();
        tags.extend(record.tags.iter().cloned());
        let key = key_of(record).map_or_else(|| index.to_string(), str::to_owned);
        Ok(Task {
            id: format!("{}/{split}/{key}", self.file.name),
            environment: self.file.environment.clone(),
            parameters: serde_json::to_value(self.parameters(split, index))
                .expect("a question has only string keys"),
            instruction: self.file.instruction.clone().unwrap_or_else(|| INSTRUCTION.to_owned()),
            max_turns: self.file.max_turns.unwrap_or(MAX_TURNS),
            tags,
            graders: self.file.graders.clone(),
        })
    }

    /// The kind of a question, as its file has it.
    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        let tags = &self.splits[split].records[index].tags;
        (!tags.is_empty()).then(|| tags.join(" "))
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
    use crate::{SuiteOptions, open_suite};

    const HOTPOT: &str = r#"[{"_id": "5a8b", "question": "Who?", "answer": "yes", "type": "bridge", "level": "hard",
        "supporting_facts": [["A", 0]], "context": [["A", ["One."]]]}]"#;
    const NQ: &str = "{\"question\": \"who\", \"answer\": [\"he\", \"him\"]}\n";

    fn told(path: &Path) -> String {
        match open_suite(path.to_str().unwrap(), &SuiteOptions::default()) {
            Ok(_) => panic!("it opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_file_that_brings_its_paragraphs_is_a_suite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotpot_dev.json");
        std::fs::write(&path, HOTPOT).unwrap();
        let suite = open_suite(path.to_str().unwrap(), &SuiteOptions::default()).unwrap();
        let task = suite.task("test", 0).unwrap();
        assert_eq!((&*task.id, &*task.environment), ("hotpot_dev/test/5a8b", "search"));
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        assert_eq!(suite.stratum("test", 0).as_deref(), Some("bridge hard"));
        let parameters: SearchTask = serde_json::from_value(task.parameters).unwrap();
        assert_eq!(parameters.corpus, CorpusSource::Paragraphs(path.clone()));
        assert_eq!(parameters.supporting, ["A"]);
        std::fs::write(&path, HOTPOT.replace("\"yes\"", "0")).unwrap();
        assert!(told(&path).contains("row 1: `answer` is a number"), "{}", told(&path));
    }

    #[test]
    fn other_questions_name_what_is_searched() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("nq.jsonl", NQ);
        write("c.jsonl", "{\"id\": 1, \"contents\": \"A\\nb\"}\n");
        let says = told(&folder.path().join("nq.jsonl"));
        assert!(says.contains("SPAR_SEARCH_CORPUS") && says.contains("suite.toml"), "{says}");
        let base = "name = 'nq'\nversion = '1'\nabout = 'a'\nenvironment = 'search'\n";
        let splits = "[splits.dev]\ntasks = 'nq.jsonl'\n";
        write("suite.toml", &format!("{base}corpus = 'c.jsonl'\nresults = 5\n{splits}"));
        let suite = open_suite(folder.path().to_str().unwrap(), &SuiteOptions::default()).unwrap();
        let task = suite.task("dev", 0).unwrap();
        let parameters: SearchTask = serde_json::from_value(task.parameters).unwrap();
        assert_eq!((parameters.answers.len(), parameters.results, &*task.id), (2, 5, "nq/dev/0"));
        for (settings, part) in [
            ("corpus = 'd.jsonl'", "d.jsonl"),
            ("corpus = 'c.jsonl'\nserver = 'http://a'", "only one is searched"),
            ("corpus = 'c.jsonl'\nresults = 0", "`results` is 0"),
            ("korpus = 'c.jsonl'", "understand"),
        ] {
            write("suite.toml", &format!("{base}{settings}\n{splits}"));
            let says = told(folder.path());
            assert!(says.contains(part), "{says}");
        }
    }
}
