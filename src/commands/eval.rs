//! `spar eval`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow, ensure};
use serde::Serialize;
use spar::agent::spend::{Budget, SpendReport};
use spar::agent::{
    Cancellation, CollectionSink, EpisodeConfig, EvaluateConfig, EvaluateRequest, Evaluation,
    FailureStore, JsonlStore, Keeper, evaluate,
};
use spar::core::Seed;
use spar::envs::swe::{AttemptRates, Predictions};
use spar::sandboxes::{OpenSandboxes, check_scaffold, first_tasks};
use spar::tasks::{Dataset, ScoreReferences, Suite};
use spar::training::LEDGER;

use super::against::against;
use super::environments::{open_sandboxes, within};
use super::judge::open_judging;
use super::player::OpenPlayer;
use super::suites::{Purpose, new_store, open_tasks};
use super::{cancel_on_ctrl_c, json, print, print_json, stopped, stopped_at_limit};
use crate::bar::Bar;
use crate::cli::EvalArguments;

/// What an evaluation found, and all that it takes to repeat it.
#[derive(Serialize)]
struct Report<'a> {
    version: &'a str,
    checkpoint: Option<PathBuf>,
    endpoint: Option<&'a str>,
    seed: u64,
    attempts: usize,
    episode: EpisodeConfig,
    /// Whether every episode came about.
    is_complete: bool,
    evaluations: Vec<Evaluation>,
    /// `100 (reward - random) / (expert - random)` by split, where a dataset tells the two; absent where none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized_scores: Option<BTreeMap<String, f64>>,
    /// All that was spent, to find out whether the endpoint answers too.
    spend: SpendReport,
    /// How attempts at instances of software engineering ended; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    swe: Option<AttemptRates>,
}

/// Evaluates a player on the splits of a suite.
pub(crate) async fn eval(arguments: &EvalArguments) -> anyhow::Result<ExitCode> {
    arguments.secrets.config().keep()?;
    if !arguments.against.is_empty() {
        return against(arguments).await;
    }
    let budget = Budget::new(arguments.spend.config())?;
    let mut player = OpenPlayer::open(&arguments.player, &budget).await?;
    player.keep_secrets()?;
    let (suite, splits) =
        open_tasks(&arguments.tasks, player.recipe.as_ref(), Purpose::Evaluation)?;
    let own = player.recipe.as_ref().map(|recipe| recipe.evaluation.max_missing);
    let max_missing = own.unwrap_or(EvaluateConfig::default().max_missing);
    let for_scores = (Purpose::Evaluation, &budget);
    player.take_seats(&arguments.player, suite.as_ref(), &splits, for_scores).await?;
    let first = first_tasks(suite.as_ref(), &splits[0])?;
    let episode = player.episode(&arguments.player, Purpose::Evaluation, &first);
    let config = |split: &str| EvaluateConfig {
        split: split.to_owned(),
        limit: arguments.tasks.limit,
        attempts: arguments.attempts,
        pass_at: arguments.pass_at.clone(),
        max_missing: arguments.max_missing.unwrap_or(max_missing),
        episode: episode.clone(),
        ..EvaluateConfig::default()
    };
    config("").validate()?;
    splits.iter().try_for_each(|split| suite.len(split).map(drop))?;
    check_results_path(arguments.out.as_deref())?;
    check_scaffold(suite.as_ref(), &splits[0], &config("").episode).await?;
    let store = arguments.save.as_deref().map(new_store).transpose()?;
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
    if let Some(folder) = &arguments.save {
        budget.keep_in(folder.join(LEDGER))?;
    }
    let sandboxes = open_sandboxes(
        &arguments.environment,
        player.recipe.as_ref(),
        arguments.player.concurrency,
        suite.as_ref(),
        &splits[0],
        &config("").episode,
    )
    .await?;
    let sandboxes = sandboxes.judged_by(&judging);
    within(sandboxes, async |sandboxes| {
        let concurrency = player.concurrency(&arguments.player, sandboxes.concurrency());
        let config = |split: &str| EvaluateConfig { concurrency, ..config(split) };
        let split = Split { suite: suite.as_ref(), splits: &splits };
        play(arguments, (&player, &budget), &split, store, sandboxes, &config).await
    })
    .await
}

/// What is played.
struct Split<'a> {
    suite: &'a dyn Suite,
    splits: &'a [String],
}

/// Checks that results can be written to a file, before hours of playing and not after them.
///
/// # Errors
///
/// When its folder is not there, or it is a folder itself.
pub(crate) fn check_results_path(out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    ensure!(
        folder.is_none_or(Path::is_dir) && !path.is_dir(),
        "write the results to `{}`: its folder is not there, or it is a folder",
        path.display()
    );
    Ok(())
}

