//! The suite of an ALFWorld download.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Suite, SuiteError, SuiteManifest, Task};

const GAME_FILE: &str = "game.tw-pddl";
/// What a download calls the folder of its splits.
const DOWNLOAD: &str = "json_2.1.1";
const INSTRUCTION: &str = "You are in a house. Solve the task that the first message names. \
                           Answer every message with one command.";

/// Times that a game's scene is furnished anew in the split `<split>_shuffled`.
const SHUFFLES_PER_GAME: usize = 1_000;
/// Tasks of a split `<split>_generated`.
const GENERATED: usize = 1_000_000;

/// The games below a folder laid out as ALFWorld's own download: `split/problem/trial/game.tw-pddl`.
///
/// Every folder of the first level is a split. Beside each stands `<split>_shuffled`: the same
/// scenes with objects and goals placed anew, [`Task::parameters`]`["shuffle"]` being the seed.
/// There, index `i` belongs to game `i % games`. Beside splits with `train` in their name stands `<split>_generated`:
/// the generator's rooms for training under the rules and in the words of the split's first game,
/// [`Task::parameters`]`["seed"]` being the index. A game's
/// stratum is the family of its task, one of a shuffled split is that of its scene.
#[derive(Debug)]
pub struct GameFolderSuite {
    games: BTreeMap<String, Vec<PathBuf>>,
    root: PathBuf,
    manifest: SuiteManifest,
}

impl GameFolderSuite {
    /// Whether there is a game below `root`, as [`GameFolderSuite::open`] looks for them; no game is read.
    pub(crate) fn is_at(root: &Path) -> bool {
        let download = root.join(DOWNLOAD);
        let root = if download.is_dir() { &download } else { root };
        // Three levels down and no further: the path may be any folder of the user's.
        let below = |folders: Vec<PathBuf>| {
            folders.into_iter().flat_map(|folder| subfolders(&folder).unwrap_or_default())
        };
        let splits = subfolders(root).unwrap_or_default();
        below(below(splits).collect()).any(|trial| trial.join(GAME_FILE).is_file())
    }

    /// Finds the games below `root`; their contents are read when a task is played.
    ///
    /// `root` may also be the folder that `alfworld-download` fills, which has them one level
    /// further down.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when the folder cannot be read or holds no game.
    pub fn open(root: &Path) -> Result<Self, SuiteError> {
        let download = root.join(DOWNLOAD);
        let root = if download.is_dir() { &download } else { root };
        let mut games: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for split in subfolders(root)? {
            let mut found = Vec::new();
            collect_games(&split, &mut found)?;
            found.sort();
            if !found.is_empty() {
                let name = split.file_name().unwrap_or_default().to_string_lossy().into_owned();
                games.insert(name, found);
            }
        }
        if games.is_empty() {
            let (path, what) = (root.to_owned(), "a `<split>/<problem>/<trial>/game.tw-pddl`");
            return Err(SuiteError::EmptyData { path, what });
        }
        let mut hasher = blake3::Hasher::new();
        let mut splits = Vec::new();
        for (split, paths) in &games {
            splits.push((split.clone(), paths.len()));
            splits.push((format!("{split}_shuffled"), paths.len() * SHUFFLES_PER_GAME));
            if is_for_training(split) {
                splits.push((format!("{split}_generated"), GENERATED));
            }
            for path in paths {
                let relative = path.strip_prefix(root).unwrap_or(path);
                let size = std::fs::metadata(path)
                    .map_err(|source| SuiteError::Io { path: path.clone(), source })?
                    .len();
                hasher.update(relative.to_string_lossy().as_bytes());
                hasher.update(&size.to_le_bytes());
            }
        }
        let manifest = SuiteManifest {
            name: "alfworld".to_owned(),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits,
        };
        Ok(Self { games, root: root.to_owned(), manifest })
    }
}

impl Suite for GameFolderSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "ALFWorld's household games, from the user's own download."
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        if let Some(rules) = self.rules_of_generated(split) {
            let parameters =
                serde_json::json!({ "scenes": "train", "seed": index, "rules": rules });
            return Ok(new_task(format!("alfworld/{split}/{index}"), parameters));
        }
        let (path, shuffle) = self.game(split, index);
        Ok(self.task_of(path, shuffle.map(|number| (split, number))))
    }

    /// The parts of a problem's name: `<family>-<object>-<receptacle..>-<scene>`.
    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        if self.rules_of_generated(split).is_some() {
            return None;
        }
        let (path, shuffle) = self.game(split, index);
        let problem = path.strip_prefix(&self.root).ok()?.iter().nth(1)?.to_str()?;
        let part = match shuffle {
            Some(_) => problem.rsplit_once('-').map_or(problem, |(_, scene)| scene),
            None => problem.split_once('-').map_or(problem, |(family, _)| family),
        };
        Some(part.to_owned())
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let find = || {
            let key = id.strip_prefix("alfworld/")?;
            if let Some((split, index)) = key.split_once('/')
                && self.rules_of_generated(split).is_some()
            {
                let index = index.parse().ok().filter(|index| *index < GENERATED)?;
                return self.make_task(split, index).ok().filter(|task| task.id == id);
            }
            let (key, shuffle) = match key.rsplit_once('#') {
                Some((key, number)) => {
                    let (split, key) = key.split_once('/')?;
                    (key, Some((split, number.parse().ok()?)))
                }
                None => (key, None),
            };
            let path = self.root.join(key).join(GAME_FILE);
            let base = key.split('/').next()?;
            self.games.get(base)?.binary_search(&path).ok()?;
            if shuffle.is_some_and(|(split, _)| split.strip_suffix("_shuffled") != Some(base)) {
                return None;
            }
            Some(self.task_of(&path, shuffle)).filter(|task| task.id == id)
        };
        let (suite, name) = (&self.manifest.name, id);
        find().ok_or_else(|| SuiteError::UnknownTask { suite: suite.clone(), id: name.to_owned() })
    }
}

