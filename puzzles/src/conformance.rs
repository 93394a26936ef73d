//! Recordings of the package, replayed and compared.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use spar_core::registry::Options;

use crate::open_dataset;

/// Mismatches that a report describes, in all and of each dataset; the others are only counted.
const MAX_DESCRIBED: (usize, usize) = (60, 3);
/// Of what differs so many characters are shown.
const SHOWN: usize = 400;
/// Difference of scores that counts as none: exponentials of two libraries can differ in their last bits.
const SCORE_TOLERANCE: f64 = 1e-12;

/// The outcome of [`replay_traces`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConformanceReport {
    /// Files.
    pub files: usize,
    /// Puzzles in them.
    pub traces: usize,
    /// Questions, answers, facts and scores in them.
    pub records: usize,
    /// Records that differ.
    pub mismatches: usize,
    /// The first few.
    pub described: Vec<String>,
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, traces, records, mismatches, described } = self;
        write!(
            formatter,
            "{traces} traces with {records} records in {files} files: {mismatches} mismatches"
        )?;
        described.iter().try_for_each(|line| write!(formatter, "\n{line}"))
    }
}

/// A recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file or folder cannot be read.
    #[error("read `{}`", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A line is not what `scripts/record_reasoning_gym.py` writes.
    #[error("read line {line} of `{}`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// One puzzle as the package makes and scores it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    dataset: String,
    #[serde(default)]
    config: Options,
    seed: u64,
    index: u64,
    /// What the package raised instead of making a puzzle.
    #[serde(default)]
    raises: Option<String>,
    #[serde(default)]
    question: Option<Recorded>,
    #[serde(default)]
    answer: Option<Recorded>,
    #[serde(default)]
    metadata: Options,
    #[serde(default)]
    scores: Vec<Scored>,
}

/// A text, or the hash of a long one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Recorded {
    Text(String),
    Hash { fnv: String },
}

impl Recorded {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Text(recorded) => recorded == text,
            Self::Hash { fnv } => *fnv == format!("{:016x}", hash(text)),
        }
    }

    fn told(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Hash { fnv } => fnv,
        }
    }
}

/// An answer with its score; without a score the package's scorer raised, which counts as 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scored {
    /// The answer; absent where it is no answer at all, or the right one.
    #[serde(default)]
    answer: Option<String>,
    /// The puzzle's own answer is scored.
    #[serde(default)]
    is_gold: bool,
    #[serde(default)]
    score: Option<f64>,
}

/// FNV-1a of the bytes of a text, in 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Makes and scores the puzzles that `scripts/record_reasoning_gym.py` has recorded of the package, and compares. The path
/// is a file of JSON lines or a folder of such files.
///
/// # Errors
///
/// [`ReplayError`] when a file cannot be read or is no recording.
pub fn replay_traces(path: &Path) -> Result<ConformanceReport, ReplayError> {
    let mut report = ConformanceReport::default();
    for path in files(path)? {
        let text = fs::read_to_string(&path)
            .map_err(|source| ReplayError::Read { path: path.clone(), source })?;
        report.files += 1;
        replay_text(&text, &mut report).map_err(|(line, source)| ReplayError::Line {
            path: path.clone(),
            line,
            source,
        })?;
    }
    Ok(report)
}

/// The file, or those of a folder in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, ReplayError> {
    let failed = |source| ReplayError::Read { path: path.to_owned(), source };
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn replay_text(
    text: &str,
    report: &mut ConformanceReport,
) -> Result<(), (usize, serde_json::Error)> {
    for (line, written) in text.lines().enumerate() {
        let trace: Trace = serde_json::from_str(written).map_err(|error| (line + 1, error))?;
        replay(&trace, report);
    }
    Ok(())
}

