//! The folder of a run: all that is kept of it, and all that anything which shows it reads.

mod atomic;
mod checkpoints;
mod git_revision;
mod manifest;
mod metrics_log;
mod run_folder;
mod tensorboard;

pub use atomic::write_atomically;
pub use checkpoints::{Checkpoint, CheckpointMark, Checkpoints};
pub use git_revision::git_revision;
pub use manifest::{Manifest, rfc3339};
pub use metrics_log::{MetricRecord, MetricsLog, read_metrics};
pub use run_folder::{RunFolder, RunLock};
pub use tensorboard::EventWriter;
