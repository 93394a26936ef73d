//! policy

mod config;
mod parameters;

pub use config::ModelConfig;
pub use parameters::{ParameterKind, ParameterSpec, Parameters};
