//! pytest, in its summary (`-rA`) and in its lines of progress.

use std::borrow::Cow;

use super::rules::{Rules, Trim, last};
use crate::TestStatus;
use crate::TestStatus::{Error, ExpectedFailure, Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{before, pattern, strip, words};

/// The words that SWE-bench knows, in its order.
const WORDS: &[&str] = &["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"];

/// SWE-rebench knows no expected failures.
const FEWER_WORDS: &[&str] = &["PASSED", "FAILED", "SKIPPED", "ERROR"];

/// What versions differ in.
#[derive(Clone, Copy)]
struct Dialect {
    words: &'static [&'static str],
    /// `SKIPPED [3] a.py:7: reason` counts tests and names none.
    drops_counts: bool,
    /// In the second form: names are all that stands beside the word, not one word of it.
    has_whole_names: bool,
    /// In the second form: a word that stands alone raises.
    needs_names: bool,
}

const SWE_BENCH: Dialect =
    Dialect { words: WORDS, drops_counts: true, has_whole_names: true, needs_names: false };
const SWE_BENCH_4: Dialect =
    Dialect { words: WORDS, drops_counts: false, has_whole_names: false, needs_names: false };
const SWE_REBENCH: Dialect =
    Dialect { words: FEWER_WORDS, drops_counts: false, has_whole_names: false, needs_names: true };

/// Without colours, whose escapes go with all control characters. Most lines have none, and are not copied.
fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.bytes().any(|byte| byte == b'[' || (1..=0x1f).contains(&byte)) {
        return Cow::Borrowed(line);
    }
    let line = match line.contains('[') {
        true => pattern!(r"\[(\d+)m").replace_all(line, ""),
        false => Cow::Borrowed(line),
    };
    Cow::Owned(line.chars().filter(|letter| !('\u{1}'..='\u{1f}').contains(letter)).collect())
}

impl Dialect {
    fn begins(self, line: &str) -> bool {
        self.words.iter().any(|word| line.starts_with(word))
    }

    fn ends(self, line: &str) -> bool {
        self.words.iter().any(|word| line.ends_with(word))
    }

    fn is_count(self, status: &str, name: &str) -> bool {
        self.drops_counts && status == "SKIPPED" && pattern!(r"^\[\d+\]$").is_match(name)
    }

    /// A line that begins with a word, and the name in it.
    fn plain(self, line: &str, tests: &mut Statuses, name_of: fn(&str) -> Cow<'_, str>) {
        if !self.begins(line) {
            return;
        }
        let line = if line.starts_with("FAILED") {
            Cow::Owned(line.replace(" - ", " "))
        } else {
            Cow::Borrowed(line)
        };
        let mut words = words(&line);
        let (Some(status), Some(name)) = (words.next(), words.next()) else { return };
        if !self.is_count(status, name) {
            tests.set(name_of(name), TestStatus::from_word(status));
        }
    }

    /// A line without colours, in which the word is first or last.
    fn second(self, line: &str, tests: &mut Statuses) {
        let line = without_colours(line);
        let begins = self.begins(&line);
        if !begins && !self.ends(&line) {
            return;
        }
        let line = match line.starts_with("FAILED") {
            true if self.has_whole_names => Cow::Borrowed(before(&line, " - ")),
            true => Cow::Owned(line.replace(" - ", " ")),
            false => Cow::Borrowed(&*line),
        };
        let words: Vec<&str> = words(&line).collect();
        let &[first, .., last] = &words[..] else {
            if self.needs_names {
                tests.raise("a status without a name: list index out of range");
            }
            return;
        };
        let (status, name) = match (begins, self.has_whole_names) {
            (true, true) => (first, words[1..].join(" ")),
            (true, false) => (first, words[1].to_owned()),
            (false, true) => (last, words[..words.len() - 1].join(" ")),
            (false, false) => (words[1], first.to_owned()),
        };
        if !(begins && self.is_count(first, words[1])) {
            tests.set(name, TestStatus::from_word(status));
        }
    }
}

fn whole(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

/// Of a parameter that is a path only the last part is kept, as the rest depends on the machine.
fn with_short_option(name: &str) -> Cow<'_, str> {
    let (Some(open), Some(close)) = (name.find('['), name.rfind(']')) else {
        return Cow::Borrowed(name);
    };
    if close < open {
        return Cow::Borrowed(name);
    }
    let (main, option) = (&name[..open], &name[open + 1..close]);
    if option.starts_with('/') && !option.starts_with("//") && !option.contains('*') {
        let file = option.rsplit('/').next().unwrap_or_default();
        return Cow::Owned(format!("{main}[/{file}]"));
    }
    Cow::Owned(format!("{main}[{option}]"))
}

fn plain(dialect: Dialect, name_of: fn(&str) -> Cow<'_, str>) -> Reader {
    Reader::lines(move |line: &str, tests: &mut Statuses| dialect.plain(line, tests, name_of))
}

pub(in crate::log) fn swe_bench() -> Reader {
    plain(SWE_BENCH, whole)
}

pub(in crate::log) fn swe_bench_4() -> Reader {
    plain(SWE_BENCH_4, whole)
}

pub(in crate::log) fn swe_rebench() -> Reader {
    plain(SWE_REBENCH, whole)
}

