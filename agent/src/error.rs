//! What can go wrong outside credit and evaluation.

use spar_core::TrajectoryError;

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("use the settings: {problems}")]
pub struct ConfigError {
    /// All problems, one after the other.
    pub problems: String,
}

impl ConfigError {
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
    /// The advantages are those of another group.
    #[error("make samples of task `{task}`: {found} advantages for {expected} {what}")]
    Advantages {
        /// The group's task.
        task: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
        /// Of what.
        what: &'static str,
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
