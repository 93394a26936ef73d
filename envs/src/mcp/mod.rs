//! Tools of servers that speak the Model Context Protocol.
//!
//! ```text
//!  McpOptions ─▶ McpTool ─takes a place─▶ McpServers ─starts─▶ process, in a sandbox or not ─┐
//!                   │                          └─ or a URL ─────────────────────────────────┴─▶ spar_mcp::McpClient
//!                   └─ tools, resources and prompts of the server, as one Tool of a Toolbox
//! ```
//!
//! A server is a [tool](crate::tools::tool_registry) like others, the row `mcp`: so a task has tools of several servers, and
//! others beside them. The environment `mcp` is the environment `toolbox` with at least one server. Every episode has
//! servers of its own, started when it is prepared and ended with it: what an episode does to them is seen by no other.

mod generator;
mod mcp_tool;
mod options;
mod servers;
#[cfg(test)]
mod tests;
mod within;

pub(crate) use generator::stock_task;
pub(crate) use mcp_tool::{ROW, tool_within};
pub use options::{McpOptions, McpSandbox, OnFailure};
pub(crate) use servers::McpServers;
pub(crate) use within::{ServerPlace, Within};
