//! Suites that are headings, and tests indented below them.

use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::log::{LogContext, LogError};
use crate::python_text::{indent, pattern, strip, without_escapes};

/// The headings above a line, outermost first, with how far they are indented.
#[derive(Default)]
pub(super) struct Suites(Vec<(String, usize)>);

impl Suites {
    /// An indented line is a heading, and ends those that are not indented less.
    pub(super) fn see(&mut self, line: &str, tests: &mut Statuses) {
        let indent = indent(line);
        if indent > 0 && tests.has_room(line.len()) {
            while self.0.last().is_some_and(|(_, outer)| *outer >= indent) {
                self.0.pop();
            }
            self.0.push((strip(line).to_owned(), indent));
        }
    }

    pub(super) fn join(&self, separator: &str) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.join(separator)
    }

    /// The test's name behind those of its suites.
    fn name(&self, test: &str) -> String {
        match self.0.is_empty() {
            true => test.to_owned(),
            false => format!("{} - {test}", self.join(" - ")),
        }
    }
}

/// Alibaba's next: Karma, and Cypress at version 1.27.
pub(in crate::log) fn next(context: &LogContext<'_>) -> Reader {
    Reader::Whole(if context.version == "1.27" { next_cypress } else { next_karma })
}

fn next_karma(log: &str, tests: &mut Statuses) {
    let log = without_escapes(log);
    let log = pattern!(r"(?s)AssertionError:\s+#([\s\S]*?)\n\n").replace_all(&log, "");
    let mut suites = Suites::default();
    for run in log.split(" xvfb-run ").skip(1) {
        let run = run.rsplit("Starting browser Chrome").next().unwrap_or(run);
        for line in run.split('\n') {
            if line.starts_with("TOTAL") {
                break;
            }
            let stripped = strip(line);
            if ["ERROR", "LOG", "WARN", "Check", "in"].iter().any(|word| stripped.starts_with(word))
            {
                continue;
            }
            if let Some(groups) = pattern!(r"^.*?✗\s*(.*)").captures(line) {
                tests.set(suites.name(&groups[1]), Failed);
            } else if let Some(groups) = pattern!(r"^.*?✓\s*(.*)").captures(line) {
                tests.set(suites.name(&groups[1]), Passed);
            } else {
                suites.see(line, tests);
            }
        }
    }
}

fn next_cypress(log: &str, tests: &mut Statuses) {
    let heading = pattern!(r"Running:(.*)\)\n{3}\s{2}(.*)\n");
    let headings: Vec<_> = heading.captures_iter(log).collect();
    for (index, groups) in headings.iter().enumerate() {
        let end = |groups: &regex::Captures<'_>| groups.get(0).map_or(0, |whole| whole.end());
        let next = headings.get(index + 1).and_then(|groups| groups.get(0));
        let section = &log[end(groups)..next.map_or(log.len(), |whole| whole.start())];
        for (pattern, status) in [
            (pattern!(r"(?m)^\s{4}\d+\)\s(.*)"), Failed),
            (pattern!(r"(?m)^\s{4}✓\s(.*)\("), Passed),
        ] {
            for test in pattern.captures_iter(section) {
                tests.set(format!("{}: {}", &groups[2], strip(&test[1])), status);
            }
        }
    }
}

/// lighthouse: Mocha or Jest, as its version has it.
pub(in crate::log) fn lighthouse(context: &LogContext<'_>) -> Result<Reader, LogError> {
    if matches!(context.version, "9.5" | "10.0" | "10.2") {
        return Ok(Reader::Whole(lighthouse_mocha));
    }
    match strip(context.version).parse::<f64>() {
        Ok(version) if version >= 3.0 => Ok(super::jest::files()),
        Ok(_) => Ok(Reader::Whole(lighthouse_json)),
        Err(_) => Err(LogError::Malformed {
            problem: format!("could not convert string to float: `{}`", context.version),
        }),
    }
}

fn lighthouse_mocha(log: &str, tests: &mut Statuses) {
    for run in pattern!(r"running\s\d+\stest\sfiles").split(log).skip(1) {
        let end = pattern!(r"\d+\spassing").find(run).map_or(run.len(), |found| found.start());
        let mut suites = Suites::default();
        for line in strip(&run[..end]).split('\n') {
            let stripped = strip(line);
            let fit = [
                (pattern!(r"^✔\s(.*)\s\(\d+m+s\)"), Passed),
                (pattern!(r"^✔\s(.*)"), Passed),
                (pattern!(r"^\d+\)\s(.*)\s\(\d+m+s\)"), Failed),
                (pattern!(r"^\d+\)\s(.*)"), Failed),
            ]
            .into_iter()
            .find_map(|(pattern, status)| Some((pattern.captures(stripped)?, status)));
            match fit {
                Some((groups, status)) => tests.set(suites.name(&groups[1]), status),
                None => suites.see(line, tests),
            }
        }
    }
}

/// Titles that Mocha's JSON has between two texts.
fn titles(tests: &mut Statuses, section: &str, status: crate::TestStatus) {
    for groups in pattern!(r#""fullTitle":\s"(.*)",\n"#).captures_iter(section) {
        tests.set(&groups[1], status);
    }
}

/// What stands behind the last `from`, and in that before the last `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let text = text.rsplit(from).next().unwrap_or(text);
    text.rsplit_once(to).map_or(text, |(before, _)| before)
}

fn lighthouse_json(log: &str, tests: &mut Statuses) {
    for run in log.split("./node_modules/.bin/mocha --reporter json").skip(1) {
        titles(tests, between(run, r#""passes": ["#, "]"), Passed);
        titles(tests, between(run, r#""failures": ["#, "],"), Failed);
    }
}

/// cypress' runs of Mocha, as JSON.
pub(in crate::log) fn cypress(log: &str, tests: &mut Statuses) {
    let Some((runs, _)) = log.rsplit_once("../..") else { return };
    for run in runs.split("../..") {
        titles(tests, between(run, "  \"passes\": [", "  }"), Passed);
        titles(tests, between(run, "  \"failures\": [", "  ],"), Failed);
    }
}

/// plotly.js: suites behind dashes, tests behind stars.
pub(in crate::log) fn plotly_js() -> Reader {
    let mut suites: Vec<String> = Vec::new();
    let mut spaces = 0;
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        let suite = pattern!(r"^(\s+)-\s+(.*?)\s+:").captures(line);
        let test = || pattern!(r"^(\s+)\*\s+(.*?)\s+:\s*(.*)").captures(line);
        let is_suite = suite.is_some();
        let Some(groups) = suite.or_else(test) else { return };
        let found = groups[1].chars().count();
        if found <= spaces {
            suites.clear();
        }
        if is_suite {
            if tests.has_room(groups[2].len()) {
                suites.push(groups[2].to_owned());
                spaces = found;
            }
            return;
        }
        let mut name = suites.join(".");
        if !suites.is_empty() {
            name.push('.');
        }
        name.push_str(&groups[2]);
        let outcome = groups[3].to_lowercase();
        let has_failed = !outcome.contains("ok") || outcome.contains("failed");
        tests.set(name, if has_failed { Failed } else { Passed });
    })
}
