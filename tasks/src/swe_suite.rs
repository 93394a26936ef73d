//! Suites of software-engineering instances: files of rows, task folders, and files that say how these are played.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use spar_swe::{FolderFormat, FolderSuite, Instance, LoadError, RowFile, RowOptions};

use crate::suite::task_by_key;
use crate::{Suite, SuiteError, SuiteManifest, SweTask, Task};

const ENVIRONMENT: &str = "swe";
const SPLIT: &str = "test";
const INSTRUCTION: &str = "You work at a shell in a sandbox that has a repository. Resolve the issue of the first message by changing the \
     repository's source files; tests that you do not see judge the result. Every answer is one command; `submit` ends the task.";
/// Turns of an episode, unless a run or a `swe.toml` says otherwise.
const MAX_TURNS: u32 = 100;
/// The largest `swe.toml`.
const MAX_TOML_BYTES: u64 = 1 << 20;
/// The file that says how instances are played.
const TOML: &str = "swe.toml";
/// Files of folders that are suites of another kind.
const OTHERS: [&str; 3] = ["suite.toml", "env.toml", "ors.toml"];

/// Instances of software engineering in the formats of [`spar_swe`]: a file of rows, a task folder, a folder of task folders, or
/// a `swe.toml` that names one of these and says how its instances are played.
///
/// All instances are read and checked on opening, and are held in memory.
#[derive(Debug)]
pub struct SweSuite {
    manifest: SuiteManifest,
    instances: Vec<Instance>,
    /// The instances of each split, as places in all of them.
    splits: Vec<(&'static str, Vec<usize>)>,
    /// The split of an instance, and its place there.
    by_id: HashMap<String, (&'static str, usize)>,
    overlay: Overlay,
}

/// What of all instances is held out; the rest is the split `train`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shares {
    /// The share that chooses checkpoints, above 0.
    dev: f64,
    /// The share that is only measured, above 0.
    test: f64,
}

impl Shares {
    fn problem(self) -> Option<String> {
        let Self { dev, test } = self;
        let is_right = dev > 0.0 && test > 0.0 && dev + test < 1.0;
        (!is_right).then(|| {
            format!("`splits` has dev = {dev} and test = {test}: both have to be above 0, and less than 1 together")
        })
    }

    /// The split of an instance. It follows from its id alone, so that others that come or go move none.
    fn split_of(self, id: &str) -> &'static str {
        let hash = blake3::hash(id.as_bytes());
        let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes");
        // 53 bits, which a float holds.
        let at = (u64::from_le_bytes(first) >> 11) as f64 / (1u64 << 53) as f64;
        match at {
            at if at < self.test => "test",
            at if at < self.test + self.dev => "dev",
            _ => "train",
        }
    }
}

/// A `swe.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Overlay {
    /// The file of rows or the folder of tasks, from the folder of the `swe.toml`.
    tasks: PathBuf,
    /// The suite's name. Default that of the folder.
    #[serde(default)]
    name: Option<String>,
    /// The image of all instances; `{id}`, `{owner}` and `{name}` stand for the instance's.
    #[serde(default)]
    image: Option<String>,
    /// The folder with the repository, from the folder of the `swe.toml`; `{id}`, `{owner}` and `{name}` stand for the
    /// instance's.
    #[serde(default)]
    repository: Option<String>,
    /// Whether nothing is trained on them.
    #[serde(default)]
    evaluation_only: bool,
    #[serde(default)]
    max_turns: Option<u32>,
    /// What is held out. Default absent: all instances are of the split `test`.
    #[serde(default)]
    splits: Option<Shares>,
    /// What else [`SweTask`] takes beside an instance, an image and a repository.
    #[serde(default)]
    options: serde_json::Map<String, serde_json::Value>,
}

impl SweSuite {
    /// Whether a file is one of rows, or a folder has a `swe.toml` or tasks of software engineering.
    pub fn is_at(path: &Path) -> bool {
        match path.is_dir() {
            true => {
                // Folders that say themselves what they are may have task folders in them.
                let is_other = OTHERS.iter().any(|file| path.join(file).is_file());
                path.join(TOML).is_file()
                    || !is_other && (FolderFormat::of(path).is_some() || holds_tasks(path))
            }
            false => {
                let is_rows = match path.extension().and_then(|end| end.to_str()) {
                    Some("jsonl" | "parquet") => path.is_file(),
                    Some("json") => path.is_file() && begins_like_rows(path),
                    _ => false,
                };
                is_rows && RowFile::matches(path)
            }
        }
    }

