//! Episodes, credit, stores and evaluation.

mod action_parser;
mod cancellation;
mod context;
pub mod credit;
mod episode_config;
#[cfg(test)]
mod fake_environment;
mod player;
pub mod policies;
mod rows;
mod runner;
pub mod statistics;

pub use action_parser::ActionParser;
pub use cancellation::Cancellation;
pub use context::{Context, ContextConfig, Prompt};
pub use episode_config::{ConfigError, EpisodeConfig};
pub use player::Player;
pub use rows::{DemonstrationConfig, RowsError, demonstration_rows, group_rows, version_span};
pub use runner::{Episode, run_episode, run_started_episode};

/// An error with all its causes, for records.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
