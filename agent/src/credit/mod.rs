//! Credit: what every turn or token of a batch of trajectories was worth.
//!
//! ```text
//!  Groups ──▶ BatchView ─┐
//!                        ├─▶ AdvantageEstimator ──▶ Credit ──▶ TurnMask ──▶ SharedTurns ──▶ CutBatch::weigh
//!  CutBatch ──▶ Signals ─┘
//! ```
//!
//! An estimator is plain arithmetic in linear time, without tensors. A new one is one file and one
//! row of [`credit_registry`].

mod archer;
mod batch_view;
mod error;
mod estimator;
mod gae;
mod gigpo;
mod group_view;
mod grpo;
mod inheritance;
mod interner;
mod moments;
mod ownership;
mod predicted;
mod registry;
mod reinforce_pp;
mod salt;
mod shared_turns;
mod spa;
#[cfg(test)]
pub(crate) mod test_vectors;
mod token_rewards;
mod whiten;

pub use archer::{Archer, ArcherConfig};
pub use batch_view::BatchView;
pub use error::CreditError;
pub use estimator::AdvantageEstimator;
pub use gae::{Gae, GaeConfig, GaeLevel};
pub use gigpo::{Gigpo, GigpoConfig};
pub use group_view::{EpisodeView, GroupView, StepView, TrajectoryView};
pub use grpo::{Grpo, GrpoConfig};
pub use moments::{Normalization, Singleton};
pub use ownership::settle_ownership;
pub use registry::{CreditConfig, EstimatorRow, OpenEstimator, credit_registry, open_estimator};
pub use reinforce_pp::{Baseline, ReinforcePp, ReinforcePpConfig};
pub use salt::{Salt, SaltConfig, TransitionMean};
pub use shared_turns::SharedTurns;
pub use spa::{Spa, SpaConfig};
