//! Results in XML: JUnit's, whoever wrote them, and doctest's.

use roxmltree::{Document, Node, ParsingOptions};

use super::maven;
use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{lines, pattern, strip};

/// Nodes of a document at most; a result takes some three of them.
const MAX_NODES: u32 = 1 << 23;

fn document(text: &str) -> Result<Document<'_>, roxmltree::Error> {
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options)
}

fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.tag_name().name() == name && node.tag_name().namespace().is_none()
}

/// `node.findall(".//name")`: all below, without the node itself.
fn below<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.descendants().skip(1).filter(move |node| is(node, name))
}

fn has_child(node: Node<'_, '_>, name: &str) -> bool {
    node.children().any(|child| is(&child, name))
}

/// The first of the children that tells a status; none of them means that the test passed.
fn status_of(case: Node<'_, '_>, order: &[(&str, TestStatus)]) -> TestStatus {
    let told = order.iter().find(|(name, _)| has_child(case, name));
    told.map_or(Passed, |(_, status)| *status)
}

/// An attribute as Python prints it.
fn or_none<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    node.attribute(name).unwrap_or("None")
}

/// doctest's `-s -r=xml`.
pub(in crate::log) fn doctest(log: &str, tests: &mut Statuses) {
    const END: &str = "</doctest>";
    let Some(start) = log.find("<doctest") else { return };
    let Some(length) = log[start..].find(END) else {
        return tests.raise("the XML does not end");
    };
    let text = &log[start..start + length + END.len()];
    let document = match document(text) {
        Ok(document) => document,
        Err(error) => return tests.raise(error.to_string()),
    };
    for case in below(document.root_element(), "TestCase") {
        for subcase in below(case, "SubCase") {
            let mut has_failed = false;
            for node in subcase.descendants() {
                // Subcases within subcases are walked again and again; every step counts.
                if !tests.has_room(1) {
                    return;
                }
                has_failed |= is(&node, "Expression") && node.attribute("success") != Some("true");
            }
            let name = format!("{} > {}", or_none(case, "name"), or_none(subcase, "name"));
            tests.set(name, if has_failed { Failed } else { Passed });
        }
    }
}

/// All reports of a log, each from `<?xml` to `</testsuites>`; those that are no XML are passed over.
pub(in crate::log) fn combined_reports(log: &str, tests: &mut Statuses) {
    const END: &str = "</testsuites>";
    let mut rest = log;
    while let Some(start) = rest.find("<?xml") {
        let Some(length) = rest[start..].find(END) else { return };
        let end = start + length + END.len();
        if let Ok(document) = document(&rest[start..end]) {
            for case in below(document.root_element(), "testcase") {
                let order = [("failure", Failed), ("skipped", Skipped), ("error", Error)];
                let name = format!("{}::{}", or_none(case, "classname"), or_none(case, "name"));
                tests.set(name, status_of(case, &order));
            }
        }
        rest = &rest[end..];
    }
}

/// Gradle's reports, each from a line `<?xml` to a line `</testsuite>`.
pub(in crate::log) fn gradlew(log: &str, tests: &mut Statuses) {
    let mut start = None;
    let mut at = 0;
    for line in log.split_inclusive('\n') {
        let stripped = strip(line);
        let begins = stripped.starts_with("<?xml");
        if begins {
            start = Some(at);
        }
        at += line.len();
        if !begins
            && stripped.starts_with("</testsuite>")
            && let Some(start) = start.take()
            && let Ok(document) =
                document(log[start..at].strip_suffix('\n').unwrap_or(&log[start..at]))
        {
            for case in below(document.root_element(), "testcase") {
                let name = case.attribute("name").unwrap_or_default();
                let class = case.attribute("classname").unwrap_or_default();
                let status =
                    status_of(case, &[("skipped", Skipped), ("failure", Failed), ("error", Error)]);
                match class.is_empty() || name.is_empty() {
                    true => tests.set(name, status),
                    false => tests.set(format!("{name} ({class})"), status),
                }
            }
        }
    }
}

