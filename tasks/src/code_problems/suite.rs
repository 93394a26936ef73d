//! A suite of programming problems.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::schema::{IdOnly, Problem, Schema};
use crate::graders::GraderConfig;
use crate::lines::{self, Line};
use crate::suite::task_by_key;
use crate::suite_file::{SplitFile, SuiteFile};
use crate::{Suite, SuiteError, SuiteManifest, Task};

/// The environment of its tasks.
const ENVIRONMENT: &str = "code";
const INSTRUCTION: &str = "Solve the problem of the first message.";
/// Turns of a problem.
const MAX_TURNS: u32 = 8;

/// Programming problems from a `.jsonl` or Parquet file in one of the [schemas](Schema) that benchmarks publish, or from a folder whose
/// `suite.toml` names such files, or ones in spar's own.
///
/// On opening only the ids of lines are looked at: what tests a problem has is read when it is taken.
#[derive(Debug)]
pub struct CodeProblemSuite {
    file: SuiteFile,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Problems>,
}

/// The problems of a split.
#[derive(Debug)]
struct Problems {
    path: PathBuf,
    schema: Schema,
    /// First bytes of their lines.
    starts: Vec<u64>,
    by_id: HashMap<String, usize>,
}

impl CodeProblemSuite {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = ENVIRONMENT;

    /// Opens the suite of a folder with a `suite.toml` whose splits name `.jsonl` or Parquet files.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read or a line of it is none.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let file = SuiteFile::open(folder, &mut hasher)?;
        Self::read(file, folder, hasher)
    }

    /// Opens a `.jsonl` or Parquet file of a published schema as a suite with the one split `test`, named like the file, which is for
    /// evaluation alone.
    ///
    /// # Errors
    ///
    /// As [`CodeProblemSuite::open`].
    pub fn open_file(path: &Path) -> Result<Self, SuiteError> {
        let file = SuiteFile::of_file(path, ENVIRONMENT);
        Self::read(file, Path::new(""), blake3::Hasher::new())
    }

    /// The published schema of a file; absent where it has none, or cannot be read.
    pub fn schema_of(path: &Path) -> Option<Schema> {
        let first = lines::is_at(path).then(|| lines::first(path).ok().flatten())??;
        Schema::of(&first)
    }

    fn read(
        file: SuiteFile,
        folder: &Path,
        mut hasher: blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let mut splits = BTreeMap::new();
        for (split, SplitFile { tasks }) in &file.splits {
            hasher.update(split.as_bytes());
            let path = folder.join(tasks);
            let schema = Self::schema_of(&path).unwrap_or(Schema::Own);
            splits.insert(split.clone(), Problems::read(path, schema, &mut hasher)?);
        }
        let sizes = splits.iter().map(|(name, found)| (name.clone(), found.starts.len()));
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes.collect(),
        };
        Ok(Self { file, manifest, splits })
    }
}

impl Problems {
    fn read(
        path: PathBuf,
        schema: Schema,
        hasher: &mut blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let (mut starts, mut by_id) = (Vec::new(), HashMap::new());
        lines::read(&path, hasher, |line| {
            let id: IdOnly = line.parse(&path)?;
            if let Some(id) = id.id()
                && let Some(other) = by_id.insert(id.clone(), starts.len())
            {
                let detail = format!("problem {other}, from 0, has the id `{id}` as well");
                return Err(line.refuse(&path, detail));
            }
            // All of the first is read, so that a file of another kind is told at once.
            if starts.is_empty() {
                problem(&line, &path, schema)?;
            }
            starts.push(line.start);
            Ok(())
        })?;
        Ok(Self { path, schema, starts, by_id })
    }
}

fn problem(line: &Line<'_>, path: &Path, schema: Schema) -> Result<Problem, SuiteError> {
    let object: Map<String, Value> = line.parse(path)?;
    schema.read(object).map_err(|detail| line.refuse(path, detail))
}

impl Suite for CodeProblemSuite {
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
        let Problems { path, schema, starts, .. } = &self.splits[split];
        let read = |line: &Line<'_>| problem(line, path, *schema);
        let Problem { id, tags: own_tags, task } = lines::read_at(path, starts[index], read)?;
        let mut tags = self.file.tags.clone();
        tags.extend(own_tags);
        let key = id.unwrap_or_else(|| index.to_string());
        // What judges by itself needs no grader.
        let graders: Vec<GraderConfig> = self.file.graders.clone();
        Ok(Task {
            id: format!("{}/{split}/{key}", self.file.name),
            environment: ENVIRONMENT.to_owned(),
            parameters: serde_json::to_value(&task).expect("a problem has only string keys"),
            instruction: self.file.instruction.clone().unwrap_or_else(|| INSTRUCTION.to_owned()),
            max_turns: self.file.max_turns.unwrap_or(MAX_TURNS),
            tags,
            graders,
        })
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        task_by_key(self, &self.file.name, id, |split, key| {
            self.splits.get(split)?.by_id.get(key).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{CodeTask, SuiteOptions, open_suite};

    #[test]
    fn a_folder_names_files_of_problems_in_any_schema() {
        let folder = tempfile::tempdir().unwrap();
        let text = "name = 'c'\nversion = '1'\nabout = 'a'\nenvironment = 'code'\nmax_turns = 3\n[splits.dev]\n\
                    tasks = 'own.jsonl'\n[splits.test]\ntasks = 'mbpp.jsonl'\n[[graders]]\nkind = 'unit_tests'\nfraction = 0.5\n";
        std::fs::write(folder.path().join("suite.toml"), text).unwrap();
        let own = r#"{"id": "add", "prompt": "1 + 1?", "tests": {"kind": "streams", "cases": [{"input": "", "output": "2"}]}}"#;
        std::fs::write(folder.path().join("own.jsonl"), own).unwrap();
        let mbpp =
            r#"{"task_id": 7, "text": "Add.", "code": "x", "test_list": ["assert f() == 1"]}"#;
        std::fs::write(folder.path().join("mbpp.jsonl"), mbpp).unwrap();
        let path = folder.path().to_str().unwrap();
        let suite = open_suite(path, &SuiteOptions::default()).unwrap();
        for (split, id) in [("dev", "c/dev/add"), ("test", "c/test/n7")] {
            let task = suite.task(split, 0).unwrap();
            assert_eq!((&*task.id, &*task.environment, task.max_turns), (id, "code", 3));
            assert_eq!(task.graders[0].kind, "unit_tests");
            assert_eq!(suite.task_by_id(id).unwrap(), task);
            let task: CodeTask = serde_json::from_value(task.parameters).unwrap();
            assert_eq!(task.problems(), [""; 0]);
        }
        std::fs::write(
            folder.path().join("own.jsonl"),
            r#"{"prompt": "a", "tests": {"kind": "streams", "cases": []}}"#,
        )
        .unwrap();
        let Err(error) = open_suite(path, &SuiteOptions::default()) else { panic!() };
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
