//! From trajectories to training samples.
//!
//! ```text
//!  Trajectory ──cut──▶ samples without weights ──signal stages fill their streams──▶ Signals ──▶ credit
//!                                   └──────────────────── weigh ◀──────────────────────────────── Credit
//! ```

mod cut;
mod cut_batch;
mod demonstrations;
#[cfg(test)]
pub(crate) mod test_trajectories;
mod turn_mask;

pub use cut::cut_samples;
pub use cut_batch::{CutBatch, CutGroup, group_samples};
pub use demonstrations::{DemonstrationConfig, demonstration_samples};
pub use turn_mask::TurnMask;
