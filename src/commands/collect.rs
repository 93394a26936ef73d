//! `spar collect`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use serde::Serialize;
use spar::agent::policies::RandomPolicy;
use spar::agent::spend::Budget;
use spar::agent::strategies::Independent;
use spar::agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, JsonlStore, Noise, SharedPlayer,
    collect_groups,
};
use spar::core::{Policy, Seed};
use spar::envs::shuffled_tasks;
use spar::sandboxes::{OpenSandboxes, check_scaffold, first_tasks};
use spar::tasks::{
    DATASET_VERSION, Dataset, DatasetTier, Recording, RecordingFile, ScoreReferences, Suite, Task,
    Tier,
};
use spar::trainer::RunFolder;

use super::environments::{open_sandboxes, within};
use super::eval::{Meter, why_none};
use super::player::OpenPlayer;
use super::suites::{Purpose, default_splits, open_wrapped_suite};
use super::train::named_run;
use super::{cancel_on_ctrl_c, print, print_json, stopped};
use crate::cli::{CollectArguments, PlayerArguments};

/// Tasks whose episodes are kept together.
const CHUNK: usize = 16;

/// What was collected.
#[derive(Serialize)]
struct Report {
    folder: PathBuf,
    #[serde(flatten)]
    dataset: Dataset,
    references: Option<ScoreReferences>,
}

/// Who plays a tier.
struct TierPlayer {
    tier: Tier,
    /// In words.
    told: String,
    open: OpenPlayer,
    arguments: PlayerArguments,
    player: SharedPlayer,
    /// Whether tasks that nobody could play are left behind.
    skips_failed: bool,
}

/// A player as `spar rollout` takes it.
#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    player: PlayerArguments,
}

