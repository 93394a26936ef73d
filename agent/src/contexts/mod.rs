//! What a policy sees of its episode.

mod config;
mod context;
mod listing;
mod prompt;
#[cfg(test)]
mod tests;
mod thoughts;

pub use config::{ContextConfig, ListUntried, ReasoningRule};
pub use context::Context;
pub(crate) use context::said_in;
use listing::Listing;
pub use prompt::Prompt;
pub(crate) use thoughts::split_thoughts;
