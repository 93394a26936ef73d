//! What can go wrong with environments.

use crate::household::HouseholdError;

/// The environment could not do its part; the action is not to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// No environment has this name.
    #[error("find environment `{name}`: known are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A task's parameters are not this environment's.
    #[error("understand the parameters of task `{task}` for environment `{environment}`: {detail}")]
    Parameters {
        /// The task.
        task: String,
        /// The environment.
        environment: &'static str,
        /// What is wrong with them.
        detail: String,
    },
    /// A household game cannot be used.
    #[error("open a household game")]
    Household(#[from] HouseholdError),
    /// Called in an order that makes no sense, such as a step before the first reset.
    #[error("call `{call}` {when}")]
    Misused {
        /// The call.
        call: &'static str,
        /// When it came.
        when: &'static str,
    },
}
