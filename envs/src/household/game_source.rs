//! Where a household game comes from, and the games that were made lately.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Deserialize;
use spar_core::Seed;

use super::generator::{
    self, GameOptions, RoomSize, SceneSet, game_file, game_file_under, generate, grammar_with_task,
    shuffle_problem,
};
use super::pddl::Problem;
use super::{Game, GameFile, HouseholdError, TaskFamily};

/// Where a household game comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GameSource {
    /// A game file as it is.
    File { path: PathBuf },
    /// The room of a game file with its objects laid elsewhere and another goal.
    Shuffled { path: PathBuf, shuffle: u64, family: Option<TaskFamily> },
    /// A room and a task from a seed, under the rules and in the words of a game file where there is one.
    Generated { options: GameOptions, seed: u64, rules: Option<PathBuf> },
}

/// A task's parameters as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    game: Option<PathBuf>,
    shuffle: Option<u64>,
    scenes: Option<SceneSet>,
    seed: Option<u64>,
    size: Option<RoomSize>,
    rules: Option<PathBuf>,
    family: Option<String>,
}

/// Games that several rollouts are likely to ask for.
const MAX_GAMES: usize = 1_024;
/// Game files whose rooms are shuffled.
const MAX_FILES: usize = 512;

static GAMES: LazyLock<Recent<GameSource, Game>> = LazyLock::new(|| Recent::new(MAX_GAMES));
static FILES: LazyLock<Recent<PathBuf, GameFile>> = LazyLock::new(|| Recent::new(MAX_FILES));

impl GameSource {
    /// Reads a task's parameters; the error is a sentence on what is wrong with them.
    pub(super) fn from_parameters(parameters: &serde_json::Value) -> Result<Self, String> {
        let read = Parameters::deserialize(parameters).map_err(|error| error.to_string())?;
        let family = read.family.as_deref().map(family_named).transpose()?;
        match (read.game, read.scenes) {
            (Some(path), None) => {
                if read.seed.is_some() || read.size.is_some() || read.rules.is_some() {
                    return Err("`seed`, `size` and `rules` belong to `scenes`, not to `game`"
                        .to_owned());
                }
                match read.shuffle {
                    Some(shuffle) => Ok(Self::Shuffled { path, shuffle, family }),
                    None if family.is_some() => {
                        Err("`family` belongs to `scenes` or `shuffle`; this game has its own"
                            .to_owned())
                    }
                    None => Ok(Self::File { path }),
                }
            }
            (None, Some(scenes)) => {
                if read.shuffle.is_some() {
                    return Err("`shuffle` belongs to `game`, not to `scenes`".to_owned());
                }
                let seed = read.seed.ok_or("`scenes` needs a `seed`")?;
                let options = GameOptions { scenes, size: read.size.unwrap_or_default(), family };
                Ok(Self::Generated { options, seed, rules: read.rules })
            }
            _ => {
                Err("exactly one of `game` (a path) and `scenes` (`train`, `dev` or `unseen`) is \
                      needed; with `game` goes `shuffle`, with `scenes` go `seed`, `size` and `rules`, \
                      with `shuffle` or `scenes` goes `family`"
                    .to_owned())
            }
        }
    }

    /// The family of a generated game before it is made, which is nearly always the one it has.
    pub(super) fn likely_family(&self) -> Option<TaskFamily> {
        let Self::Generated { options, seed, .. } = self else { return None };
        Some(generator::likely_family(options, Seed::from_u64(*seed)))
    }

    /// The game; made once for all who ask for it at about the same time.
    pub(super) fn open(&self) -> Result<Arc<Game>, OpenError> {
        GAMES.get_or_make(self, || match self {
            Self::File { path } => Ok(Game::load(path)?),
            Self::Shuffled { path, shuffle, family } => {
                let file = FILES.get_or_make(path, || read_file(path).map(Arc::new))?;
                shuffled(path, &file, *shuffle, *family)
            }
            Self::Generated { options, seed, rules } => {
                let game = generate(options, Seed::from_u64(*seed))?;
                let name = format!("{}#{seed}", game.problem.name);
                let Some(path) = rules else {
                    return Ok(Game::from_parts(&name, &game_file(&game))?);
                };
                let rules = FILES.get_or_make(path, || read_file(path).map(Arc::new))?;
                // What cannot be read then is the fault of that file.
                let name = format!("{name} under the rules of {}", path.display());
                Ok(Game::from_parts(&name, &game_file_under(&rules, game))?)
            }
        })
    }
}

