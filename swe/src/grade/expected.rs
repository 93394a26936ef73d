use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use super::{Edition, EvalType};
use crate::TestStatus::{self, Error, Failed, Skipped};
use crate::log::StatusMap;

/// The tests that tell whether an attempt has resolved the issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// Tests that failed before the fix and have to pass.
    pub fail_to_pass: Vec<String>,
    /// Tests that passed and have to go on passing.
    pub pass_to_pass: Vec<String>,
}

/// Which tests did as they should, in the order of the row. One whose status is neither is in no list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestLists {
    /// They did.
    pub success: Vec<String>,
    /// They did not.
    pub failure: Vec<String>,
}

impl TestLists {
    /// How many there are.
    pub fn count(&self) -> TestCount {
        let passed = self.success.len();
        TestCount { passed, total: passed + self.failure.len() }
    }

    /// Share of successes, from 0 to 1; 1 for no tests.
    pub fn rate(&self) -> f64 {
        self.count().rate()
    }
}

/// How many tests did as they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCount {
    /// They did.
    pub passed: usize,
    /// All of them, but for those whose status is neither.
    pub total: usize,
}

/// How many tests of an attempt did as they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Of those that had to begin to pass.
    pub fail_to_pass: TestCount,
    /// Of those that had to go on passing.
    pub pass_to_pass: TestCount,
}

impl TestCount {
    /// Share of those that did, from 0 to 1; 1 for no tests.
    pub fn rate(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.passed as f64 / self.total as f64 }
    }
}

/// What became of the tests of an attempt, in the shape of SWE-bench's `tests_status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsReport {
    /// Of those that had to begin to pass.
    #[serde(rename = "FAIL_TO_PASS")]
    pub fail_to_pass: TestLists,
    /// Of those that had to go on passing.
    #[serde(rename = "PASS_TO_PASS")]
    pub pass_to_pass: TestLists,
    /// Empty: the reference has the list and never fills it.
    #[serde(rename = "FAIL_TO_FAIL")]
    pub fail_to_fail: TestLists,
    /// Empty: the reference has the list and never fills it.
    #[serde(rename = "PASS_TO_FAIL")]
    pub pass_to_fail: TestLists,
}

/// How far an issue is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    /// All tests did as they should.
    #[serde(rename = "RESOLVED_FULL")]
    Full,
    /// Nothing broke, and some but not all tests that failed pass.
    #[serde(rename = "RESOLVED_PARTIAL")]
    Partial,
    /// Anything else.
    #[serde(rename = "RESOLVED_NO")]
    No,
}

impl TestsReport {
    /// How many of them did as they should.
    pub fn counts(&self) -> TestCounts {
        TestCounts {
            fail_to_pass: self.fail_to_pass.count(),
            pass_to_pass: self.pass_to_pass.count(),
        }
    }

    /// How far the issue is resolved.
    pub fn resolution(&self) -> Resolution {
        let is_whole = |lists: &TestLists| lists.failure.is_empty();
        match (is_whole(&self.fail_to_pass), is_whole(&self.pass_to_pass)) {
            (true, true) => Resolution::Full,
            (false, true) if !self.fail_to_pass.success.is_empty() => Resolution::Partial,
            _ => Resolution::No,
        }
    }
}

impl Expected {
    /// Holds the tests against what a log says of them.
    pub fn report(&self, tests: &StatusMap, eval_type: EvalType, edition: Edition) -> TestsReport {
        let lookup = Lookup { tests, edition, by_name: OnceCell::new() };
        let sort = |names: &[String], is_maintained: bool| {
            let mut lists = TestLists::default();
            for name in names {
                match lookup.has_succeeded(name, eval_type, is_maintained) {
                    Some(true) => lists.success.push(name.clone()),
                    Some(false) => lists.failure.push(name.clone()),
                    None => {}
                }
            }
            lists
        };
        TestsReport {
            fail_to_pass: sort(&self.fail_to_pass, false),
            pass_to_pass: sort(&self.pass_to_pass, true),
            ..TestsReport::default()
        }
    }
}

struct Lookup<'t> {
    tests: &'t StatusMap,
    edition: Edition,
    /// Names in order, with their places in the map; made when the first cut name is looked for.
    by_name: OnceCell<Vec<(&'t str, usize)>>,
}

