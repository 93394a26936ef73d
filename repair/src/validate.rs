//! What a candidate comes to: its tests are run, those that come to its lines first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::baseline::{Baseline, file_of};
use crate::candidates::Candidate;
use crate::mutation::Language;
use crate::runner::{RunRequest, TestOutcome, TestRun};
use crate::task_log::Outcome;
use crate::{MakeOptions, SourcePackage};

/// Time that a run has at least: starting processes takes some on a machine that has much to do.
const LEAST_TIME: Duration = Duration::from_secs(5);

/// What a run says of a candidate.
pub(crate) enum Judgement {
    /// It comes to this; so many tests fail.
    Ends(Outcome, usize),
    /// Some tests fail, and not too many.
    Fails,
}

/// The files of the package with the bugs of a candidate.
pub(crate) fn mutated(package: &SourcePackage, candidate: &Candidate) -> BTreeMap<String, String> {
    let edits = candidate.edits();
    let texts = edits.into_iter().map(|(file, edits)| {
        let text = package.text(file).expect("it was read when the candidate was made");
        (file.to_owned(), edits.apply(text))
    });
    texts.collect()
}

fn request(
    package: &SourcePackage,
    baseline: &Baseline,
    candidate: &Candidate,
    options: &MakeOptions,
) -> RunRequest {
    // One more than the limit settles it.
    let limit = (options.max_failing * baseline.passing.len() as f64) as usize;
    let timeout = baseline.wall.mul_f64(options.timeout_factor).max(LEAST_TIME);
    RunRequest {
        files: mutated(package, candidate),
        targets: baseline.targets.clone(),
        timeout,
        memory_bytes: options.memory_mb << 20,
        max_failing: Some(limit + 1),
        ..RunRequest::default()
    }
}

/// The run of the tests that come to the lines of a candidate; absent where that would be most of the suite.
pub(crate) fn covering_run(
    package: &SourcePackage,
    baseline: &Baseline,
    candidate: &Candidate,
    options: &MakeOptions,
) -> Option<RunRequest> {
    if package.language == Language::Rust {
        // What was built is run a second time, which shows what does not fail steadily.
        let only = Some(baseline.names.clone());
        return Some(RunRequest { only, ..request(package, baseline, candidate, options) });
    }
    if 2 * candidate.covering.len() > baseline.names.len() {
        return None;
    }
    let tests: Vec<String> =
        candidate.covering.iter().map(|number| baseline.names[*number].clone()).collect();
    let files: BTreeSet<String> = tests.iter().map(|test| file_of(test).to_owned()).collect();
    let whole = request(package, baseline, candidate, options);
    Some(RunRequest { targets: files.into_iter().collect(), only: Some(tests), ..whole })
}

/// The run of the whole suite.
pub(crate) fn whole_run(
    package: &SourcePackage,
    baseline: &Baseline,
    candidate: &Candidate,
    options: &MakeOptions,
) -> RunRequest {
    request(package, baseline, candidate, options)
}

/// Judges a run of some tests, or all of them.
pub(crate) fn judge(
    run: &TestRun,
    asked: &BTreeSet<String>,
    baseline: &Baseline,
    options: &MakeOptions,
) -> Judgement {
    let failing = failing(run, asked).len();
    if run.has_timed_out {
        return Judgement::Ends(Outcome::TimedOut, failing);
    }
    if !run.collect_errors.is_empty() {
        return Judgement::Ends(Outcome::Uncollectable, failing);
    }
    if !run.is_whole {
        return Judgement::Ends(Outcome::Crashed, failing);
    }
    if failing == 0 {
        return Judgement::Ends(Outcome::Survived, 0);
    }
    if failing as f64 > options.max_failing * baseline.passing.len() as f64 {
        // Those that were not run any more are not counted.
        let told = run.tests.values().filter(|result| result.outcome.is_failure()).count();
        return Judgement::Ends(Outcome::TooBroad, told);
    }
    Judgement::Fails
}

/// The tests that fail or are not there any more, of those that were asked for.
pub(crate) fn failing(run: &TestRun, asked: &BTreeSet<String>) -> Vec<String> {
    let fails =
        |test: &&String| run.tests.get(*test).is_none_or(|result| result.outcome.is_failure());
    asked.iter().filter(fails).cloned().collect()
}

/// The tests that pass, of those that count.
pub(crate) fn passing(run: &TestRun, judged: &BTreeSet<String>) -> Vec<String> {
    let passes = |test: &&String| {
        run.tests.get(*test).is_some_and(|result| result.outcome == TestOutcome::Passed)
    };
    judged.iter().filter(passes).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::TestResult;

    fn baseline(count: usize) -> Baseline {
        let names: Vec<String> = (0..count).map(|number| format!("t.py::test_{number}")).collect();
        Baseline {
            passing: names.iter().cloned().collect(),
            flaky: BTreeSet::new(),
            targets: vec!["t.py".into()],
            covering: BTreeMap::new(),
            imported: BTreeMap::new(),
            names,
            wall: Duration::from_secs(1),
        }
    }

    fn run(baseline: &Baseline, failing: usize) -> TestRun {
        let result = |number: usize| TestResult {
            outcome: if number < failing { TestOutcome::Failed } else { TestOutcome::Passed },
            text: String::new(),
            message: String::new(),
        };
        let tests =
            baseline.names.iter().enumerate().map(|(number, name)| (name.clone(), result(number)));
        TestRun { tests: tests.collect(), is_whole: true, ..TestRun::default() }
    }

    #[test]
    fn candidates_are_judged_by_their_tests() {
        let (baseline, options) = (baseline(10), MakeOptions::default());
        let outcome = |run: &TestRun| match judge(run, &baseline.passing, &baseline, &options) {
            Judgement::Ends(outcome, failing) => Some((outcome, failing)),
            Judgement::Fails => None,
        };
        assert_eq!(outcome(&run(&baseline, 0)), Some((Outcome::Survived, 0)));
        assert_eq!(outcome(&run(&baseline, 3)), None);
        assert_eq!(outcome(&run(&baseline, 4)), Some((Outcome::TooBroad, 4)));
        let whole = run(&baseline, 1);
        let mut gone = whole.clone();
        gone.tests.remove("t.py::test_9");
        assert_eq!(failing(&gone, &baseline.passing), ["t.py::test_0", "t.py::test_9"]);
        assert_eq!(passing(&gone, &baseline.passing).len(), 8);
        let late = TestRun { has_timed_out: true, ..whole.clone() };
        assert_eq!(outcome(&late), Some((Outcome::TimedOut, 1)));
        let crashed = TestRun { is_whole: false, ..whole.clone() };
        assert_eq!(outcome(&crashed), Some((Outcome::Crashed, 1)));
        let broken = TestRun { collect_errors: vec![("t.py".into(), "no".into())], ..whole };
        assert_eq!(outcome(&broken), Some((Outcome::Uncollectable, 1)));
    }
}