fn replay(trace: &Trace, report: &mut ConformanceReport) {
    report.traces += 1;
    let mut compare =
        |what: &str, equal: bool, ours: &dyn fmt::Display, theirs: &dyn fmt::Display| {
            report.records += 1;
            if equal {
                return;
            }
            report.mismatches += 1;
            let Trace { dataset, seed, index, config, .. } = trace;
            let of_this =
                report.described.iter().filter(|told| told.split(' ').next() == Some(dataset));
            if report.described.len() < MAX_DESCRIBED.0 && of_this.count() < MAX_DESCRIBED.1 {
                let cut = |shown: &dyn fmt::Display| -> String {
                    format!("{:?}", shown.to_string()).chars().take(SHOWN).collect()
                };
                let config = serde_json::to_string(config).unwrap_or_default();
                report.described.push(format!(
                    "{dataset} {config} seed {seed} index {index}, {what}: {} is {} in the package",
                    cut(ours),
                    cut(theirs)
                ));
            }
        };
    let made = open_dataset(&trace.dataset, &trace.config, trace.seed)
        .map_err(|error| error.to_string())
        .and_then(|dataset| Ok((dataset.item(trace.index).map_err(|e| e.to_string())?, dataset)));
    let (item, dataset) = match (made, &trace.raises) {
        (Ok(made), None) => made,
        (Err(error), raises) => {
            let theirs = raises.as_deref().unwrap_or("a puzzle");
            return compare("puzzle", raises.is_some(), &error, &theirs);
        }
        (Ok(_), Some(raises)) => return compare("puzzle", false, &"a puzzle", raises),
    };
    let question = trace.question.as_ref();
    let told = question.map_or("", Recorded::told);
    compare("question", question.is_some_and(|q| q.is(&item.question)), &item.question, &told);
    let equal = match (&trace.answer, &item.answer) {
        (Some(recorded), Some(answer)) => recorded.is(answer),
        (None, None) => true,
        _ => false,
    };
    let told = trace.answer.as_ref().map_or("none", Recorded::told);
    compare("answer", equal, &item.answer.as_deref().unwrap_or("none"), &told);
    for (name, theirs) in &trace.metadata {
        if let Some(ours) = item.metadata.get(name) {
            compare(name, is_equal(ours, theirs), ours, theirs);
        }
    }
    for scored in &trace.scores {
        let answer = if scored.is_gold { item.answer.as_deref() } else { scored.answer.as_deref() };
        let score = dataset.score(answer, &item);
        let theirs = scored.score.unwrap_or(0.0);
        let what = format!(
            "score of {:?}",
            answer.map(|answer| answer.chars().take(80).collect::<String>())
        );
        compare(&what, (score - theirs).abs() <= SCORE_TOLERANCE, &score, &theirs);
    }
}

/// Whether two facts are equal; numbers by their values.
fn is_equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(name, value)| theirs.get(name).is_some_and(|b| is_equal(value, b)))
        }
        _ => ours == theirs,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataset_registry;

    /// Written by `scripts/record_reasoning_gym.py --compact`.
    const RECORDED: &str = include_str!("../tests/fixtures/reasoning_gym.jsonl");

    #[test]
    fn puzzles_and_scores_are_those_of_the_package() {
        let mut report = ConformanceReport::default();
        replay_text(RECORDED, &mut report).unwrap();
        assert_eq!(report.mismatches, 0, "{report}");
        let named: BTreeSet<String> = RECORDED
            .lines()
            .map(|line| serde_json::from_str::<Trace>(line).unwrap().dataset)
            .collect();
        let known = dataset_registry().iter().filter(|row| row.source.starts_with("reasoning-gym"));
        for row in known {
            assert!(named.contains(row.name), "{} is not in the fixture", row.name);
        }
    }

    #[test]
    fn what_differs_is_told() {
        let line = r#"{"dataset": "gcd", "seed": 1, "index": 0, "question": "?", "answer": null, "scores": [{"answer": "x", "score": 0.5}]}"#;
        let mut report = ConformanceReport::default();
        replay_text(line, &mut report).unwrap();
        assert_eq!((report.records, report.mismatches), (3, 3), "{report}");
        let line = r#"{"dataset": "gcf", "seed": 1, "index": 0, "question": "?"}"#;
        replay_text(line, &mut report).unwrap();
        assert!(report.described[3].contains("find dataset `gcf`"), "{report}");
        assert_eq!(replay_text("{}", &mut report).unwrap_err().0, 1);
    }
}