/// testthat's `junit` reporter: the first report.
pub(in crate::log) fn r_junit(log: &str, tests: &mut Statuses) {
    const END: &str = "</testsuites>";
    let Some(start) = log.find("<?xml") else { return };
    let text = &log[start..];
    let text = text.find(END).map_or(text, |end| &text[..end + END.len()]);
    let Ok(document) = document(text) else { return };
    for suite in below(document.root_element(), "testsuite") {
        for case in suite.children().filter(|child| is(child, "testcase")) {
            let name = case.attribute("name").unwrap_or_default();
            let class = case.attribute("classname").unwrap_or_default();
            let status =
                status_of(case, &[("failure", Failed), ("error", Error), ("skipped", Skipped)]);
            match class.is_empty() {
                true => tests.set(name, status),
                false => tests.set(format!("{class}::{name}"), status),
            }
        }
    }
}

/// SWE-smith's reading of Gradle's reports.
pub(in crate::log) fn gradle_junit(log: &str, tests: &mut Statuses) {
    for report in pattern!(r"(?s)<\?xml version.*?</testsuite>").find_iter(log) {
        let Ok(document) = document(report.as_str()) else { continue };
        let suite = document.root_element().attribute("name").unwrap_or_default();
        for case in below(document.root_element(), "testcase") {
            let class = case.attribute("classname").unwrap_or(suite);
            let name = format!("{class}.{}", case.attribute("name").unwrap_or_default());
            let order = [("failure", Failed), ("error", Failed), ("skipped", Skipped)];
            tests.set(name, status_of(case, &order));
        }
    }
}

/// Elements `testcase` among anything else, whole documents or not.
pub(in crate::log) fn junit(log: &str, tests: &mut Statuses) {
    const END: &str = "</testcase>";
    let mut at = 0;
    let mut has_ends = true;
    while let Some(found) = pattern!(r"<testcase\b([^>]*)>").captures_at(log, at) {
        let (Some(tag), Some(attributes)) = (found.get(0), found.get(1)) else { return };
        let attributes = attributes.as_str();
        at = tag.end();
        let (mut name, mut class) = ("", "");
        for attribute in pattern!(r#"(\w+)="([^"]*)""#).captures_iter(attributes) {
            let value = attribute.get(2).map_or("", |value| value.as_str());
            match &attribute[1] {
                "name" => name = value,
                "classname" => class = value,
                _ => {}
            }
        }
        if name.is_empty() {
            continue;
        }
        let mut content = "";
        if !strip(attributes).ends_with('/') {
            let end = if has_ends { log[tag.end()..].find(END) } else { None };
            has_ends = end.is_some();
            content = match end {
                Some(length) => {
                    at = tag.end() + length + END.len();
                    &log[tag.end()..tag.end() + length]
                }
                // An element that does not end is looked into only so far.
                None => {
                    let rest = &log[tag.end()..];
                    let end = rest.char_indices().nth(4096).map_or(rest.len(), |(end, _)| end);
                    &rest[..end]
                }
            };
        }
        let status = match content {
            _ if content.contains("<failure") => Failed,
            _ if content.contains("<error") => Error,
            _ if content.contains("<skipped") => Skipped,
            _ => Passed,
        };
        match class.is_empty() {
            true => tests.set(name, status),
            false => tests.set(strip(&format!("{class} {name}")), status),
        }
    }
}

fn is_zero(digits: &str) -> bool {
    digits.chars().all(|digit| digit == '0')
}

