//! policy

mod config;
pub mod ops;
mod parameters;

pub use config::ModelConfig;
pub use parameters::{ParameterKind, ParameterSpec, Parameters};
