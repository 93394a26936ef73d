//! Replays traces of the reference and compares every answer letter by letter.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::engine::Engine;
use super::error::HouseholdError;
use super::files::find_files;
use super::game::Game;

/// Steps after which the reference's usual wrapper ends an episode.
const STEP_LIMIT: usize = 50;

/// Mismatches that a report describes; the others are only counted.
const MAX_DESCRIBED: usize = 10;

/// The outcome of [`replay_traces`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConformanceReport {
    /// Trace files.
    pub files: usize,
    /// Episodes in them.
    pub traces: usize,
    /// Steps in them, resets included.
    pub records: usize,
    /// Steps of which at least one field differs. After the first one an episode is left.
    pub mismatches: usize,
    /// The first few differences.
    pub described: Vec<Mismatch>,
}

/// One difference between a trace and this engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The trace file.
    pub file: PathBuf,
    /// Line of the file, counted from 1.
    pub line: usize,
    /// Step of the episode; 0 is the reset.
    pub step: usize,
    /// The command of the step.
    pub command: Option<String>,
    /// Which field differs.
    pub field: &'static str,
    /// What the trace has.
    pub expected: String,
    /// What this engine has.
    pub found: String,
}

#[derive(Deserialize)]
struct Trace {
    game: String,
    fmt: Format,
    steps: Vec<Record>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
enum Format {
    Orig,
    V213,
}

#[derive(Deserialize)]
struct Record {
    cmd: Option<String>,
    obs: String,
    adm: Vec<String>,
    reward: Option<f64>,
    done: bool,
    won: bool,
}

/// Plays every trace below `traces` with the games below `data`, and compares all answers.
///
/// A trace names its game by folder. It is looked for below `data/json_2.1.1` or
/// `data/json_2.1.3_style`, whichever the trace was recorded with, then below `data` itself.
///
/// A trace may or may not have been recorded with the wrapper that ends episodes after 50 steps;
/// from that step on `done` is right if it is `won` or true.
///
/// # Errors
/// When a trace or a game cannot be read, or there are none. Differences are no error.
pub fn replay_traces(data: &Path, traces: &Path) -> Result<ConformanceReport, HouseholdError> {
    let files = find_files(traces, |name| name.ends_with(".jsonl"))?;
    if files.is_empty() {
        return Err(HouseholdError::Empty { what: "traces (`*.jsonl`)", path: traces.to_owned() });
    }
    let mut report = ConformanceReport { files: files.len(), ..ConformanceReport::default() };
    let mut games: HashMap<(String, Format), Arc<Game>> = HashMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .map_err(|source| HouseholdError::Read { path: file.clone(), source })?;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let trace: Trace = serde_json::from_str(line).map_err(|source| {
                HouseholdError::Trace { path: file.clone(), line: index + 1, source }
            })?;
            let key = (trace.game.clone(), trace.fmt);
            let game = match games.get(&key) {
                Some(game) => Arc::clone(game),
                None => {
                    let game = Game::load(&locate(&trace, data, &file)?)?;
                    // A sweep over thousands of games need not keep them all.
                    games.clear();
                    games.insert(key, Arc::clone(&game));
                    game
                }
            };
            replay(&trace, game, &file, index + 1, &mut report);
        }
    }
    Ok(report)
}

fn locate(trace: &Trace, data: &Path, file: &Path) -> Result<PathBuf, HouseholdError> {
    let folder = match trace.fmt {
        Format::Orig => "json_2.1.1",
        Format::V213 => "json_2.1.3_style",
    };
    [data.join(folder), data.to_owned()]
        .iter()
        .map(|root| root.join(&trace.game))
        .flat_map(|game| [game.join("game.tw-pddl"), game])
        .find(|path| path.is_file())
        .ok_or_else(|| HouseholdError::MissingGame {
            game: trace.game.clone(),
            trace: file.to_owned(),
            data: data.to_owned(),
        })
}

fn replay(
    trace: &Trace,
    game: Arc<Game>,
    file: &Path,
    line: usize,
    report: &mut ConformanceReport,
) {
    report.traces += 1;
    let mut engine = Engine::new(game);
    for (step, record) in trace.steps.iter().enumerate() {
        report.records += 1;
        if let Some(command) = &record.cmd {
            engine.step(command);
        }
        let Some((field, expected, found)) = difference(record, step, &engine) else { continue };
        report.mismatches += 1;
        if report.described.len() < MAX_DESCRIBED {
            let (file, command) = (file.to_owned(), record.cmd.clone());
            report.described.push(Mismatch { file, line, step, command, field, expected, found });
        }
        return;
    }
}

fn difference(
    record: &Record,
    step: usize,
    engine: &Engine,
) -> Option<(&'static str, String, String)> {
    if record.obs != engine.observation() {
        return Some(("observation", record.obs.clone(), engine.observation().to_owned()));
    }
    if !record.adm.iter().eq(engine.admissible().iter()) {
        let found: Vec<&str> = engine.admissible().iter().collect();
        return Some(("admissible commands", record.adm.join(" | "), found.join(" | ")));
    }
    let won = engine.won();
    if record.won != won {
        return Some(("won", record.won.to_string(), won.to_string()));
    }
    if record.done != won && !(record.done && step >= STEP_LIMIT) {
        return Some(("done", record.done.to_string(), won.to_string()));
    }
    // The reference has no reward for the reset.
    let reward = if won { 1.0 } else { 0.0 };
    if record.reward.is_some_and(|recorded| recorded != reward && step > 0) {
        return Some(("reward", format!("{:?}", record.reward), reward.to_string()));
    }
    None
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} traces with {} records in {} files: {} mismatches",
            self.traces, self.records, self.files, self.mismatches
        )?;
        self.described.iter().try_for_each(|mismatch| write!(f, "\n{mismatch}"))
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command.as_deref().unwrap_or("(reset)");
        write!(
            f,
            "{}:{} step {} `{command}`: {} differs\n  expected {:?}\n  found    {:?}",
            self.file.display(),
            self.line,
            self.step,
            self.field,
            self.expected,
            self.found
        )
    }
}
