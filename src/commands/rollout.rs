//! `spar rollout`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use spar::agent::spend::{Budget, ScoreSpend, SpendReport};
use spar::agent::strategies::Independent;
use spar::agent::{
    CollectConfig, CollectRequest, CollectionCounts, CollectionSink, EpisodeConfig, FailureStore,
    FinishedGroup, JsonlStore, Keeper, Score, ScoreBuilder, stream_groups,
};
use spar::core::{Seed, StoreError, Trajectory};
use spar::envs::shuffled_tasks;
use spar::sandboxes::{OpenSandboxes, check_scaffold, first_tasks};
use spar::seats::TaskSeats;
use spar::tasks::{Suite, Task};
use spar::training::LEDGER;

use super::environments::{open_sandboxes, within};
use super::eval::{Meter, refuse_idle_limits, why_none};
use super::export::Exporter;
use super::judge::open_judging;
use super::player::OpenPlayer;
use super::suites::{Purpose, new_store, open_tasks};
use super::{cancel_on_ctrl_c, print, print_json, stopped, stopped_at_limit};
use crate::cli::RolloutArguments;

/// Tasks per split when no number is given.
const DEFAULT_LIMIT: usize = 16;

/// What was collected.
#[derive(Serialize)]
struct Report {
    folder: PathBuf,
    player: String,
    seed: u64,
    splits: Vec<SplitReport>,
    /// Conversations that were written for trainers elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    exported: Option<usize>,
    /// All that was spent, to find out whether the endpoint answers too.
    spend: SpendReport,
}

#[derive(Serialize)]
struct SplitReport {
    split: String,
    score: Score,
    counts: CollectionCounts,
    spend: ScoreSpend,
}

/// Lets a player play tasks and keeps its trajectories.
pub(crate) async fn rollout(arguments: &RolloutArguments) -> anyhow::Result<ExitCode> {
    arguments.secrets.config().keep()?;
    let budget = Budget::new(arguments.spend.config())?;
    let mut player = OpenPlayer::open(&arguments.player, &budget).await?;
    player.keep_secrets()?;
    let (suite, splits) = open_tasks(&arguments.tasks, player.recipe.as_ref(), Purpose::Training)?;
    let for_training = (Purpose::Training, &budget);
    player.take_seats(&arguments.player, suite.as_ref(), &splits, for_training).await?;
    let first = first_tasks(suite.as_ref(), &splits[0])?;
    let episode = player.episode(&arguments.player, Purpose::Training, &first);
    let config =
        CollectConfig { group_size: arguments.group_size, episode, ..CollectConfig::default() };
    config.validate()?;
    splits.iter().try_for_each(|split| suite.len(split).map(drop))?;
    check_scaffold(suite.as_ref(), &splits[0], &config.episode).await?;
    let exporter = match &arguments.export {
        None => None,
        Some(path) => {
            let several = TaskSeats::of(suite.as_ref(), &splits)?;
            let several = several.iter().find(|tasks| tasks.seats.len() > 1);
            ensure!(
                several.is_none(),
                "export conversations: in environment `{}` several act",
                several.map_or("", |tasks| &tasks.environment)
            );
            Some(Exporter::new(path, arguments.export_what)?)
        }
    };
    let store = new_store(&arguments.out)?;
    let judging = open_judging(
        &arguments.judge,
        player.recipe.as_ref(),
        player.local_policy().is_some(),
        suite.as_ref(),
        &splits,
        &budget,
    )
    .await?;
    refuse_idle_limits(&budget, player.is_endpoint() || judging.models.judge.is_some())?;
    budget.keep_in(arguments.out.join(LEDGER))?;
    let sandboxes = open_sandboxes(
        &arguments.environment,
        player.recipe.as_ref(),
        arguments.player.concurrency,
        suite.as_ref(),
        &splits[0],
        &config.episode,
    )
    .await?;
    let sandboxes = sandboxes.judged_by(&judging);
    within(sandboxes, async |sandboxes| {
        let concurrency = player.concurrency(&arguments.player, sandboxes.concurrency());
        let config = CollectConfig { concurrency, ..config };
        let tasks = Tasks { suite: suite.as_ref(), splits: &splits };
        play(arguments, (&player, &budget), &tasks, (store, exporter), sandboxes, &config).await
    })
    .await
}

/// What is played.
struct Tasks<'a> {
    suite: &'a dyn Suite,
    splits: &'a [String],
}

/// Keeps trajectories as they end, and of groups only what the score needs.
struct Scored<'a> {
    keeper: Keeper<'a>,
    exporter: Option<&'a Exporter>,
    /// How they are put to the player, of which split, and all of them.
    played: (&'a EpisodeConfig, &'a str, &'a [Task]),
    /// By the number of the task.
    scores: Mutex<Vec<(usize, ScoreBuilder)>>,
}

impl Scored<'_> {
    /// The score of all groups, in the order of the tasks, and whether all trajectories are kept.
    fn finish(self) -> (ScoreBuilder, Result<(), StoreError>) {
        let mut scores = self.scores.into_inner().unwrap_or_else(PoisonError::into_inner);
        scores.sort_by_key(|(index, _)| *index);
        let mut score = ScoreBuilder::default();
        scores.iter().for_each(|(_, of_group)| score.merge(of_group));
        (score, self.keeper.finish())
    }
}

