//! `cargo test`.

use super::rules::by_word;
use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

pub(in crate::log) fn swe_bench() -> Reader {
    by_word(
        pattern!(r"^test\s+(\S+)\s+\.\.\.\s+(\w+)$"),
        2,
        1,
        &[("ok", Passed), ("FAILED", Failed)],
    )
}

/// Names may hold blanks, as those of documentation tests do.
pub(in crate::log) fn swe_smith() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = line.strip_prefix("test ").unwrap_or(line);
        let status = match line {
            _ if line.contains("... ok") => Passed,
            _ if line.contains("... FAILED") => Failed,
            _ => return,
        };
        let name = line.rsplit_once(" ... ").map_or(line, |(name, _)| name);
        tests.set(strip(name), status);
    })
}
