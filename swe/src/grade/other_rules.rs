//! Rules of benchmarks that do not sort their tests as SWE-bench does.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Expected, TestLists, TestsReport};
use crate::TestStatus::{ExpectedFailure, Passed, Skipped};
use crate::log::StatusMap;
use crate::python_text::{before, pattern, strip};

/// R2E-Gym: as many tests as the row expects, each with the status that it expects. Colours, and what stands behind ` - ` in a name,
/// are left out on both sides.
///
/// Where the reference raises, as a test is not expected, this is `false`.
pub fn r2e_has_resolved(tests: &StatusMap, expected: &BTreeMap<String, String>) -> bool {
    fn normal<S>(tests: impl Iterator<Item = (String, S)>) -> BTreeMap<String, S> {
        // Of names that become the same, that of the last in order holds.
        let sorted: BTreeMap<String, S> = tests
            .map(|(name, status)| {
                (pattern!(r"\x1b\[\d+m").replace_all(&name, "").into_owned(), status)
            })
            .collect();
        sorted.into_iter().map(|(name, status)| (before(&name, " - ").to_owned(), status)).collect()
    }
    let expected = normal(expected.iter().map(|(name, status)| (name.clone(), status.as_str())));
    let tests = normal(tests.iter().map(|(name, status)| (name.clone(), *status)));
    tests.len() == expected.len()
        && tests.iter().all(|(name, status)| {
            expected.get(name).is_some_and(|word| {
                *status == crate::TestStatus::from_word(word) && *status != crate::TestStatus::Other
            })
        })
}

/// terminal-bench 1: every test that its parser names has passed, skipped ones included. A log without tests has resolved the task, as
/// nothing in it failed.
pub fn terminal_bench_has_resolved(tests: &StatusMap) -> bool {
    tests.values().all(|status| matches!(status, Passed | Skipped | ExpectedFailure))
}

/// SWE-bench-Pro: every test of the row is among those whose status is `PASSED`.
pub fn pro_has_resolved(
    fail_to_pass: &[String],
    pass_to_pass: &[String],
    passed: &BTreeSet<String>,
) -> bool {
    fail_to_pass.iter().chain(pass_to_pass).all(|name| passed.contains(name))
}

/// SWE-rebench 2: every test of the row is among those whose status is `PASSED`, and no other status is a pass. Times that runners
/// write into names or behind them are left out on both sides; of names that become the same, the last one's status holds.
///
/// The reference wants as well that no other test passes. That is not asked here, since a test that an attempt adds would break it.
pub fn rebench_report(tests: &StatusMap, expected: &Expected) -> TestsReport {
    let passed: BTreeMap<String, bool> =
        tests.iter().map(|(name, status)| (untimed(name), *status == Passed)).collect();
    let sort = |names: &[String]| {
        let has_passed = |name: &String| passed.get(&untimed(name)).is_some_and(|passed| *passed);
        let (success, failure) = names.iter().cloned().partition(has_passed);
        TestLists { success, failure }
    };
    TestsReport {
        fail_to_pass: sort(&expected.fail_to_pass),
        pass_to_pass: sort(&expected.pass_to_pass),
        ..TestsReport::default()
    }
}

/// A name without the times that runners put there: ` [1.34 ms]` and ` (0.2s)` at its end, ` in 29.08 msec` anywhere.
fn untimed(name: &str) -> String {
    let name = pattern!(r"(?i)\s*\[\s*\d+(?:\.\d+)?\s*(?:ms|s)\s*\]\s*$").replace_all(name, "");
    let name = pattern!(r"(?i)\s+in\s+\d+(?:\.\d+)?\s+(?:msec|sec)\b").replace_all(&name, "");
    let name = pattern!(r"(?i)\s*\(\s*\d+(?:\.\d+)?\s*(?:ms|s)\s*\)\s*$").replace_all(&name, "");
    strip(&name).to_owned()
}

/// What Multi-SWE-bench says of a test in one of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MultiSweStatus {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// It was not run, on purpose.
    Skip,
    /// It was not there.
    #[default]
    None,
}

/// A test in the three runs of Multi-SWE-bench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiSweTest {
    /// Without patches.
    pub run: MultiSweStatus,
    /// With the patch to the tests.
    pub test: MultiSweStatus,
    /// With the patch to the tests and the attempt's.
    pub fix: MultiSweStatus,
}

