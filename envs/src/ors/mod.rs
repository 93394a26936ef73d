//! Tasks of servers of the Open Reward Standard.
//!
//! ```text
//!  OrsTask ─▶ Ors ─takes a place─▶ OrsServers ─▶ spar_ors::OrsSession
//!              └─ Toolbox ─▶ SessionTool ─ calls; notes rewards and the end
//! ```
//!
//! The server gives the prompt and the tools and judges; here is what bounds it, and what holds for episodes: a start that
//! is shared, a place among the sessions of the server, a fork by replay.

mod environment;
mod servers;
mod session_tool;
#[cfg(test)]
mod tests;

pub use environment::Ors;
pub(crate) use servers::OrsServers;
