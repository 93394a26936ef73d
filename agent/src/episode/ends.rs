//! How episodes end that nobody wanted to end.

use std::time::Duration;

use spar_core::{Boundary, EndReason, PolicyError};
use spar_envs::EnvironmentError;

use crate::error_chain;

pub(super) use spar_core::Limit;

pub(super) fn truncated(limit: Limit) -> EndReason {
    EndReason::Truncated { limit }
}

pub(super) fn failed(boundary: Boundary, detail: &str) -> EndReason {
    EndReason::Failed { boundary, detail: detail.to_owned() }
}

pub(crate) fn cancelled() -> EndReason {
    failed(Boundary::Cancelled, "told to stop")
}

/// Who had to do something missed the deadline for it.
pub(super) fn late(boundary: Boundary, doing: &str, limit: Duration) -> EndReason {
    failed(boundary, &format!("it did not {doing} within {} s", limit.as_secs()))
}

pub(crate) fn broken(error: &EnvironmentError) -> EndReason {
    failed(error.boundary(), &error_chain(error))
}

/// What played it panicked, which is nobody's fault but the code's.
pub(crate) fn panicked(text: &str) -> EndReason {
    failed(Boundary::Environment, &format!("it panicked: {text}"))
}

pub(super) fn policy_end(error: &PolicyError) -> EndReason {
    match error {
        PolicyError::ContextFull { .. } => truncated(Limit::Context),
        // Whoever shut the policy down wants no more episodes.
        PolicyError::Closed { .. } => failed(Boundary::Cancelled, &error_chain(error)),
        // Nothing has failed, and nothing is to be played anew.
        PolicyError::OutOfBudget { .. } => failed(Boundary::Cancelled, &error_chain(error)),
        _ => failed(Boundary::Policy, &error_chain(error)),
    }
}
