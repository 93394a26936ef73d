use serde::{Deserialize, Serialize};

use super::{LogReport, Resolution, TestsReport, Ungraded};
use crate::grade::InfraTier;

/// What an attempt comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All tests did as they should.
    Resolved,
    /// Nothing broke, and some tests that failed pass.
    Partial,
    /// The tests ran and say that it is not resolved, or the patch cannot be applied.
    Failed,
    /// The log cannot be graded. In evaluation that counts as not resolved.
    Invalid,
    /// The machinery was at fault: not resolved in evaluation, left out in training.
    Infrastructure,
}

impl Outcome {
    /// The outcome of a log that was read, and of the tests in it if it can be graded.
    pub fn new(log: &LogReport, report: Option<&TestsReport>) -> Self {
        match (&log.verdict, report.map(TestsReport::resolution)) {
            (Ok(_), Some(Resolution::Full)) => Self::Resolved,
            (Ok(_), Some(Resolution::Partial)) => Self::Partial,
            (Ok(_), Some(Resolution::No)) | (Err(Ungraded::PatchNotApplied), _) => Self::Failed,
            (Err(Ungraded::TestsTimedOut), _) => Self::Infrastructure,
            _ if log.infra_failure.is_some_and(|sign| sign.tier == InfraTier::Environment) => {
                Self::Infrastructure
            }
            _ => Self::Invalid,
        }
    }
}
