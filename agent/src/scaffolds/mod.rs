//! Scaffolds: how a task is put to a policy, as data.
//!
//! ```text
//!  Task, tools ──system, instance──▶ first messages
//!  answer ──parser──▶ action ──▶ environment ──observation, elision──▶ next message
//!             └─ format error ──▶ next message       └─ stop action: the episode is over
//! ```

mod choice;
mod mini_config;
mod r2e_checkout;
mod registry;
mod scaffold;

pub use choice::ScaffoldChoice;
pub(crate) use choice::Unread;
pub use registry::{ScaffoldRow, scaffold_registry};
pub(crate) use scaffold::elided;
pub use scaffold::{Scaffold, ToolUse};
