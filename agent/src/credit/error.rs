//! What can go wrong when an estimator is configured or used.

use spar_core::{CreditShapeError, SignalError};

/// An advantage estimator cannot be had, or cannot say what a batch was worth.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreditError {
    /// No estimator has this name.
    #[error("find advantage estimator `{kind}`: known are {known}")]
    Unknown {
        /// The name asked for.
        kind: String,
        /// The names there are.
        known: String,
    },
    /// The estimator does not have this option, or not with this value.
    #[error("understand the options of advantage estimator `{kind}`")]
    Options {
        /// The estimator.
        kind: &'static str,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// An option is outside its range.
    #[error("use advantage estimator `{kind}`: {problems}")]
    Range {
        /// The estimator.
        kind: &'static str,
        /// All problems, one after the other.
        problems: String,
    },
    /// A signal that the estimator needs is not there.
    #[error("estimate the credit of a batch")]
    Signal(#[from] SignalError),
    /// The credit is that of another batch.
    #[error("estimate the credit of a batch")]
    Shape(#[from] CreditShapeError),
    /// An episode is among its own ancestors.
    #[error("find the owner of the turns of episode {episode}: it is among its own ancestors")]
    Lineage {
        /// The episode.
        episode: u64,
    },
}

/// Turns the problems that were found into an error.
pub(super) fn refuse(kind: &'static str, problems: Vec<String>) -> Result<(), CreditError> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(CreditError::Range { kind, problems: problems.join("; ") })
}
