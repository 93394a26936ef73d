//! Suites of tasks that are played in a program of any language.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::graders::{GraderConfig, Graders};
use crate::lines;
use crate::process_task::is_below;
use crate::terminal_suite::TaskHead;
use crate::{
    ProcessTask, ProgramActions, ProgramLimits, ProgramSandbox, ProgramSpec, ProgramTimeouts,
    Suite, SuiteError, SuiteManifest, Task,
};

/// The file in whose folder a program lies.
const FILE: &str = "env.toml";
/// Bytes of a program's file at the most, since all of them go into the suite's hash.
const MOST_HASHED: u64 = 64 << 20;

/// Tasks that are played in a program of any language: the suite of a folder with an `env.toml`.
///
/// ```toml
/// name = "guess"
/// version = "1"
/// about = "Guess a number."
/// instruction = "Answer every message with a number from 1 to 9."
/// max_turns = 9
/// command = ["python3", "guess.py"]
///
/// [splits.train]                      # generated tasks: `parameters`, and `seed = first_seed + index`
/// count = 10000
/// first_seed = 0
///
/// [splits.test]
/// tasks = "test.jsonl"                # or a task on every line
/// ```
#[derive(Debug)]
pub struct ProcessSuite {
    file: EnvFile,
    program: Arc<ProgramSpec>,
    manifest: SuiteManifest,
    splits: BTreeMap<String, Split>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvFile {
    name: String,
    version: String,
    about: String,
    #[serde(default)]
    instruction: String,
    max_turns: u32,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    evaluation_only: bool,
    #[serde(default)]
    graders: Vec<GraderConfig>,
    command: Vec<String>,
    #[serde(default)]
    workdir: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    actions: ProgramActions,
    #[serde(default)]
    whole_answers: bool,
    #[serde(default)]
    timeouts: ProgramTimeouts,
    #[serde(default)]
    limits: ProgramLimits,
    #[serde(default)]
    sandbox: Option<ProgramSandbox>,
    splits: BTreeMap<String, SplitFile>,
}

/// A split as it is written: a number of generated tasks, or a file of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitFile {
    #[serde(default)]
    count: Option<usize>,
    #[serde(default)]
    first_seed: Option<u64>,
    #[serde(default)]
    parameters: Map<String, Value>,
    #[serde(default)]
    tasks: Option<PathBuf>,
}

/// A split as tasks are made from it.
#[derive(Debug)]
enum Split {
    Generated {
        count: usize,
        first_seed: u64,
        parameters: Map<String, Value>,
    },
    Listed {
        path: PathBuf,
        /// First bytes of the lines, and what their tasks are called.
        tasks: Vec<(u64, String)>,
        by_id: HashMap<String, usize>,
        /// Tags of each, joined.
        strata: Vec<Box<str>>,
    },
}

impl ProcessSuite {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = "process";

    /// Whether a folder has an `env.toml`.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Opens the suite of a folder with an `env.toml`.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read, or with all that is wrong in it.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let path = folder.join(FILE);
        let fail = |source| SuiteError::Io { path: path.clone(), source };
        let text = std::fs::read_to_string(&path).map_err(fail)?;
        let folder = folder.canonicalize().map_err(fail)?;
        Self::read(&text, &path, Some(&folder), None)
    }

    /// A suite that ships, whose program is a script of `sh`; `path` is named in errors.
    ///
    /// # Errors
    ///
    /// As [`ProcessSuite::open`].
    pub(crate) fn shipped(text: &str, path: &Path, script: &str) -> Result<Self, SuiteError> {
        Self::read(text, path, None, Some(script))
    }

    fn read(
        text: &str,
        path: &Path,
        folder: Option<&Path>,
        script: Option<&str>,
    ) -> Result<Self, SuiteError> {
        let mut file: EnvFile = toml::from_str(text).map_err(|source| SuiteError::Manifest {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        if let Some(script) = script {
            file.command = ["sh", "-c", script].map(str::to_owned).into();
            hasher.update(script.as_bytes());
        }
        let program = Arc::new(ProgramSpec {
            name: file.name.clone(),
            folder: folder.map(Path::to_owned),
            command: file.command.clone(),
            workdir: file.workdir.clone(),
            env: file.env.clone(),
            pass_env: file.pass_env.clone(),
            actions: file.actions,
            whole_answers: file.whole_answers,
            timeouts: file.timeouts,
            limits: file.limits,
            sandbox: file.sandbox.clone(),
        });
        let mut problems = program.problems();
        problems.extend(file.problems());
        if !problems.is_empty() {
            return Err(SuiteError::Task {
                path: path.to_owned(),
                place: "its settings".to_owned(),
                detail: problems.join("; "),
            });
        }
        if let Some(folder) = folder {
            let refuse = |detail| SuiteError::Task {
                path: path.to_owned(),
                place: "its `command`".to_owned(),
                detail,
            };
            for part in program_files(folder, &file).map_err(refuse)? {
                let path = folder.join(&part.path);
                let bytes = std::fs::read(&path);
                let bytes = bytes.map_err(|source| SuiteError::Io { path, source })?;
                hasher.update(part.name.as_bytes());
                hasher.update(&bytes);
            }
        }
        let mut splits = BTreeMap::new();
        for (name, split) in &file.splits {
            hasher.update(name.as_bytes());
            splits.insert(name.clone(), Split::open(split, folder, &mut hasher)?);
        }
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: splits.iter().map(|(name, split)| (name.clone(), split.len())).collect(),
        };
        Ok(Self { file, program, manifest, splits })
    }

    /// How its program is run.
    pub fn program(&self) -> &Arc<ProgramSpec> {
        &self.program
    }
}

