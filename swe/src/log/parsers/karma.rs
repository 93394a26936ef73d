//! Karma, and browsers that it runs.

use super::native::{count, counted};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, without_escapes};

/// preact's reporter: suites by how far they are indented.
pub(in crate::log) fn swe_bench() -> Reader {
    let (mut has_started, mut has_ended) = (false, false);
    let mut current: Option<usize> = None;
    let mut suites: Vec<String> = Vec::new();
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        has_ended |= line.starts_with("SUMMARY:");
        if has_ended {
            return;
        }
        if line.contains("Starting browser") {
            has_started = true;
            return;
        }
        let result = pattern!(r"^(\s*)?([✔✖])?\s(.*)$");
        let Some(groups) = has_started.then(|| result.captures(line)).flatten() else { return };
        let indent = groups.get(1).map_or(0, |indent| indent.as_str().chars().count());
        let Some(mark) = groups.get(2) else {
            if indent > 0 && current.is_none_or(|current| indent > current) {
                if tests.has_room(groups[3].len()) {
                    current = Some(indent);
                    suites.push(groups[3].to_owned());
                }
            } else if indent > 0 && current.is_some_and(|current| indent < current) {
                current = Some(indent);
                if suites.pop().is_none() {
                    tests.raise("a suite ends that never began: pop from empty list");
                }
            }
            return;
        };
        let mut name = suites.join(" > ");
        if !suites.is_empty() {
            name.push_str(" > ");
        }
        name.push_str(&groups[3]);
        tests.set(name, if mark.as_str() == "✔" { Passed } else { Failed });
    })
}

/// What comes of the captures of a pattern everywhere in a log.
fn failures(
    tests: &mut Statuses,
    log: &str,
    pattern: &regex::Regex,
    group: usize,
    is_squeezed: bool,
) {
    for groups in pattern.captures_iter(log) {
        if is_squeezed {
            let name = crate::python_text::pattern!(r"\s+").replace_all(&groups[group], " ");
            tests.set(strip(&name), Failed);
        } else {
            tests.set(&groups[group], Failed);
        }
    }
}

/// Chart.js: failures only.
pub(in crate::log) fn chart_js(log: &str, tests: &mut Statuses) {
    let log = without_escapes(log);
    let failure = pattern!(r"(?m)Chrome\s[\d\.]+[^\S\r\n]\(.+?\)[^\S\r\n](.*)FAILED$");
    failures(tests, &log, failure, 1, false);
}

/// bpmn-js: failures only.
pub(in crate::log) fn bpmn_js(log: &str, tests: &mut Statuses) {
    for (failure, group) in [
        (pattern!(r"2KPhantomJS\s[\d\.]+\s\(Linux\s[\d\.]+\)\s(.*)FAILED\n"), 1),
        (pattern!(r"2KPhantomJS\s[\d\.]+\s\(Linux\sx86_64\)\s(.*)FAILED\n"), 1),
        (pattern!(r"Chrome\sHeadless\s(.*)\s\(Linux\sx86_64\)\s(.*)FAILED\n"), 2),
        (pattern!(r"HeadlessChrome\s[\d\.]+\s\(Linux\s[\d\.]+\)\s(.*)FAILED\n"), 1),
    ] {
        failures(tests, log, failure, group, false);
    }
}

/// OpenLayers: failures only, of its browsers, of Mocha and of its renderings.
pub(in crate::log) fn openlayers(log: &str, tests: &mut Statuses) {
    for failure in [
        pattern!(r"Chrome\sHeadless\s[\d\.]+\s\(Linux\s\S+\)\s(.*)\sFAILED\n"),
        pattern!(r"Chrome\s[\d\.]+\s\(Linux\s\S+\)\s(.*)FAILED\n"),
        pattern!(r"(?m)^\s{2}\d+\)([\s\S]*?)Error:"),
        pattern!(r"(?m)^case\s(.*):\smismatch"),
    ] {
        failures(tests, log, failure, 1, true);
    }
}

/// SWE-smith counts: its tests have no names.
pub(in crate::log) fn swe_smith() -> Reader {
    Reader::lines(Counts::default())
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl LineParser for Counts {
    fn line(&mut self, line: &str, _: &mut Statuses) {
        for (most, pattern, group) in [
            (&mut self.passed, pattern!(r"Executed\s+(\d+)\s+of\s+\d+\s+SUCCESS"), 1),
            (&mut self.failed, pattern!(r"Executed\s+\d+\s+of\s+\d+\s+\((\d+)\s+FAILED\)"), 1),
            (&mut self.skipped, pattern!(r"Executed\s+\d+\s+of\s+(\d+)\s+\((\d+)\s+skipped\)"), 2),
        ] {
            if let Some(groups) = pattern.captures(line) {
                *most = (*most).max(count(&groups[group]));
            }
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        for (prefix, most, status) in [
            ("karma_unit_test_", self.passed, Passed),
            ("karma_unit_test_failed_", self.failed, Failed),
            ("karma_unit_test_skipped_", self.skipped, Skipped),
        ] {
            counted(tests, prefix, 1, most, status);
        }
    }
}