/// Multi-SWE-bench: the attempt's run has results, breaks nothing, fixes something, shows no odd pattern, and every test that the
/// row lists goes the way it did with the row's own fix.
///
/// `listed` are the row's `p2p_tests`, `f2p_tests`, `s2p_tests` and `n2p_tests` together: the status with the patch to the
/// tests by the name of the test. `run` and `test` are the row's own runs, `fix` is the attempt's.
pub fn multi_swe_has_resolved(
    listed: &BTreeMap<String, MultiSweStatus>,
    run: &IndexMap<String, MultiSweStatus>,
    test: &IndexMap<String, MultiSweStatus>,
    fix: &IndexMap<String, MultiSweStatus>,
) -> bool {
    use MultiSweStatus::{Fail, None, Pass, Skip};
    if fix.is_empty() {
        return false;
    }
    let names: BTreeSet<&String> = run.keys().chain(test.keys()).chain(fix.keys()).collect();
    let of = |runs: &IndexMap<String, MultiSweStatus>, name: &str| {
        runs.get(name).copied().unwrap_or_default()
    };
    let all: BTreeMap<&str, MultiSweTest> = names
        .into_iter()
        .map(|name| {
            (
                name.as_str(),
                MultiSweTest { run: of(run, name), test: of(test, name), fix: of(fix, name) },
            )
        })
        .collect();
    let breaks = |test: &MultiSweTest| test.test == Pass && test.fix == Fail;
    let fixes = |test: &MultiSweTest| test.test != Pass && test.fix == Pass;
    let is_odd = |test: &MultiSweTest| {
        matches!(test.test, None | Skip) && test.fix == Fail && test.run == Pass
    };
    let is_valid =
        !all.values().any(breaks) && all.values().any(fixes) && !all.values().any(is_odd);
    is_valid
        && listed.iter().all(|(name, before)| {
            all.get(name.as_str()).is_some_and(|test| test.fix == Pass && test.test == *before)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestStatus::{Failed, Other};

    fn statuses(pairs: &[(&str, crate::TestStatus)]) -> StatusMap {
        pairs.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect()
    }

    #[test]
    fn r2e_wants_exactly_what_it_expects() {
        let expected: BTreeMap<String, String> =
            [("a", "PASSED"), ("b", "FAILED"), ("\u{1b}[1mc\u{1b}[0m - x", "PASSED")]
                .map(|(name, status)| (name.to_owned(), status.to_owned()))
                .into();
        let good = [("a", Passed), ("b", Failed), ("c", Passed)];
        assert!(r2e_has_resolved(&statuses(&good), &expected));
        assert!(!r2e_has_resolved(&statuses(&good[..2]), &expected));
        assert!(!r2e_has_resolved(
            &statuses(&[("a", Passed), ("b", Passed), ("c", Passed)]),
            &expected
        ));
        assert!(!r2e_has_resolved(
            &statuses(&[("a", Passed), ("b", Failed), ("d", Passed)]),
            &expected
        ));
    }

    #[test]
    fn terminal_bench_takes_skipped_for_passed() {
        assert!(terminal_bench_has_resolved(&statuses(&[("a", Passed), ("b", Skipped)])));
        assert!(!terminal_bench_has_resolved(&statuses(&[("a", Passed), ("b", Failed)])));
        assert!(!terminal_bench_has_resolved(&statuses(&[("a", Other)])));
    }

    #[test]
    fn rebench_wants_all_among_the_passed_whatever_time_they_took() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = Expected {
            fail_to_pass: names(&["adds [1.34 ms]", "AES ran 3 tests in 29.08 msec all ok"]),
            pass_to_pass: names(&["keeps (0.2s)", "skips", "a [b]"]),
        };
        let report = rebench_report(
            &statuses(&[
                ("adds [12 ms]", Passed),
                ("AES ran 3 tests in 1 sec all ok", Passed),
                ("keeps (3S) ", Passed),
                ("skips", Skipped),
                ("a [b]", ExpectedFailure),
                ("another", Failed),
            ]),
            &expected,
        );
        assert_eq!(report.fail_to_pass.success, expected.fail_to_pass);
        assert_eq!(report.pass_to_pass.success, ["keeps (0.2s)"]);
        assert_eq!(report.pass_to_pass.failure, ["skips", "a [b]"]);
        // What the reference makes of such names.
        for (name, plain) in [
            ("a [1 s]", "a"),
            ("a[1s]", "a"),
            ("a (12ms) (3s)", "a (12ms)"),
            ("a [1 ms] b", "a [1 ms] b"),
            ("a in 1 seconds", "a in 1 seconds"),
            (" a in 1.5 SEC", "a"),
            ("a (3 m)", "a (3 m)"),
        ] {
            assert_eq!(untimed(name), plain, "{name}");
        }
    }

    #[test]
    fn pro_wants_all_among_the_passed() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let passed = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert!(pro_has_resolved(&names(&["a"]), &names(&["b"]), &passed));
        assert!(!pro_has_resolved(&names(&["a"]), &names(&["c"]), &passed));
    }

    #[test]
    fn multi_swe_compares_three_runs() {
        use MultiSweStatus::{Fail, None, Pass, Skip};
        let runs = |pairs: &[(&str, MultiSweStatus)]| -> IndexMap<String, MultiSweStatus> {
            pairs.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect()
        };
        let listed: BTreeMap<String, MultiSweStatus> =
            [("kept", Pass), ("fixed", Fail), ("new", None)]
                .map(|(name, status)| (name.to_owned(), status))
                .into();
        let (run, test) =
            (runs(&[("kept", Pass), ("odd", Pass)]), runs(&[("kept", Pass), ("fixed", Fail)]));
        let good = [("kept", Pass), ("fixed", Pass), ("new", Pass)];
        let resolved = |fix: &[_]| multi_swe_has_resolved(&listed, &run, &test, &runs(fix));
        assert!(resolved(&good));
        assert!(!resolved(&[]));
        assert!(!resolved(&good[..2]));
        assert!(!resolved(&[("kept", Fail), ("fixed", Pass), ("new", Pass)]));
        assert!(!resolved(&[("kept", Pass), ("fixed", Fail), ("new", Pass)]));
        assert!(!resolved(&[good[0], good[1], good[2], ("odd", Fail)]));
        assert!(!resolved(&[("kept", Skip), ("fixed", Pass), ("new", Pass)]));
    }
}
