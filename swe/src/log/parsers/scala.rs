//! ScalaTest and munit under sbt.

use super::rules::{Rules, Trim, first, last};
use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

/// ScalaTest, tests by their own names.
pub(in crate::log) fn v1() -> Reader {
    Rules::new(
        Trim::Both,
        vec![
            last(
                pattern!(r"^\[info\]\s+-\s+(.*?)\s+\*\*\*\s+FAILED\s+\*\*\*\s+\([^)]+\)$"),
                Failed,
            ),
            last(pattern!(r"^\[info\]\s+-\s+(.*?)\s+!!!\s+CANCELED\s+!!!\s+\([^)]+\)$"), Skipped),
            last(pattern!(r"^\[info\]\s+-\s+(.*?)\s+!!!\s+IGNORED\s+!!!"), Skipped),
            first(pattern!(r"^\[info\]\s+-\s+(.*?)\s+\([^)]+\)$"), Passed),
        ],
    )
    .python_lines()
}

/// munit, with colours or without.
pub(in crate::log) fn v2() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let plain = pattern!(r"\x1b\[[0-9;]*m|\[(?:[0-9]{1,2}m)").replace_all(line, "");
        for (coloured, uncoloured, status) in [
            (
                pattern!(r"^\s*x\s+\[0m\[31m(.*?)\[0m\s+\[90m[\d.]+[mμn]?s\[0m\s*$"),
                pattern!(r"^\s*x\s+(.*?)\s+[\d.]+[mμn]?s\s*$"),
                Failed,
            ),
            (
                pattern!(r"^\s*\+\s+\[0m\[32m(.*?)\[0m\s+\[90m[\d.]+[mμn]?s\[0m\s*$"),
                pattern!(r"^\s*\+\s+(.*?)\s+[\d.]+[mμn]?s\s*$"),
                Passed,
            ),
        ] {
            if let Some(groups) = coloured.captures(line).or_else(|| uncoloured.captures(&plain)) {
                return tests.set(&groups[1], status);
            }
        }
    })
}

/// ScalaTest, tests behind the names of their suites.
pub(in crate::log) fn v3() -> Reader {
    const NOISE: [&str; 10] = [
        "Run completed",
        "Total number",
        "Suites:",
        "Tests:",
        "All tests",
        "compiling",
        "done compiling",
        "loading",
        "welcome to",
        "set current",
    ];
    fn status(word: &str) -> TestStatus {
        match word {
            "PASSED" => Passed,
            "FAILED" => Failed,
            "ERROR" | "ABORTED" => Error,
            "SKIPPED" | "IGNORED" | "CANCELED" | "CANCELLED" | "PENDING" => Skipped,
            other => TestStatus::from_word(other),
        }
    }
    let mut suite: Option<String> = None;
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if line.starts_with("[info] -") {
            let test = pattern!(r"^\[info\]\s+-\s+(.*?)(?:\s+\*{3}\s+([A-Z]+)\s+\*{3})?$");
            let Some(groups) = test.captures(line) else { return };
            let name = pattern!(r"\s*\(\d+\s+\w+\)$").replace_all(strip(&groups[1]), "");
            let name = match &suite {
                Some(suite) => format!("{suite}: {name}"),
                None => name.into_owned(),
            };
            match groups.get(2) {
                Some(word) => tests.set(name, status(word.as_str())),
                None => tests.set_default(name, Passed),
            }
        } else if let Some(groups) = pattern!(r"^\[info\]\s+([^\-].*)$").captures(line) {
            let heading = strip(&groups[1]);
            if !heading.is_empty() && !NOISE.iter().any(|noise| heading.contains(noise)) {
                suite = Some(heading.to_owned());
            }
        }
    })
}
