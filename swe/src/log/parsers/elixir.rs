//! ExUnit with `--trace`.

use super::rules::{Rules, Trim, first, last};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::python_text::pattern;

pub(in crate::log) fn swe_rebench() -> Reader {
    Rules::new(
        Trim::Both,
        vec![
            last(pattern!(r"^\*\s+test\s+(.*?)\s+\(skipped\)\s+\[L#\d+\]$"), Skipped),
            last(pattern!(r"^\d+\)\s+test\s+(.*?)\s+\([^)]+\)$"), Failed),
            first(pattern!(r"^\*\s+test\s+(.*?)\s+\([0-9]+(?:\.[0-9]+)?ms\)\s+\[L#\d+\]$"), Passed),
            first(pattern!(r"^\*\s+test\s+(.*?)\s+\[L#\d+\]$"), Passed),
        ],
    )
    .python_lines()
}
