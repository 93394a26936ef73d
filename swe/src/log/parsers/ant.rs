//! JUnit under Ant.

use super::rules::by_word;
use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::python_text::pattern;

pub(in crate::log) fn swe_bench() -> Reader {
    by_word(
        pattern!(r"^\s*\[junit\]\s+\[(PASS|FAIL|ERR)\]\s+(.*)$"),
        1,
        2,
        &[("PASS", Passed), ("FAIL", Failed), ("ERR", Failed)],
    )
}
