//! Jest, vitest and runners that print like them: tests by their marks, files by `PASS` and `FAIL`.

use super::indented::Suites;
use super::native::{count, counted};
use super::ruby::unknown_instance;
use super::rules::{Rules, Trim, by_word, first, last, pattern_lines};
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::log::{LogContext, LogError};
use crate::python_text::{pattern, strip, strip_end};

/// `--verbose`.
pub(in crate::log) fn swe_bench() -> Reader {
    let result = pattern!(r"^\s*(✓|✕|○)\s(.+?)(?:\s\((\d+\s*m?s)\))?$");
    Reader::lines(pattern_lines(result, |groups| {
        let status = match &groups[1] {
            "✓" => Passed,
            "✕" => Failed,
            _ => Skipped,
        };
        Some((strip(&groups[2]).to_owned(), status))
    }))
}

/// Up to version 4, and for SWE-smith, names are not stripped.
pub(in crate::log) fn swe_bench_4() -> Reader {
    by_word(
        pattern!(r"^\s*(✓|✕|○)\s(.+?)(?:\s\((\d+\s*m?s)\))?$"),
        1,
        2,
        &[("✓", Passed), ("✕", Failed), ("○", Skipped)],
    )
}

/// `--json`, rewritten as `[PASSED] <name>`.
pub(in crate::log) fn json() -> Reader {
    by_word(
        pattern!(r"^\[(PASSED|FAILED)\]\s(.+)$"),
        1,
        2,
        &[("PASSED", Passed), ("FAILED", Failed)],
    )
}

/// vitest, `--reporter=verbose`.
pub(in crate::log) fn vitest() -> Reader {
    by_word(
        pattern!(r"^\s*(✓|×|↓)\s(.+?)(?:\s(\d+\s*m?s?|\[skipped\]))?$"),
        1,
        2,
        &[("✓", Passed), ("×", Failed), ("↓", Skipped)],
    )
}

/// vitest's files, without what stands in parentheses behind them.
pub(in crate::log) fn vitest_files() -> Reader {
    let mut rules = Rules::new(
        Trim::Both,
        vec![
            last(pattern!(r"^✓\s+(.+?)(?:\s+\([\.\d]+ms\))?$"), Passed),
            last(pattern!(r"^❯\s+(.+?)(?:\s+\(.*?\))?$"), Failed),
            last(pattern!(r"^✗\s+(.+?)(?:\s+\([\.\d]+ms\))?$"), Failed),
            last(pattern!(r"^○\s+(.+?)(?:\s+\([\.\d]+ms\))?$"), Skipped),
        ],
    );
    rules.clean = |name| strip(name.split('(').next().unwrap_or(name)).to_owned();
    rules.lines()
}

/// react-pdf's marks, with milliseconds at the end of a name or after it.
pub(in crate::log) fn swe_smith_react_pdf() -> Reader {
    let mut rules = Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^\s*✓\s(.*)\s\d+ms"), Passed),
            last(pattern!(r"^\s*✗\s(.*)\s\d+ms"), Failed),
            last(pattern!(r"^\s*✖\s(.*)"), Failed),
            last(pattern!(r"^\s*✓\s(.*)"), Passed),
        ],
    );
    rules.clean = |name| strip(name).to_owned();
    rules.lines()
}

/// drizzle-orm's tasks under Turborepo, or how many there were.
pub(in crate::log) fn swe_smith_drizzle_orm(log: &str, tests: &mut Statuses) {
    for line in log.split('\n') {
        if let Some(groups) = pattern!(r"^\s*(\S+?:test\S*)\s*:").captures(line) {
            tests.set_default(&groups[1], Passed);
        }
        if let Some((task, _)) = line.split_once(':').filter(|_| line.contains("ERROR")) {
            let task = strip(task);
            if task.to_lowercase().contains("test") {
                tests.set(task, Failed);
            }
        }
    }
    let summary = pattern!(r"Tasks:\s+(\d+)\s+successful,\s+(\d+)\s+total").captures(log);
    if let Some(groups) = summary.filter(|_| tests.is_empty()) {
        counted(tests, "turbo_task_", 0, count(&groups[1]), Passed);
        let failed = count(&groups[2]).saturating_sub(count(&groups[1]));
        counted(tests, "turbo_task_failed_", 0, failed, Failed);
    }
}

