//! Runners of C and C++ programs.

use super::rules::{Rules, Trim, by_pattern, by_word, first, last};
use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

/// redis' and valkey's `runtest`.
pub(in crate::log) fn redis() -> Reader {
    by_pattern(pattern!(r"^\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\((\d+\s*m?s)\))?$"), |groups| {
        Some(match &groups[1] {
            "ok" => (groups[2].to_owned(), Passed),
            // Where it failed is no part of the name.
            "err" => (pattern!(r"\s+in\s+\S+$").replace_all(&groups[2], "").into_owned(), Failed),
            _ => (groups[2].to_owned(), Skipped),
        })
    })
}

/// Automake, as jq has it.
pub(in crate::log) fn jq() -> Reader {
    by_word(pattern!(r"^\s*(PASS|FAIL):\s(.+)$"), 1, 2, &[("PASS", Passed), ("FAIL", Failed)])
}

/// micropython's `run-tests.py`.
pub(in crate::log) fn micropython() -> Reader {
    by_word(
        pattern!(r"^(pass|FAIL|skip)\s+(.+)$"),
        1,
        2,
        &[("pass", Passed), ("FAIL", Failed), ("skip", Skipped)],
    )
}

/// GoogleTest.
pub(in crate::log) fn googletest() -> Reader {
    by_word(
        pattern!(r"^.*\[\s*(OK|FAILED)\s*\]\s(.*)\s\(.*\)$"),
        1,
        2,
        &[("OK", Passed), ("FAILED", Failed)],
    )
}

/// pytest of C extensions: names are what follows the last `::`, and headings of failures hold.
pub(in crate::log) fn cpp() -> Reader {
    const FAILURES: &str =
        "=================================== FAILURES ===================================";
    let mut is_in_failures = false;
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if line.starts_with(FAILURES) {
            is_in_failures = true;
        } else if is_in_failures {
            let heading =
                pattern!(r"^___________________________ (.*?) ___________________________$");
            if let Some(groups) = heading.captures(line) {
                tests.set(&groups[1], Failed);
            }
        } else {
            for (pattern, status) in [
                (pattern!(r"^(.*?)\s+PASSED"), Passed),
                (pattern!(r"^(.*?)\s+FAILED"), Failed),
                (pattern!(r"^(.*?)\s+SKIPPED"), Skipped),
                (pattern!(r"^(.*?)\s+ERROR"), Error),
            ] {
                if let Some(groups) = pattern.captures(line) {
                    let name = groups[1].rsplit("::").next().unwrap_or_default();
                    return match status {
                        Passed => tests.set_default(name, status),
                        _ => tests.set(name, status),
                    };
                }
            }
        }
    })
}

/// `Test <name>  passed`.
pub(in crate::log) fn cpp_v2() -> Reader {
    Rules::new(
        Trim::Both,
        vec![
            first(pattern!(r"^Test\s+(.*?)\s+passed$"), Passed),
            last(pattern!(r"^Test\s+(.*?)\s+failed$"), Failed),
            last(pattern!(r"^Test\s+(.*?)\s+skipped$"), Skipped),
        ],
    )
    .python_lines()
}

/// `[12/414] <name>... OK`, groups of Botan's tests, and lines that hold a word of either kind.
pub(in crate::log) fn cpp_v3() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if line.is_empty() {
            return;
        }
        let botan =
            pattern!(r"(?i)^(.*?)\s+ran\s+(\d+)\s+tests\s+in\s+[\d.]+\s+(?:msec|sec)\s+(.+)$");
        if let Some(groups) = botan.captures(line) {
            let (name, count, tail) = (strip(&groups[1]), &groups[2], strip(&groups[3]));
            let has_failed = pattern!(r"(?i)\bfailed\b").is_match(tail);
            let status = if has_failed { Failed } else { Passed };
            return tests.set(format!("{name} ran {count} tests {tail}"), status);
        }
        let (skipped, failed, passed) = (
            pattern!(r"(?i)\bSKIPPED\b"),
            pattern!(r"(?i)\bFAILED\b|\bFAIL\b|\bFailure\b"),
            pattern!(r"(?i)\bOK\b|\bPASSED\b"),
        );
        let in_line = [(skipped, Skipped), (failed, Failed), (passed, Passed)]
            .into_iter()
            .find_map(|(pattern, status)| pattern.is_match(line).then_some(status));
        let named = pattern!(r"^(?:\[[0-9]+/[0-9]+\]\s*)?(.*?)\s*\.\.\.\s*(\w+)$");
        match (named.captures(line), in_line) {
            // The word is part of the line, so that what holds of it holds of the line.
            (Some(groups), status) => tests.set(strip(&groups[1]), status.unwrap_or(Error)),
            (None, Some(status)) => tests.set(line, status),
            (None, None) => {}
        }
    })
}