impl GameFolderSuite {
    /// The game under whose rules the tasks of a generated split are played; absent for other splits.
    fn rules_of_generated(&self, split: &str) -> Option<&Path> {
        let base = split.strip_suffix("_generated").filter(|_| !self.games.contains_key(split))?;
        if !is_for_training(base) {
            return None;
        }
        self.games.get(base)?.first().map(PathBuf::as_path)
    }

    /// The game of a task, and in a shuffled split how often it was furnished anew before.
    fn game(&self, split: &str, index: usize) -> (&Path, Option<usize>) {
        let (base, is_shuffled) = match split.strip_suffix("_shuffled") {
            Some(base) if !self.games.contains_key(split) => (base, true),
            _ => (split, false),
        };
        let games = &self.games[base];
        (&games[index % games.len()], is_shuffled.then_some(index / games.len()))
    }

    /// The task of a game, or of its scene furnished anew in a split with a number.
    fn task_of(&self, path: &Path, shuffle: Option<(&str, usize)>) -> Task {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        let key = relative.parent().unwrap_or(relative).to_string_lossy().replace('\\', "/");
        let mut parameters = serde_json::json!({ "game": path });
        let id = match shuffle {
            Some((split, number)) => {
                parameters["shuffle"] = number.into();
                format!("alfworld/{split}/{key}#{number}")
            }
            None => format!("alfworld/{key}"),
        };
        new_task(id, parameters)
    }
}

/// Whether a split is there to be trained on: what is generated beside it would be no measure of anything.
fn is_for_training(split: &str) -> bool {
    split.contains("train")
}

fn new_task(id: String, parameters: serde_json::Value) -> Task {
    Task {
        id,
        environment: "household".to_owned(),
        parameters,
        instruction: INSTRUCTION.to_owned(),
        max_turns: 50,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let fail = |source| SuiteError::Io { path: folder.to_owned(), source };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

fn collect_games(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), SuiteError> {
    let game = folder.join(GAME_FILE);
    if game.is_file() {
        found.push(game);
    }
    for folder in subfolders(folder)? {
        collect_games(&folder, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_games_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("train/problem/trial")).unwrap();
        let error = GameFolderSuite::open(folder.path()).unwrap_err();
        assert!(matches!(error, SuiteError::EmptyData { .. }), "{error}");
    }

    #[test]
    fn strata_are_families_and_scenes() {
        let folder = tempfile::tempdir().unwrap();
        for problem in ["pick_two_obj_and_place-CD-None-Safe-308", "look_at-Mug-None-Lamp-3", "a"] {
            let trial = folder.path().join("train").join(problem).join("trial");
            std::fs::create_dir_all(&trial).unwrap();
            std::fs::write(trial.join(GAME_FILE), "{}").unwrap();
        }
        let suite = GameFolderSuite::open(folder.path()).unwrap();
        let strata = |split, count| -> Vec<_> {
            (0..count).map(|index| suite.stratum(split, index).unwrap()).collect()
        };
        assert_eq!(strata("train", 3), ["a", "look_at", "pick_two_obj_and_place"]);
        assert_eq!(strata("train_shuffled", 5), ["a", "3", "308", "a", "3"]);
    }

    #[test]
    fn shuffled_tasks_cover_all_games_first() {
        let folder = tempfile::tempdir().unwrap();
        for problem in ["a", "b"] {
            let trial = folder.path().join("train").join(problem).join("trial");
            std::fs::create_dir_all(&trial).unwrap();
            std::fs::write(trial.join(GAME_FILE), "{}").unwrap();
        }
        let suite = GameFolderSuite::open(folder.path()).unwrap();
        assert_eq!(suite.len("train").unwrap(), 2);
        let download = tempfile::tempdir().unwrap();
        std::fs::rename(folder.path(), download.path().join(DOWNLOAD)).unwrap();
        let suite = GameFolderSuite::open(download.path()).unwrap();
        assert_eq!(suite.task("train", 0).unwrap().id, "alfworld/train/a/trial");
        assert_eq!(suite.task("train", 1).unwrap().id, "alfworld/train/b/trial");
        assert_eq!(
            suite.task("train_shuffled", 3).unwrap().id,
            "alfworld/train_shuffled/train/b/trial#1"
        );
        for task in [suite.task("train", 1), suite.task("train_shuffled", 3)].map(Result::unwrap) {
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        }
        let generated = suite.task("train_generated", 17).unwrap();
        assert_eq!(generated.id, "alfworld/train_generated/17");
        assert_eq!(
            generated.parameters["rules"],
            suite.task("train", 0).unwrap().parameters["game"]
        );
        assert_eq!(generated.parameters["seed"], 17);
        assert_eq!(suite.task_by_id(&generated.id).unwrap(), generated);
        assert_eq!(suite.stratum("train_generated", 17), None);
        for id in [
            "alfworld/train/c/trial",
            "alfworld/x_shuffled/train/b/trial#1",
            "alfworld/x_generated/1",
            "alfworld/train_generated/1000000",
            "alfworld/train_generated/01",
            "b",
            "",
        ] {
            assert!(matches!(suite.task_by_id(id), Err(SuiteError::UnknownTask { .. })), "{id}");
        }
    }
}
