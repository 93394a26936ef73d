//! unittest as Django runs it, with `-v 2`, and as projects run it that SWE-smith has.

use super::rules::{Rules, Trim, last};
use crate::TestStatus::{Error, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{before, pattern, strip, strip_start, words};

/// Reads the log at once, as results are interrupted by what tests print, over several lines.
pub(in crate::log) fn swe_bench(log: &str, tests: &mut Statuses) {
    let mut previous = None;
    for line in log.split('\n') {
        let mut line = strip(line);
        if line.contains("--version is equivalent to version") {
            tests.set("--version is equivalent to version", Passed);
        }
        if line.contains(" ... ") {
            previous = Some(before(line, " ... "));
        }
        if let Some(suffix) =
            [" ... ok", " ... OK", " ...  OK"].into_iter().find(|suffix| line.ends_with(suffix))
        {
            // One migration of django-7188 prints its name before the test's on the same line.
            if line.starts_with("Applying sites.0002_alter_domain_unique...test_no_migrations") {
                line = strip(line.split_once("...").map_or(line, |(_, rest)| rest));
            }
            tests.set(line.strip_suffix(suffix).unwrap_or(line), Passed);
        }
        if line.contains(" ... skipped") {
            tests.set(before(line, " ... skipped"), Skipped);
        }
        for (ending, heading, status) in
            [(" ... FAIL", "FAIL:", Failed), (" ... ERROR", "ERROR:", Error)]
        {
            if line.ends_with(ending) {
                tests.set(before(line, ending), status);
            }
            if line.starts_with(heading) {
                match words(line).nth(1) {
                    Some(name) => tests.set(name, status),
                    None => tests.raise(format!("`{heading}` without a name")),
                }
            }
        }
        // The test passed, and printed something between the dots and the word.
        if strip_start(line).starts_with("ok")
            && let Some(name) = previous
        {
            tests.set(name, Passed);
        }
    }
    for interrupted in [
        pattern!(
            r"(?m)^(.*?)\s\.\.\.\sTesting against Django installed in ((?s:.*?)) silenced\)\.\nok$"
        ),
        pattern!(r"(?m)^(.*?)\s\.\.\.\sInternal Server Error: /(.*)/\nok$"),
        pattern!(r"(?m)^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$"),
    ] {
        for groups in interrupted.captures_iter(log) {
            tests.set(&groups[1], Passed);
        }
    }
}

/// python-slugify's tests.
pub(in crate::log) fn swe_smith_python_slugify() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^([a-zA-Z0-9_\-,\.\s\(\)']+)\s\.{3}\sok$"), Passed),
            last(pattern!(r"^([a-zA-Z0-9_\-,\.\s\(\)']+)\s\.{3}\sFAIL$"), Failed),
            last(pattern!(r"^([a-zA-Z0-9_\-,\.\s\(\)']+)\s\.{3}\sERROR$"), Error),
        ],
    )
    .lines()
}

/// tornado's tests.
pub(in crate::log) fn swe_smith_tornado() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| {
        if line.ends_with("... ok") {
            tests.set(before(line, " ... "), Passed);
        } else if line.contains(" ... skipped ") {
            tests.set(before(line, " ... "), Skipped);
        } else if line.starts_with("ERROR:") || line.starts_with("FAIL:") {
            let name: Vec<&str> = words(line).skip(1).take(2).collect();
            tests.set(name.join(" "), Failed);
        }
    })
}