impl EnvFile {
    /// What is wrong with it beside its program.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.name.is_empty() || self.name.contains('/') {
            problems.push("`name` is to be something without `/`".to_owned());
        }
        if self.max_turns == 0 {
            problems.push("max_turns is 0, must be at least 1".to_owned());
        }
        if self.splits.is_empty() {
            problems.push("there are no `splits`".to_owned());
        }
        if let Err(error) = Graders::open(&self.graders) {
            problems.push(error.to_string());
        }
        for (name, split) in &self.splits {
            let SplitFile { count, first_seed, parameters, tasks } = split;
            let problem = match (count, tasks) {
                (None, None) => "it needs a `count`, or a file of `tasks`",
                (Some(_), Some(_)) => "`count` and `tasks` exclude each other",
                (None, Some(_)) if first_seed.is_some() || !parameters.is_empty() => {
                    "`first_seed` and `parameters` have no effect beside `tasks`"
                }
                (None, Some(tasks)) if tasks.to_str().is_none_or(|tasks| !is_below(tasks)) => {
                    "`tasks` is to be a path below the folder"
                }
                (Some(_), None) if parameters.contains_key("seed") => {
                    "`parameters` have a `seed`, which is each task's own: use `first_seed`"
                }
                _ => continue,
            };
            problems.push(format!("split `{name}`: {problem}"));
        }
        problems
    }
}

impl Split {
    fn open(
        split: &SplitFile,
        folder: Option<&Path>,
        hasher: &mut blake3::Hasher,
    ) -> Result<Self, SuiteError> {
        let Some(tasks) = &split.tasks else {
            return Ok(Self::Generated {
                count: split.count.unwrap_or_default(),
                first_seed: split.first_seed.unwrap_or_default(),
                parameters: split.parameters.clone(),
            });
        };
        let path = folder.unwrap_or(Path::new("")).join(tasks);
        let (mut tasks, mut by_id, mut strata) = (Vec::new(), HashMap::new(), Vec::new());
        lines::read(&path, hasher, |line| {
            let head: TaskHead = line.parse(&path)?;
            if let Err(error) = Graders::open(&head.graders) {
                return Err(line.refuse(&path, error.to_string()));
            }
            let id = head.id.unwrap_or_else(|| tasks.len().to_string());
            if id.is_empty() || by_id.insert(id.clone(), tasks.len()).is_some() {
                return Err(line.refuse(&path, format!("its id `{id}` is empty or taken")));
            }
            tasks.push((line.start, id));
            strata.push(head.tags.join(" ").into_boxed_str());
            Ok(())
        })?;
        Ok(Self::Listed { path, tasks, by_id, strata })
    }

    fn len(&self) -> usize {
        match self {
            Self::Generated { count, .. } => *count,
            Self::Listed { tasks, .. } => tasks.len(),
        }
    }
}

/// A file that a part of the command names.
struct ProgramFile<'a> {
    name: &'a str,
    /// Below the folder.
    path: PathBuf,
}

