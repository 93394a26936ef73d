//! Environments: tasks made interactive, and the registry that names them.
//!
//! ```text
//!  Task ──open_environment──▶ Environment ──reset(seed)──▶ Observation
//!                                  │  ▲
//!                             fork │  └── step(action) ──▶ Step
//!                                  ▼
//!                             Environment
//! ```

mod environment;
mod error;
mod frozen_lake;
pub mod household;
mod registry;
mod validate;

pub use environment::Environment;
pub use error::EnvironmentError;
pub use registry::{EnvironmentEntry, environment_registry, open_environment};
