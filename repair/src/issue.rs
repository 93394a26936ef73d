//! The text of an issue, from templates and what a failing test says. No model writes it.

use std::sync::LazyLock;

use rand::RngExt;
use regex::Regex;
use spar_core::Seed;

use crate::runner::TestResult;

/// Lines of a failure that are shown.
const MAX_LINES: usize = 24;
/// Letters of one of them.
const MAX_LETTERS: usize = 200;

/// What an issue is made from.
pub(crate) struct Failure<'a> {
    pub(crate) package: &'a str,
    pub(crate) version: &'a str,
    /// Name of the test that is shown.
    pub(crate) test: &'a str,
    pub(crate) result: &'a TestResult,
    /// How many tests fail.
    pub(crate) count: usize,
}

/// Beginnings, of which a seed takes one. `{what}` is what is tested, in words.
const OPENINGS: [&str; 5] = [
    "After a recent change, {what} does not behave as it did.",
    "I ran into a regression: {what} gives a wrong result.",
    "There seems to be a bug around {what}.",
    "Something is off with {what}.",
    "{what} worked before and is broken now.",
];

const TITLES: [&str; 4] = [
    "{package}: {what} is broken",
    "Wrong behaviour: {what}",
    "Regression in {what}",
    "{what} does not work as expected",
];

const ENDINGS: [&str; 3] = [
    "Please find the cause in the library and mend it; this code shows what is expected.",
    "The code above is how it is meant to be used. The library should be fixed so that it works again.",
    "Expected: the code above runs through. The fix belongs into the library.",
];

/// The text of an issue about a failing test.
pub(crate) fn issue(failure: &Failure<'_>, seed: Seed) -> String {
    let mut rng = seed.rng();
    let mut pick = |of: &[&'static str]| of[rng.random_range(0..of.len())];
    let what = words(failure.test);
    let fill = |text: &str| {
        let what = if text.starts_with("{what}") { capital(&what) } else { what.clone() };
        text.replace("{what}", &what).replace("{package}", failure.package)
    };
    let (title, opening, ending) = (fill(pick(&TITLES)), fill(pick(&OPENINGS)), pick(&ENDINGS));
    let (code, raised) = shown(&failure.result.text);
    let mut text = format!("{title}\n\n{opening}\n");
    if !code.is_empty() {
        text.push_str(&format!("\nTo reproduce:\n\n```\n{}\n```\n", code.join("\n")));
    }
    let message = match raised.is_empty() {
        true => without_paths(&failure.result.message).lines().map(cut).take(MAX_LINES).collect(),
        false => raised,
    };
    if !message.is_empty() {
        text.push_str(&format!("\nWhat happens:\n\n```\n{}\n```\n", message.join("\n")));
    }
    if failure.count > 1 {
        text.push_str("\nOther uses of it fail as well.\n");
    }
    let version = match failure.version {
        "" => String::new(),
        version => format!(" {version}"),
    };
    text.push_str(&format!("\n{ending}\n\nVersion: {}{version}\n", failure.package));
    text
}

/// The name of a test in words: `tests/test_a.py::TestB::test_get_item[3]` is `get item`.
fn words(test: &str) -> String {
    let name = test.split('[').next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    let name = name.trim_start_matches("test").trim_matches('_').replace('_', " ");
    match name.is_empty() {
        true => "the library".to_owned(),
        false => name,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a failure shows in pytest's short form: the lines of the code, and of what was raised. Places in files are left
/// out, and so is all code but the test's own, which is first.
fn shown(text: &str) -> (Vec<String>, Vec<String>) {
    static PLACE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^(\S.*):\d+: in ").expect("it is fixed"));
    let (mut code, mut raised, mut places) = (Vec::new(), Vec::new(), 0);
    for line in text.lines() {
        if PLACE.is_match(line) {
            places += 1;
        } else if let Some(line) = line.strip_prefix("E  ") {
            raised.push(cut(&without_paths(line.strip_prefix(' ').unwrap_or(line))));
        } else if let Some(line) = line.strip_prefix("    ")
            && places == 1
            && !line.trim_start().starts_with(['^', '~'])
        {
            code.push(cut(&without_paths(line)));
        }
    }
    code.truncate(MAX_LINES);
    raised.truncate(MAX_LINES);
    (code, raised)
}

/// Without the names of folders and files, which would lead to the place.
fn without_paths(text: &str) -> String {
    static PATH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[\w.+/-]*\w\.(?:py|rs)\b(?::\d+)*|(?:/[\w.+-]+){2,}/?").expect("it is fixed")
    });
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b0x[0-9a-f]{6,}").expect("it is fixed"));
    let text = PATH.replace_all(text, "...");
    ADDRESS.replace_all(&text, "0x...").into_owned()
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LETTERS) {
        Some((at, _)) => format!("{} ...", &line[..at]),
        None => line.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::TestOutcome;

    const TEXT: &str = "tests/test_a.py:12: in test_get_item\n    assert get(items, 2) == 3\nlib/pkg/core.py:3: in get\n    return items[n + 1]\n           ^^^^^\nE   IndexError: list index out of range in /home/me/lib/pkg/core.py:3 at 0x7f00aabbccdd";

    #[test]
    fn an_issue_shows_the_failing_check_and_no_place() {
        let result =
            TestResult { outcome: TestOutcome::Failed, text: TEXT.into(), message: String::new() };
        let failure = Failure {
            package: "pkg",
            version: "1.0",
            test: "tests/test_a.py::T::test_get_item[a/b.py]",
            result: &result,
            count: 2,
        };
        for number in 0..20 {
            let text = issue(&failure, Seed::from_u64(number));
            assert_eq!(text, issue(&failure, Seed::from_u64(number)));
            assert!(
                text.contains("assert get(items, 2) == 3")
                    && text.contains("IndexError: list index out of range in ... at 0x..."),
                "{text}"
            );
            assert!(
                text.to_lowercase().contains("get item") && text.contains("Version: pkg 1.0"),
                "{text}"
            );
            for hidden in ["core.py", "tests/", "items[n + 1]", "{", "^^"] {
                assert!(!text.contains(hidden), "{hidden}: {text}");
            }
        }
    }

    #[test]
    fn tests_without_names_and_long_lines_are_told_all_the_same() {
        assert_eq!(words("a.py::test"), "the library");
        assert_eq!(words("a::b::adds_up"), "adds up");
        let result = TestResult {
            outcome: TestOutcome::Failed,
            text: String::new(),
            message: "ä".repeat(1000),
        };
        let failure =
            Failure { package: "p", version: "", test: "a::test_b", result: &result, count: 1 };
        let text = issue(&failure, Seed::from_u64(1));
        assert!(text.chars().count() < 700 && text.ends_with("Version: p\n"), "{text}");
    }
}
