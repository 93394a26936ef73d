use std::collections::BTreeMap;

use serde::Serialize;

use crate::task_log::{Attempt, Outcome};

/// How many of the candidates of a kind became tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Yield {
    /// Candidates that were tried.
    pub tried: usize,
    /// How many came to what.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Processor seconds of their runs.
    pub cpu_seconds: f64,
}

impl Yield {
    /// Tasks.
    pub fn valid(&self) -> usize {
        self.outcomes.get(&Outcome::Valid).copied().unwrap_or(0)
    }

    fn add(&mut self, attempt: &Attempt) {
        self.tried += 1;
        *self.outcomes.entry(attempt.outcome).or_default() += 1;
        self.cpu_seconds += attempt.cpu_seconds;
    }
}

/// What was made of a package.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PackageReport {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its source.
    pub sha256: String,
    /// Its licence as it tells it.
    pub licence: Option<String>,
    /// Tests that pass every time.
    pub num_tests: usize,
    /// Tests that did not go the same way twice.
    pub flaky: Vec<String>,
    /// Mutations that there are for the tests to find.
    pub num_covered: usize,
    /// Mutations that no test comes to.
    pub num_uncovered: usize,
    /// Source files whose syntax could not be read.
    pub unread: Vec<String>,
    /// All that was tried, also by runs before.
    pub all: Yield,
    /// The same by operator.
    pub by_operator: BTreeMap<String, Yield>,
    /// Processor seconds of the runs of the package itself, in this run.
    pub baseline_cpu_seconds: f64,
    /// Seconds of the whole suite.
    pub suite_seconds: f64,
    /// Tests that a task makes fail: the median.
    pub median_failing: usize,
    /// Whether nothing is left to be tried, or as many tasks were made as were asked for.
    pub is_done: bool,
    #[serde(skip)]
    pub(crate) failing: Vec<usize>,
}

impl PackageReport {
    pub(crate) fn add(&mut self, attempt: &Attempt) {
        self.all.add(attempt);
        self.by_operator.entry(attempt.kind.clone()).or_default().add(attempt);
        if attempt.outcome == Outcome::Valid {
            let at = self.failing.partition_point(|failing| *failing < attempt.failing);
            self.failing.insert(at, attempt.failing);
            self.median_failing = self.failing[self.failing.len() / 2];
        }
    }

    /// Tasks for each minute of processor time of the tests, the runs of the package itself included; absent where
    /// nothing was run.
    pub fn tasks_per_cpu_minute(&self) -> Option<f64> {
        let seconds = self.all.cpu_seconds + self.baseline_cpu_seconds;
        (seconds > 0.0).then(|| self.all.valid() as f64 * 60.0 / seconds)
    }
}
