//! trainer
mod error;
mod objectives;
mod optimisers;
#[cfg(test)]
mod testing;

pub use error::{RunFolderError, TrainerError};
pub use objectives::*;
pub use optimisers::*;
