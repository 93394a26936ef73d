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

mod ace;
mod archer;
mod arpo;
mod batch_view;
mod by_hint;
mod copo;
mod discounting;
mod duration;
mod error;
mod estimator;
mod gae;
mod gdpo;
mod gigpo;
mod gpg;
mod graft;
mod graph_gpo;
mod group_view;
mod grpo;
mod grpo_passk;
mod hgpo;
mod inheritance;
mod interner;
#[cfg(test)]
mod laws;
mod mars;
mod mc_grpo;
mod moments;
mod opo;
mod opob;
mod optimal_token_baseline;
mod ownership;
mod polychromic;
mod predicted;
mod psr_nsr;
mod r3l;
mod registry;
mod reinforce_pp;
mod remax;
mod rloo;
mod rtmc;
mod salt;
mod shared_turns;
mod similar_states;
mod spa;
mod spa_released;
mod state_graph;
#[cfg(test)]
pub(crate) mod test_vectors;
mod token_rewards;
mod tree;
mod tree_ps;
mod ui_s1;
mod v0_5;
mod whiten;
mod xrpo;

pub use ace::{Ace, AceConfig};
pub use archer::{Archer, ArcherConfig};
pub use arpo::{Arpo, ArpoConfig, Attribution};
pub use batch_view::BatchView;
pub use by_hint::{ByHint, ByHintConfig};
pub use copo::{Copo, CopoConfig};
pub use duration::{Duration, DurationConfig};
pub use error::CreditError;
pub use estimator::AdvantageEstimator;
pub use gae::{Gae, GaeConfig, GaeLevel};
pub use gdpo::{BatchNormalization, Gdpo, GdpoConfig};
pub use gigpo::{Gigpo, GigpoConfig};
pub use gpg::{Gpg, GpgConfig};
pub use graft::{Graft, GraftConfig};
pub use graph_gpo::{GraphGpo, GraphGpoConfig};
pub use group_view::{EpisodeView, GroupView, StepView, TrajectoryView};
pub use grpo::{DeviationOf, Grpo, GrpoConfig, GrpoSingleton};
pub use grpo_passk::{GrpoPassk, GrpoPasskConfig};
pub use hgpo::{Hgpo, HgpoConfig};
pub use mars::{DistinctNormalization, Mars, MarsConfig, TurnNormalization};
pub use mc_grpo::{McGrpo, McGrpoConfig, MedianScale};
pub use moments::{Normalization, Singleton};
pub use opo::{Opo, OpoConfig};
pub use opob::{OpobSample, opob_mean, opob_median};
pub use optimal_token_baseline::{OptimalTokenBaseline, OptimalTokenBaselineConfig};
pub use ownership::settle_ownership;
pub use polychromic::{Polychromic, PolychromicConfig};
pub use psr_nsr::{PsrNsr, PsrNsrConfig, TaughtBy};
pub use r3l::{OpmdBaseline, R3l, R3lConfig};
pub use registry::{CreditConfig, EstimatorRow, OpenEstimator, credit_registry, open_estimator};
pub use reinforce_pp::{Baseline, ReinforcePp, ReinforcePpConfig};
pub use remax::Remax;
pub use rloo::{Rloo, RlooConfig};
pub use rtmc::{Rtmc, RtmcConfig};
pub use salt::{Salt, SaltConfig, TransitionMean};
pub use shared_turns::SharedTurns;
pub use spa::{Spa, SpaConfig};
pub use spa_released::{SpaReleased, SpaReleasedConfig};
pub use tree_ps::{TreePs, TreePsConfig};
pub use ui_s1::{UiS1, UiS1Config};
pub use v0_5::{FusedPrior, FusedPriorConfig, PriorError};
pub use xrpo::{Xrpo, XrpoConfig};