/// The files of the folder that the command names: what is played follows from them. The program itself is named relative
/// to the folder, and looked up elsewhere where it has no `/`; its arguments are read where it works.
///
/// # Errors
///
/// A file that cannot go into the hash: nothing that is named by a relative path is left out of it.
fn program_files<'a>(folder: &Path, file: &'a EnvFile) -> Result<Vec<ProgramFile<'a>>, String> {
    let workdir = Path::new(file.workdir.as_deref().unwrap_or_default());
    let mut found = Vec::new();
    for (index, name) in file.command.iter().enumerate() {
        let base = match index {
            0 if !name.contains('/') => continue,
            0 => Path::new(""),
            _ => workdir,
        };
        let Ok(about) = std::fs::metadata(folder.join(base).join(name)) else { continue };
        if name.starts_with('/') || !about.is_file() {
            continue;
        }
        let Some(path) = below(&base.join(name)) else {
            return Err(format!(
                "`{name}` lies outside of the folder: move it into that, or name it by an absolute path, which leaves it \
                 out of the suite's hash"
            ));
        };
        if about.len() > MOST_HASHED {
            let len = about.len();
            return Err(format!(
                "`{name}` has {len} bytes, at most {MOST_HASHED} go into the suite's hash: hand it over by a variable of \
                 `env`"
            ));
        }
        found.push(ProgramFile { name, path });
    }
    Ok(found)
}

/// A relative path without its `.` and `..`; absent where it leads out.
fn below(path: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => below.push(part),
            Component::ParentDir if below.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(below)
}

