//! Runners of Ruby.

use super::rules::{by_word, pattern_lines};
use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::LogContext;
use crate::log::LogError;
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, strip_end};

const OUTCOMES: &[(&str, TestStatus)] =
    &[(".", Passed), ("F", Failed), ("E", Failed), ("O", Skipped)];

/// minitest, verbose.
pub(in crate::log) fn minitest() -> Reader {
    by_word(pattern!(r"^(.+)\. .*=.*(\.|F|E).*$"), 2, 1, OUTCOMES)
}

/// cucumber, `--format progress`.
pub(in crate::log) fn cucumber() -> Reader {
    by_word(pattern!(r"^(.*) \.+(\.|F)"), 2, 1, OUTCOMES)
}

/// test-unit, verbose.
pub(in crate::log) fn unit() -> Reader {
    by_word(pattern!(r"^\s*(?:test: )?(.+):\s+(\.|E\b|F\b|O\b)"), 2, 1, OUTCOMES)
}

/// RSpec's JSON, rewritten as `<name> - passed`.
pub(in crate::log) fn rspec() -> Reader {
    by_word(pattern!(r"^(.+) - (passed|failed)"), 2, 1, &[("passed", Passed), ("failed", Failed)])
}

/// jekyll, whose runner depends on the instance.
pub(in crate::log) fn jekyll(context: &LogContext<'_>) -> Result<Reader, LogError> {
    match context.instance_id.split('-').nth(1) {
        Some("9141" | "8047" | "8167") => Ok(minitest()),
        Some("8761" | "8771") => Ok(cucumber()),
        _ => Err(unknown_instance(context)),
    }
}

pub(super) fn unknown_instance(context: &LogContext<'_>) -> LogError {
    LogError::Malformed { problem: format!("unknown instance id `{}`", context.instance_id) }
}

/// `rake test` with suites as headings; what is worse holds.
pub(in crate::log) fn v1() -> Reader {
    let mut suite: Option<String> = None;
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = strip_end(line);
        if line.is_empty() || line.starts_with("Finished in ") {
            return;
        }
        if pattern!(r"^[A-Z][A-Za-z0-9_]*$").is_match(line) {
            suite = Some(line.to_owned());
            return;
        }
        let result = pattern!(
            r"^\s*(test[^A-Z\n]+?)\s+(PASS|PASS(?:ED)?|FAIL|FAILURE|ERROR|SKIP|SKIPPED)\b(?:\s*\([0-9.]+s\))?$"
        );
        let Some(groups) = result.captures(line) else { return };
        let name = strip(&groups[1]);
        let name = suite.as_ref().map_or(name.to_owned(), |suite| format!("{suite}::{name}"));
        let status = match &groups[2] {
            "PASS" | "PASSED" => Passed,
            "FAIL" | "FAILURE" => Failed,
            "SKIP" | "SKIPPED" => Skipped,
            _ => Error,
        };
        let severity = |status| match status {
            Error => 2,
            Failed => 1,
            _ => 0,
        };
        if tests.get(&name).is_none_or(|known| severity(status) > severity(known)) {
            tests.set(name, status);
        }
    })
}

/// minitest with classes, `Class#test_name = 0.01 s = .`.
pub(in crate::log) fn v2() -> Reader {
    let result = pattern!(r"^(.+?#.+?)\s+=\s+[\d.]+\s+s\s+=\s+([.FES])$");
    Reader::python_lines(pattern_lines(result, |groups| {
        let status = match &groups[2] {
            "." => Passed,
            "S" => Skipped,
            _ => Failed,
        };
        Some((groups[1].to_owned(), status))
    }))
}
