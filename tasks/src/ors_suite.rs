//! Suites whose tasks a server of the Open Reward Standard gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use spar_ors::{OrsError, OrsLimits, OrsServer};

use crate::graders::GraderConfig;
use crate::suite_file::check_graders;
use crate::{OrsSpec, Suite, SuiteError, SuiteManifest, Task};

const FILE: &str = "ors.toml";
/// Tasks of a split.
const MOST_TASKS: usize = 1 << 31;

/// Tasks that a server gives: the suite of a folder with an `ors.toml`.
///
/// ```toml
/// name = "gsm8k"
/// version = "1"
/// about = "School mathematics, by somebody's server."
/// max_turns = 8
///
/// [server]
/// url = "http://127.0.0.1:8080"
///
/// [splits.train]        # absent: the splits that the server has, by their names
/// split = "train"       # as the server calls it; absent: the same name
/// count = 5             # absent: the server is asked when the suite is opened
/// ```
#[derive(Debug)]
pub struct OrsSuite {
    file: OrsFile,
    manifest: SuiteManifest,
    /// The server's splits, by the suite's.
    splits: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrsFile {
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
    server: OrsSpec,
    #[serde(default)]
    splits: BTreeMap<String, OrsSplitFile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrsSplitFile {
    #[serde(default)]
    split: Option<String>,
    #[serde(default)]
    count: Option<usize>,
}

/// A split as it is known in the end.
struct KnownSplit {
    name: String,
    own: String,
    count: usize,
}

impl OrsSuite {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = "ors";

    /// Whether a folder has an `ors.toml`.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Opens the suite of a folder with an `ors.toml`. The server is asked for the splits and counts that the file does not
    /// name.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when the file cannot be read, something in it is wrong, or the server does not tell what it is asked.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
        let mut file: OrsFile = toml::from_str(&text).map_err(|source| SuiteError::Manifest {
            path: path.clone(),
            source: Box::new(source),
        })?;
        check_graders(&file.graders, &path)?;
        let problems = file.problems();
        if !problems.is_empty() {
            return Err(refused(&path, "its settings", problems.join("; ")));
        }
        let known = file.ask().map_err(|detail| refused(&path, "its `server`", detail))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        for KnownSplit { name, own, count } in &known {
            for part in [name.as_bytes(), own.as_bytes(), &(*count as u64).to_le_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
        }
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: known.iter().map(|split| (split.name.clone(), split.count)).collect(),
        };
        let splits = known.into_iter().map(|split| (split.name, split.own)).collect();
        file.splits.clear();
        Ok(Self { file, manifest, splits })
    }
}

fn refused(path: &Path, place: &str, detail: String) -> SuiteError {
    SuiteError::Task { path: PathBuf::from(path), place: place.to_owned(), detail }
}

impl OrsFile {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.server.problems();
        if self.name.is_empty() || self.name.contains('/') {
            problems.push("`name` is to be something without `/`".to_owned());
        }
        if self.max_turns == 0 {
            problems.push("max_turns is 0, must be at least 1".to_owned());
        }
        for (name, split) in &self.splits {
            if split.count.is_some_and(|count| count > MOST_TASKS) {
                problems.push(format!("split `{name}`: count must be at most {MOST_TASKS}"));
            }
        }
        problems
    }

