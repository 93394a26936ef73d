use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Files with their changes, and the tests that are run on them.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Texts of files of the package that stand there during this run.
    pub files: BTreeMap<String, String>,
    /// The files of tests that are collected; empty: whatever the runner finds.
    pub targets: Vec<String>,
    /// The tests that are run of what is collected. Absent: all.
    pub only: Option<Vec<String>>,
    /// After so many failures the rest is not run. Absent: all are.
    pub max_failing: Option<usize>,
    /// Whether it is told which lines each test runs.
    pub with_coverage: bool,
    /// When it is ended.
    pub timeout: Duration,
    /// Bytes of memory that a process of it may have.
    pub memory_bytes: u64,
}

/// How a test went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// What was to be set up or put away for it failed.
    Error,
    /// It was left out.
    Skipped,
    /// It failed, as is expected of it.
    Xfailed,
    /// It passed, which is not expected of it.
    Xpassed,
}

impl TestOutcome {
    /// Whether it tells against what is tested.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestResult {
    /// How it went.
    pub outcome: TestOutcome,
    /// Of one that failed: the runner's words, at most some 4000 letters, the end of longer ones.
    pub text: String,
    /// Of one that failed: what was raised.
    pub message: String,
}

/// Lines by files, from 1.
pub type Coverage = BTreeMap<String, BTreeSet<usize>>;

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct TestRun {
    /// The tests by their names.
    pub tests: BTreeMap<String, TestResult>,
    /// What could not be collected, with the runner's words.
    pub collect_errors: Vec<(String, String)>,
    /// The lines that each test ran; under the empty name what was run outside of tests.
    pub coverage: BTreeMap<String, Coverage>,
    /// Modules from elsewhere that were imported.
    pub modules: Vec<String>,
    /// Whether it was ended at its deadline.
    pub has_timed_out: bool,
    /// Whether the runner came to its end.
    pub is_whole: bool,
    /// From its beginning to its end.
    pub wall: Duration,
    /// Processor time of all its processes.
    pub cpu: Duration,
}