/// Has players of different quality play the same tasks, and keeps what they did as a dataset.
pub(crate) async fn collect(arguments: &CollectArguments) -> anyhow::Result<ExitCode> {
    arguments.secrets.config().keep()?;
    if let Some(problem) = arguments.problem() {
        bail!(problem);
    }
    let CollectArguments { tasks, episodes, .. } = *arguments;
    let wrappers = &arguments.wrapping.wrap;
    let suite = open_wrapped_suite(&arguments.suite, arguments.data.as_deref(), wrappers)?;
    let split = match &arguments.split {
        Some(split) => split.clone(),
        None => default_splits(suite.as_ref(), None, Purpose::Training)?.swap_remove(0),
    };
    suite.len(&split)?;
    let seed = Seed::from_u64(arguments.seed);
    let order = shuffled_tasks(suite.as_ref(), &split, seed.derive("tasks", &split))?;
    let drawn = order.sample(Some(tasks))?;
    ensure!(!drawn.is_empty(), "collect episodes of split `{split}`: it has no tasks");
    let mut dataset = begin(arguments, suite.as_ref(), &split, drawn.len())?;
    let cancellation = cancel_on_ctrl_c();
    for tier in arguments.tiers() {
        let is_whole = dataset.tiers.get(&tier).is_some_and(|it| it.tasks == dataset.tasks);
        if is_whole {
            continue;
        }
        if let (Tier::MediumReplay, Some(run)) = (tier, &arguments.replay) {
            import(arguments, suite.as_ref(), &mut dataset, run)?;
            continue;
        }
        let played = open_player(arguments, tier, suite.as_ref(), &split).await?;
        let first = first_tasks(suite.as_ref(), &split)?;
        let episode = played.open.episode(&played.arguments, Purpose::Training, &first);
        check_scaffold(suite.as_ref(), &split, &episode).await?;
        let sandboxes = open_sandboxes(
            &arguments.environment,
            played.open.recipe.as_ref(),
            None,
            suite.as_ref(),
            &split,
            &episode,
        )
        .await?;
        let config = CollectConfig { group_size: episodes, episode, ..CollectConfig::default() };
        config.validate()?;
        let whole = within(sandboxes, async |sandboxes| {
            let concurrency = played.open.concurrency(&played.arguments, sandboxes.concurrency());
            let config = CollectConfig { concurrency, ..config };
            let place = (&*arguments.out, &mut dataset);
            let with = (sandboxes, &config, &cancellation);
            play(&played, place, &drawn, with, seed.derive("collect", tier.name())).await
        })
        .await?;
        if !whole {
            eprintln!("the same command goes on from here");
            return Ok(stopped());
        }
    }
    let references = dataset.references();
    let report = Report { folder: arguments.out.clone(), references, dataset };
    match arguments.json {
        true => print_json(&report)?,
        false => print(&table(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The dataset in the folder, which has to be of the same tasks and settings, or a new one.
fn begin(
    arguments: &CollectArguments,
    suite: &dyn Suite,
    split: &str,
    tasks: usize,
) -> anyhow::Result<Dataset> {
    let folder = &arguments.out;
    let manifest = suite.manifest();
    let fresh = Dataset {
        version: DATASET_VERSION,
        suite: manifest.name.clone(),
        suite_hash: manifest.content_hash.clone(),
        split: split.to_owned(),
        seed: arguments.seed,
        tasks,
        episodes_per_task: arguments.episodes,
        settings: arguments.settings(),
        tiers: BTreeMap::new(),
    };
    if Dataset::is_at(folder) {
        let found = Dataset::read(folder)?;
        let other = Dataset { tiers: BTreeMap::new(), ..found.clone() };
        let differs: Vec<String> = differences(&other, &fresh);
        ensure!(
            differs.is_empty(),
            "go on with the dataset in `{}`: it was collected otherwise ({}); name another folder, or the same settings",
            folder.display(),
            differs.join(", ")
        );
        return Ok(found);
    }
    let is_taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    ensure!(
        !is_taken,
        "keep a dataset in `{}`: the folder holds something else, name another",
        folder.display()
    );
    fs::create_dir_all(folder).with_context(|| format!("make folder `{}`", folder.display()))?;
    fresh.write(folder)?;
    Ok(fresh)
}

/// What two datasets differ in.
fn differences(found: &Dataset, wanted: &Dataset) -> Vec<String> {
    let list = |dataset: &Dataset| -> BTreeMap<String, String> {
        let mut all = dataset.settings.clone();
        let hash = &dataset.suite_hash;
        all.insert("suite".to_owned(), dataset.suite.clone());
        all.insert("its tasks' hash".to_owned(), hash[..hash.len().min(12)].to_owned());
        all.insert("split".to_owned(), dataset.split.clone());
        all.insert("seed".to_owned(), dataset.seed.to_string());
        all.insert("tasks".to_owned(), dataset.tasks.to_string());
        all.insert("episodes".to_owned(), dataset.episodes_per_task.to_string());
        all
    };
    let (found, wanted) = (list(found), list(wanted));
    let names: std::collections::BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
    let text = |value: Option<&String>| value.cloned().unwrap_or_else(|| "absent".to_owned());
    names
        .into_iter()
        .filter(|name| found.get(*name) != wanted.get(*name))
        .map(|name| format!("{name} {}, now {}", text(found.get(name)), text(wanted.get(name))))
        .collect()
}

/// Opens who plays a tier.
async fn open_player(
    arguments: &CollectArguments,
    tier: Tier,
    suite: &dyn Suite,
    split: &str,
) -> anyhow::Result<TierPlayer> {
    let guide = arguments.guide.guide();
    let medium = arguments.medium.as_ref().filter(|_| tier == Tier::Medium);
    let mut typed = vec!["spar".to_owned()];
    typed.extend(["--runs".to_owned(), arguments.runs.display().to_string()]);
    match (tier, medium) {
        (_, Some(path)) => typed.extend(["--checkpoint".to_owned(), path.display().to_string()]),
        (Tier::Random, _) => typed.extend(["--policy", "random"].map(str::to_owned)),
        _ => typed.extend(["--policy", guide.name()].map(str::to_owned)),
    }
    if let Some(turns) = arguments.max_turns {
        typed.extend(["--max-turns".to_owned(), turns.to_string()]);
    }
    let Typed { player } = Typed::try_parse_from(typed).context("name a player")?;
    let budget = Budget::new(Default::default())?;
    let mut open = OpenPlayer::open(&player, &budget).await?;
    open.keep_secrets()?;
    let splits = [split.to_owned()];
    open.take_seats(&player, suite, &splits, (Purpose::Training, &budget)).await?;
    let noise = arguments.noise;
    let noisy = |noise: Noise| {
        let policy: Arc<dyn Policy> = Arc::new(RandomPolicy);
        SharedPlayer::Noisy { policy, guide, noise }
    };
    let (shared, told) = match (tier, medium) {
        (_, Some(path)) => (open.player(), format!("the policy in {}", path.display())),
        (Tier::Random, _) => (open.player(), "actions drawn at random".to_owned()),
        (Tier::Expert, _) => (open.player(), format!("the {}", guide.name())),
        (Tier::Medium, _) => {
            let told =
                format!("the {}, {:.0} % of its moves at random", guide.name(), 100.0 * noise);
            (noisy(Noise::of(noise)), told)
        }
        (Tier::MediumReplay, _) => {
            let told = format!(
                "the {}, from {:.0} % of its moves at random, episode by episode, to all of them",
                guide.name(),
                100.0 * noise
            );
            (noisy(Noise { low: noise, high: 1.0 }), told)
        }
    };
    let skips_failed = arguments.skip_failed;
    Ok(TierPlayer { tier, told, open, arguments: player, player: shared, skips_failed })
}

/// Plays what is left of a tier; whether it is whole.
async fn play(
    by: &TierPlayer,
    (folder, dataset): (&Path, &mut Dataset),
    tasks: &[Task],
    (sandboxes, config, cancellation): (&OpenSandboxes, &CollectConfig, &Cancellation),
    seed: Seed,
) -> anyhow::Result<bool> {
    let (tier, path) = (by.tier, Dataset::file_of(folder, by.tier));
    let told = by.told.clone();
    let mut done = dataset
        .tiers
        .get(&tier)
        .cloned()
        .unwrap_or_else(|| DatasetTier { player: told, ..DatasetTier::default() });
    let mut file = RecordingFile::open(path, done.episodes)?;
    let left = &tasks[done.tasks..];
    let meter = Meter::new(tier.name(), left.len() * config.group_size, false);
    for chunk in left.chunks(CHUNK) {
        let request = CollectRequest {
            tasks: chunk,
            player: by.player.clone(),
            seating: by.open.seating.clone(),
            strategy: &Independent,
            open: sandboxes.opener(by.open.local_policy()),
            seed: seed.derive("tasks", done.tasks),
            cancellation,
            on_episode: &|played| meter.count(played),
        };
        let collection = collect_groups(&request, config).await;
        if cancellation.is_cancelled() {
            return Ok(false);
        }
        let recordings = record(&collection.groups, chunk)?;
        done.missing += missing(by, &done, (tasks, chunk), &collection, recordings.len())?;
        file.append(&recordings)?;
        done.add(chunk.len(), &recordings);
        dataset.tiers.insert(tier, done.clone());
        dataset.write(folder)?;
    }
    Ok(true)
}

/// How many episodes of some of the tasks are missing where so many were recorded; tells of them, and fails where that is none.
fn missing(
    by: &TierPlayer,
    done: &DatasetTier,
    (tasks, chunk): (&[Task], &[Task]),
    collection: &Collection,
    recorded: usize,
) -> anyhow::Result<usize> {
    let (tier, counts) = (by.tier.name(), &collection.counts);
    let why = match counts.missing() {
        0 => "nothing was done in them, or nobody could judge it".to_owned(),
        _ => why_none(counts.cancelled, collection.last_failure.clone()),
    };
    if recorded == 0 {
        let (first, last) = (done.tasks + 1, done.tasks + chunk.len());
        // A tier without an episode is none.
        let is_lost = last == tasks.len() && done.episodes == 0;
        ensure!(
            by.skips_failed && !is_lost,
            "collect tier `{tier}`: none of the {} episodes of tasks {first} to {last} of {} (the first is `{}`) came about: {why}; what was played before is kept, and the same command tries these tasks again{}",
            counts.wanted,
            tasks.len(),
            chunk[0].id,
            if is_lost { "" } else { ", or goes on without them by --skip-failed" }
        );
    }
    let missing = counts.wanted.saturating_sub(recorded);
    if missing > 0 {
        eprintln!(
            "tier `{tier}`: {missing} of {} episodes could not be played and judged, and are missing: {why}",
            counts.wanted
        );
    }
    Ok(missing)
}

/// The recordings of all trajectories.
fn record(groups: &[spar::core::Group], tasks: &[Task]) -> anyhow::Result<Vec<Recording>> {
    let mut recordings = Vec::new();
    for (group, task) in groups.iter().zip(tasks) {
        for trajectory in &group.trajectories {
            let Some(recording) = Recording::of(trajectory, task) else { continue };
            if let Some(problem) = recording.problem() {
                bail!("record an episode of task `{}`: {problem}", task.id);
            }
            recordings.push(recording);
        }
    }
    Ok(recordings)
}

/// Takes over what a run played of the dataset's split while it learned.
fn import(
    arguments: &CollectArguments,
    suite: &dyn Suite,
    dataset: &mut Dataset,
    run: &Path,
) -> anyhow::Result<()> {
    let path = named_run(run, &arguments.runs);
    let store = match RunFolder::open(&path) {
        Ok(run) => run.trajectories_path(),
        Err(_) => path.clone(),
    };
    let mut recordings = Vec::new();
    let stored = JsonlStore::read(&store)
        .with_context(|| format!("read trajectories in `{}`", store.display()))?;
    let is_ours =
        |task: &str| task.strip_prefix(&*dataset.suite).is_some_and(|rest| rest.starts_with('/'));
    let start = format!("{}/{}/", dataset.suite, dataset.split);
    let mut elsewhere = 0;
    for stored in stored {
        let trajectory = stored?.trajectory;
        if !is_ours(&trajectory.task) {
            continue;
        }
        if !trajectory.task.starts_with(&start) {
            elsewhere += 1;
            continue;
        }
        let task = suite.task_by_id(&trajectory.task)?;
        if let Some(recording) = Recording::of(&trajectory, &task) {
            if let Some(problem) = recording.problem() {
                bail!("record an episode of task `{}`: {problem}", task.id);
            }
            recordings.push(recording);
        }
    }
    ensure!(
        !recordings.is_empty(),
        "take over what `{}` played: it kept no trajectory of split `{}` of suite `{}` (`keep.trajectories_every`), and {elsewhere} of other splits",
        path.display(),
        dataset.split,
        dataset.suite
    );
    if elsewhere > 0 {
        eprintln!(
            "tier `{}`: {elsewhere} episodes of other splits than `{}` were left out",
            Tier::MediumReplay.name(),
            dataset.split
        );
    }
    let player = format!("what {} played while it learned", path.display());
    let mut tier = DatasetTier { player, ..DatasetTier::default() };
    let path = Dataset::file_of(&arguments.out, Tier::MediumReplay);
    RecordingFile::open(path, 0)?.append(&recordings)?;
    tier.add(dataset.tasks, &recordings);
    dataset.tiers.insert(Tier::MediumReplay, tier);
    Ok(dataset.write(&arguments.out)?)
}

fn table(report: &Report) -> String {
    let Report { folder, dataset, references } = report;
    let mut text = format!(
        "{} tasks of `{}/{}`, seed {}\n\n{:<14}{:>9}{:>10}{:>9}{:>7}{:>12}  player\n",
        dataset.tasks,
        dataset.suite,
        dataset.split,
        dataset.seed,
        "tier",
        "episodes",
        "success",
        "return",
        "turns",
        "normalised"
    );
    for (tier, told) in &dataset.tiers {
        let normalized = references.and_then(|it| it.normalized(told.mean_return));
        let normalized = normalized.map_or_else(|| "-".to_owned(), |score| format!("{score:.1}"));
        let success = 100.0 * told.successes as f64 / told.episodes.max(1) as f64;
        let missing = match told.missing {
            0 => String::new(),
            missing => format!(" ({missing} episodes could not be played)"),
        };
        text += &format!(
            "{:<14}{:>9}{:>8.1} %{:>9.3}{:>7.1}{:>12}  {}{missing}\n",
            tier.name(),
            told.episodes,
            success,
            told.mean_return,
            told.mean_turns,
            normalized,
            told.player
        );
    }
    let folder = folder.display();
    text + &format!("\nkept in {folder}\nnext:\n  spar validate {folder}\n  spar play {folder}\n")
}
