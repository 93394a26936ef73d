//! `go test -v`.

use super::rules::{Rules, Trim, by_word, last};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::python_text::pattern;

pub(in crate::log) fn swe_bench() -> Reader {
    by_word(
        pattern!(r"^--- (PASS|FAIL|SKIP): (.+) \((.+)\)$"),
        1,
        2,
        &[("PASS", Passed), ("FAIL", Failed), ("SKIP", Skipped)],
    )
}

/// Packages that fail are tests as well.
pub(in crate::log) fn swe_smith() -> Reader {
    Rules::new(
        Trim::Both,
        vec![
            last(pattern!(r"^--- PASS: (\S+)"), Passed),
            last(pattern!(r"^--- FAIL: (\S+)"), Failed),
            last(pattern!(r"^FAIL:?\s?(.+?)\s"), Failed),
            last(pattern!(r"^--- SKIP: (\S+)"), Skipped),
        ],
    )
    .lines()
}
