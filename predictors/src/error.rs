//! What can go wrong when a predictor is configured or used.

use std::error::Error;

use spar_core::registry::RowError;

use crate::SegmentsError;

/// A predictor cannot be had, fitted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictorError {
    /// No predictor has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Rows are no segments.
    #[error("take features of segments")]
    Segments(#[from] SegmentsError),
    /// Features of another width than it was opened for.
    #[error("read segments of {found} features: the predictor was opened for {expected}")]
    Width {
        /// Features of a segment that were given.
        found: usize,
        /// Features that it was opened for.
        expected: usize,
    },
    /// It was to be opened for features that it cannot read.
    #[error("open predictor `{name}` for {width} features of a segment: {problem}")]
    Features {
        /// The predictor's name.
        name: &'static str,
        /// Features of a segment.
        width: usize,
        /// What is wrong with that.
        problem: &'static str,
    },
    /// Not one reward for every segment.
    #[error("fit {expected} segments: {found} rewards were given")]
    Rewards {
        /// Rewards that were given.
        found: usize,
        /// Segments.
        expected: usize,
    },
    /// A reward that nothing can be fitted to.
    #[error("fit segments: the reward of segment {segment} is not finite")]
    Reward {
        /// Which segment, from 0.
        segment: usize,
    },
    /// Its weights ran away; those from before the fit are kept.
    #[error(
        "fit predictor `{name}`: its loss is not finite in step {step}; lower its `learning_rate`"
    )]
    Diverged {
        /// The predictor's name.
        name: &'static str,
        /// Which step of the fit, from 0.
        step: usize,
    },
    /// It says of a segment what is no finite number: its weights, or the features, are beyond all measure.
    #[error("ask predictor `{name}`: what it says of segment {segment} is not finite")]
    Prediction {
        /// The predictor's name.
        name: &'static str,
        /// Which segment, from 0.
        segment: usize,
    },
    /// The tensor library failed, or the device.
    #[error("compute predictor `{name}`")]
    Compute {
        /// The predictor's name.
        name: &'static str,
        /// What it said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A state cannot be read.
    #[error("load the state of predictor `{name}`")]
    State {
        /// The predictor's name.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: StateError,
    },
}

/// Bytes are no state of a predictor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// They are no safetensors file, or not all of one.
    #[error("it is damaged, or no state at all; take an earlier checkpoint")]
    Unreadable(#[source] Box<dyn Error + Send + Sync>),
    /// The file does not say which predictor it is of.
    #[error("it has no header `{header}`")]
    NoHeader {
        /// The name that the header has.
        header: &'static str,
    },
    /// A newer version wrote it.
    #[error("its version is {found}, and {known} is the newest that can be read")]
    Version {
        /// Version of the state.
        found: u32,
        /// Newest version that can be read.
        known: u32,
    },
    /// Another predictor wrote it.
    #[error("it is of predictor `{found}`")]
    Predictor {
        /// Who wrote it.
        found: String,
    },
    /// It lacks something.
    #[error("tensor `{name}` is not there")]
    Absent {
        /// The tensor.
        name: String,
    },
    /// It was written with other options, or for other features.
    #[error(
        "tensor `{name}` has the shape {found:?}, and {expected:?} by these options and features"
    )]
    Shape {
        /// The tensor.
        name: String,
        /// Shape in the state.
        found: Vec<usize>,
        /// Shape that the predictor has.
        expected: Vec<usize>,
    },
    /// A number that no fit leaves behind.
    #[error("tensor `{name}` holds what is no 32-bit number, or not finite")]
    Numbers {
        /// The tensor.
        name: String,
    },
    /// The device has no place for what was read.
    #[error("put it on the device")]
    Device(#[source] Box<dyn Error + Send + Sync>),
    /// Parts of it contradict each other.
    #[error("its parts contradict each other: {problem}")]
    Contradiction {
        /// What does not fit.
        problem: &'static str,
    },
}
