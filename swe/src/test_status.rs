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
    /// A word that only begins like one of those, such as `ERROR:`. Some parsers take it for a status; it counts neither as
    /// passed nor as failed, but a test that has it has not passed.
    Other,
}

impl TestStatus {
    /// The status of a word as runners print it; [`Other`](Self::Other) for all that are none.
    pub fn from_word(word: &str) -> Self {
        match word {
            "PASSED" => Self::Passed,
            "FAILED" => Self::Failed,
            "ERROR" => Self::Error,
            "SKIPPED" => Self::Skipped,
            "XFAIL" => Self::ExpectedFailure,
            _ => Self::Other,
        }
    }

    /// Whether the test did what it was to do: it passed, or failed as expected.
    pub fn has_passed(self) -> bool {
        matches!(self, Self::Passed | Self::ExpectedFailure)
    }
}
