//! Compares episodes with recordings of BrowserGym.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::episode::{Episode, Observing, Options};
use super::pages::Pages;
use crate::{AxOptions, Browsers, WebError, WindowSpec};

/// Mismatches that are described.
const DESCRIBED: usize = 20;

/// What a comparison comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConformanceReport {
    /// Files that were read.
    pub files: usize,
    /// Episodes in them.
    pub traces: usize,
    /// Observations that were compared, goals, rewards and ends included.
    pub records: usize,
    /// Those that differ.
    pub mismatches: usize,
    /// Episodes that were left out, since BrowserGym says of their task that it is not deterministic.
    pub left_out: usize,
    /// The first few mismatches.
    pub described: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Trace {
    task: String,
    seed: u64,
    /// Milliseconds since 1970, for pages that show the date.
    #[serde(default)]
    recorded_at: Option<i64>,
    #[serde(default)]
    nondeterministic: bool,
    goal: String,
    text: String,
    full: String,
    steps: Vec<TracedStep>,
}

#[derive(Debug, Deserialize)]
struct TracedStep {
    action: String,
    text: String,
    full: String,
    reward: f64,
    terminated: bool,
    error: String,
}

/// Plays the recordings of scripts/record_browsergym.py below a path (a file, or a folder of `.jsonl` files) and compares
/// what is shown: goals, both texts of the accessibility tree, rewards, ends, and whether actions failed.
///
/// Each episode is played twice, once for either text. At the first difference of an episode the rest of it is left.
///
/// # Errors
///
/// [`WebError`] where there is no browser, or there are no recordings.
pub async fn replay_traces(
    browsers: &Browsers,
    pages: &Arc<Pages>,
    path: &Path,
) -> Result<ConformanceReport, WebError> {
    let refuse = |detail: String| WebError::Pages { benchmark: "BrowserGym's recordings", detail };
    let told = |error: std::io::Error| refuse(format!("`{}`: {error}", path.display()));
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files =
            std::fs::read_dir(path).map_err(told)?.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
    }
    let mut report = ConformanceReport::default();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(told)?;
        report.files += 1;
        for (line, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let trace: Trace = serde_json::from_str(text).map_err(|error| {
                refuse(format!("`{}`, line {}: {error}", file.display(), line + 1))
            })?;
            report.traces += 1;
            if trace.nondeterministic {
                report.left_out += 1;
                continue;
            }
            for is_full in [false, true] {
                if let Err(error) = compare(browsers, pages, &trace, is_full, &mut report).await {
                    report.note(&trace, "played", String::new(), error.to_string());
                }
            }
        }
    }
    Ok(report)
}

async fn compare(
    browsers: &Browsers,
    pages: &Arc<Pages>,
    trace: &Trace,
    is_full: bool,
    report: &mut ConformanceReport,
) -> Result<(), WebError> {
    let axtree = AxOptions {
        with_visible: is_full,
        with_clickable: is_full,
        with_center_coords: is_full,
        filter_visible_only: false,
    };
    let options = Options {
        axtree,
        observing: Observing::Axtree,
        actions: ["chat", "infeas", "bid", "coord", "nav", "tab"].map(str::to_owned).to_vec(),
        clock_start: Some(trace.recorded_at.unwrap_or(WindowSpec::CLOCK_START)),
        ..Options::default()
    };
    let (mut episode, shown) =
        Episode::begin(browsers, pages, &trace.task, trace.seed, options).await?;
    report.records += 1;
    let expected = if is_full { &trace.full } else { &trace.text };
    let mut is_equal = report.check(trace, "the goal", &trace.goal, episode.goal());
    is_equal &= report.check(trace, "the reset", expected, &shown.text);
    for (number, step) in trace.steps.iter().enumerate() {
        if !is_equal {
            break;
        }
        let shown = episode.act(&step.action).await?;
        report.records += 1;
        let expected = if is_full { &step.full } else { &step.text };
        let place = format!("step {number}, {}", step.action);
        let came = |text: &str, reward: f64, is_over: bool, failed: bool| {
            format!("{text}\nreward {reward}, over: {is_over}, failed: {failed}")
        };
        let wanted = came(expected, step.reward, step.terminated, !step.error.is_empty());
        let found = came(&shown.text, shown.reward, shown.is_over, shown.error.is_some());
        is_equal = report.check(trace, &place, &wanted, &found);
    }
    episode.leave();
    Ok(())
}

impl ConformanceReport {
    fn check(&mut self, trace: &Trace, place: &str, expected: &str, found: &str) -> bool {
        if expected == found {
            return true;
        }
        let first = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        let (expected, found) = match first {
            Some((expected, found)) => (expected.to_owned(), found.to_owned()),
            None => {
                let count = |text: &str| format!("{} lines", text.lines().count());
                (count(expected), count(found))
            }
        };
        self.note(trace, place, expected, found);
        false
    }

    fn note(&mut self, trace: &Trace, place: &str, expected: String, found: String) {
        self.mismatches += 1;
        if self.described.len() < DESCRIBED {
            let Trace { task, seed, .. } = trace;
            self.described.push(format!(
                "{task}, seed {seed}, {place}: expected `{expected}`, found `{found}`"
            ));
        }
    }
}
