//! Which tasks a command means.

use std::path::{Path, PathBuf};

use anyhow::Context;
use spar::envs::wrappers::WrappedSuite;
use spar::recipe::{DataConfig, Recipe, recipe_names};
use spar::tasks::{Suite, SuiteOptions, WrapperConfig};

use crate::cli::TaskArguments;

/// What tasks are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To play as in training.
    Training,
    /// To play as in evaluation.
    Evaluation,
}

/// Opens a suite by name or folder.
pub(crate) fn open_suite(name: &str, data: Option<&Path>) -> anyhow::Result<Box<dyn Suite>> {
    let data = data.map(Path::to_owned);
    Ok(spar::tasks::open_suite(name, &SuiteOptions { data })?)
}

/// Opens a suite by name or folder, with wrappers around the environments of its tasks.
pub(crate) fn open_wrapped_suite(
    name: &str,
    data: Option<&Path>,
    wrappers: &[WrapperConfig],
) -> anyhow::Result<Box<dyn Suite>> {
    let suite = open_suite(name, data)?;
    WrappedSuite::wrap(suite, wrappers.to_vec())
        .with_context(|| format!("put wrappers around the tasks of `{name}`"))
}

/// The suite that a player is to play, and the splits of it.
pub(crate) fn open_tasks(
    arguments: &TaskArguments,
    recipe: Option<&Recipe>,
    purpose: Purpose,
) -> anyhow::Result<(Box<dyn Suite>, Vec<String>)> {
    let data = recipe.map(|recipe| &recipe.data);
    let mixed = data.filter(|data| arguments.suite.is_none() && !data.suites.is_empty());
    if let Some(data) = mixed {
        return open_mixture(arguments, data, purpose);
    }
    let name = arguments.suite.as_deref().or(data.map(|data| data.suite.as_str()));
    let folder = arguments.data.as_deref().or(data.and_then(|data| data.folder.as_deref()));
    // Those of the run are for its own tasks.
    let of_run = data.filter(|_| arguments.suite.is_none()).map(|data| &data.wrappers[..]);
    let wrappers = match &arguments.wrapping.wrap[..] {
        [] => of_run.unwrap_or_default(),
        typed => typed,
    };
    let suite = open_wrapped_suite(name.unwrap_or("household"), folder, wrappers)?;
    let splits = match &*arguments.split {
        [] => default_splits(suite.as_ref(), recipe, purpose)?,
        named => named.to_vec(),
    };
    Ok((suite, splits))
}

/// The mixture of a recipe, and the splits of it.
fn open_mixture(
    arguments: &TaskArguments,
    data: &DataConfig,
    purpose: Purpose,
) -> anyhow::Result<(Box<dyn Suite>, Vec<String>)> {
    let mut data = data.clone();
    for mixed in data.suites.iter_mut().filter(|mixed| mixed.folder.is_some()) {
        mixed.folder = arguments.data.clone().or(mixed.folder.take());
    }
    if !arguments.wrapping.wrap.is_empty() {
        data.wrappers.clone_from(&arguments.wrapping.wrap);
    }
    let suite = data.open().map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("open the suites of the run:\n{}", problems.join("\n"))
    })?;
    let splits = match (&*arguments.split, purpose) {
        ([], Purpose::Training) => vec![data.train.clone()],
        ([], Purpose::Evaluation) if data.test.is_empty() => vec![data.dev.clone()],
        ([], Purpose::Evaluation) => data.test.clone(),
        (named, _) => named.to_vec(),
    };
    Ok((suite.suite, splits))
}

/// The splits that are meant when none is named: those of `recipe`, where it is about this suite,
/// else those of the recipe that ships for it, else the one called `train` or `test`.
pub(crate) fn default_splits(
    suite: &dyn Suite,
    recipe: Option<&Recipe>,
    purpose: Purpose,
) -> anyhow::Result<Vec<String>> {
    let name = suite.manifest().name.as_str();
    let shipped = || {
        let text = recipe_names().find(|recipe| *recipe == name).map(Recipe::text)?.ok()?;
        let recipe = Recipe::parse(name, &text, &[]).ok()?;
        // A file of the user's may have the name of a suite that ships.
        let has = |split: &String| suite.manifest().splits.iter().any(|(known, _)| known == split);
        let data = &recipe.data;
        (has(&data.train) || has(&data.dev) || data.test.iter().any(has)).then_some(recipe)
    };
    let recipe = recipe.filter(|recipe| recipe.data.suite == name).cloned().or_else(shipped);
    let splits = match (&recipe, purpose) {
        (Some(recipe), Purpose::Training) => vec![recipe.data.train.clone()],
        (Some(recipe), Purpose::Evaluation) if recipe.data.test.is_empty() => {
            vec![recipe.data.dev.clone()]
        }
        (Some(recipe), Purpose::Evaluation) => recipe.data.test.clone(),
        (None, Purpose::Training) => vec!["train".to_owned()],
        (None, Purpose::Evaluation) => vec!["test".to_owned()],
    };
    match &*suite.manifest().splits {
        // What else could be meant.
        [(only, _)] if recipe.is_none() => Ok(vec![only.clone()]),
        _ => {
            splits.iter().try_for_each(|split| suite.len(split).map(drop))?;
            Ok(splits)
        }
    }
}

/// A folder for trajectories, which must not hold any.
pub(crate) fn new_store(folder: &Path) -> anyhow::Result<spar::agent::JsonlStore> {
    let is_shard =
        |path: PathBuf| path.to_string_lossy().ends_with(".jsonl.zst") || path.ends_with("failed");
    let holds_some = std::fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| is_shard(e.path()))));
    anyhow::ensure!(
        !holds_some,
        "keep trajectories in `{}`: it holds some already, name another folder",
        folder.display()
    );
    spar::agent::JsonlStore::open(folder, spar::agent::StoreConfig::default())
        .with_context(|| format!("keep trajectories in `{}`", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_named_like_a_suite_has_its_own_splits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("apps.jsonl");
        let line =
            r#"{"question": "a", "input_output": "{\"inputs\": [\"1\"], \"outputs\": [\"2\"]}"}"#;
        std::fs::write(&path, line).unwrap();
        let suite = open_suite(path.to_str().unwrap(), None).unwrap();
        for purpose in [Purpose::Training, Purpose::Evaluation] {
            assert_eq!(default_splits(suite.as_ref(), None, purpose).unwrap(), ["test"]);
        }
        let shipped = open_suite("apps", None).unwrap();
        let splits = default_splits(shipped.as_ref(), None, Purpose::Evaluation).unwrap();
        assert_ne!(splits, ["test"], "as its recipe has them");
    }
}
