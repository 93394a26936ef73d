//! What can go wrong when an estimator is configured or used.

use spar_core::registry::RowError;
use spar_core::{CreditShapeError, SignalError};

use super::registry::AXIS;

/// An advantage estimator cannot be had, or cannot say what a batch was worth.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreditError {
    /// No estimator has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A signal that the estimator needs is not there.
    #[error("estimate the credit of a batch")]
    Signal(#[from] SignalError),
    /// The credit is that of another batch.
    #[error("estimate the credit of a batch")]
    Shape(#[from] CreditShapeError),
    /// A group has too few trajectories for an estimator that compares them.
    #[error(
        "estimate with `{estimator}`: a group has {found} trajectories, and it compares at least {needed}"
    )]
    GroupSize {
        /// The estimator.
        estimator: &'static str,
        /// Trajectories of the group.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// There are baselines for other groups than those of the batch.
    #[error("estimate with baselines: {found} were given for {needed} groups")]
    Baselines {
        /// Baselines.
        found: usize,
        /// Groups.
        needed: usize,
    },
    /// An episode is among its own ancestors.
    #[error("find the owner of the turns of episode {episode}: it is among its own ancestors")]
    Lineage {
        /// The episode.
        episode: u64,
    },
}

/// Turns the problems that were found with an estimator's options into an error.
pub(super) fn refuse(name: &str, problems: Vec<String>) -> Result<(), CreditError> {
    Ok(RowError::refuse(AXIS.what, name, problems)?)
}