impl Lookup<'_> {
    fn has_succeeded(&self, name: &str, eval_type: EvalType, is_maintained: bool) -> Option<bool> {
        if eval_type == EvalType::FailOnly {
            return Some(self.tests.get(name) != Some(&Failed));
        }
        let is_five = self.edition == Edition::Five;
        match self.status(name) {
            None => Some(false),
            Some(status) if status.has_passed() => Some(true),
            Some(Failed | Error) => Some(false),
            Some(Skipped) if is_five => Some(is_maintained),
            Some(_) => None,
        }
    }

    /// The status of a test, or of those that a name stands for which was cut within brackets, if they agree on passing.
    fn status(&self, name: &str) -> Option<TestStatus> {
        if let Some(status) = self.tests.get(name) {
            return Some(*status);
        }
        let is_cut = name.matches('[').count() > name.matches(']').count();
        if self.edition != Edition::Five || !is_cut {
            return None;
        }
        let by_name = self.by_name.get_or_init(|| {
            let places = self.tests.keys().enumerate();
            let mut names: Vec<_> = places.map(|(place, name)| (name.as_str(), place)).collect();
            names.sort_unstable();
            names
        });
        let begin = by_name.partition_point(|(known, _)| *known < name);
        let mut first: Option<(usize, TestStatus)> = None;
        for (known, place) in &by_name[begin..] {
            if !known.starts_with(name) {
                break;
            }
            let status = self.tests[*place];
            match first {
                Some((_, other)) if other.has_passed() != status.has_passed() => return None,
                Some((earliest, _)) if earliest < *place => {}
                _ => first = Some((*place, status)),
            }
        }
        first.map(|(_, status)| status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestStatus::{ExpectedFailure, Other, Passed};

    fn report(pairs: &[(&str, TestStatus)], edition: Edition) -> TestsReport {
        let tests = pairs.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect();
        let names = ["p", "x", "f", "e", "s", "o", "missing", "cut[a", "cut[b", "cut[c]"];
        let names: Vec<String> = names.map(str::to_owned).to_vec();
        let expected = Expected { fail_to_pass: names.clone(), pass_to_pass: names };
        expected.report(&tests, EvalType::PassAndFail, edition)
    }

    const STATUSES: [(&str, TestStatus); 10] = [
        ("p", Passed),
        ("x", ExpectedFailure),
        ("f", Failed),
        ("e", Error),
        ("s", Skipped),
        ("o", Other),
        ("cut[a b]", Passed),
        ("cut[a c]", ExpectedFailure),
        ("cut[b b]", Passed),
        ("cut[b c]", Failed),
    ];

    #[test]
    fn editions_differ_in_skipped_and_cut_names() {
        let five = report(&STATUSES, Edition::Five);
        assert_eq!(five.fail_to_pass.success, ["p", "x", "cut[a"]);
        assert_eq!(five.fail_to_pass.failure, ["f", "e", "s", "missing", "cut[b", "cut[c]"]);
        assert_eq!(five.pass_to_pass.success, ["p", "x", "s", "cut[a"]);
        let four = report(&STATUSES, Edition::Four);
        assert_eq!(four.fail_to_pass.success, ["p", "x"]);
        assert_eq!(four.fail_to_pass.failure, ["f", "e", "missing", "cut[a", "cut[b", "cut[c]"]);
        assert_eq!(four.fail_to_pass, four.pass_to_pass);
    }

    #[test]
    fn what_only_names_failures_passes_everything_else() {
        let tests = StatusMap::from([("a".to_owned(), Failed), ("b".to_owned(), Error)]);
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let expected = Expected { fail_to_pass: names.clone(), pass_to_pass: vec![] };
        let report = expected.report(&tests, EvalType::FailOnly, Edition::Five);
        assert_eq!(report.fail_to_pass.success, ["b", "c"]);
        assert_eq!(report.resolution(), Resolution::Partial);
    }

    #[test]
    fn nothing_to_do_is_done() {
        let report =
            Expected::default().report(&StatusMap::new(), EvalType::default(), Edition::Five);
        assert_eq!(report.resolution(), Resolution::Full);
        assert_eq!(report.fail_to_pass.rate(), 1.0);
    }
}
