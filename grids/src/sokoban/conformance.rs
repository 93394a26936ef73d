//! Holds rooms against those that the packages have made.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::{Rules, generate};
use crate::conformance::{Recorded, Report, replay_files};

/// A room as `scripts/record_sokoban.py` writes it: what never changes and what stands there, a digit a cell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    rules: RecordedRules,
    size: usize,
    boxes: usize,
    seed: u64,
    fixed: String,
    state: String,
}

/// Whose room it is.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedRules {
    Gym,
    TextArena,
}

/// Compares the rooms of a file of recordings, or of all such files of a folder, whose names end in `.jsonl`, with those that
/// are made here of the same seeds.
///
/// # Errors
///
/// What cannot be read, or is no recording.
pub fn replay(path: &Path) -> io::Result<Report> {
    replay_files::<Trace>(path)
}

impl Recorded for Trace {
    fn num_records(&self) -> usize {
        1
    }

    fn name(&self) -> String {
        format!("{:?}, size {}, boxes {}, seed {}", self.rules, self.size, self.boxes, self.seed)
    }

    fn difference(&self) -> Option<String> {
        let rules = match self.rules {
            RecordedRules::Gym => Rules::Gym,
            RecordedRules::TextArena => Rules::TextArena,
        };
        let room = match generate(rules, self.size, self.size, self.boxes, self.seed) {
            Ok(room) => room,
            Err(error) => return Some(error.to_string()),
        };
        for (what, cells, recorded) in
            [("ground", room.fixed(), &self.fixed), ("room", room.state(), &self.state)]
        {
            let found: String = cells.iter().map(|it| char::from(b'0' + it)).collect();
            if found != *recorded {
                return Some(format!("its {what} is {found}, not {recorded}"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::replay_line;

    /// Recorded by `scripts/record_sokoban.py`.
    const ROOMS: &str = include_str!("../../tests/fixtures/sokoban.jsonl");

    #[test]
    fn rooms_are_those_of_the_packages() {
        let mut report = Report::default();
        ROOMS.lines().for_each(|line| replay_line::<Trace>(line, &mut report).unwrap());
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
        assert!(report.traces > 20);
        for rules in ["gym", "textarena"] {
            assert!(ROOMS.contains(&format!("\"rules\":\"{rules}\"")), "{rules}");
        }
    }

    #[test]
    fn rooms_that_differ_are_told() {
        let line = ROOMS.lines().next().unwrap();
        let told = |line: &str| {
            let mut report = Report::default();
            replay_line::<Trace>(line, &mut report).unwrap();
            report.described.pop().unwrap_or_default()
        };
        assert!(
            told(&line.replacen("\"fixed\":\"0", "\"fixed\":\"1", 1)).contains("its ground is")
        );
        assert!(told(&line.replacen("\"state\":\"0", "\"state\":\"1", 1)).contains("its room is"));
        assert!(told(&line.replacen("\"boxes\":1", "\"boxes\":9", 1)).contains("Gym, size 6"));
        assert!(replay_line::<Trace>("{}", &mut Report::default()).is_err());
    }
}