impl CollectionSink for Scored<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        self.keeper.trajectory(index, trajectory);
        let (config, split, tasks) = self.played;
        if let Some(exporter) = self.exporter {
            exporter.add((config, split, index), &tasks[index], trajectory);
        }
    }

    fn group(&self, finished: FinishedGroup) {
        let mut score = ScoreBuilder::default();
        score.add(&finished.group);
        let mut scores = self.scores.lock().unwrap_or_else(PoisonError::into_inner);
        scores.push((finished.index, score));
    }
}

async fn play(
    arguments: &RolloutArguments,
    (player, budget): (&OpenPlayer, &Budget),
    tasks: &Tasks<'_>,
    (mut store, exporter): (JsonlStore, Option<Exporter>),
    sandboxes: &OpenSandboxes,
    config: &CollectConfig,
) -> anyhow::Result<ExitCode> {
    let &Tasks { suite, splits } = tasks;
    let cancellation = cancel_on_ctrl_c();
    let _watch = budget.watch(&cancellation);
    let seed = player.seed(&arguments.player);
    let mut report = Report {
        folder: arguments.out.clone(),
        player: player.player().as_player().name().to_owned(),
        seed,
        splits: Vec::new(),
        exported: None,
        spend: budget.report(),
    };
    let mut last_failure = None;
    let failures = FailureStore::beside(&arguments.out);
    for (index, split) in splits.iter().enumerate() {
        let limit = arguments.tasks.limit.unwrap_or(DEFAULT_LIMIT);
        let split_seed = Seed::from_u64(seed).derive("rollout", split);
        let shuffled = shuffled_tasks(suite, split, split_seed.derive("tasks", split))?;
        let tasks = shuffled.sample(Some(limit))?;
        failures.begin(index as u64 + 1);
        let meter = Meter::new(split, tasks.len() * config.group_size, player.is_human());
        let request = CollectRequest {
            tasks: &tasks,
            player: player.player(),
            seating: player.seating.clone(),
            strategy: &Independent,
            open: sandboxes.opener(player.local_policy()),
            seed: split_seed,
            cancellation: &cancellation,
            on_episode: &|played| {
                failures.keep(played);
                played.records().for_each(|record| budget.count_local(record));
                meter.count(played);
            },
        };
        let keeper = Keeper::new(&mut store, index as u64 + 1, &cancellation);
        let played = (&config.episode, split.as_str(), &*tasks);
        let exporter = exporter.as_ref();
        let scored = Scored { keeper, exporter, played, scores: Mutex::default() };
        let before = budget.report();
        let (counts, failure) = stream_groups(&request, config, &scored).await;
        drop(meter);
        let (score, kept) = scored.finish();
        kept.and_then(|()| failures.sync()).context("keep trajectories")?;
        budget.sync().context("keep what was spent")?;
        last_failure = failure.or(last_failure);
        if counts.finished == 0 && !cancellation.is_cancelled() {
            let detail = why_none(counts.cancelled, last_failure);
            bail!("play split `{split}`: no episode came about: {detail}");
        }
        let bootstrap = (config.group_size > 1).then_some(1000);
        let bootstrap_seed = Seed::from_u64(seed).derive("bootstrap", split);
        let score = score.finish(config.group_size, bootstrap, bootstrap_seed);
        let spent = budget.since(&before);
        let spend = ScoreSpend::new(spent, score.episodes, score.tasks, score.successes);
        report.splits.push(SplitReport { split: split.clone(), score, counts, spend });
        if cancellation.is_cancelled() {
            break;
        }
    }
    report.spend = budget.report();
    report.exported = exporter.map(Exporter::finish).transpose()?;
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&table(&report))?;
    }
    if let Some(reached) = &report.spend.stopped_at {
        eprintln!("{reached}");
        return Ok(stopped_at_limit());
    }
    let missing: usize = report.splits.iter().map(|split| split.counts.missing()).sum();
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    if missing > 0 {
        let failure = last_failure.unwrap_or_default();
        eprintln!("warning: {missing} episodes could not be played; the last failure: {failure}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    for SplitReport { split, score, counts, spend } in &report.splits {
        let rate = match score.success_rate {
            Some(rate) => format!("{:.1} %", 100.0 * rate),
            None => "-".to_owned(),
        };
        text += &format!(
            "{} on {split}: {} episodes of {} tasks, success {rate} ({:.1} to {:.1}), \
             {:.1} turns, reward {:.3}, {} refills, {} truncated ({}), {} missing\n",
            report.player,
            score.episodes,
            score.tasks,
            100.0 * score.interval.low,
            100.0 * score.interval.high,
            score.mean_turns,
            score.mean_reward,
            counts.refills,
            counts.truncated,
            counts.limits,
            counts.missing(),
        );
        if !spend.spent.total.is_empty() {
            text += &format!("{spend}\n");
        }
    }
    if let Some(exported) = report.exported {
        text += &format!("\n{exported} conversations written for trainers elsewhere\n");
    }
    let folder = report.folder.display();
    text + &format!("\nkept in {folder}\nnext:\n  spar show {folder}\n  spar replay {folder}\n")
}
