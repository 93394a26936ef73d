//! testthat and `R CMD check`.

use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, words};

/// Contexts by their marks, and what is listed as failed, which holds against them.
pub(in crate::log) fn v1() -> Reader {
    Reader::python_lines(Testthat::default())
}

#[derive(Default)]
struct Testthat {
    is_in_failures: bool,
    has_ended: bool,
    listed: Statuses,
}

impl LineParser for Testthat {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        fn name(name: &str) -> String {
            let time = pattern!(r"\s*\[\s*\d+(?:\.\d+)?\s*[a-zA-Z]+\]$");
            strip(&time.replace_all(strip(name), "")).to_owned()
        }
        let line = strip(line);
        for (context, status) in [
            (pattern!(r"^✔\s+\|[^|]+\|\s+(.+)$"), Passed),
            (pattern!(r"^✖\s+\|[^|]+\|\s+(.+)$"), Failed),
        ] {
            if let Some(groups) = context.captures(line) {
                tests.set(name(&groups[1]), status);
            }
        }
        if self.has_ended {
            return;
        }
        if line.starts_with("── Failed tests ──") || line.starts_with("== Failed tests ==")
        {
            self.is_in_failures = true;
        } else if self.is_in_failures {
            self.has_ended = line.starts_with("[ FAIL") || line.starts_with("══ Results ══");
            for (listed, status) in [
                (pattern!(r"^Failure\s+\([^)]+\):\s+(.+)$"), Failed),
                (pattern!(r"^Error\s+\([^)]+\):\s+(.+)$"), Error),
            ] {
                if let Some(groups) = listed.captures(line) {
                    self.listed.set(name(&groups[1]), status);
                }
            }
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        tests.extend(std::mem::take(&mut self.listed));
    }
}

fn outcome(word: &str) -> Option<TestStatus> {
    Some(match word {
        "OK" | "NOTE" | "NOTES" => Passed,
        "WARNING" | "WARNINGS" | "FAIL" | "FAILED" => Failed,
        "ERROR" | "ERRORS" => Error,
        "SKIPPED" => Skipped,
        _ => return None,
    })
}

/// `* checking <what> ... OK`, the word perhaps some lines below.
pub(in crate::log) fn v2() -> Reader {
    Reader::python_lines(Check(None))
}

struct Check(Option<String>);

impl LineParser for Check {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        let line = strip(line);
        if line.is_empty() {
            return;
        }
        if let Some(waiting) = &self.0 {
            match words(line.trim_matches(['.', ':', '!'])).next() {
                Some(word) => {
                    if let Some(status) = outcome(&word.to_uppercase()) {
                        tests.set(waiting.as_str(), status);
                        self.0 = None;
                    }
                }
                None => tests.raise("a line of dots: list index out of range"),
            }
        } else if let Some(groups) = pattern!(r"^\* checking (.+?) \.\.\. ([A-Z]+)$").captures(line)
        {
            tests.set(&groups[1], outcome(&groups[2]).unwrap_or(Passed));
        } else if let Some(groups) = pattern!(r"^\* checking (.+?) \.\.\.$").captures(line) {
            self.0 = Some(groups[1].to_owned());
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        if let Some(waiting) = self.0.take() {
            tests.set_default(waiting, Passed);
        }
    }
}
