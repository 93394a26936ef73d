//! Replays what the package has shown.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Action, Episode, Level, View};

/// How many mismatches are described.
const DESCRIBED: usize = 12;

/// What a replay comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Episodes in them.
    pub traces: usize,
    /// States in them that were compared, the first ones included.
    pub records: usize,
    /// Episodes that differ.
    pub mismatches: usize,
    /// The first differences.
    pub described: Vec<String>,
}

/// An episode as `scripts/record_minigrid.py` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    level: String,
    seed: u64,
    mission: String,
    max_steps: u32,
    start: Shown,
    steps: Vec<(u8, f64, bool, bool, Shown)>,
}

/// Column, row and direction of the agent, what it carries as `[kind, colour, state]`, and the sums of the grid's and the
/// view's codes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Shown(i8, i8, u8, Option<[u8; 3]>, u32, u32);

/// Replays a file of recorded episodes, or all such files of a folder, whose names end in `.jsonl`.
///
/// # Errors
///
/// What cannot be read, or is no recording.
pub fn replay(path: &Path) -> io::Result<Report> {
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            files.push(entry?.path());
        }
        files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut report = Report::default();
    for file in files {
        report.files += 1;
        for line in BufReader::new(File::open(&file)?).lines() {
            replay_line(&line?, &mut report)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
    Ok(report)
}

/// Replays one recorded episode.
pub(crate) fn replay_line(line: &str, report: &mut Report) -> Result<(), serde_json::Error> {
    let trace: Trace = serde_json::from_str(line)?;
    report.traces += 1;
    report.records += trace.steps.len() + 1;
    if let Some(difference) = difference(&trace) {
        report.mismatches += 1;
        if report.described.len() < DESCRIBED {
            report.described.push(format!("{} of seed {}: {difference}", trace.level, trace.seed));
        }
    }
    Ok(())
}

fn difference(trace: &Trace) -> Option<String> {
    let Some(level) = Level::find(&trace.level) else { return Some("no such level".to_owned()) };
    let (mut episode, view) = match Episode::new(level, trace.seed) {
        Ok(made) => made,
        Err(error) => return Some(error.to_string()),
    };
    if *trace.mission != **episode.mission() {
        return Some(format!("mission `{}`, not `{}`", episode.mission(), trace.mission));
    }
    if trace.max_steps != episode.max_steps() {
        return Some(format!("{} steps, not {}", episode.max_steps(), trace.max_steps));
    }
    let mut found = shown(&episode, &view);
    if trace.level.ends_with("Carrying-v0") {
        // What is carried was shown where it stood.
        found.4 = trace.start.4;
    }
    if found != trace.start {
        return Some(format!("begins with {found:?}, not {:?}", trace.start));
    }
    for (number, (action, reward, terminated, truncated, expected)) in
        trace.steps.iter().enumerate()
    {
        let Some(action) = Action::ALL.get(usize::from(*action)) else {
            return Some(format!("step {number}: no action {action}"));
        };
        let outcomes = episode.step(*action);
        if (outcomes.reward, outcomes.terminated, outcomes.truncated)
            != (*reward, *terminated, *truncated)
        {
            return Some(format!(
                "step {number}, `{}`: {outcomes:?}, not {reward}, {terminated}, {truncated}",
                action.words()
            ));
        }
        let found = shown(&episode, &episode.view());
        if found != *expected {
            return Some(format!(
                "step {number}, `{}`: {found:?}, not {expected:?}",
                action.words()
            ));
        }
    }
    None
}

fn shown(episode: &Episode, view: &View) -> Shown {
    let world = episode.world();
    let mut grid = Vec::with_capacity(world.cells.len() * 3);
    for x in 0..world.width {
        for y in 0..world.height {
            grid.extend(world.code(world.get(super::Position { x, y })));
        }
    }
    let agent = episode.agent();
    let sums = (crc32(&grid), crc32(view.codes.as_flattened()));
    Shown(agent.x, agent.y, episode.direction(), episode.carrying(), sums.0, sums.1)
}

/// The cyclic redundancy check of zlib.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded by `scripts/record_minigrid.py`: an episode or two of every level.
    const RECORDED: &str = include_str!("../../tests/fixtures/minigrid.jsonl");

    #[test]
    fn episodes_are_those_of_the_package() {
        let mut report = Report::default();
        RECORDED.lines().for_each(|line| replay_line(line, &mut report).unwrap());
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
        assert!(report.traces >= Level::all().len(), "{}", report.traces);
    }

    #[test]
    fn what_differs_is_told() {
        let line = RECORDED.lines().next().unwrap();
        let other = line.replacen("\"mission\":\"", "\"mission\":\"not ", 1);
        let mut report = Report::default();
        replay_line(&other, &mut report).unwrap();
        assert_eq!(report.mismatches, 1);
        assert!(report.described[0].contains("mission"), "{:?}", report.described);
        assert!(replay_line("{}", &mut report).is_err());
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
