//! XCTest.

use super::rules::{Rules, Trim, last};
use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::python_text::pattern;

pub(in crate::log) fn swe_rebench() -> Reader {
    Rules::new(
        Trim::Both,
        vec![
            last(pattern!(r"^Test Case '([^']+)'\s+passed\s+\([0-9.]+\s+seconds\)$"), Passed),
            last(pattern!(r"^Test Case '([^']+)'\s+failed\s+\([0-9.]+\s+seconds\)$"), Failed),
        ],
    )
    .python_lines()
}
