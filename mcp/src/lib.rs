//! Tools of servers that speak the Model Context Protocol.
//!
//! ```text
//!  streams of a process ─▶ LineTransport ─┐
//!                                          ├─▶ Watched ─▶ rmcp ─▶ McpClient ─ tools, call, resources, prompts
//!  URL and headers ─▶ streamable HTTP ────┘       └─ counts what nobody asked for
//! ```
//!
//! A [`McpClient`] is one connection with one server. What a server answers is taken for hostile: it is bounded in size,
//! number and time, and whatever the protocol does not have is a [`McpError`] with the server's last words. That a tool
//! could not do what it was called for is none: it is what the tool says ([`CallFailure::Told`]).
//!
//! ```
//! use spar_mcp::{McpLimits, McpServerStreams, McpClient};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // A server of one tool; mostly, it is a process.
//! let (stdin, requests) = tokio::io::duplex(1 << 16);
//! let (mut answers, stdout) = tokio::io::duplex(1 << 16);
//! tokio::spawn(async move {
//!     let mut lines = BufReader::new(requests).lines();
//!     while let Ok(Some(line)) = lines.next_line().await {
//!         let request: serde_json::Value = serde_json::from_str(&line).unwrap();
//!         let result = match request["method"].as_str().unwrap() {
//!             "initialize" => serde_json::json!({
//!                 "protocolVersion": request["params"]["protocolVersion"],
//!                 "capabilities": { "tools": {} },
//!                 "serverInfo": { "name": "one", "version": "1" },
//!             }),
//!             "tools/list" => serde_json::json!({ "tools": [{ "name": "tell", "inputSchema": {} }] }),
//!             "tools/call" => serde_json::json!({ "content": [{ "type": "text", "text": "Hello." }] }),
//!             _ => continue,
//!         };
//!         let answer = serde_json::json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
//!         answers.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
//!     }
//! });
//! let streams = McpServerStreams::new(stdin, stdout, tokio::io::empty());
//! let mut client = McpClient::over_streams("one", streams, McpLimits::default()).await?;
//! assert_eq!(client.tools().await?[0].name, "tell");
//! let answer = client.call("tell", Default::default(), std::time::Duration::from_secs(5)).await.unwrap();
//! assert_eq!(answer.text, "Hello.");
//! # Ok::<(), spar_mcp::McpError>(())
//! # })?;
//! # Ok::<(), spar_mcp::McpError>(())
//! ```

mod client;
mod content;
mod error;
mod event_stream;
mod http;
mod limits;
mod line_transport;
mod watched;

pub use client::{McpClient, McpServerStreams, Offered};
pub use content::{McpOutput, read_result};
pub use error::{CallFailure, McpError, McpFault};
pub use event_stream::EventReader;
pub use http::{McpHttpServer, authority, loopback_port};
pub use limits::McpLimits;
pub use line_transport::{LineMessage, read_line};
