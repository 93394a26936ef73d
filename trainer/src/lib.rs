//! trainer
mod error;
mod objectives;
#[cfg(test)]
mod testing;

pub use error::{RunFolderError, TrainerError};
pub use objectives::*;
