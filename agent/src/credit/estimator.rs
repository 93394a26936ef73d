//! The trait of all advantage estimators.

use spar_core::{Credit, Signal, Signals};

use super::{BatchView, CreditError};

/// Says what the turns or tokens of a batch of trajectories were worth.
pub trait AdvantageEstimator: Send + Sync {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// The signals it reads; by default none.
    fn needs(&self) -> &[Signal] {
        &[]
    }

    /// Whether it says what a value head is to learn to expect. Default false.
    fn gives_returns(&self) -> bool {
        false
    }

    /// The credit of all trajectories of `batch`, in its shape.
    ///
    /// The order of groups, and of the trajectories in them, changes nothing but the order of the result
    /// (up to rounding). Inherited turns of forks are estimated like any others; who is trained on them is
    /// for [`settle_ownership`](super::settle_ownership) to say.
    ///
    /// # Errors
    ///
    /// [`CreditError::Signal`] when a signal that it needs was not filled for this batch.
    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError>;
}