/// Refuses limits on what nobody counts.
pub(crate) fn refuse_idle_limits(budget: &Budget, asks_endpoint: bool) -> anyhow::Result<()> {
    let config = budget.config();
    ensure!(
        asks_endpoint || config.max_cost.is_none() || config.hour_price.is_some(),
        "limit the cost by --max-cost: a policy in this process costs what --hour-price tells, and nothing does"
    );
    ensure!(
        asks_endpoint || config.max_requests.is_none(),
        "limit requests by --max-requests: without effect, since no endpoint is asked"
    );
    Ok(())
}

async fn play(
    arguments: &EvalArguments,
    (player, budget): (&OpenPlayer, &Budget),
    &Split { suite, splits }: &Split<'_>,
    mut store: Option<JsonlStore>,
    sandboxes: &OpenSandboxes,
    config: &dyn Fn(&str) -> EvaluateConfig,
) -> anyhow::Result<ExitCode> {
    let references = references_of(arguments.normalize.as_deref(), suite)?;
    let cancellation = cancel_on_ctrl_c();
    let _watch = budget.watch(&cancellation);
    let seed = player.seed(&arguments.player);
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        checkpoint: player.checkpoint.clone(),
        endpoint: arguments.player.endpoint.as_deref(),
        seed,
        attempts: arguments.attempts,
        episode: config("").episode,
        is_complete: true,
        evaluations: Vec::new(),
        normalized_scores: None,
        spend: budget.report(),
        swe: None,
    };
    let (mut failure, mut lost) = (None, None);
    let predictions = Predictions::default();
    let failures = arguments.save.as_deref().map(FailureStore::beside);
    for (number, split) in splits.iter().enumerate() {
        let tasks = suite.len(split)?.min(arguments.tasks.limit.unwrap_or(usize::MAX));
        if let Some(failures) = &failures {
            failures.begin(number as u64 + 1);
        }
        let meter = Meter::new(split, tasks * arguments.attempts, player.is_human());
        let keeper =
            store.as_mut().map(|store| Keeper::new(store, number as u64 + 1, &cancellation));
        let request = EvaluateRequest {
            suite,
            player: player.player(),
            seating: player.seating.clone(),
            open: sandboxes.opener(player.local_policy()),
            // The seed of a run's own evaluations, so that these come out the same.
            seed: Seed::from_u64(seed).derive("evaluation", split),
            cancellation: &cancellation,
            on_episode: &|played| {
                failures.iter().for_each(|failures| failures.keep(played));
                played.records().for_each(|record| budget.count_local(record));
                predictions.note(played);
                meter.count(played);
            },
            keep: keeper.as_ref().map(|keeper| keeper as &dyn CollectionSink),
        };
        let before = budget.report();
        let (evaluation, last_failure) = evaluate(&request, &config(split)).await?;
        let evaluation = evaluation.with_spend(budget.since(&before));
        drop(meter);
        let counts = evaluation.counts;
        let kept = keeper.map_or(Ok(()), Keeper::finish);
        let kept = kept.and_then(|()| failures.as_ref().map_or(Ok(()), FailureStore::sync));
        if counts.finished == 0 && !cancellation.is_cancelled() {
            let detail = why_none(counts.cancelled, last_failure);
            lost = Some(anyhow!("evaluate on split `{split}`: no episode came about: {detail}"));
            report.is_complete = false;
            break;
        }
        report.is_complete &= evaluation.missing == 0;
        failure = failure.or(last_failure);
        report.evaluations.push(evaluation);
        lost = kept.context("keep trajectories").err();
        lost = lost.or(budget.sync().context("keep what was spent").err());
        if lost.is_some() || cancellation.is_cancelled() {
            report.is_complete &= number + 1 == splits.len();
            break;
        }
    }
    report.spend = budget.report();
    report.swe = predictions.rates();
    report.normalized_scores = references.map(|it| {
        let of = |it: &ScoreReferences, evaluation: &Evaluation| {
            let score = it.normalized(evaluation.overall.mean_reward)?;
            Some((evaluation.split.clone(), score))
        };
        report.evaluations.iter().filter_map(|evaluation| of(&it, evaluation)).collect()
    });
    let bases = [
        arguments.out.as_deref().map(|path| path.with_extension("")),
        arguments.save.as_deref().map(|folder| folder.join("swe-bench")),
    ];
    for base in bases.into_iter().flatten() {
        lost = lost.or(write_predictions(&predictions, &base, suite, splits).err());
    }
    // What was measured is told whatever became of the rest.
    let finished = match report.evaluations.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => finish(arguments, &report, failure, &cancellation),
    };
    lost.map_or(finished, Err)
}