/// Surefire's classes and methods, or else reports in XML, or else a build per test.
pub(in crate::log) fn java_mvn(log: &str, tests: &mut Statuses) {
    let mut running: Option<&str> = None;
    let mut seen = Statuses::default();
    for line in lines(log) {
        let line = strip(line);
        if let Some(groups) =
            pattern!(r"^(?:\[INFO\]\s+)?Running\s+([A-Za-z0-9_$.]+)$").captures(line)
        {
            running = groups.get(1).map(|name| name.as_str());
            seen.set_default(&groups[1], Passed);
        } else if let Some(groups) = pattern!(
            r"^\[ERROR\]\s+(?P<class>[A-Za-z0-9_$.]+)\.(?P<method>[A-Za-z0-9_$.]+?)(?::(?P<line>\d+))?\b"
        )
        .captures(line)
        {
            let (class, method) = (&groups["class"], &groups["method"]);
            let is_exception = line.contains("Exception") && !line.contains("AssertionError");
            tests.set(format!("{class}.{method}"), if is_exception { Error } else { Failed });
            tests.set_default(class, Failed);
        } else if let Some(groups) = pattern!(
            r"Tests run:\s*(\d+),\s*Failures:\s*(\d+),\s*Errors:\s*(\d+),\s*Skipped:\s*(\d+)"
        )
        .captures(line)
        {
            let class = match line.rsplit_once(" in ") {
                Some((_, class)) => Some(strip(class).trim_end_matches(['.', ':', ';'])),
                None => running,
            };
            let status = match (is_zero(&groups[2]) && is_zero(&groups[3]), is_zero(&groups[4])) {
                (true, true) => Passed,
                (true, false) => Skipped,
                (false, _) => Failed,
            };
            if let Some(class) = class.filter(|class| !class.is_empty()) {
                tests.set_default(class, status);
            }
            running = None;
        }
    }
    let mut reports = Statuses::default();
    junit(log, &mut reports);
    tests.extend_default(reports);
    let mut builds = Statuses::default();
    if let Reader::Lines(mut parser) = maven::swe_bench_4() {
        log.split('\n').for_each(|line| parser.line(line, &mut builds));
    }
    tests.extend_default(builds);
    if tests.is_empty() {
        tests.extend(seen);
    }
}

/// Modules of a reactor, and the suite as a whole.
pub(in crate::log) fn java_mvn_v2() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let module = pattern!(
            r"^\[INFO\]\s+(?P<name>.+?)\s+\.\.+\s+(?P<status>SUCCESS|FAILURE|SKIPPED)(?:\s|\[|$)"
        );
        if let Some(groups) = module.captures(line) {
            let status = match &groups["status"] {
                "SUCCESS" => Passed,
                "FAILURE" => Failed,
                _ => Skipped,
            };
            return tests.set(&groups["name"], status);
        }
        let summary = pattern!(
            r"Tests run:\s*(\d+),\s*Failures:\s*(\d+),\s*Errors:\s*(\d+),\s*Skipped:\s*(\d+)"
        );
        if let Some(groups) = summary.captures(line) {
            let number = |group: usize| groups[group].trim_start_matches('0');
            let status = match () {
                () if !is_zero(&groups[2]) => Failed,
                () if !is_zero(&groups[3]) => Error,
                () if number(4) == number(1) => Skipped,
                () => Passed,
            };
            tests.set_default("__suite__", status);
        }
    })
}

/// Surefire's classes.
pub(in crate::log) fn kotlin_junit() -> Reader {
    let mut running: Option<String> = None;
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if let Some(groups) = pattern!(r"^Running\s+(.+)$").captures(line) {
            running = Some(groups[1].to_owned());
        } else if let Some(groups) = pattern!(
            r"^Tests run:\s+(\d+),\s+Failures:\s+(\d+),\s+Errors:\s+(\d+),\s+Skipped:\s+(\d+)"
        )
        .captures(line)
            && let Some(name) = running.take()
        {
            let status = match () {
                () if !is_zero(&groups[2]) || !is_zero(&groups[3]) => Failed,
                () if !is_zero(&groups[4]) => Skipped,
                () => Passed,
            };
            tests.set(name, status);
        }
    })
}
