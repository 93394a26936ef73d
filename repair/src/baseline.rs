//! What the tests of a package say of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spar_swe::log::{LogContext, Origin, find_log_parser};

use crate::mutation::Language;
use crate::rows::log_parser;
use crate::runner::{TestOutcome, TestRun};
use crate::{MakeError, SourcePackage};

/// What is known of the suite of a package.
#[derive(Debug, Clone)]
pub(crate) struct Baseline {
    /// Tests that pass every time, and whose names can be read in a log again.
    pub(crate) passing: BTreeSet<String>,
    /// Tests that did not go the same way both times.
    pub(crate) flaky: BTreeSet<String>,
    /// Files of the passing tests.
    pub(crate) targets: Vec<String>,
    /// Passing tests by the lines that they run, by file.
    pub(crate) covering: BTreeMap<String, BTreeMap<usize, Vec<usize>>>,
    /// Lines that run when modules are imported.
    pub(crate) imported: BTreeMap<String, BTreeSet<usize>>,
    /// The passing tests in the order of their numbers in `covering`.
    pub(crate) names: Vec<String>,
    /// How long the whole suite takes without being told the lines.
    pub(crate) wall: Duration,
}

impl Baseline {
    /// Compares two runs, of which the first was told the lines.
    ///
    /// # Errors
    ///
    /// [`MakeError::Baseline`] where there is nothing that tasks could be made of.
    pub(crate) fn of(
        package: &SourcePackage,
        first: &TestRun,
        second: &TestRun,
    ) -> Result<Self, MakeError> {
        let wrong = |what: String| MakeError::Baseline { package: package.name.clone(), what };
        for run in [first, second] {
            if run.has_timed_out {
                return Err(wrong(format!(
                    "they did not end in {:.0} s (`baseline_secs`)",
                    run.wall.as_secs_f64()
                )));
            }
            if !run.is_whole {
                return Err(wrong("the runner ended before the tests did".to_owned()));
            }
        }
        let passed = |run: &TestRun| -> BTreeSet<String> {
            let passed =
                run.tests.iter().filter(|(_, result)| result.outcome == TestOutcome::Passed);
            passed.map(|(name, _)| name.clone()).collect()
        };
        let (one, other) = (passed(first), passed(second));
        let flaky: BTreeSet<String> = one.symmetric_difference(&other).cloned().collect();
        let passing: BTreeSet<String> =
            one.intersection(&other).filter(|name| is_usable(package, name)).cloned().collect();
        if passing.len() < 2 {
            let told = first
                .collect_errors
                .first()
                .or(second.collect_errors.first())
                .map(|(_, text)| text.clone());
            let told = told.or_else(|| {
                first
                    .tests
                    .values()
                    .find(|result| result.outcome.is_failure())
                    .map(|result| result.text.clone())
            });
            let why = match told {
                Some(told) => format!("fewer than two pass; the first that does not says:\n{told}"),
                None => "there are fewer than two".to_owned(),
            };
            return Err(wrong(why));
        }
        let names: Vec<String> = passing.iter().cloned().collect();
        let mut covering: BTreeMap<String, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for (number, name) in names.iter().enumerate() {
            for (file, lines) in first.coverage.get(name).into_iter().flatten() {
                let by_line = covering.entry(file.clone()).or_default();
                lines.iter().for_each(|line| by_line.entry(*line).or_default().push(number));
            }
        }
        let imported = first.coverage.get("").cloned().unwrap_or_default();
        if package.language == Language::Rust {
            // Nobody tells which lines a test runs: all of them come to all.
            covering.extend(imported.keys().map(|file| (file.clone(), BTreeMap::new())));
        }
        if !package.sources().any(|(path, _)| covering.contains_key(path)) {
            let why = "they run no line of its sources: they may test a package that is installed elsewhere";
            return Err(wrong(why.to_owned()));
        }
        let targets: BTreeSet<String> =
            passing.iter().map(|name| file_of(name).to_owned()).collect();
        Ok(Self {
            passing,
            flaky,
            targets: targets.into_iter().collect(),
            covering,
            imported,
            names,
            wall: second.wall,
        })
    }

    /// The numbers of the tests that run one of these lines; all where they run on import alone, none where no
    /// test comes to them.
    pub(crate) fn tests_of(&self, file: &str, lines: &[usize]) -> BTreeSet<usize> {
        let by_line = self.covering.get(file);
        let found: BTreeSet<usize> =
            lines.iter().filter_map(|line| by_line?.get(line)).flatten().copied().collect();
        let imported = self.imported.get(file);
        if found.is_empty()
            && lines.iter().any(|line| imported.is_some_and(|imported| imported.contains(line)))
        {
            return (0..self.names.len()).collect();
        }
        found
    }
}

/// The file of a test by its name.
pub(crate) fn file_of(test: &str) -> &str {
    test.split("::").next().unwrap_or(test)
}

/// What a log calls a test: runners of Rust tell no file.
pub(crate) fn log_name(language: Language, test: &str) -> &str {
    match language {
        Language::Python => test,
        Language::Rust => test.split_once("::").map_or(test, |(_, name)| name),
    }
}

/// Whether rows can name a test: its file is a plain text of the package's tests, and a log tells its name as it is.
fn is_usable(package: &SourcePackage, test: &str) -> bool {
    let file = file_of(test);
    SourcePackage::is_test(file)
        && is_plain(file)
        && package.text(file).is_some()
        && reads_back(package.language, log_name(package.language, test))
}

/// Whether a path needs no quotes anywhere.
pub(crate) fn is_plain(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte))
        && !path.starts_with('-')
}

fn reads_back(language: Language, test: &str) -> bool {
    let (parser, lines) = match language {
        Language::Python => {
            (log_parser(language), [format!("PASSED {test}"), format!("FAILED {test} - x")])
        }
        Language::Rust => (
            log_parser(language),
            [format!("test {test} ... ok"), format!("test {test} ... FAILED")],
        ),
    };
    let parser = find_log_parser(Origin::SweBench, parser).expect("the parser is in the table");
    lines.iter().enumerate().all(|(number, line)| {
        let read = parser.parse(line, &LogContext::default());
        read.is_ok_and(|read| {
            read.len() == 1
                && read.get(test).is_some_and(|status| status.has_passed() == (number == 0))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_log_does_not_tell_are_left_out() {
        for name in ["tests/a.py::test_b", "tests/a.py::T::test_b[x-1]", "tests/a.py::test_b[a b]"]
        {
            assert!(reads_back(Language::Python, name), "{name}");
        }
        for name in
            ["tests/a.py::test_b[a  b]", "tests/a.py::test_b[a - b]", "tests/a.py::test_b[a\tb]"]
        {
            assert!(!reads_back(Language::Python, name), "{name}");
        }
        assert!(reads_back(Language::Rust, "tests::adds"));
    }
}
