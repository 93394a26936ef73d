//! Policies that are no model in this process: endpoints, scripts, chance, people.

mod context_error;
mod http;
mod human;
mod idle;
mod random;
mod random_call;
mod scripted;

pub use http::{HttpPolicy, HttpPolicyConfig, ServerKind};
pub use human::HumanPolicy;
pub use idle::IdlePolicy;
pub use random::RandomPolicy;
pub use scripted::ScriptedPolicy;
