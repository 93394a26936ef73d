//! Training runs: a warm start on demonstrations, then reinforcement learning.
//!
//! ```text
//!  Recipe ─▶ Training::start / resume ─▶ run ─▶ Summary
//!                     │ per iteration
//!                     ├─ warm start:  demonstrations ─▶ rows ─▶ Trainer
//!                     ├─ reinforce:   groups ─▶ credit ─▶ rows ─▶ Trainer ─▶ LocalPolicy
//!                     └─ metrics, trajectories, evaluations, checkpoints ─▶ RunFolder
//! ```

mod demonstrations;
mod footprint;
mod observer;
mod records;
mod run;
mod state;
mod summary;

pub use footprint::Footprint;
pub use observer::{Observer, Silent, Stage};
pub use run::{Outcome, StartOptions, Training};
pub use summary::{SplitResult, Summary};