/// Files, with the seconds they took.
pub(in crate::log) fn files() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^PASS\s(.*)\s\([\d\.]+ms\)"), Passed),
            last(pattern!(r"^PASS\s(.*)\s\([\d\.]+\ss\)"), Passed),
            last(pattern!(r"^PASS\s(.*)\s\([\d\.]+s\)"), Passed),
            last(pattern!(r"^PASS\s(.*)"), Passed),
            last(pattern!(r"^FAIL\s(.*)\s\([\d\.]+ms\)"), Failed),
            last(pattern!(r"^FAIL\s(.*)\s\([\d\.]+\ss\)"), Failed),
            last(pattern!(r"^FAIL\s(.*)\s\([\d\.]+s\)"), Failed),
            last(pattern!(r"^FAIL\s(.*)"), Failed),
        ],
    )
    .lines()
}

/// Without the time at the end of a line.
pub(in crate::log) fn files_rebench() -> Reader {
    let mut rules = Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^PASS\s(.*?)(?:\s\([\d.]+\s*(?:ms|s)\))?$"), Passed),
            last(pattern!(r"^FAIL\s(.*?)(?:\s\([\d.]+\s*(?:ms|s)\))?$"), Failed),
        ],
    );
    rules.clean = |name| strip_end(name).to_owned();
    rules.lines()
}

fn all_files(log: &str, tests: &mut Statuses, clean: fn(&str) -> &str) {
    for (pattern, status) in
        [(pattern!(r"(?m)^FAIL\s(.*)"), Failed), (pattern!(r"(?m)^PASS\s(.*)"), Passed)]
    {
        for groups in pattern.captures_iter(log) {
            tests.set(clean(strip(&groups[1])), status);
        }
    }
}

/// emotion's files; passes hold against failures.
pub(in crate::log) fn emotion(log: &str, tests: &mut Statuses) {
    all_files(log, tests, |name| name);
}

/// grommet's files, without their seconds; passes hold against failures.
pub(in crate::log) fn grommet(log: &str, tests: &mut Statuses) {
    all_files(log, tests, |name| {
        let seconds = pattern!(r"\s\([\d\.]+\s?(?:ms|s)\)$").find(name);
        seconds.map_or(name, |found| &name[..found.start()])
    });
}

/// immutable.js, whose runner depends on the instance.
pub(in crate::log) fn immutable_js(context: &LogContext<'_>) -> Result<Reader, LogError> {
    jest_or_json(context, swe_bench)
}

/// Up to version 4 with that version's Jest.
pub(in crate::log) fn immutable_js_4(context: &LogContext<'_>) -> Result<Reader, LogError> {
    jest_or_json(context, swe_bench_4)
}

fn jest_or_json(context: &LogContext<'_>, jest: fn() -> Reader) -> Result<Reader, LogError> {
    match context.instance_id.rsplit('-').next() {
        Some("2006") => Ok(jest()),
        Some("2005") => Ok(json()),
        _ => Err(unknown_instance(context)),
    }
}

/// wp-calypso's: each run of Jest with the suites around every test.
pub(in crate::log) fn calypso(log: &str, tests: &mut Statuses) {
    let mut suites = Suites::default();
    for run in log.split(" ./node_modules/.bin/jest ").skip(1) {
        for line in run.split('\n') {
            if line.starts_with("Test Suites") || line.starts_with("  ● ") {
                break;
            }
            let stripped = strip(line);
            let marks = [('✓', Passed), ('✕', Failed)];
            let mark = marks.into_iter().find(|(mark, _)| stripped.starts_with(*mark));
            let Some((mark, status)) = mark else {
                suites.see(line, tests);
                continue;
            };
            // A blank before the mark, one after it, and the milliseconds at the end of the line, are no part of it.
            let name = line
                .split_once(mark)
                .filter(|(before, _)| !before.is_empty())
                .and_then(|(_, name)| pattern!(r"^\s(.*)").captures(name)?.get(1))
                .map(|name| name.as_str());
            let name = match name {
                Some(name) if pattern!(r"\(\d+ms\)").is_match(line) => pattern!(r"^(.*)\(\d+ms\)$")
                    .captures(name)
                    .map(|groups| groups.get(1).map_or("", |name| name.as_str())),
                name => name,
            };
            match name {
                Some(name) => tests.set(strip(&format!("{} - {name}", suites.join(" - "))), status),
                None => {
                    tests.raise("a mark without a name: 'NoneType' object has no attribute 'group'")
                }
            }
        }
    }
}

