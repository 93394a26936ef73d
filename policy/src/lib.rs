//! policy

mod config;
pub mod decoder;
pub mod head;
mod layout;
pub mod ops;
mod parameters;
mod weights;

pub use config::ModelConfig;
pub use parameters::{ParameterKind, ParameterSpec, Parameters};
pub use weights::{Weights, initial_parameters};
