//! What curricula compute from outcomes: which tasks are worth playing next, how many rollouts they get, how long episodes may be.
//!
//! Rules alone, without a state of a run: the rows of [`samplers`](crate::samplers) ask them, and whoever writes a sampler of his own can.

mod beta_posterior;
mod dars;
mod difficulty;
mod draws;
mod gdro;
mod horizon;
mod impact;
mod sec;
mod ucb;
mod uncertainty;

pub use beta_posterior::BetaPosterior;
pub use dars::{DarsSchedule, dars_extra_rollouts};
pub use difficulty::difficulty_weights;
pub use draws::{apportion, draw_without_replacement};
pub use gdro::{ArmChoice, ClassWeights, ClassWeightsConfig, RolloutArms, ScoreOf};
pub use horizon::HorizonSchedule;
pub use impact::{ImpactScore, learning_impact};
pub use sec::SecBandit;
pub use ucb::UcbBandit;
pub use uncertainty::uncertainty_reduction;
