//! trainer
mod average;
pub mod batches;
mod decoder_gradient;
mod drift;
mod error;
mod learning_curve;
mod objectives;
mod optimisers;
mod row_gradient;
mod run;
mod schedule;
#[cfg(test)]
mod testing;
mod trainer;
mod trainer_config;
mod update_metrics;

pub use average::{AverageConfig, WeightAverage};
pub use decoder_gradient::DecoderGradient;
pub use drift::{Distances, Drift};
pub use error::{RunFolderError, TrainerError};
pub use learning_curve::{CurvePoint, CurveSeries, LearningCurve};
pub use objectives::{
    BatchWeight, Clip, ClipOptions, LossAggregation, Objective, ObjectiveConfig, RowLoss,
    Supervised, Tally, objective_names,
};
pub use optimisers::{
    AdamW, AdamWOptions, Muon, MuonOptions, NamedTensor, Optimizer, OptimizerConfig,
    clip_global_norm, global_norm, optimizer_names, orthogonalize,
};
pub use row_gradient::{PreparedModel, RowGradient, RowLossFn};
pub use run::{
    Checkpoint, CheckpointFile, CheckpointMark, Checkpoints, EventWriter, Manifest, MetricRecord,
    MetricsLog, RunFolder, RunLock, git_revision, read_metrics, rfc3339, write_atomically,
};
pub use schedule::{ScheduleConfig, ScheduleShape};
pub use trainer::Trainer;
pub use trainer_config::TrainerConfig;
pub use update_metrics::UpdateMetrics;
