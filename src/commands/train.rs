//! `spar train` and `spar resume`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use spar::agent::Cancellation;
use spar::policy::hub::{self, ModelName};
use spar::policy::{ModelConfig, checkpoint};
use spar::recipe::Recipe;
use spar::trainer::RunFolder;
use spar::training::stages::{last_trainer, outline};
use spar::training::{Footprint, Outcome, StartOptions, Summary, Training, check_data};

use super::environments::warn_of_leftovers;
use super::{cancel_on_ctrl_c, print, print_json, stopped, stopped_at_limit, threads};
use crate::cli::{ResumeArguments, TrainArguments};
use crate::progress::Progress;

/// Starts a run.
pub(crate) async fn train(arguments: &TrainArguments) -> anyhow::Result<ExitCode> {
    let recipe = resolve(arguments)?;
    recipe.validate()?;
    if arguments.dry_run {
        check_data(&recipe)?;
        print(&size(&recipe)?)?;
        print(&plan(&recipe)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = StartOptions {
        root: arguments.runs.clone(),
        name: arguments.name.clone(),
        command: std::env::args().collect(),
        threads: threads(arguments.threads),
    };
    let cancellation = cancel_on_ctrl_c();
    let progress = Progress::new();
    let started = Training::start(recipe, &options, &cancellation, &progress).await;
    if started.is_err() && cancellation.is_cancelled() {
        progress.finish();
        eprintln!("stopped before the run began, nothing was left behind");
        return Ok(stopped());
    }
    finish(started?, &cancellation, &progress, arguments.json).await
}

/// Goes on with a run.
pub(crate) async fn resume(arguments: &ResumeArguments) -> anyhow::Result<ExitCode> {
    let path = match &arguments.run {
        Some(run) => named_run(run, &arguments.runs),
        None => newest_run(&arguments.runs)?,
    };
    let cancellation = cancel_on_ctrl_c();
    let progress = Progress::new();
    let training = Training::resume(
        &path,
        threads(arguments.threads),
        &arguments.spend.config(),
        &cancellation,
        &progress,
    )
    .await?;
    finish(training, &cancellation, &progress, arguments.json).await
}

/// Runs what is left and reports, however it ends.
async fn finish(
    mut training: Training,
    cancellation: &Cancellation,
    progress: &Progress,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let outcome = training.run(cancellation, progress).await;
    progress.finish();
    let (summary, spent) = (training.summary(), training.spent());
    warn_of_leftovers(training.close().await);
    let outcome = outcome?;
    report(&summary?, json)?;
    if !spent.total.is_empty() && !json {
        print(&format!("{spent}\n"))?;
    }
    if let Some(reached) = &spent.stopped_at {
        eprintln!("{reached}; `spar resume` with a higher one goes on");
    }
    Ok(match outcome {
        Outcome::Finished => ExitCode::SUCCESS,
        Outcome::Stopped => stopped(),
        Outcome::StoppedAtLimit => stopped_at_limit(),
    })
}

/// The recipe with what was typed over it.
pub(super) fn resolve(arguments: &TrainArguments) -> anyhow::Result<Recipe> {
    let name = match arguments.suite.as_deref() {
        Some(suite) if arguments.recipe == "household" => {
            let own = spar::recipe::recipe_names().find(|name| *name == suite).map(str::to_owned);
            own.or_else(|| recipe_in(suite)).unwrap_or_else(|| arguments.recipe.clone())
        }
        _ => arguments.recipe.clone(),
    };
    let mut recipe = Recipe::parse(&name, &Recipe::text(&name)?, &arguments.set)?;
    if let Some(suite) = &arguments.suite {
        recipe.data.suite.clone_from(suite);
        recipe.data.suites.clear();
    }
    if let Some(seed) = arguments.seed {
        recipe.seed = seed;
    }
    if let Some(model) = &arguments.start_from {
        recipe.start_from = Some(model.clone());
    }
    let needs_data = |name: &str| {
        spar::tasks::suite_registry().iter().any(|entry| entry.name == name && entry.needs_data)
    };
    let of_stages = recipe.stages.iter_mut().filter_map(|stage| stage.data.as_mut());
    for data in std::iter::once(&mut recipe.data).chain(of_stages) {
        if data.suites.is_empty() && needs_data(&data.suite) && data.folder.is_none() {
            data.folder.clone_from(&arguments.data);
        }
        for mixed in &mut data.suites {
            if needs_data(&mixed.suite) && mixed.folder.is_none() {
                mixed.folder.clone_from(&arguments.data);
            }
        }
    }
    Ok(recipe)
}

/// The path of the recipe that lies in the folder of a suite; absent where none does.
fn recipe_in(suite: &str) -> Option<String> {
    let path = Path::new(suite).join("recipe.toml");
    path.is_file().then(|| path.to_str().map(str::to_owned)).flatten()
}

/// The recipe, and its stages with their budgets.
fn plan(recipe: &Recipe) -> anyhow::Result<String> {
    let stages = outline(recipe)?;
    let width = stages.iter().map(|stage| stage.name.len()).max().unwrap_or_default();
    let mut text = recipe.to_toml() + "\n# stages\n";
    for (number, stage) in (1..).zip(&stages) {
        let again = match &stage.re_evaluate[..] {
            [] => String::new(),
            names => format!("; then the dev splits of {} again", names.join(", ")),
        };
        let (name, kind, budget) = (&stage.name, &stage.kind, &stage.budget);
        let learner = match recipe.learners.is_empty() {
            true => String::new(),
            false => format!("; learner {}", stage.learner),
        };
        text += &format!("#   {number}. {name:width$}  {kind:<9}  {budget}{learner}{again}\n");
    }
    let config = &recipe.evaluation;
    text += &format!(
        "# reinforcement learning is evaluated every {} iterations, on {} tasks x {} of its dev split\n",
        config.every, config.dev_tasks, config.dev_attempts
    );
    Ok(text)
}

/// What would be trained, and what all of it would take; the hub is not asked.
fn size(recipe: &Recipe) -> anyhow::Result<String> {
    let model = match &recipe.start_from {
        None => ModelConfig { vocab_size: recipe.tokenizer.vocab_size, ..recipe.model.clone() },
        Some(path) => {
            let cached = || hub::cached(path.to_str().unwrap_or_default());
            let folder = if path.exists() { Some(path.clone()) } else { cached() };
            let Some(folder) = folder else {
                let is_name = path.to_str().is_some_and(|text| text.parse::<ModelName>().is_ok());
                ensure!(
                    is_name,
                    "find the model `{}` to start from: there is no such folder or file, and no model on the hub has such a name",
                    path.display()
                );
                return Ok(format!("# `{}` is not here yet, nor in the cache\n", path.display()));
            };
            checkpoint::load_config(&folder)
                .with_context(|| format!("start from checkpoint `{}`", path.display()))?
        }
    };
    let trainer = last_trainer(recipe)?;
    let of = |lora| Footprint::new(&model, lora, &trainer);
    let adapters = recipe.adapters();
    if adapters.is_empty() {
        return Ok(format!("# {}\n", of(None)));
    }
    let mut text = String::new();
    for (learner, lora) in &adapters {
        let label =
            if recipe.learners.is_empty() { String::new() } else { format!("learner {learner}: ") };
        text += &format!("# {label}{}\n", of(Some(lora)));
    }
    let table = if recipe.learners.is_empty() { "[lora]" } else { "[learners]" };
    Ok(text + &format!("# without {table}: {}\n", of(None)))
}

fn report(summary: &Summary, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(summary)?;
        summary.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    } else {
        print(&summary.to_string())?;
    }
    Ok(())
}

/// There is no run where one was looked for.
#[derive(Debug, thiserror::Error)]
#[error("find a run in `{}`: there is none", root.display())]
pub(crate) struct NoRun {
    root: PathBuf,
}

/// The folder that holds runs where none is named.
pub(crate) const RUNS: &str = "runs";

/// The folder of the run that was named by its path, or by its name in the folder that holds runs; what is neither
/// stays as it is.
pub(crate) fn named_run(run: &Path, root: &Path) -> PathBuf {
    let in_root = root.join(run);
    let is_name = run.components().count() == 1 && !run.exists();
    if is_name && RunFolder::open(&in_root).is_ok() { in_root } else { run.to_owned() }
}

/// The run whose metrics were written last.
pub(crate) fn newest_run(root: &Path) -> anyhow::Result<PathBuf> {
    let none = || NoRun { root: root.to_owned() };
    if !root.exists() {
        return Err(none().into());
    }
    let entries =
        std::fs::read_dir(root).with_context(|| format!("list runs in `{}`", root.display()))?;
    let written = |path: &PathBuf| path.join("metrics.jsonl").metadata()?.modified();
    let newest = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((written(&path).ok()?, path)))
        .max();
    Ok(newest.map(|(_, path)| path).ok_or_else(none)?)
}

#[cfg(test)]
mod tests {
    use spar::trainer::Manifest;

    use super::*;

    #[test]
    fn a_run_is_named_by_path_or_by_name() {
        let root = tempfile::tempdir().unwrap();
        let manifest = Manifest { name: "lake-1".to_owned(), ..Manifest::default() };
        let (run, _lock) = RunFolder::create(root.path(), &manifest, "").unwrap();
        let named = |name: &str| named_run(Path::new(name), root.path());
        assert_eq!(named("lake-1"), run.path());
        assert_eq!(named_run(run.path(), Path::new("elsewhere")), run.path());
        // Names on the hub, and what is not there, are left to whoever reads them.
        for other in ["lake-2", "organisation/lake-1", "src"] {
            assert_eq!(named(other), Path::new(other));
        }
    }
}