/// Without the duration at the end of a name, `(53ms)` or `53 ms`.
pub(super) fn without_duration(name: &str) -> String {
    let duration = pattern!(r"(?i)\s*(?:\(\s*)?\d+(?:\.\d+)?\s*(?:ms|s)\s*(?:\))?\s*$");
    strip(&duration.replace_all(name, "")).to_owned()
}

fn with_marks(rules: Vec<super::rules::Rule>) -> Reader {
    let mut rules = Rules::new(Trim::Both, rules);
    rules.clean = without_duration;
    rules.needs_name = true;
    rules.python_lines()
}

/// Mocha, its failures by their headings.
pub(in crate::log) fn js() -> Reader {
    with_marks(vec![
        last(pattern!(r"^\s*-\s+(.*?)$"), Skipped),
        last(pattern!(r"^\s*\d+\)\s+(.*?):$"), Failed),
        last(pattern!(r"^\s*\[W\]\s*\d+\)\s+(.*?)$"), Failed),
        first(pattern!(r"^\s*✔\s+(.*?)$"), Passed),
    ])
}

/// Mocha, its failures by their numbers.
pub(in crate::log) fn js_2() -> Reader {
    with_marks(vec![
        last(pattern!(r"^\s*-\s+(.*?)$"), Skipped),
        last(pattern!(r"^\s*\d+\)\s+(.*?)$"), Failed),
        first(pattern!(r"^\s*✔\s+(.*?)$"), Passed),
    ])
}

/// Marks of many runners.
pub(in crate::log) fn js_4() -> Reader {
    const SKIP_MARKS: [&str; 5] = ["(skipped)", "[skip]", "[skipped]", "[pending]", "[todo]"];
    fn name_of(payload: &str) -> String {
        let mut payload = strip(payload);
        if payload.starts_with('[')
            && let Some((_, rest)) = payload.split_once("]:")
        {
            payload = strip(rest);
        }
        if let Some(rest) = payload.strip_prefix(':') {
            payload = strip(rest);
        }
        without_duration(payload)
    }
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let Some(symbol) = line.chars().next() else { return };
        let status = match symbol {
            '✔' | '✓' => Passed,
            '✘' | '✖' | '×' => Failed,
            '○' | '◌' | '◦' | '⚪' => Skipped,
            _ => {
                let lower = line.to_lowercase();
                if SKIP_MARKS.iter().any(|mark| lower.contains(mark)) {
                    let name = SKIP_MARKS
                        .iter()
                        .fold(line.to_owned(), |name, mark| name.replace(mark, ""));
                    let name = without_duration(&name);
                    if !name.is_empty() {
                        tests.set(name, Skipped);
                    }
                }
                return;
            }
        };
        let name = name_of(&line[symbol.len_utf8()..]);
        match status {
            _ if name.is_empty() => {}
            Passed => tests.set_default(name, status),
            _ => tests.set(name, status),
        }
    })
}

/// Marks of passes and numbers of failures, by whatever `npx` runs.
pub(in crate::log) fn npx() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip_end(line);
        if let Some(groups) = pattern!(r"^\s*✔\s+(.+?)(?:\s+\(\d+(?:ms)?\))?$").captures(line) {
            tests.set(strip(&groups[1]), Passed);
        } else if let Some(groups) = pattern!(r"^\s*\d+\)\s+(.+)$").captures(line) {
            let name = strip(&groups[1]);
            tests.set(pattern!(r"\s+\([^)]+\)$").replace_all(name, ""), Failed);
        }
    })
}
