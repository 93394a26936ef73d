//! A policy behind OpenAI's HTTP interface, and a corpus behind Search-R1's ([`RetrievalServer`]).
//!
//! ```text
//!  client ──HTTP──▶ PolicyServer ──▶ routes ─▶ wire (requests, checked field by field)
//!                                                │ prompt: messages and tools to tokens
//!                                                ▼
//!                                    spar_policy::Generator ──▶ tokens, one by one
//!                                                │ answer: text to reasoning, content, tool calls
//!  client ◀─JSON or events── respond ◀───────────┘
//! ```
//!
//! An answer is parsed while it comes about, and the same pieces make a streamed and a whole one,
//! so both say the same. Whoever hangs up drops the answer's stream, which cancels the request.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spar_core::Seed;
//! use spar_policy::{ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters};
//! use spar_serve::{PolicyServer, ServedModel, ServerConfig};
//!
//! let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
//! let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default())?);
//! let vocab_size = tokenizer.vocab_size();
//! let config = ModelConfig { vocab_size, hidden_size: 32, ..ModelConfig::default() };
//! let parameters = initial_parameters(&config, Seed::from_u64(1));
//! let weights = Arc::new(Weights::new(&config, parameters));
//! let model = ServedModel::new("small", tokenizer, &weights, Default::default())?;
//!
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let server = PolicyServer::bind("127.0.0.1:0", model, ServerConfig::default()).await?;
//!     println!("serving at http://{}/v1", server.address());
//!     // Serves until the future is ready; here, at once.
//!     server.serve(async {}).await;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod api_error;
mod body;
mod config;
mod connections;
mod error;
mod metrics;
mod model;
mod prompt;
mod respond;
mod retrieval;
mod routes;
mod server;
mod timed_io;
mod weights;
mod wire;

pub use answer::ToolFormat;
pub use config::ServerConfig;
pub use error::ServeError;
pub use model::ServedModel;
pub use retrieval::{RetrievalServer, RetrievalServerConfig};
pub use server::PolicyServer;
pub use wire::check_request;
