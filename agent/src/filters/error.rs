//! What can go wrong when a group filter is configured.

use spar_core::registry::RowError;

/// A group filter cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// No filter has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
}