/// CTest, its lines of progress.
pub(in crate::log) fn cpp_v4() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let progress = pattern!(
            r"(?i)^\s*\d+/\d+\s+Test\s+#\d+:\s+(.+?)\s+\.+\s+(Passed|Failed|Skipped|Timeout)\b"
        );
        if let Some(groups) = progress.captures(line) {
            let status = match groups[2].to_uppercase().as_str() {
                "PASSED" => Passed,
                "FAILED" | "TIMEOUT" => Failed,
                _ => Skipped,
            };
            tests.set(strip(&groups[1]), status);
        }
    })
}

/// A count as the original reads it, of digits; what is too large for a number is more than is ever named.
pub(super) fn count(digits: &str) -> usize {
    digits
        .chars()
        .try_fold(0usize, |count, digit| {
            count.checked_mul(10)?.checked_add(digit.to_digit(10)? as usize)
        })
        .unwrap_or(usize::MAX)
}

/// Names for tests that a log only counts: `prefix1`, `prefix2` ..., from `from` on.
pub(super) fn counted(
    tests: &mut Statuses,
    prefix: &str,
    from: usize,
    count: usize,
    status: TestStatus,
) {
    for index in 0..count {
        if tests.is_spoiled() {
            return;
        }
        tests.set(format!("{prefix}{}", index + from), status);
    }
}

/// CTest, with the section of failures, and counts where no test is named.
pub(in crate::log) fn ctest(log: &str, tests: &mut Statuses) {
    let progress = pattern!(r"(?i)\s*\d+/\d+\s+Test\s+#\d+:\s+([\w\-/.]+)\s+\.+\s+(Passed|Failed)");
    for groups in progress.captures_iter(log) {
        let has_passed = groups[2].eq_ignore_ascii_case("passed");
        tests.set(&groups[1], if has_passed { Passed } else { Failed });
    }
    let section =
        pattern!(r"The following tests FAILED:\n((?:\s+\d+\s+-\s+[\w\-/.]+.*\n?)+)").captures(log);
    if let Some(section) = section {
        for line in crate::python_text::lines(&section[1]) {
            if let Some(groups) = pattern!(r"\d+\s+-\s+([\w\-/.]+)").captures(line) {
                tests.set(&groups[1], Failed);
            }
        }
    }
    if !tests.is_empty() {
        return;
    }
    let summary =
        pattern!(r"(?i)(\d+)%\s+tests\s+passed,\s+(\d+)\s+tests\s+failed\s+out\s+of\s+(\d+)");
    if let Some(groups) = summary.captures(log) {
        let passed = count(&groups[3]).saturating_sub(count(&groups[2]));
        counted(tests, "synthetic_pass_", 0, passed, Passed);
        counted(tests, "synthetic_fail_", 0, count(&groups[2]), Failed);
    }
}

/// GoogleTest, with skipped tests, and counts where no test is named.
pub(in crate::log) fn gtest(log: &str, tests: &mut Statuses) {
    for line in log.split('\n') {
        let line = strip(line);
        let fit = [
            (pattern!(r"^\[\s*(?:OK|PASSED)\s*\]\s+([\w:/.]+)"), Passed),
            (pattern!(r"^\[\s*FAILED\s*\]\s+([\w:/.]+)(?:\s+\(|$)"), Failed),
            (pattern!(r"^\[\s*(?:SKIPPED|DISABLED)\s*\]\s+([\w:/.]+)"), Skipped),
        ]
        .into_iter()
        .find_map(|(pattern, status)| Some((pattern.captures(line)?, status)));
        let Some((groups, status)) = fit else { continue };
        let name = &groups[1];
        let is_summary =
            name.chars().all(char::is_numeric) || pattern!(r"\d+\s+tests?[\.,]").is_match(line);
        if !is_summary {
            tests.set(name, status);
        }
    }
    if !tests.is_empty() || !pattern!(r"\[\s*=+\s*\]\s*(\d+)\s+tests?\s+from").is_match(log) {
        return;
    }
    for (summary, prefix, status) in [
        (pattern!(r"\[\s*PASSED\s*\]\s*(\d+)\s+tests?"), "test_passed_", Passed),
        (pattern!(r"\[\s*FAILED\s*\]\s*(\d+)\s+tests?"), "test_failed_", Failed),
    ] {
        if let Some(groups) = summary.captures(log) {
            counted(tests, prefix, 1, count(&groups[1]), status);
        }
    }
}

