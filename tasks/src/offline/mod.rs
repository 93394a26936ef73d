//! Datasets of recorded episodes, by the quality of who played them.

mod dataset;
mod offline_suite;
mod recording;
#[cfg(test)]
pub(crate) use offline_suite::tests;

pub use dataset::{
    DATASET_VERSION, Dataset, DatasetTier, MEDIUM_EXPERT, RecordingFile, ScoreReferences, Tier,
};
pub use offline_suite::{OfflineSuite, RecordedEpisode};
pub use recording::{RecordedTurn, Recording};
