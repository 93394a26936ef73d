//! What tests said of an episode's work, as verdicts have it among their artifacts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use spar_core::{Trajectory, Verdict};
use spar_swe::grade::{Outcome, TestsReport};

/// The artifact of the environment `swe`.
const SWE: &str = "swe";
/// That of the grader `unit_tests` which has a result for every test.
const RESULTS: &str = "results";

/// What became of an attempt at an instance, as far as shapers ask.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Attempt {
    /// The outcome.
    pub(super) outcome: Outcome,
    /// Whether the agent has handed it in.
    #[serde(default)]
    pub(super) submitted: bool,
    /// Its patch; absent where the task has no repository.
    #[serde(default)]
    patch: Option<String>,
    #[serde(default)]
    run: Option<Run>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Run {
    #[serde(default)]
    tests: Option<TestsReport>,
}

impl Attempt {
    /// That of an episode which the environment `swe` has judged.
    pub(super) fn of(trajectory: &Trajectory) -> Option<Self> {
        let judged = trajectory.verdict.as_ref()?;
        let found = find(judged, SWE, |found| found.get("outcome").is_some())?;
        Self::deserialize(found).ok()
    }

    /// Whether it has changed anything.
    pub(super) fn has_changes(&self) -> bool {
        self.patch.as_ref().is_some_and(|patch| !patch.trim().is_empty())
    }

    /// The tests of the run, where what it says counts: no test broke, and nothing speaks against its log.
    pub(super) fn counted(&self) -> Option<&TestsReport> {
        let counts = matches!(self.outcome, Outcome::Resolved | Outcome::Partial);
        self.run.as_ref().filter(|_| counts)?.tests.as_ref()
    }
}

/// An artifact of the verdict of a grader alone, or of one of several.
fn find<'a>(verdict: &'a Verdict, name: &str, is_it: impl Fn(&Value) -> bool) -> Option<&'a Value> {
    let own = verdict.artifacts.get(name).filter(|found| is_it(found));
    own.or_else(|| {
        let mut nested = verdict.artifacts.values().filter_map(|found| found.get(name));
        nested.find(|found| is_it(found))
    })
}

/// Whether each of the tests that tell of success passed, by their names; absent for an episode that no tests judged, and where
/// the machinery kept them from telling.
///
/// Of an instance these are the tests that had to begin to pass. None of them counts as passed where another one broke.
pub(super) fn tests_of(trajectory: &Trajectory) -> Option<BTreeMap<String, bool>> {
    let verdict = trajectory.verdict.as_ref().filter(|verdict| !verdict.masked)?;
    if let Some(results) = find(verdict, RESULTS, Value::is_array) {
        let results: Vec<bool> = Deserialize::deserialize(results).ok()?;
        return Some(
            results.into_iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect(),
        );
    }
    let attempt = Attempt::of(trajectory)?;
    if attempt.outcome == Outcome::Infrastructure {
        return None;
    }
    let Some(tests) = attempt.counted() else { return Some(BTreeMap::new()) };
    let lists = &tests.fail_to_pass;
    let named = |names: &[String], passed: bool| {
        names.iter().map(|name| (name.clone(), passed)).collect::<Vec<_>>()
    };
    Some(named(&lists.failure, false).into_iter().chain(named(&lists.success, true)).collect())
}

/// The verdict of an attempt for tests: fixed and unfixed tests by their names, and what it came to.
#[cfg(test)]
pub(super) fn judged(outcome: &str, success: &[&str], failure: &[&str]) -> Verdict {
    let tests = serde_json::json!({
        "FAIL_TO_PASS": { "success": success, "failure": failure },
        "PASS_TO_PASS": { "success": ["kept"], "failure": [] },
        "FAIL_TO_FAIL": { "success": [], "failure": [] },
        "PASS_TO_FAIL": { "success": [], "failure": [] },
    });
    let swe = serde_json::json!({
        "instance_id": "a", "outcome": outcome, "reward": 0.0, "submitted": true, "patch": "diff",
        "run": { "tests": tests, "log_bytes": 0, "log": "" },
    });
    Verdict {
        success: outcome == "resolved",
        masked: outcome == "infrastructure",
        artifacts: BTreeMap::from([(SWE.to_owned(), swe)]),
        ..Verdict::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::episode;
    use super::*;

    fn of(verdict: Verdict) -> Option<BTreeMap<String, bool>> {
        tests_of(&Trajectory { verdict: Some(verdict), ..episode(&[&[]]) })
    }

    #[test]
    fn tests_are_found_alone_and_among_several_graders() {
        let expected = BTreeMap::from([("a".to_owned(), true), ("b".to_owned(), false)]);
        let alone = judged("partial", &["a"], &["b"]);
        assert_eq!(of(alone.clone()), Some(expected.clone()));
        let nested = serde_json::to_value(&alone.artifacts).unwrap();
        let artifacts = BTreeMap::from([("environment".to_owned(), nested)]);
        assert_eq!(of(Verdict { artifacts, ..Verdict::default() }), Some(expected));
        let artifacts = BTreeMap::from([("results".to_owned(), serde_json::json!([true, false]))]);
        let named = BTreeMap::from([("0".to_owned(), true), ("1".to_owned(), false)]);
        assert_eq!(of(Verdict { artifacts, ..Verdict::default() }), Some(named));
    }

    #[test]
    fn what_broke_something_or_was_not_believed_counts_for_nothing() {
        assert_eq!(of(judged("failed", &["a", "b"], &[])), Some(BTreeMap::new()));
        assert_eq!(of(judged("invalid", &["a"], &[])), Some(BTreeMap::new()));
        assert_eq!(of(judged("infrastructure", &["a"], &[])), None);
        assert_eq!(of(Verdict::default()), None);
        assert_eq!(tests_of(&episode(&[&[]])), None);
    }
}
