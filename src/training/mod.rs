//! Training runs: a list of stages, one after the other.
//!
//! ```text
//!  Recipe ─▶ Training::start / resume ─▶ run ─▶ Summary
//!                     │ per stage, and per iteration of it
//!                     ├─ imitate:    demonstrations, chat files ─▶ samples ─▶ Trainer
//!                     ├─ reinforce:  groups ─▶ credit ─▶ samples ─▶ Trainer ─▶ LocalPolicy
//!                     ├─ prefer:     pairs of answers, in files or of groups ─▶ samples ─▶ Trainer
//!                     ├─ evaluate:   splits ─▶ scores
//!                     └─ metrics, trajectories, evaluations, checkpoints ─▶ RunFolder
//! ```

mod chats;
mod demonstrations;
mod domains;
mod footprint;
mod json_lines;
mod learners;
mod model;
mod observer;
mod pairs;
mod records;
mod run;
mod shuffled_places;
pub mod stages;
mod state;
mod summary;

pub use footprint::Footprint;
pub(crate) use observer::KeepsFailures;
pub use observer::{Observer, Silent};
pub use run::{LEDGER, Outcome, StartOptions, Training, check_data};
pub use summary::{Evaluated, SplitResult, Summary, share};