/// Catch2, from XML, from text, or from counts.
pub(in crate::log) fn catch2(log: &str, tests: &mut Statuses) {
    let xml = pattern!(
        r#"(?s)<TestCase\s+name="([^"]+)"[^>]*>.*?<OverallResult\s+success="(true|false)""#
    );
    for groups in xml.captures_iter(log) {
        tests.set(&groups[1], if &groups[2] == "true" { Passed } else { Failed });
    }
    if !tests.is_empty() {
        return;
    }
    let text = pattern!(r"(?mi)^([^.:\[\]]+?)\s*\.\.\.\s*(PASSED|FAILED)");
    for groups in text.captures_iter(log) {
        let name = strip(&groups[1]);
        if !name.is_empty() {
            let has_passed = groups[2].eq_ignore_ascii_case("passed");
            tests.set(name, if has_passed { Passed } else { Failed });
        }
    }
    if !tests.is_empty() {
        return;
    }
    let counts = pattern!(r"(?i)test cases:\s*(\d+)\s*\|\s*(\d+)\s*passed\s*\|\s*(\d+)\s*failed");
    if let Some(groups) = counts.captures(log) {
        counted(tests, "test_passed_", 1, count(&groups[2]), Passed);
        counted(tests, "test_failed_", 1, count(&groups[3]), Failed);
    } else if let Some(groups) =
        pattern!(r"(?i)All tests passed\s*\(.*?(\d+)\s+test cases?\)").captures(log)
    {
        counted(tests, "test_passed_", 1, count(&groups[1]), Passed);
    }
}

/// Boost.Test, from what it says of errors and of cases it enters, or from counts.
pub(in crate::log) fn boost_test(log: &str, tests: &mut Statuses) {
    for groups in pattern!(r#"(?i)error(?:\s+in)?\s+"([^"]+)""#).captures_iter(log) {
        tests.set(&groups[1], Failed);
    }
    for groups in pattern!(r#"Entering test (?:case|suite) "([^"]+)""#).captures_iter(log) {
        tests.set_default(&groups[1], Passed);
    }
    if !tests.is_empty() {
        return;
    }
    if log.contains("*** No errors detected") {
        let counts = pattern!(r"(?i)(\d+)\s+test cases?\s+(?:out of \d+ )?passed");
        match counts.captures(log) {
            Some(groups) => counted(tests, "test_passed_", 1, count(&groups[1]), Passed),
            None => tests.set("boost_test_suite", Passed),
        }
    } else if let Some(groups) = pattern!(r"\*\*\* (\d+) failure(?:s)? detected").captures(log) {
        counted(tests, "test_failed_", 1, count(&groups[1]), Failed);
    }
}

/// aria2's CppUnit: counts.
pub(in crate::log) fn cppunit(log: &str, tests: &mut Statuses) {
    if let Some(groups) = pattern!(r"OK \((\d+)\)").captures(log) {
        counted(tests, "test_", 0, count(&groups[1]), Passed);
    }
    let failures = pattern!(r"(?s)FAILURES!!!.*?Tests run: (\d+),\s+Failures: (\d+)");
    if let Some(groups) = failures.captures(log) {
        let (total, failed) = (count(&groups[1]), count(&groups[2]));
        counted(tests, "test_", 0, total.saturating_sub(failed), Passed);
        counted(tests, "test_fail_", 0, failed, Failed);
    }
}

/// AirSim's wrapper: GoogleTest's words anywhere, or that it ran.
pub(in crate::log) fn airsim(log: &str, tests: &mut Statuses) {
    for (pattern, status) in [
        (pattern!(r"\[\s+PASSED\s+\]\s+([\w.]+)"), Passed),
        (pattern!(r"\[\s+FAILED\s+\]\s+([\w.]+)"), Failed),
    ] {
        for groups in pattern.captures_iter(log) {
            tests.set(&groups[1], status);
        }
    }
    if tests.is_empty() && pattern!(r"Running (\d+) test").is_match(log) {
        tests.set("AirLibUnitTests.Main", Passed);
    }
}

/// Qt Test.
pub(in crate::log) fn qtest() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^PASS\s+:\s+(.+?)(?:\s*\(.*?\))?\s*$"), Passed),
            last(pattern!(r"^FAIL!\s+:\s+(.+?)(?:\s+.*)?\s*$"), Failed),
            last(pattern!(r"^SKIP\s+:\s+(.+?)(?:\s+.*)?\s*$"), Skipped),
        ],
    )
    .lines()
}
