//! The domains of tau2-bench (arXiv 2506.07982): their data, tools and rewards, equal to the reference to the character.
//!
//! An agent serves a customer over tools, policies and databases, and in telecom the customer has a phone to work on. What
//! calls answer, how databases change, their hashes and the rewards are those of the reference's version 1.0.1, of which
//! the data and tasks are read as they are released.
//!
//! ```text
//!  a release's folder ──Release──▶ Domain (immutable, shared) ──World::new──▶ World (one episode, copy on write)
//!                          │                                                    ▲ Called    │ Answered
//!                          └─▶ Tau2Task ──World::initialise──────────────────────┘           ▼
//!                                 └──────────────────── judge(domain, task, messages) ──▶ Judgement
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use spar_tau2::{Called, Domain, Requestor, World};
//!
//! let database = json!({
//!     "tasks": {},
//!     "users": { "u1": { "user_id": "u1", "name": "Ada", "tasks": [] } },
//! });
//! let domain = Domain::mock(&database, &json!({}), "Help.", "Help.").unwrap();
//! let mut world = World::new(Arc::new(domain), false, 0);
//! let fork = world.clone();
//! let arguments = json!({ "user_id": "u1", "title": "Call back" });
//! let call = Called {
//!     id: "1".to_owned(),
//!     name: "create_task".to_owned(),
//!     arguments: arguments.as_object().unwrap().clone(),
//!     requestor: Requestor::Assistant,
//! };
//! let answer = world.respond(&call).content.unwrap();
//! assert_eq!(
//!     answer,
//!     r#"{"task_id": "task_1", "title": "Call back", "description": null, "status": "pending"}"#
//! );
//! assert!(world.hash(Requestor::Assistant) != fork.hash(Requestor::Assistant));
//! ```
//!
//! Resetting and forking cost a few counts, whatever the size of the databases: a world holds what it changed, row by row.

mod airline;
mod calculate;
mod conformance;
mod database;
mod dates;
mod domain;
mod error;
mod mock;
mod object;
mod release;
mod reply;
mod retail;
mod reward;
mod schema;
mod signature;
mod task;
mod telecom;
#[cfg(test)]
mod tests;
mod validate;
mod world;

pub use conformance::{Compared, Mismatch, compare_folder};
pub use database::Database;
pub use domain::{Domain, DomainName, PolicyKind, Requestor};
pub use error::Tau2Error;
pub use release::Release;
pub use reward::{Judgement, judge};
pub use task::{
    Answered, Assertion, Called, EvaluationCriteria, FunctionCall, GoldAction, InitialState,
    InitializationData, InstructionParts, Instructions, Message, RewardType, Said, Tau2Task,
    UserScenario,
};
pub use world::{Beginning, World};
