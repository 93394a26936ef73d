//! Tools: operations that tasks offer to policies, and the table that names them.
//!
//! ```text
//!  tool_registry() ─open(options, ToolPlace)─▶ Tool ─┐
//!                        MCP server, WebAssembly ... ─┼─▶ Toolbox ─call(ToolCall)─▶ ToolResult
//!                                        FunctionTool ─┘      ▲
//!                                                     ToolUse (the environment `toolbox`)
//! ```
//!
//! A tool is one file and one row. Most are a struct of arguments and a function:
//!
//! ```
//! use spar_envs::tools::{FunctionTool, Tool, ToolOutput};
//!
//! /// Adds a number to a total, and tells the total.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     /// What is added.
//!     number: i64,
//! }
//!
//! let mut add = FunctionTool::new("add", 0_i64, |total, Add { number }| {
//!     *total = total.checked_add(number).ok_or("The total would be too large.")?;
//!     Ok(ToolOutput::from(total.to_string()))
//! });
//! # futures::executor::block_on(async {
//! let limit = std::time::Duration::from_secs(1);
//! let call = |number: serde_json::Value| {
//!     let arguments = [("number".to_owned(), number)].into_iter().collect();
//!     spar_core::ToolCall::new("add", arguments)
//! };
//! assert_eq!(add.call(&call(2.into()), limit).await?.text, "2");
//! let told = add.call(&call("two".into()), limit).await.unwrap_err().to_string();
//! assert_eq!(
//!     told,
//!     r#"The arguments of `add` do not fit: `number`: expected an integer, got the string "two"."#
//! );
//! # Ok::<(), spar_envs::tools::ToolError>(())
//! # })?;
//! # Ok::<(), spar_envs::tools::ToolError>(())
//! ```

mod arguments;
mod calculator;
#[cfg(test)]
mod conformance;
mod function_tool;
mod generator;
mod interpreter;
mod limits;
mod notes;
mod registry;
mod schema_check;
mod search;
mod tool;
mod tool_use;
mod toolbox;
mod wasm;

pub use arguments::{read_arguments, spec_of};
pub use function_tool::FunctionTool;
pub use limits::ToolLimits;
pub use registry::{NamedTool, OpenTool, ToolChoice, ToolPlace, ToolRow, tool_registry};
pub use tool::{Tool, ToolError, ToolOutput, too_slow};
pub use tool_use::{ANSWER_TOOL, Ending, ToolUse, ToolUseTask};
pub use toolbox::{OpenedTool, Toolbox};
