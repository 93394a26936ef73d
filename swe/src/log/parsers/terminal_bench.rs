//! terminal-bench's parsers, which know only passed and failed: what was skipped has passed.

use crate::TestStatus::{Failed, Passed};
use crate::log::statuses::Statuses;
use crate::python_text::{lines, pattern, strip, strip_start};

/// pytest's short summary.
pub(in crate::log) fn pytest(log: &str, tests: &mut Statuses) {
    let Some(heading) = pattern!(r"(?i)=+\s*short test summary info\s*=+").find(log) else {
        return tests.raise("no short test summary info in the log");
    };
    for line in lines(&log[heading.end()..]) {
        let line = match line.starts_with("FAILED") {
            // The last of those that do not overlap, as `split` finds them.
            true => line.match_indices(" - ").last().map_or(line, |(end, _)| &line[..end]),
            false => line,
        };
        let Some((word, path)) = strip_start(line).split_once(crate::python_text::is_space) else {
            continue;
        };
        let status = match word.trim_matches(':') {
            "PASSED" | "SKIPPED" | "XFAIL" => Passed,
            "FAILED" | "XPASS" | "ERROR" => Failed,
            _ => continue,
        };
        let path = strip(path);
        let name = path.split_once("::").map_or(path, |(_, name)| name);
        if !name.is_empty() {
            tests.set(name, status);
        }
    }
}

/// What stands between the first start and the last end has to be the word.
fn verdict(log: &str, tests: &mut Statuses, benchmark: &str, word: &str, needs_marks: bool) {
    let start = format!("{benchmark} results starts here");
    let end = format!("{benchmark} results ends here");
    if needs_marks && !(log.contains(&start) && log.contains(&end)) {
        return tests.raise(format!("no {benchmark} results between the marks"));
    }
    let block = log.split_once(&start).map_or(log, |(_, block)| block);
    let block = block.rsplit_once(&end).map_or(block, |(block, _)| block);
    tests.set("tests", if strip(block) == word { Passed } else { Failed });
}

pub(in crate::log) fn swebench(log: &str, tests: &mut Statuses) {
    verdict(log, tests, "SWEBench", "PASSED", true);
}

pub(in crate::log) fn sweperf(log: &str, tests: &mut Statuses) {
    verdict(log, tests, "SWE-Perf", "PASSED", true);
}

pub(in crate::log) fn mlebench(log: &str, tests: &mut Statuses) {
    verdict(log, tests, "MLEBench", "ALL TESTS PASSED", false);
}

pub(in crate::log) fn swelancer(log: &str, tests: &mut Statuses) {
    let log = log.to_lowercase();
    let has_completed = log.contains("user_tool") && log.contains("completed");
    let has_passed =
        log.contains("swe lancer success") || !log.contains("swe lancer failure") && has_completed;
    tests.set("swelancer_task", if has_passed { Passed } else { Failed });
}
