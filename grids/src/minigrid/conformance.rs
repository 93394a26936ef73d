//! Replays what the package has shown.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::{Action, Episode, Level, View};
use crate::conformance::{Recorded, Report, crc32, replay_files};

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
    replay_files::<Trace>(path)
}

impl Recorded for Trace {
    fn num_records(&self) -> usize {
        self.steps.len() + 1
    }

    fn name(&self) -> String {
        format!("{} of seed {}", self.level, self.seed)
    }

    fn difference(&self) -> Option<String> {
        difference(self)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::replay_line;

    /// Recorded by `scripts/record_minigrid.py`: an episode or two of every level.
    const RECORDED: &str = include_str!("../../tests/fixtures/minigrid.jsonl");

    #[test]
    fn episodes_are_those_of_the_package() {
        let mut report = Report::default();
        RECORDED.lines().for_each(|line| replay_line::<Trace>(line, &mut report).unwrap());
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
        assert!(report.traces >= Level::all().len(), "{}", report.traces);
    }

    #[test]
    fn what_differs_is_told() {
        let line = RECORDED.lines().next().unwrap();
        let other = line.replacen("\"mission\":\"", "\"mission\":\"not ", 1);
        let mut report = Report::default();
        replay_line::<Trace>(&other, &mut report).unwrap();
        assert_eq!(report.mismatches, 1);
        assert!(report.described[0].contains("mission"), "{:?}", report.described);
        assert!(replay_line::<Trace>("{}", &mut report).is_err());
    }
}