/// Between which returns the dataset in a folder has scores of a suite normalised.
fn references_of(
    folder: Option<&Path>,
    suite: &dyn Suite,
) -> anyhow::Result<Option<ScoreReferences>> {
    let Some(folder) = folder else { return Ok(None) };
    let dataset = Dataset::read(folder)?;
    let name = &suite.manifest().name;
    ensure!(
        dataset.suite == *name,
        "normalise scores of suite `{name}` by `{}`: it is of suite `{}`",
        folder.display(),
        dataset.suite
    );
    let references = dataset.references().with_context(|| {
        let folder = folder.display();
        format!("normalise scores by `{folder}`: its tiers `random` and `expert` are not there")
    })?;
    ensure!(
        references.normalized(0.0).is_some(),
        "normalise scores by `{}`: its expert earns no more than random actions do",
        folder.display()
    );
    Ok(Some(references))
}

/// Writes what SWE-bench's tools read, if the suite has instances of it.
fn write_predictions(
    predictions: &Predictions,
    base: &Path,
    suite: &dyn Suite,
    splits: &[String],
) -> anyhow::Result<()> {
    let files = predictions.files(suite, splits).context("report on instances")?;
    for (end, text) in files {
        let path = PathBuf::from(format!("{}.{end}", base.display()));
        spar::trainer::write_atomically(&path, text.as_bytes())?;
    }
    Ok(())
}

fn finish(
    arguments: &EvalArguments,
    report: &Report<'_>,
    failure: Option<String>,
    cancellation: &Cancellation,
) -> anyhow::Result<ExitCode> {
    let printed = if arguments.json {
        print_json(report)
    } else {
        let mut text = String::new();
        if let Some(checkpoint) = &report.checkpoint {
            // Of a policy behind an endpoint nobody here knows how it draws.
            let restricted = match report.episode.constrain_to_admissible {
                true => "restricted to admissible ones where an environment lists them",
                false => "not restricted",
            };
            let (temperature, seed) = (report.episode.sampling.temperature, report.seed);
            writeln!(text, "checkpoint {}", checkpoint.display())?;
            writeln!(text, "answers {restricted}, at temperature {temperature}, seed {seed}\n")?;
        }
        for evaluation in &report.evaluations {
            writeln!(text, "{evaluation}")?;
        }
        for (split, score) in report.normalized_scores.iter().flatten() {
            writeln!(text, "normalised score on {split}: {score:.1} (random 0, expert 100)")?;
        }
        if let Some(rates) = report.swe {
            let (completed, modified) = (rates.completion_rate(), rates.modification_rate());
            writeln!(
                text,
                "of {} attempts {:.1} % were handed in, and {:.1} % changed the repository",
                rates.attempts,
                100.0 * completed,
                100.0 * modified
            )?;
        }
        print(&text)
    };
    // On the screen first: where the disk is full, it was not measured for nothing.
    if let Some(path) = &arguments.out {
        spar::trainer::write_atomically(path, json(report)?.as_bytes())?;
    }
    printed?;
    if let Some(reached) = &report.spend.stopped_at {
        eprintln!("{reached}");
        return Ok(stopped_at_limit());
    }
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    if report.is_complete {
        return Ok(ExitCode::SUCCESS);
    }
    let failure = failure.unwrap_or_default();
    let refused: Vec<_> = report
        .evaluations
        .iter()
        .filter(|evaluation| evaluation.is_refused)
        .map(|evaluation| format!("`{}`", evaluation.split))
        .collect();
    ensure!(
        refused.is_empty(),
        "evaluate on {}: more episodes than --max-missing allows could not be played; the last \
         failure: {failure}",
        refused.join(", ")
    );
    eprintln!("warning: some episodes could not be played; the last failure: {failure}");
    Ok(ExitCode::FAILURE)
}

/// Why no episode came about.
pub(crate) fn why_none(cancelled: usize, last_failure: Option<String>) -> String {
    match last_failure {
        Some(failure) => failure,
        None if cancelled > 0 => "the player left".to_owned(),
        None => "it has no tasks".to_owned(),
    }
}

/// A progress bar that counts successes.
pub(crate) struct Meter {
    bar: Bar,
    done: AtomicUsize,
    success: AtomicUsize,
}

impl Meter {
    /// A bar of so many episodes; hidden where a person plays.
    pub(crate) fn new(what: &str, episodes: usize, is_hidden: bool) -> Self {
        let bar = if is_hidden { Bar::hidden() } else { Bar::new(what, episodes) };
        Self { bar, done: AtomicUsize::new(0), success: AtomicUsize::new(0) }
    }

    /// Counts an episode; one that failed is played anew, so it does not count.
    pub(crate) fn count(&self, trajectory: &spar::core::Trajectory) {
        if trajectory.is_failed() {
            return;
        }
        let done = 1 + self.done.fetch_add(1, Ordering::Relaxed);
        let success = usize::from(trajectory.success);
        let success = success + self.success.fetch_add(success, Ordering::Relaxed);
        self.bar.advance();
        self.bar.say(format!("success {:.1} %", 100.0 * success as f64 / done as f64));
    }
}
