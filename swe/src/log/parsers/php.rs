//! PHPUnit and Pest.

use super::rules::{Rules, Trim, last};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, strip_end};

fn testdox(clean: fn(&str) -> &str) -> Reader {
    // A test above all suites has Python's word for nothing as its suite.
    let mut suite = "None".to_owned();
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        if let Some(groups) = pattern!(r"^(\w.+) \(.+\)$").captures(line) {
            groups[1].clone_into(&mut suite);
        } else if let Some(groups) = pattern!(r"^\s*([✔✘↩])\s*(.*)$").captures(line) {
            let status = match &groups[1] {
                "✔" => Passed,
                "✘" => Failed,
                _ => Skipped,
            };
            tests.set(format!("{suite} > {}", clean(&groups[2])), status);
        }
    })
}

/// `--testdox`.
pub(in crate::log) fn swe_bench() -> Reader {
    testdox(|name| name)
}

/// Without the time behind a name.
pub(in crate::log) fn swe_rebench() -> Reader {
    testdox(|name| {
        let time = pattern!(r"(?i)\s*\[\s*\d+(?:\.\d+)?\s*(?:ms|s)\s*\]\s*$").find(name);
        strip(time.map_or(name, |found| &name[..found.start()]))
    })
}

/// Without suites.
pub(in crate::log) fn swe_smith() -> Reader {
    let mut rules = Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^\s*✔\s*(.+)$"), Passed),
            last(pattern!(r"^\s*✘\s*(.+)$"), Failed),
            last(pattern!(r"^\s*↩\s*(.+)$"), Skipped),
        ],
    );
    rules.clean = |name| strip(name).to_owned();
    rules.lines()
}

/// Pest, and files of tests that failed.
pub(in crate::log) fn v1() -> Reader {
    fn clean(name: &str) -> String {
        let name = strip_end(name);
        let name = pattern!(r"\s{2,}\d+(?:\.\d+)?s\s*$").replace(name, "");
        strip(&pattern!(r"\s+\d+(?:\.\d+)?s\s*$").replace(&name, "")).to_owned()
    }
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip_end(line);
        let stripped = strip(line);
        let is_noise = ["___", "---", "Tests:", "Duration:"];
        if stripped.is_empty() || is_noise.iter().any(|noise| stripped.starts_with(noise)) {
            return;
        }
        if let Some(groups) = pattern!(r"(?i)^\s*FAIL(?:ED)?\s+(\S.+)$").captures(line) {
            return tests.set(clean(&groups[1]), Failed);
        }
        // A name ends at the seconds, or else at the end of the line.
        for (with_time, plain, status) in [
            (
                pattern!(r"(?i)^\s*(?:⨯|x)\s+(.+?)\s{2,}\d+\.?\d*s\b.*$"),
                pattern!(r"(?i)^\s*(?:⨯|x)\s+(.+?)\s*$"),
                Failed,
            ),
            (
                pattern!(r"^\s*-\s+(.+?)\s{2,}\d+\.?\d*s\b.*$"),
                pattern!(r"^\s*-\s+(.+?)\s*$"),
                Skipped,
            ),
            (
                pattern!(r"^\s*(?:✓|✔)\s+(.+?)\s{2,}\d+\.?\d*s\b.*$"),
                pattern!(r"^\s*(?:✓|✔)\s+(.+?)\s*$"),
                Passed,
            ),
        ] {
            let Some(groups) = with_time.captures(line).or_else(|| plain.captures(line)) else {
                continue;
            };
            let name = clean(&groups[1]);
            return match status {
                _ if name.is_empty() => {}
                Passed => tests.set_default(name, status),
                _ => tests.set(name, status),
            };
        }
        if pattern!(r"(?i)\(skipped\)|\bSKIPPED\b").is_match(line) {
            let name = clean(&pattern!(r"^\s*(?:✓|✔|⨯|x|-)\s+").replace(line, ""));
            if !name.is_empty() {
                tests.set_default(name, Skipped);
            }
        }
    })
}
