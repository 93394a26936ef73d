//! `dotnet test`, xUnit.net.

use super::rules::{Rules, Trim, first, last};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, words};

pub(in crate::log) fn swe_rebench() -> Reader {
    Rules::new(
        Trim::End,
        vec![
            last(pattern!(r"^\[xUnit\.net\s+[\d:\.]+\]\s+(.+?)\s+\[FAIL\]$"), Failed),
            last(pattern!(r"^\s+Failed\s+(.+?)\s+\[.+?\]$"), Failed),
            last(pattern!(r"^\s+Skipped\s+(.+?)(?:\s+\[.+?\])?$"), Skipped),
            first(pattern!(r"^\s+Passed\s+(.+?)\s+\[.+?\]$"), Passed),
        ],
    )
    .python_lines()
}

/// The word, then the name.
pub(in crate::log) fn swe_smith() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        for (word, status) in [("Passed", Passed), ("Failed", Failed), ("Skipped", Skipped)] {
            if line.starts_with(word) {
                return match words(line).nth(1) {
                    Some(name) => tests.set(name, status),
                    None => {
                        tests.raise(format!("`{word}` without a name: list index out of range"));
                    }
                };
            }
        }
    })
}
