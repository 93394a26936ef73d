//! The overview of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::ExitCode;

use serde_json::json;
use spar::agent::spend::read_ledger;
use spar::agent::{FailureCause, FailureStore};
use spar::recipe::Recipe;
use spar::trainer::{Checkpoints, Manifest, MetricRecord, RunFolder};
use spar::training::stages::{StageOutline, outline};
use spar::training::{Evaluated, LEDGER, SplitResult, Summary, share};

use super::trend::Trend;
use super::{print, print_json};

const PLOT_WIDTH: usize = 64;
const PLOT_HEIGHT: usize = 10;
/// Causes of failed episodes that are shown.
const MAX_CAUSES: usize = 8;
/// Values of the last iteration that are shown.
const MAX_VALUES: usize = 18;

/// Shows where a run stands and what it reached; reads only.
pub(super) fn show_run(run: &RunFolder, is_json: bool) -> anyhow::Result<ExitCode> {
    let manifest = run.manifest()?;
    let recipe = Recipe::of_run(&run.path().display().to_string(), &run.config()?)?;
    let metrics = run.metrics()?;
    let summary = Summary::open(run)?;
    let status = match (summary.is_finished, is_written(run)) {
        (true, _) => "finished",
        (false, true) => "running",
        (false, false) => "stopped",
    };
    let spend = read_ledger(&run.path().join(LEDGER), &recipe.spend)?;
    let failures = FailureStore::causes(&run.trajectories_path())?;
    let last = metrics.iter().rev().find(|record| is_iteration(record));
    if is_json {
        print_json(&json!({
            "status": status,
            "iterations": iterations_of(&outline(&recipe)?),
            "stages": outline(&recipe)?,
            "manifest": manifest,
            "recipe": recipe.to_table(),
            "summary": summary,
            "failures": failures,
            "spend": spend,
            "trend": Trend::of(&metrics),
            "last": last,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = head(run, &manifest, &recipe, &summary, status)?;
    for warning in summary.warnings() {
        text += &format!("\nWARNING: {warning}\n");
    }
    text += &results(&summary);
    if let Some(spend) = spend.filter(|spend| !spend.total.is_empty()) {
        text += &format!("\n{spend}\n");
    }
    text += &failed(&failures);
    text += &plot(&metrics);
    text += &Trend::of(&metrics).map(|trend| trend.text()).unwrap_or_default();
    if let Some(last) = last {
        text += &values(last);
    }
    text += &files(run, status)?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn head(
    run: &RunFolder,
    manifest: &Manifest,
    recipe: &Recipe,
    summary: &Summary,
    status: &str,
) -> anyhow::Result<String> {
    let stages = outline(recipe)?;
    let (model, suite) = (&recipe.model, &recipe.data);
    let revision = manifest.git_revision.as_deref().unwrap_or("unknown");
    let short = |hash: &String| hash[..hash.len().min(12)].to_owned();
    let suites: Vec<String> =
        manifest.suites.iter().map(|(name, hash)| format!("{name} {}", short(hash))).collect();
    let splits = match recipe.stages[..] {
        [] => format!(
            ": trained on {}, chosen on {}, tested on {}",
            suite.train,
            suite.dev,
            suite.test.join(" and ")
        ),
        _ => String::new(),
    };
    let mut text = format!(
        "{}: {status}, {} of {} iterations\n\n\
         folder     {}\n\
         started    {} with seed {} at revision {}\n\
         suite      {}{splits}\n\
         model      {} layers of width {}, {} heads of {}\n",
        manifest.name,
        summary.iterations,
        iterations_of(&stages),
        run.path().display(),
        manifest.started,
        manifest.seed,
        &revision[..revision.len().min(12)],
        suites.join(", "),
        model.num_hidden_layers,
        model.hidden_size,
        model.num_attention_heads,
        model.head_dim,
    );
    text += "stages\n";
    for stage in &stages {
        text += &format!("  {:<14} {:<9} {}\n", stage.name, stage.kind, stage.budget);
    }
    Ok(text)
}

/// Iterations of all stages.
fn iterations_of(stages: &[StageOutline]) -> u64 {
    stages.iter().map(|stage| stage.iterations).sum()
}

fn results(summary: &Summary) -> String {
    let mut text = String::new();
    if !summary.splits.is_empty() {
        text += &format!("\n{:<32} {:<26} after it\n", "success", "before reinforcement");
    }
    for (split, (before, after)) in &summary.splits {
        let cell = |result: &Option<SplitResult>| {
            result.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        text += &format!("{split:<32} {:<26} {}\n", cell(before), cell(after));
        let by_suite: fn(&SplitResult) -> &BTreeMap<String, (usize, usize)> = |it| &it.by_suite;
        for parts_of in [by_suite, |it| &it.by_tag] {
            let parts = [before, after].map(|side| side.as_ref().map(parts_of));
            let names: BTreeSet<&String> =
                parts.iter().flatten().flat_map(|parts| parts.keys()).collect();
            for name in names {
                let cell = |index: usize| share(parts[index].and_then(|parts| parts.get(name)));
                text += &format!("  {name:<30} {:<26} {}\n", cell(0), cell(1));
            }
        }
    }
    if !summary.evaluations.is_empty() {
        text += &format!("\n{:<16} {:>9}  {:<32} success\n", "evaluated by", "iteration", "split");
    }
    for Evaluated { iteration, stage, suite, split, result } in &summary.evaluations {
        text +=
            &format!("{stage:<16} {iteration:>9}  {:<32} {result}\n", format!("{suite}/{split}"));
        for (suite, tally) in &result.by_suite {
            text += &format!("{:<28}  {suite:<30} {}\n", "", share(Some(tally)));
        }
    }
    if let Some(drift) = summary.max_drift {
        text +=
            &format!("\nsampled and recomputed log-probabilities differ by at most {drift:.1e}\n");
    }
    text
}

/// Episodes that failed and were kept, by their cause.
fn failed(causes: &[FailureCause]) -> String {
    let total: usize = causes.iter().map(|cause| cause.count).sum();
    if total == 0 {
        return String::new();
    }
    let mut text = format!("\n{total} episodes failed and were played anew or left out\n");
    for FailureCause { boundary, detail, count } in causes.iter().take(MAX_CAUSES) {
        let line = detail.lines().next().unwrap_or_default();
        let place = format!("{boundary:?}").to_lowercase();
        text += &format!("  {count:>7}  {place:<12} {line}\n");
    }
    if let Some(left) = causes.get(MAX_CAUSES..).filter(|left| !left.is_empty()) {
        let count: usize = left.iter().map(|cause| cause.count).sum();
        text += &format!("  {count:>7}  for {} other causes\n", left.len());
    }
    text
}

/// Success over the iterations as text: `·` training episodes, `●` the held-out split.
fn plot(metrics: &[MetricRecord]) -> String {
    let of = |kind: &str| -> Vec<(u64, f64)> {
        let records = metrics.iter().filter(|record| record.kind == kind);
        records
            .filter_map(|record| Some((record.iteration, record.number("success_rate")?)))
            .collect()
    };
    let mut played = [of("reinforce"), of("prefer")].concat();
    played.sort_unstable_by_key(|(iteration, _)| *iteration);
    let series = [('·', played), ('●', of("evaluation"))];
    let iterations = || series.iter().flat_map(|(_, points)| points).map(|(x, _)| *x);
    let (Some(first), Some(last)) = (iterations().min(), iterations().max()) else {
        return String::new();
    };
    let mut cells = [[' '; PLOT_WIDTH]; PLOT_HEIGHT];
    for (mark, points) in &series {
        for (x, y) in points {
            let span = (last - first).max(1) as f64;
            let column = (x - first) as f64 / span * (PLOT_WIDTH - 1) as f64;
            let row = (1.0 - y.clamp(0.0, 1.0)) * (PLOT_HEIGHT - 1) as f64;
            cells[row.round() as usize][column.round() as usize] = *mark;
        }
    }
    let mut text = "\nsuccess by iteration: · training episodes, ● held out\n".to_owned();
    for (row, line) in cells.iter().enumerate() {
        let label = match row {
            0 => "100 %",
            row if row == PLOT_HEIGHT - 1 => "  0 %",
            _ => "     ",
        };
        let line: String = line.iter().collect();
        text += &format!("{label} │{}\n", line.trim_end());
    }
    let (first, last) = (first.to_string(), last.to_string());
    let gap = PLOT_WIDTH.saturating_sub(first.len());
    text + &format!("      └{}\n       {first}{last:>gap$}\n", "─".repeat(PLOT_WIDTH))
}

fn values(last: &MetricRecord) -> String {
    let mut text = format!("\niteration {} ({})\n", last.iteration, last.kind.replace('_', " "));
    let numbers = last.values.iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    for pair in numbers.take(MAX_VALUES).collect::<Vec<_>>().chunks(3) {
        let cells: String =
            pair.iter().map(|(name, value)| format!("  {name:<20} {value:<10.4}")).collect();
        text += cells.trim_end();
        text.push('\n');
    }
    text
}

fn files(run: &RunFolder, status: &str) -> anyhow::Result<String> {
    let path = run.path();
    let mut text = "\nfiles\n".to_owned();
    for (name, about) in [
        ("config.toml", "every setting"),
        ("metrics.jsonl", "a record per iteration"),
        ("spend.jsonl", "what was spent"),
        ("curve.svg", "the learning curve as a picture"),
        ("tensorboard", "the same numbers for TensorBoard"),
        ("trajectories", "episodes, read with `spar show --trajectories`"),
        ("trajectories/failed", "those that failed, read with `spar show` of this folder"),
        ("checkpoints", "models"),
    ] {
        if path.join(name).exists() {
            text += &format!("  {:<40} {about}\n", path.join(name).display().to_string());
        }
    }
    let checkpoints = Checkpoints::view(&run.checkpoints_path());
    if let Some(latest) = checkpoints.latest()? {
        text += &format!("  {:<40} the latest checkpoint\n", latest.path.display().to_string());
    }
    if let Some(best) = checkpoints.best()? {
        text += &format!("  {:<40} chosen on the dev split\n", best.path.display().to_string());
    }
    if status == "stopped" {
        text += &format!("\nnext:\n  spar resume {}\n", path.display());
    }
    Ok(text)
}

fn is_iteration(record: &MetricRecord) -> bool {
    ["imitate", "warm_start", "reinforce", "prefer", "offline"].contains(&&*record.kind)
}

/// Whether a process holds the run's lock. Asking takes a shared lock for a moment.
fn is_written(run: &RunFolder) -> bool {
    let lock = File::open(run.path().join("lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}
