//! What curricula compute from outcomes: which tasks are worth playing next, how many rollouts they get, how long episodes may be.
//!
//! Rules alone, for those who write a task sampler or a schedule: a sampler sees places in a shuffled order, not yet which task or category stands
//! there, so that these have no rows of their own.

mod beta_posterior;
mod dars;
mod difficulty;
mod horizon;
mod sec;

pub use beta_posterior::BetaPosterior;
pub use dars::{DarsSchedule, dars_extra_rollouts};
pub use difficulty::difficulty_weights;
pub use horizon::HorizonSchedule;
pub use sec::SecBandit;
