//! Tasty, Hspec and HUnit.

use std::collections::BTreeSet;

use super::rules::{Rule, first, last};
use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{lines, pattern, strip, strip_end};

/// Lines of all three, by their marks and words.
pub(in crate::log) fn v1() -> Reader {
    let tasty =
        pattern!(r"^\s*(?P<name>.+?)\s*:\s*(?P<status>OK|PASS|FAIL|ERROR|SKIP|PENDING)(?:\b|\s|$)");
    let rules: Vec<Rule> = vec![
        first(pattern!(r"^\s+(.+?)\s+\[(?:✓|✔)\]\s*$"), Passed),
        last(pattern!(r"^\s+(.+?)\s+\[(?:✗|✘)\]\s*$"), Failed),
        first(pattern!(r"^\s*(?:✓|✔)\s+(.+?)(?:\s+\(.*?\))?\s*$"), Passed),
        last(pattern!(r"^\s*(?:✗|✘)\s+(.+?)\s*$"), Failed),
        last(pattern!(r"^\s*\d+\)\s+(.+?)\s*$"), Failed),
        last(pattern!(r"^###\s+Failure\s+in:\s+(.+)$"), Failed),
        last(pattern!(r"^###\s+Error\s+in:\s+(.+)$"), Error),
    ];
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = pattern!(r"\x1b\[[0-9;]*m").replace_all(line, "");
        let line = strip_end(&line);
        let noise = ["Test suite ", "Linking ", "Building ", "Running  "];
        if line.is_empty() || noise.iter().any(|noise| line.contains(noise)) {
            return;
        }
        if let Some(groups) = tasty.captures(line) {
            let status = match &groups["status"] {
                "OK" | "PASS" => Passed,
                "FAIL" => Failed,
                "ERROR" => Error,
                _ => Skipped,
            };
            return tests.set(strip(&groups["name"]), status);
        }
        let fit = rules.iter().find_map(|rule| Some((rule, rule.pattern.captures(line)?)));
        if let Some((rule, groups)) = fit {
            let name = strip(&groups[1]);
            match rule.keep {
                super::rules::Keep::First => tests.set_default(name, rule.status),
                super::rules::Keep::Last => tests.set(name, rule.status),
            }
        }
    })
}

/// Hspec's tree: what has nothing below it is a test.
pub(in crate::log) fn v2(log: &str, tests: &mut Statuses) {
    let lines: Vec<&str> = lines(log).collect();
    let failures = lines.iter().position(|line| strip(line) == "Failures:");
    let mut failed: BTreeSet<String> = BTreeSet::new();
    for line in lines.iter().skip(failures.map_or(lines.len(), |at| at + 1)) {
        let line = strip(line);
        let ends = ["To rerun use:", "Randomized with seed", "Finished in ", "Test suite "];
        if ends.iter().any(|end| line.starts_with(end)) {
            break;
        }
        if let Some(groups) = pattern!(r"^\s*\d+\)\s+(.*)$").captures(line) {
            failed.insert(strip(&groups[1]).split(',').map(strip).collect::<Vec<_>>().join("."));
        }
    }
    let end = failures.unwrap_or(lines.len());
    let mut stack: Vec<String> = Vec::new();
    let is_significant =
        |line: &&str| !matches!(strip(line), "" | "Golden and Actual output didn't change");
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let tree = lines.get(start(&lines)..end).unwrap_or_default();
    let mut tree = tree.iter().copied().filter(is_significant).peekable();
    while let Some(line) = tree.next() {
        let stripped = strip(line);
        let (name, status) = named(stripped);
        let level = spaces(line) / 2;
        if !tests.has_room(name.len() + level) {
            return;
        }
        stack.truncate(level);
        stack.resize(level, String::new());
        stack.push(name.to_owned());
        let has_below = tree.peek().is_some_and(|next| spaces(next) > spaces(line));
        if !has_below {
            let named = stack.iter().filter(|name| !name.is_empty()).map(String::as_str);
            tests.set(named.collect::<Vec<_>>().join("."), status);
        }
    }
    for name in failed {
        tests.set(name, Failed);
    }
}

fn named(line: &str) -> (&str, TestStatus) {
    let name = |groups: regex::Captures<'_>| groups.get(1).map_or(0, |name| name.end());
    if let Some(groups) = pattern!(r"^(.*?)\s+FAILED\s*\[\d+\]$").captures(line) {
        (strip(&line[..name(groups)]), Failed)
    } else if let Some(groups) = pattern!(r"(?i)^(.*?)\s+(?:PENDING|SKIPPED)\b.*$").captures(line) {
        (strip(&line[..name(groups)]), Skipped)
    } else {
        (line, Passed)
    }
}

/// Where the tree begins: behind the line that says so, or else at the first that looks like a module.
fn start(lines: &[&str]) -> usize {
    const NOISE: [&str; 13] = [
        "Downloading",
        "Building",
        "Installing",
        "Completed",
        "Starting",
        "Preprocessing",
        "Configuring",
        "Linking",
        "Resolving dependencies",
        "Build profile",
        "In order, the following will be built",
        "Error:",
        "Test suite ",
    ];
    let running = lines
        .iter()
        .position(|line| line.starts_with("Test suite ") && line.contains(": RUNNING..."));
    let module = || {
        lines.iter().position(|line| {
            !line.is_empty()
                && !line.starts_with(' ')
                && line.contains('.')
                && !line.contains("Running ")
                && !NOISE.iter().any(|noise| line.contains(noise))
        })
    };
    running.map(|at| at + 1).or_else(module).unwrap_or(0)
}