/// Why a game could not be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The file is at fault.
    Game(HouseholdError),
    /// The room of the file does not allow what was asked for.
    NoGoal,
}

impl From<HouseholdError> for OpenError {
    fn from(error: HouseholdError) -> Self {
        Self::Game(error)
    }
}

fn family_named(name: &str) -> Result<TaskFamily, String> {
    TaskFamily::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
        let known = TaskFamily::ALL.map(|family| format!("`{family}`")).join(", ");
        format!("`family` is `{name}`, allowed are {known}")
    })
}

fn read_file(path: &Path) -> Result<GameFile, OpenError> {
    let bytes = std::fs::read(path)
        .map_err(|source| HouseholdError::Read { path: path.to_owned(), source })?;
    let game = || path.display().to_string();
    Ok(serde_json::from_slice(&bytes)
        .map_err(|source| HouseholdError::Json { game: game(), source })?)
}

fn shuffled(
    path: &Path,
    file: &GameFile,
    shuffle: u64,
    family: Option<TaskFamily>,
) -> Result<Arc<Game>, OpenError> {
    let problem = Problem::parse(&file.pddl_problem)?;
    // Different rooms draw differently from equal numbers.
    let seed = Seed::from_u64(shuffle).derive("problem", &problem.name);
    let game = shuffle_problem(&problem, family, seed).ok_or(OpenError::NoGoal)?;
    let grammar = grammar_with_task(&file.grammar, &game.task);
    let file = GameFile {
        pddl_domain: file.pddl_domain.clone(),
        grammar: Cow::into_owned(grammar),
        pddl_problem: game.problem.to_string(),
        solvable: Some(true),
        walkthrough: None,
    };
    Ok(Game::from_parts(&format!("{}#{shuffle}", path.display()), &file)?)
}

/// Values that were made lately; the oldest go first.
struct Recent<K, V> {
    max: usize,
    kept: Mutex<Kept<K, V>>,
}

struct Kept<K, V> {
    values: HashMap<K, Arc<V>>,
    /// Keys from the oldest on.
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    fn new(max: usize) -> Self {
        let kept = Kept { values: HashMap::new(), order: VecDeque::new() };
        Self { max, kept: Mutex::new(kept) }
    }

    fn get_or_make<E>(
        &self,
        key: &K,
        make: impl FnOnce() -> Result<Arc<V>, E>,
    ) -> Result<Arc<V>, E> {
        // Nothing panics while it is held, and a map is whole between two calls anyway.
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = lock().values.get(key) {
            return Ok(Arc::clone(value));
        }
        // Made without the lock, so that others can go on; two may make the same one.
        let value = make()?;
        let mut kept = lock();
        if kept.values.insert(key.clone(), Arc::clone(&value)).is_none() {
            kept.order.push_back(key.clone());
        }
        while kept.order.len() > self.max {
            if let Some(oldest) = kept.order.pop_front() {
                kept.values.remove(&oldest);
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(parameters: serde_json::Value) -> String {
        GameSource::from_parameters(&parameters).unwrap_err()
    }

    #[test]
    fn parameters_are_strict() {
        let detail = refusal(json!({ "scenes": "train", "seed": 1, "sise": 3 }));
        assert!(detail.contains("`sise`") && detail.contains("`size`"), "{detail}");
        assert!(refusal(json!({ "scenes": "test", "seed": 1 })).contains("`unseen`"));
        assert!(refusal(json!({ "scenes": "train" })).contains("`seed`"));
        assert!(refusal(json!({ "scenes": "train", "seed": 1, "size": 1 })).contains("`small`"));
        assert!(refusal(json!({ "game": "a", "scenes": "train" })).contains("exactly one"));
        assert!(refusal(json!({ "game": "a", "seed": 1 })).contains("`scenes`"));
        assert!(refusal(json!({})).contains("exactly one"));
        let family = refusal(json!({ "scenes": "train", "seed": 1, "family": "cook" }));
        assert!(family.contains("`look_at_obj_in_light`"), "{family}");
    }

    #[test]
    fn a_game_is_made_once() {
        let source = json!({ "scenes": "dev", "seed": 5, "size": "small" });
        let source = GameSource::from_parameters(&source).unwrap();
        assert!(Arc::ptr_eq(&source.open().unwrap(), &source.open().unwrap()));
    }
}
