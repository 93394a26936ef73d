//! `spar compare`: several recipes over several seeds each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;
use spar::agent::statistics::{Tally, wilson_interval};
use spar::picture::{comparison_curve, dev_points};
use spar::trainer::{CurveRun, RunFolder, write_atomically};
use spar::training::Summary;

use super::{print, print_json};
use crate::cli::CompareArguments;

/// What one series reached.
struct Series {
    name: String,
    /// Per run, success on the dev split by episodes of reinforcement learning.
    curves: Vec<CurveRun>,
    /// Successes and episodes on the test splits together, before and after.
    before: Tally,
    after: Tally,
    /// Per run, success on the test splits together afterwards, 0 to 1.
    runs_after: Vec<f64>,
}

/// Compares runs: a table of the test splits, and a picture of the dev split.
pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let series: Vec<Series> =
        arguments.series.iter().map(|text| read(text)).collect::<anyhow::Result<_>>()?;
    if let Some(path) = &arguments.out {
        let methods: Vec<_> =
            series.iter().map(|series| (series.name.clone(), series.curves.clone())).collect();
        let picture = comparison_curve(&methods);
        write_atomically(path, picture.to_svg().as_bytes())?;
    }
    if arguments.json {
        let list: Vec<_> = series
            .iter()
            .map(|series| {
                json!({
                    "name": series.name,
                    "runs": series.curves.len(),
                    "before": [series.before.successes, series.before.attempts],
                    "after": [series.after.successes, series.after.attempts],
                    "runs_after": series.runs_after,
                    "curves": series.curves,
                })
            })
            .collect();
        print_json(&json!(list))?;
    } else {
        print(&table(&series))?;
        if let Some(path) = &arguments.out {
            print(&format!("\npicture: {}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads `NAME=RUN,RUN,...`.
fn read(text: &str) -> anyhow::Result<Series> {
    let Some((name, paths)) = text.split_once('=') else {
        bail!("understand `{text}`: write NAME=RUN,RUN,...");
    };
    let mut series = Series {
        name: name.to_owned(),
        curves: Vec::new(),
        before: Tally::default(),
        after: Tally::default(),
        runs_after: Vec::new(),
    };
    for path in paths.split(',').map(PathBuf::from) {
        add(&mut series, &path).with_context(|| format!("read run `{}`", path.display()))?;
    }
    Ok(series)
}

fn add(series: &mut Series, path: &Path) -> anyhow::Result<()> {
    let folder = RunFolder::open(path)?;
    series.curves.push(dev_points(&folder.metrics()?));
    let summary = Summary::open(&folder)?;
    let mut of_run = Tally::default();
    for (before, after) in summary.splits.values() {
        for (tally, result) in [(&mut series.before, before), (&mut of_run, after)] {
            if let Some(result) = result {
                tally.successes += result.successes;
                tally.attempts += result.episodes;
            }
        }
    }
    if of_run.attempts > 0 {
        series.runs_after.push(of_run.successes as f64 / of_run.attempts as f64);
        series.after.successes += of_run.successes;
        series.after.attempts += of_run.attempts;
    }
    Ok(())
}

fn table(series: &[Series]) -> String {
    let mut text = format!(
        "{:<16} {:>4}  {:<26} {:<26} lowest and highest run\n",
        "", "runs", "before reinforcement %", "after it %"
    );
    let share = |tally: Tally| {
        if tally.attempts == 0 {
            return "-".to_owned();
        }
        let interval = wilson_interval(tally);
        let rate = tally.successes as f64 / tally.attempts as f64;
        format!(
            "{:5.1} ({:.1} to {:.1})",
            100.0 * rate,
            100.0 * interval.low,
            100.0 * interval.high
        )
    };
    for series in series {
        let lowest = series.runs_after.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = series.runs_after.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = if series.runs_after.is_empty() {
            "-".to_owned()
        } else {
            format!("{:.1} to {:.1}", 100.0 * lowest, 100.0 * highest)
        };
        text.push_str(&format!(
            "{:<16} {:>4}  {:<26} {:<26} {range}\n",
            series.name,
            series.curves.len(),
            share(series.before),
            share(series.after),
        ));
    }
    text
}
