use serde::{Deserialize, Serialize};

/// What a test runner said of one test, in SWE-bench's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TestStatus {
    /// It passed.
    Passed,
    /// An assertion did not hold.
    Failed,
    /// It ended by something other than an assertion: an exception, a missing fixture, a collection error.
    Error,
    /// It was not run, on purpose.
    Skipped,
    /// It failed as it was expected to, which counts as passing.
    #[serde(rename = "XFAIL")]
    ExpectedFailure,
}
