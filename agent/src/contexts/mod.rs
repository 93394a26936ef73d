//! What a policy sees of its episode, and what becomes of that as it grows.
//!
//! ```text
//!  Task, observations, answers ─▶ Context ──prompt──▶ policy
//!                                  │   ▲
//!                    ContextEditor ▼   │ summary: a turn of its own
//!                            ContextPolicy ──Next──▶ act, or summarize
//! ```

mod choice;
mod compact;
mod config;
#[cfg(test)]
mod conformance;
mod context;
mod editor;
mod elide_observations;
mod elision;
mod keep_all;
mod listing;
mod policy;
mod prompt;
mod registry;
mod shortened;
mod summary_rules;
#[cfg(test)]
mod tests;
mod thoughts;
mod threshold;
mod window;

pub use choice::ContextPolicyChoice;
pub use compact::{Compact, CompactOptions};
pub use config::{ContextConfig, ListUntried, ReasoningRule};
pub use context::Context;
#[cfg(test)]
pub(crate) use context::said_in;
pub use editor::ContextEditor;
pub use elide_observations::{ElideObservations, ElideOptions};
pub use elision::Elision;
pub use keep_all::KeepAll;
use listing::Listing;
pub use policy::{ContextPolicy, Next};
pub use prompt::Prompt;
pub use registry::{ContextPolicyRow, OpenContextPolicy, context_registry};
pub use summary_rules::SummaryRules;
pub(crate) use thoughts::split_thoughts;
pub use window::{Window, WindowOptions};