    /// Opens a file of rows, a task folder, a folder of them, or a folder with a `swe.toml`.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] for the first instance that cannot be read, and where there is none.
    pub fn open(path: &Path) -> Result<Self, SuiteError> {
        let toml = path.join(TOML);
        let overlay = match path.is_dir() && toml.is_file() {
            true => read_overlay(&toml, path)?,
            false => Overlay { tasks: path.to_owned(), ..Overlay::default() },
        };
        let read = |error: LoadError| SuiteError::Instances(Box::new(error));
        let instances: Vec<Instance> = match overlay.tasks.is_dir() {
            true => {
                let folder = FolderSuite::open(&overlay.tasks).map_err(read)?;
                folder.instances().collect::<Result<_, _>>().map_err(read)?
            }
            false => {
                let rows = RowFile::open(&overlay.tasks, RowOptions::default()).map_err(read)?;
                rows.collect::<Result<_, _>>().map_err(read)?
            }
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = overlay.name.clone().unwrap_or(stem);
        let mut hasher = blake3::Hasher::new();
        for instance in &instances {
            hasher.update(&serde_json::to_vec(instance).unwrap_or_default());
        }
        let splits = match overlay.splits {
            None => vec![(SPLIT, (0..instances.len()).collect())],
            Some(shares) => split(&instances, shares).map_err(|detail| SuiteError::Task {
                path: toml.clone(),
                place: "`splits`".to_owned(),
                detail,
            })?,
        };
        if let Some(shares) = overlay.splits {
            hasher.update(format!("{shares:?}").as_bytes());
        }
        let manifest = SuiteManifest {
            name,
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: splits.iter().map(|(name, of)| ((*name).to_owned(), of.len())).collect(),
        };
        let mut by_id = HashMap::with_capacity(instances.len());
        for (name, places) in &splits {
            let places = places.iter().enumerate();
            by_id.extend(places.map(|(at, place)| (instances[*place].id.clone(), (*name, at))));
        }
        Ok(Self { manifest, instances, splits, by_id, overlay })
    }

    /// The instance of a place in a split, which is one of the manifest's.
    fn instance(&self, split: &str, index: usize) -> &Instance {
        let of_split = self.splits.iter().find(|(name, _)| *name == split);
        let (_, places) = of_split.expect("suites are asked for their own splits");
        &self.instances[places[index]]
    }

    fn played(&self, instance: &Instance) -> SweTask {
        let filled = |text: &String| {
            let repo = instance.repo.as_deref().unwrap_or_default();
            let (owner, name) = repo.split_once('/').unwrap_or(("", repo));
            text.replace("{id}", &instance.id).replace("{owner}", owner).replace("{name}", name)
        };
        let mut task = SweTask::new(instance.clone());
        task.image = self.overlay.image.as_ref().map(filled);
        task.repository = self.overlay.repository.as_ref().map(|it| PathBuf::from(filled(it)));
        task
    }
}

/// The instances of each split.
fn split(
    instances: &[Instance],
    shares: Shares,
) -> Result<Vec<(&'static str, Vec<usize>)>, String> {
    let mut splits = ["train", "dev", "test"].map(|name| (name, Vec::new()));
    for (place, instance) in instances.iter().enumerate() {
        let name = shares.split_of(&instance.id);
        splits.iter_mut().filter(|it| it.0 == name).for_each(|it| it.1.push(place));
    }
    match splits.iter().find(|(_, places)| places.is_empty()) {
        Some((name, _)) => Err(format!(
            "none of the {} instances falls to `{name}`: make more, or other shares",
            instances.len()
        )),
        None => Ok(splits.into()),
    }
}

/// Whether the beginning of an array names columns of such rows: an array is read whole, which takes long where it is of
/// something else.
fn begins_like_rows(path: &Path) -> bool {
    use std::io::Read;
    const BEGINNING: u64 = 1 << 20;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|it| it.take(BEGINNING).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    read.is_ok()
        && ["\"repo\"", "\"repo_name\"", "\"responses_create_params\""]
            .iter()
            .any(|column| text.contains(column))
}

/// Whether task folders lie in a folder, looking no further than at the first names.
fn holds_tasks(folder: &Path) -> bool {
    const LOOKED_AT: usize = 16;
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut below = entries.flatten().filter(|entry| entry.path().is_dir()).take(LOOKED_AT);
    below.any(|entry| FolderFormat::of(&entry.path()).is_some())
}

fn read_overlay(toml: &Path, folder: &Path) -> Result<Overlay, SuiteError> {
    let fail = |source| SuiteError::Io { path: toml.to_owned(), source };
    let refuse = |detail: String| SuiteError::Task {
        path: toml.to_owned(),
        place: "its table".to_owned(),
        detail,
    };
    let bytes = std::fs::metadata(toml).map_err(fail)?.len();
    if bytes > MAX_TOML_BYTES {
        return Err(refuse(format!("it has {bytes} bytes, at most {MAX_TOML_BYTES} are read")));
    }
    let text = std::fs::read_to_string(toml).map_err(fail)?;
    let mut overlay: Overlay = toml::from_str(&text).map_err(|source| SuiteError::Manifest {
        path: toml.to_owned(),
        source: Box::new(source),
    })?;
    if let Some(problem) = overlay.splits.and_then(Shares::problem) {
        return Err(refuse(problem));
    }
    let folder = folder.canonicalize().map_err(fail)?;
    overlay.tasks = folder.join(&overlay.tasks);
    if let Some(repository) = &mut overlay.repository {
        *repository = folder.join(&*repository).to_string_lossy().into_owned();
    }
    if let Some(taken) = ["instance", "image", "repository"]
        .into_iter()
        .find(|name| overlay.options.contains_key(*name))
    {
        return Err(refuse(format!("`options.{taken}` stands elsewhere")));
    }
    // Unknown options and wrong values are told now, not by the first task.
    let probe = with_options(&SweTask::new(Instance::default()), &overlay.options);
    probe.map_err(|error| refuse(format!("`options`: {error}")))?;
    Ok(overlay)
}

/// The parameters of a task with these options.
fn with_options(
    task: &SweTask,
    options: &serde_json::Map<String, serde_json::Value>,
) -> Result<serde_json::Value, serde_json::Error> {
    let mut parameters = serde_json::to_value(task)?;
    if let Some(table) = parameters.as_object_mut() {
        table.extend(options.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    SweTask::deserialize(&parameters)?;
    Ok(parameters)
}

impl Suite for SweSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "Issues of repositories, judged by hidden tests."
    }

    fn is_for_evaluation(&self) -> bool {
        self.overlay.evaluation_only
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let instance = self.instance(split, index);
        let parameters = with_options(&self.played(instance), &self.overlay.options);
        let parameters = parameters.map_err(|error| SuiteError::Task {
            path: self.overlay.tasks.clone(),
            place: format!("`{}`", instance.id),
            detail: error.to_string(),
        })?;
        let mut tags = vec![instance.format.clone()];
        tags.extend(instance.repo.clone());
        tags.extend(instance.language.clone());
        tags.extend(instance.difficulty.clone());
        if !instance.unsupported.is_empty() {
            tags.push("unsupported".to_owned());
        }
        Ok(Task {
            id: format!("{}/{split}/{}", self.manifest.name, instance.id),
            environment: ENVIRONMENT.to_owned(),
            parameters,
            instruction: INSTRUCTION.to_owned(),
            max_turns: self.overlay.max_turns.unwrap_or(MAX_TURNS),
            tags,
            graders: Vec::new(),
        })
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        task_by_key(self, &self.manifest.name, id, |split, key| {
            self.by_id.get(key).filter(|(its, _)| *its == split).map(|(_, place)| *place)
        })
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        self.instance(split, index).repo.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// A row of SWE-bench's version 5.
    pub(crate) fn row(id: &str) -> String {
        serde_json::json!({
            "repo": "a/b", "instance_id": id, "base_commit": "0123456789abcdef0123456789abcdef01234567",
            "patch": "", "test_patch": "", "problem_statement": "It fails.", "version": "1",
            "FAIL_TO_PASS": "[\"t\"]", "PASS_TO_PASS": "[]", "environment_setup_commit": "0123456789abcdef",
            "eval_script": "true\n", "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail", "image": "x/y:z",
        })
        .to_string()
            + "\n"
    }

    #[test]
    fn rows_become_tasks_by_their_ids() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        fs::write(&path, row("a__b-1") + &row("a__b-2")).unwrap();
        assert!(SweSuite::is_at(&path));
        let suite = SweSuite::open(&path).unwrap();
        let task = suite.task("test", 1).unwrap();
        assert_eq!((&*task.id, &*task.environment), ("rows/test/a__b-2", "swe"));
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        let read = SweTask::deserialize(&task.parameters).unwrap();
        assert_eq!((&*read.instance.id, read.guarded), ("a__b-2", true));
        fs::write(&path, row("a__b-1") + &row("a__b-1")).unwrap();
        assert!(SweSuite::open(&path).is_err());
    }

    #[test]
    fn a_swe_toml_says_how_they_are_played() {
        let folder = tempfile::tempdir().unwrap();
        let toml = folder.path().join("swe.toml");
        fs::write(folder.path().join("rows.jsonl"), row("a__b-1")).unwrap();
        fs::write(
            &toml,
            "tasks = 'rows.jsonl'\nname = 'mine'\nimage = 'img-{id}'\nrepository = '{owner}/{name}'\n\
             max_turns = 7\n[options]\ncommand_secs = 5\n",
        )
        .unwrap();
        assert!(SweSuite::is_at(folder.path()));
        let suite = SweSuite::open(folder.path()).unwrap();
        let task = suite.task("test", 0).unwrap();
        let read = SweTask::deserialize(&task.parameters).unwrap();
        assert_eq!((&*task.id, task.max_turns, read.command_secs), ("mine/test/a__b-1", 7, 5));
        assert_eq!(read.image.as_deref(), Some("img-a__b-1"));
        assert!(read.repository.unwrap().ends_with("a/b"));
        fs::write(&toml, "tasks = 'rows.jsonl'\n[options]\ncomand_secs = 5\n").unwrap();
        let told = SweSuite::open(folder.path()).unwrap_err().to_string();
        assert!(told.contains("comand_secs"), "{told}");
    }

    #[test]
    fn what_is_held_out_follows_from_ids_alone() {
        let folder = tempfile::tempdir().unwrap();
        let put = |count: usize, shares: &str| {
            let rows: String = (0..count).map(|number| row(&format!("a__b-{number}"))).collect();
            fs::write(folder.path().join("rows.jsonl"), rows).unwrap();
            let toml = format!("tasks = 'rows.jsonl'\nname = 'mine'\nsplits = {shares}\n");
            fs::write(folder.path().join("swe.toml"), toml).unwrap();
            SweSuite::open(folder.path())
        };
        let shares = "{ dev = 0.1, test = 0.2 }";
        let suite = put(300, shares).unwrap();
        let splits = &suite.manifest().splits;
        let lens: Vec<usize> = splits.iter().map(|(_, len)| *len).collect();
        assert_eq!(lens.iter().sum::<usize>(), 300);
        assert!((180..240).contains(&lens[0]) && lens[1] < 50 && lens[2] > 40, "{lens:?}");
        let fewer = put(150, shares).unwrap();
        for (split, len) in &fewer.manifest().splits {
            for index in 0..*len {
                let task = fewer.task(split, index).unwrap();
                assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
                assert!(task.id.starts_with(&format!("mine/{split}/")), "{}", task.id);
            }
        }
        for (shares, part) in [
            ("{ dev = 0.5, test = 0.5 }", "less than 1 together"),
            ("{ dev = nan, test = 0.5 }", "above 0"),
            ("{ dev = 0.1 }", "missing field `test`"),
            ("{ dev = 1e-9, test = 0.2 }", "falls to `dev`"),
        ] {
            let error = put(150, shares).unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let told = format!("{error}: {}", source.unwrap_or_default());
            assert!(told.contains(part), "{told}");
        }
    }
}