impl Suite for ProcessSuite {
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
        let EnvFile { name, instruction, max_turns, tags, graders, .. } = &self.file;
        let mut made = Task {
            id: format!("{name}/{split}/{index}"),
            environment: Self::ENVIRONMENT.to_owned(),
            parameters: Value::Null,
            instruction: instruction.clone(),
            max_turns: *max_turns,
            tags: tags.clone(),
            graders: graders.clone(),
        };
        let task = match &self.splits[split] {
            Split::Generated { first_seed, parameters, .. } => {
                let mut task = parameters.clone();
                let seed = first_seed.wrapping_add(index as u64);
                task.insert("seed".to_owned(), seed.into());
                task
            }
            Split::Listed { path, tasks, .. } => {
                let (start, id) = &tasks[index];
                let head: TaskHead = lines::read_at(path, *start, |line| line.parse(path))?;
                made.id = format!("{name}/{split}/{id}");
                made.max_turns = head.max_turns.unwrap_or(made.max_turns);
                made.tags.extend(head.tags);
                if !head.graders.is_empty() {
                    made.graders = head.graders;
                }
                head.rest
            }
        };
        let parameters = ProcessTask { program: Arc::clone(&self.program), task };
        made.parameters = serde_json::to_value(parameters).expect("it has only string keys");
        Ok(made)
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        let Split::Listed { strata, .. } = &self.splits[split] else { return None };
        Some(&strata[index]).filter(|tags| !tags.is_empty()).map(ToString::to_string)
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let unknown =
            || SuiteError::UnknownTask { suite: self.file.name.clone(), id: id.to_owned() };
        let rest = id.strip_prefix(self.file.name.as_str()).and_then(|id| id.strip_prefix('/'));
        let place = rest.and_then(|rest| {
            self.splits.iter().find_map(|(name, split)| {
                let key = rest.strip_prefix(name.as_str())?.strip_prefix('/')?;
                let index = match split {
                    Split::Generated { .. } => key.parse().ok()?,
                    Split::Listed { by_id, .. } => *by_id.get(key)?,
                };
                Some((name, index))
            })
        });
        let task = place.and_then(|(split, index)| self.task(split, index).ok());
        task.filter(|task| task.id == id).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TEXT: &str = r#"
        name = "g"
        version = "1"
        about = "a"
        max_turns = 3
        command = ["python3", "g.py"]
        [splits.train]
        count = 2
        first_seed = 10
        parameters = { size = 4 }
        [splits.test]
        tasks = "test.jsonl"
    "#;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("env.toml"), TEXT).unwrap();
        fs::write(folder.path().join("g.py"), "print()").unwrap();
        let tasks = "{\"id\": \"a\", \"word\": \"tea\", \"tags\": [\"t\"], \"max_turns\": 7}\n{\"word\": \"rum\"}\n";
        fs::write(folder.path().join("test.jsonl"), tasks).unwrap();
        folder
    }

    #[test]
    fn tasks_are_generated_or_read_and_found_by_their_ids() {
        let folder = folder();
        let suite = ProcessSuite::open(folder.path()).unwrap();
        let told = |split: &str, index| {
            let task = suite.task(split, index).unwrap();
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
            let parameters = ProcessTask::deserialize(&task.parameters).unwrap();
            assert_eq!(parameters.program, *suite.program());
            (task.id, task.max_turns, Value::Object(parameters.task))
        };
        let json = serde_json::json!({ "size": 4, "seed": 11 });
        assert_eq!(told("train", 1), ("g/train/1".to_owned(), 3, json));
        assert_eq!(
            told("test", 0),
            ("g/test/a".to_owned(), 7, serde_json::json!({ "word": "tea" }))
        );
        assert_eq!(
            told("test", 1),
            ("g/test/1".to_owned(), 3, serde_json::json!({ "word": "rum" }))
        );
        for id in ["g/test/0", "g/test/2", "g/train/2", "h/train/0", "g/train/01"] {
            assert!(suite.task_by_id(id).is_err(), "{id}");
        }
        assert_eq!(suite.stratum("test", 0).as_deref(), Some("t"));
    }

    #[test]
    fn the_hash_follows_the_program_and_the_tasks() {
        let folder = folder();
        let hash = || ProcessSuite::open(folder.path()).unwrap().manifest.content_hash;
        let first = hash();
        assert_eq!(hash(), first);
        fs::write(folder.path().join("g.py"), "print(1)").unwrap();
        let second = hash();
        assert_ne!(second, first);
        fs::write(folder.path().join("test.jsonl"), "{}\n").unwrap();
        assert_ne!(hash(), second);
    }

    #[test]
    fn arguments_are_read_where_the_program_works_and_none_is_left_out() {
        let folder = folder();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/in.py"), "1").unwrap();
        let write = |part: &str| {
            let text = TEXT.replace("\"g.py\"]", &format!("\"{part}\"]\nworkdir = \"sub\""));
            fs::write(at("env.toml"), text).unwrap();
        };
        let hash = || ProcessSuite::open(folder.path()).map(|suite| suite.manifest.content_hash);
        for (part, file) in [("in.py", "sub/in.py"), ("../g.py", "g.py")] {
            write(part);
            let first = hash().unwrap();
            fs::write(at(file), "other").unwrap();
            assert_ne!(hash().unwrap(), first, "{part}");
        }
        let outside = tempfile::NamedTempFile::new_in(folder.path().parent().unwrap()).unwrap();
        let name = outside.path().file_name().unwrap().to_str().unwrap();
        write(&format!("../../{name}"));
        assert!(hash().unwrap_err().to_string().contains("outside of the folder"));
        fs::File::create(at("sub/in.py")).unwrap().set_len(MOST_HASHED + 1).unwrap();
        write("in.py");
        assert!(hash().unwrap_err().to_string().contains("at most"));
        for path in ["../test.jsonl", "/etc/hostname"] {
            fs::write(at("env.toml"), TEXT.replace("test.jsonl", path)).unwrap();
            assert!(hash().unwrap_err().to_string().contains("below the folder"), "{path}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let folder = folder();
        let wrong = TEXT
            .replace("max_turns = 3", "max_turns = 0\nworkdir = '/'")
            .replace("count = 2", "")
            .replace("tasks = \"test.jsonl\"", "tasks = \"test.jsonl\"\nfirst_seed = 1");
        fs::write(folder.path().join("env.toml"), wrong).unwrap();
        let told = ProcessSuite::open(folder.path()).unwrap_err().to_string();
        for part in ["max_turns is 0", "`workdir`", "`train`: it needs", "`test`: `first_seed`"] {
            assert!(told.contains(part), "{told}");
        }
        fs::write(folder.path().join("env.toml"), format!("typo = 1\n{TEXT}")).unwrap();
        assert!(matches!(ProcessSuite::open(folder.path()), Err(SuiteError::Manifest { .. })));
        fs::write(folder.path().join("env.toml"), TEXT).unwrap();
        fs::write(folder.path().join("test.jsonl"), "{\"id\": \"1\"}\n{}\n").unwrap();
        let told = ProcessSuite::open(folder.path()).unwrap_err().to_string();
        assert!(told.contains("line 2") && told.contains("`1` is empty or taken"), "{told}");
    }
}
