//! Mocha, in its `spec` reporter and in JSON, and Jasmine.

use super::native::{count, counted};
use super::rules::{Rules, Trim, last};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

/// highlight.js: tests below one heading, until the summary.
pub(in crate::log) fn highlightjs() -> Reader {
    fn without_time(name: &str) -> String {
        strip(&pattern!(r"\(\d+ms\)").replace_all(name, "")).to_owned()
    }
    let (mut is_first, mut has_ended) = (true, false);
    let mut suite: Option<String> = None;
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        has_ended |= !is_first && pattern!(r"^[ \t]*\d+ passing").is_match(line);
        is_first = false;
        if has_ended {
            return;
        }
        let stripped = strip(line);
        let mark = ['✓', '✔'].into_iter().find(|mark| stripped.starts_with(*mark));
        let (separator, status) = match mark {
            Some(mark) => (mark, Passed),
            None if pattern!(r"^\d+\)").is_match(stripped) => (')', Failed),
            None => {
                if line.starts_with("  ") {
                    suite = Some(stripped.to_owned());
                }
                return;
            }
        };
        let name = without_time(line.split_once(separator).map_or("", |(_, name)| name));
        match &suite {
            Some(suite) => tests.set(format!("{suite}.{name}"), status),
            None => tests.set(name, status),
        }
    })
}

/// prism's runs with `--reporter json`.
pub(in crate::log) fn prismjs(log: &str, tests: &mut Statuses) {
    const COMMAND: &str = "./node_modules/.bin/mocha tests/run.js --reporter json";
    for run in log.split(COMMAND).skip(1) {
        let body = run.split_once('{').map_or(run, |(_, body)| body);
        let body = body.rsplit_once('}').map_or(body, |(body, _)| body);
        let results: serde_json::Value = match serde_json::from_str(&format!("{{{body}}}")) {
            Ok(results) => results,
            Err(error) => return tests.raise(error.to_string()),
        };
        for (key, status) in [("failures", Failed), ("passes", Passed)] {
            let Some(list) = results[key].as_array() else {
                return tests.raise(format!("no list `{key}`"));
            };
            for test in list {
                match test["fullTitle"].as_str() {
                    Some(title) => tests.set(title, status),
                    None => return tests.raise("a test without `fullTitle`"),
                }
            }
        }
    }
}

/// marked's Jasmine: numbers of failures.
pub(in crate::log) fn marked() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| {
        if let Some(groups) = pattern!(r"^\d+\)\s(.*)").captures(line) {
            tests.set(strip(&groups[1]), Failed);
        }
    })
}

/// ESLint's `--reporter min`, which prints failures only.
pub(in crate::log) fn eslint(log: &str, tests: &mut Statuses) {
    for groups in pattern!(r"(\s{2}\d+\))([\s\S]*?)\s+(?:(.*)Error)").captures_iter(log) {
        let name = pattern!(r"\s+").replace_all(&groups[2], " ");
        tests.set(strip(&name), Failed);
    }
}

/// Marks of all versions, and numbers of failures.
pub(in crate::log) fn swe_smith() -> Reader {
    Reader::lines(swe_smith_line)
}

fn swe_smith_line(line: &str, tests: &mut Statuses) {
    let line = strip(line);
    if let Some(groups) = pattern!(r"^\s*([✓✔]|✖|-)\s(.+?)(?:\s\((\d+\s*m?s)\))?$").captures(line)
    {
        let status = match &groups[1] {
            "✖" => Failed,
            "-" => Skipped,
            _ => Passed,
        };
        tests.set(&groups[2], status);
    } else if let Some(groups) =
        pattern!(r"^\s*\d+\)\s+(.+?)(?:\s\((\d+\s*m?s)\))?$").captures(line)
    {
        tests.set(&groups[1], Failed);
    }
}

/// Jasmine's first summary; its tests have no names.
pub(in crate::log) fn jasmine() -> Reader {
    let mut has_ended = false;
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        let summary =
            pattern!(r"(\d+)\s+specs?,\s+(\d+)\s+failures?(?:,\s+(\d+)\s+pending\s+specs?)?");
        let Some(groups) = (!has_ended).then(|| summary.captures(line)).flatten() else { return };
        has_ended = true;
        let number = |group| groups.get(group).map_or(0, |digits| count(digits.as_str()));
        let (total, failed, pending) = (number(1), number(2), number(3));
        let passed = total.saturating_sub(failed).saturating_sub(pending);
        counted(tests, "jasmine_spec_", 1, passed, Passed);
        counted(tests, "jasmine_spec_failed_", 1, failed, Failed);
        counted(tests, "jasmine_spec_pending_", 1, pending, Skipped);
    })
}

/// node's own runner, as marked has it.
pub(in crate::log) fn swe_smith_marked() -> Reader {
    let mut rules = Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^\s*✖\s(.*?)\s\([\.\d]+ms\)"), Failed),
            last(pattern!(r"^\s*✔\s(.*?)\s\([\.\d]+ms\)"), Passed),
        ],
    );
    rules.clean = |name| strip(name).to_owned();
    rules.lines()
}

/// TypeScript's Mocha, or how many tests there were.
pub(in crate::log) fn swe_smith_typescript(log: &str, tests: &mut Statuses) {
    log.split('\n').for_each(|line| swe_smith_line(line, tests));
    if tests.is_empty() {
        for (counts, prefix, status) in [
            (pattern!(r"(\d+)\s+passing"), "test_", Passed),
            (pattern!(r"(\d+)\s+failing"), "test_failed_", Failed),
        ] {
            let number = counts.captures(log).map_or(0, |groups| count(&groups[1]));
            counted(tests, prefix, 0, number, status);
        }
    }
}