pub(in crate::log) fn options() -> Reader {
    plain(SWE_BENCH, with_short_option)
}

pub(in crate::log) fn options_4() -> Reader {
    plain(SWE_BENCH_4, with_short_option)
}

pub(in crate::log) fn options_rebench() -> Reader {
    plain(SWE_REBENCH, with_short_option)
}

fn second(dialect: Dialect) -> Reader {
    Reader::lines(move |line: &str, tests: &mut Statuses| dialect.second(line, tests))
}

pub(in crate::log) fn v2() -> Reader {
    second(SWE_BENCH)
}

pub(in crate::log) fn v2_4() -> Reader {
    second(SWE_BENCH_4)
}

pub(in crate::log) fn v2_rebench() -> Reader {
    second(SWE_REBENCH)
}

fn with_buttons(dialect: Dialect) -> Reader {
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        let line = line.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3");
        dialect.plain(&line, tests, whole);
    })
}

/// matplotlib's, whose parameters are printed otherwise from version to version.
pub(in crate::log) fn matplotlib() -> Reader {
    with_buttons(SWE_BENCH)
}

pub(in crate::log) fn matplotlib_4() -> Reader {
    with_buttons(SWE_BENCH_4)
}

/// With workers of pytest-xdist before the word, or percentages and seconds after it.
pub(in crate::log) fn nebo() -> Reader {
    fn status(word: &str) -> Option<TestStatus> {
        FEWER_WORDS.contains(&word).then(|| TestStatus::from_word(word))
    }
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = without_colours(line);
        let line = strip(&line);
        if let Some(groups) = pattern!(r"^\[gw\d+\]\s+\[[^\]]*\]\s+(\w+)\s+(.*)$").captures(line)
            && let Some(status) = status(&groups[1])
        {
            return tests.set(strip(before(&groups[2], " in ")), status);
        }
        let with_time = pattern!(
            r"^([^\s].*?)\s+(PASSED|FAILED|SKIPPED|ERROR)\s+\[[^\]]*\]\s+in\s+\d+(?:\.\d+)?s$"
        );
        if let Some(groups) = with_time.captures(line) {
            return tests.set(strip(&groups[1]), TestStatus::from_word(&groups[2]));
        }
        if let Some(groups) = pattern!(r"^(PASSED|FAILED|SKIPPED|ERROR)\s+(.*)$").captures(line) {
            tests.set(strip(before(&groups[2], " in ")), TestStatus::from_word(&groups[1]));
        }
    })
}

/// SWE-smith reads lines of progress; of words that fit, the last in SWE-bench's order holds.
pub(in crate::log) fn swe_smith() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^(\S+)\s+FAILED"), Failed),
            last(pattern!(r"^(\S+)\s+PASSED"), Passed),
            last(pattern!(r"^(\S+)\s+SKIPPED"), Skipped),
            last(pattern!(r"^(\S+)\s+ERROR"), Error),
            last(pattern!(r"^(\S+)\s+XFAIL"), ExpectedFailure),
        ],
    )
    .lines()
}

/// The word first.
pub(in crate::log) fn swe_smith_paramiko() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^FAILED\s(\S+)"), Failed),
            last(pattern!(r"^PASSED\s(\S+)"), Passed),
            last(pattern!(r"^SKIPPED\s(\S+)"), Skipped),
            last(pattern!(r"^ERROR\s(\S+)"), Error),
            last(pattern!(r"^XFAIL\s(\S+)"), ExpectedFailure),
        ],
    )
    .lines()
}

/// The word behind the worker of pytest-xdist.
pub(in crate::log) fn swe_smith_autograd() -> Reader {
    Rules::new(
        Trim::Nothing,
        vec![
            last(pattern!(r"^\[gw\d\]\sFAILED\s(\S+)"), Failed),
            last(pattern!(r"^\[gw\d\]\sPASSED\s(\S+)"), Passed),
            last(pattern!(r"^\[gw\d\]\sSKIPPED\s(\S+)"), Skipped),
            last(pattern!(r"^\[gw\d\]\sERROR\s(\S+)"), Error),
            last(pattern!(r"^\[gw\d\]\sXFAIL\s(\S+)"), ExpectedFailure),
        ],
    )
    .lines()
}

/// mypy's tests: a word anywhere, the name last.
pub(in crate::log) fn swe_smith_mypy() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| {
        for (word, status) in [("PASSED", Passed), ("FAILED", Failed)] {
            if line.contains(word) {
                let name = words(line).next_back().unwrap_or_default();
                return tests.set(name, status);
            }
        }
    })
}

/// The short summary alone; names are the parts behind the file.
pub(in crate::log) fn r2e_gym(log: &str, tests: &mut Statuses) {
    const HEADING: &str = "short test summary info";
    let Some(summary) = log.split(HEADING).nth(1) else { return };
    for line in strip(summary).split('\n') {
        let name = || line.split("::").skip(1).collect::<Vec<_>>().join(".");
        if line.contains("PASSED") {
            tests.set(name(), Passed);
        } else if line.contains("FAILED") {
            tests.set(before(&name(), " - "), Failed);
        } else if line.contains("ERROR") {
            tests.set(before(&name(), " - "), Error);
        }
    }
}