    /// The splits with their sizes, for which the server is asked as far as the file does not tell.
    fn ask(&mut self) -> Result<Vec<KnownSplit>, String> {
        let told = |(name, split): (&String, &OrsSplitFile)| {
            let own = split.split.clone().unwrap_or_else(|| name.clone());
            Some(KnownSplit { name: name.clone(), own, count: split.count? })
        };
        let all_told: Option<Vec<_>> = self.splits.iter().map(told).collect();
        if let Some(known) = all_told.filter(|known| !known.is_empty()) {
            return Ok(known);
        }
        let server = OrsServer::new(&self.server.address()?, OrsLimits::default());
        let server = server.map_err(|error| error.to_string())?;
        let asked = self.ask_server(&server);
        // Whoever opens suites may be within a runtime already, in which nothing can be waited for.
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| error.to_string())?;
                runtime.block_on(asked).map_err(|error| error.to_string())
            });
            asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    async fn ask_server(&self, server: &OrsServer) -> Result<Vec<KnownSplit>, OrsError> {
        let environment = match &self.server.environment {
            Some(name) => name.clone(),
            None => server.environments().await?.swap_remove(0),
        };
        let mut splits = self.splits.clone();
        if splits.is_empty() {
            let own = server.splits(&environment).await?;
            let none = OrsSplitFile { split: None, count: None };
            splits = own.into_iter().map(|split| (split.name, none.clone())).collect();
        }
        let mut known = Vec::new();
        for (name, OrsSplitFile { split, count }) in splits {
            let own = split.unwrap_or_else(|| name.clone());
            let count = match count {
                Some(count) => count,
                None => server.num_tasks(&environment, &own).await?.min(MOST_TASKS),
            };
            known.push(KnownSplit { name, own, count });
        }
        Ok(known)
    }
}

impl Suite for OrsSuite {
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
        let OrsFile { name, instruction, max_turns, tags, graders, server, .. } = &self.file;
        Ok(Task {
            id: format!("{name}/{split}/{index}"),
            environment: Self::ENVIRONMENT.to_owned(),
            parameters: json!({ "server": server, "split": self.splits[split], "index": index }),
            instruction: instruction.clone(),
            max_turns: *max_turns,
            tags: tags.clone(),
            graders: graders.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use spar_ors::FakeServer;

    use super::*;

    fn opened(text: &str) -> Result<OrsSuite, SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        OrsSuite::open(folder.path())
    }

    const HEAD: &str = "name = 'sums'\nversion = '1'\nabout = 'Sums.'\nmax_turns = 4\n";

    #[tokio::test]
    async fn a_server_is_asked_for_what_the_file_does_not_tell() {
        let running = FakeServer::start(None).await.unwrap();
        let server = format!("[server]\nurl = '{}'\n", running.url());
        // As the command line does, within a runtime, whose threads the fake server needs as well.
        let open =
            async |text: String| tokio::task::spawn_blocking(move || opened(&text)).await.unwrap();
        let all = open(format!("{HEAD}{server}")).await.unwrap();
        let splits = [("test".to_owned(), 8), ("train".to_owned(), 8)];
        assert_eq!(all.manifest().splits, splits);
        let dev = "[splits.dev]\nsplit = 'test'\n[splits.train]\ncount = 3\n";
        let some = open(format!("{HEAD}{server}{dev}")).await.unwrap();
        let splits = [("dev".to_owned(), 8), ("train".to_owned(), 3)];
        assert_eq!(some.manifest().splits, splits);
        let task = some.task("dev", 2).unwrap();
        assert_eq!((&*task.id, &*task.environment), ("sums/dev/2", "ors"));
        assert_eq!(
            (&task.parameters["split"], &task.parameters["index"]),
            (&json!("test"), &json!(2))
        );
        assert_eq!(some.task_by_id("sums/dev/2").unwrap(), task);
        assert_ne!(all.manifest().content_hash, some.manifest().content_hash);
        let unknown = open(format!("{HEAD}{server}[splits.dev]\n")).await.unwrap_err();
        assert!(unknown.to_string().contains("Invalid split"), "{unknown}");
    }

    #[test]
    fn nobody_is_asked_where_the_file_tells_all_and_what_is_wrong_is_told() {
        let told = "[server]\nurl = 'http://127.0.0.1:9'\n[splits.test]\ncount = 2\n";
        assert_eq!(opened(&format!("{HEAD}{told}")).unwrap().len("test").unwrap(), 2);
        let wrong = opened(&format!("{HEAD}[server]\nurl = 'a'\n")).unwrap_err().to_string();
        assert!(wrong.contains("url is `a`"), "{wrong}");
        let unknown = opened(&format!("{HEAD}[server]\nurl = 'http://a'\nurll = 1\n"));
        assert!(matches!(unknown, Err(SuiteError::Manifest { .. })));
    }
}
