//! What can go wrong outside credit and evaluation.

use spar_core::{CreditShapeError, TrajectoryError};

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("use the settings: {problems}")]
pub struct ConfigError {
    /// All problems, one after the other.
    pub problems: String,
}

impl ConfigError {
    pub(crate) fn of(problem: String) -> Self {
        Self { problems: problem }
    }

    pub(crate) fn refuse(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems: problems.join("; ") }) }
    }
}

/// Trajectories cannot be made into samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// A trajectory contradicts itself.
    #[error("make samples of a trajectory")]
    Trajectory(#[from] TrajectoryError),
    /// The credit is that of another batch.
    #[error("weigh the samples of a batch")]
    Credit(#[from] CreditShapeError),
    /// A number of the credit is no number that weights could be moved by.
    #[error(
        "weigh the samples of a batch: {name} of turn {turn} of trajectory {trajectory} is {value}, which is no finite number of 32 bits"
    )]
    NotFinite {
        /// Advantage or weight.
        name: &'static str,
        /// The trajectory's place in the batch.
        trajectory: usize,
        /// The turn.
        turn: usize,
        /// The number.
        value: f64,
    },
    /// The trajectories that are kept are those of another batch.
    #[error(
        "weigh the samples of a batch: told of {found} trajectories whether they are kept, of \
         {expected}"
    )]
    Kept {
        /// How many it was told of.
        found: usize,
        /// How many there are.
        expected: usize,
    },
}

/// An error with all its causes, for records.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
