//! Questions about a database, answered by a query: adapter of the crate `spar-sql`.
//!
//! `environment.rs` (the environment of the registry), `command.rs` (what is asked for, in words and by calls), `problem.rs` (what a
//! task asks, and its database), `judging.rs` (the verdict), `tools.rs` (rows of the table of tools, for other environments).

mod command;
mod environment;
mod judging;
mod problem;
mod tools;

pub use environment::Sql;
pub(crate) use tools::{QUERY_ROW, SCHEMA_ROW};
