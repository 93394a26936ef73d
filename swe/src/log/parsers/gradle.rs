//! Gradle, configured to print what becomes of every test.

use super::rules::by_word;
use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

/// A name may wait for its word, as processes print between the two.
pub(in crate::log) fn swe_bench() -> Reader {
    let mut waiting: Option<String> = None;
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let status = |word: &str| if word == "PASSED" { Passed } else { Failed };
        if let Some(groups) = pattern!(r"^([^>].+)\s+(PASSED|FAILED)$").captures(line) {
            tests.set(&groups[1], status(&groups[2]));
            waiting = None;
        } else if pattern!(r"^([^>]\S*\s+>\s+\S+)$").is_match(line) {
            waiting = Some(line.to_owned());
        } else if matches!(line, "PASSED" | "FAILED")
            && let Some(name) = waiting.take()
        {
            tests.set(name, status(line));
        }
    })
}

pub(in crate::log) fn swe_bench_4() -> Reader {
    by_word(
        pattern!(r"^([^>].+)\s+(PASSED|FAILED)$"),
        2,
        1,
        &[("PASSED", Passed), ("FAILED", Failed)],
    )
}

/// Seconds may follow the word.
pub(in crate::log) fn swe_rebench() -> Reader {
    by_word(
        pattern!(r"^([^>].+?)\s+(PASSED|FAILED)(?:\s+\(\d+(?:\.\d+)?s\))?$"),
        2,
        1,
        &[("PASSED", Passed), ("FAILED", Failed)],
    )
}
