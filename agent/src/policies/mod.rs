//! Policies that are no model in this process: endpoints, scripts, chance, people.

mod context_error;
mod http;
mod human;
mod idle;
mod random;
mod random_call;
mod scripted;
mod typed_line;

pub use http::{HttpPolicy, HttpPolicyConfig, ServerKind};
pub use human::HumanPolicy;
pub use idle::IdlePolicy;
pub use random::RandomPolicy;
pub use scripted::ScriptedPolicy;
pub use typed_line::{HOW_TO_CALL, as_typed, list_tools, typed_action};
