//! Credit: what each step of a group of trajectories was worth.
//!
//! ```text
//!  Group ──GroupView::from_group──▶ GroupView ──AdvantageEstimator──▶ one advantage per step
//! ```
//!
//! An estimator is plain arithmetic in linear time, without tensors. A new one is one file and one
//! row of [`credit_registry`].

mod error;
mod estimator;
mod gigpo;
mod group_view;
mod grpo;
mod interner;
mod moments;
mod ownership;
mod registry;
mod salt;
#[cfg(test)]
pub(crate) mod test_vectors;

pub use error::CreditError;
pub use estimator::AdvantageEstimator;
pub use gigpo::{Gigpo, GigpoConfig};
pub use group_view::{GroupView, StepView};
pub use grpo::{Grpo, GrpoConfig};
pub use moments::{Normalization, Singleton};
pub use ownership::Ownership;
pub use registry::{CreditConfig, EstimatorEntry, Options, credit_registry, open_estimator};
pub use salt::{Salt, SaltConfig, TransitionMean};
