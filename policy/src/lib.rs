//! policy

mod atomic_file;
pub mod checkpoint;
mod config;
pub mod decoder;
mod error;
pub mod head;
mod layout;
pub mod ops;
mod parameters;
mod tokenizer;
mod weights;

pub use config::ModelConfig;
pub use error::{CheckpointError, TokenizerError};
pub use parameters::{ParameterKind, ParameterSpec, Parameters};
pub use tokenizer::{Tokenizer, TokenizerConfig};
pub use weights::{Weights, initial_parameters};
