//! A real server, asked over real connections.

mod abuse;
mod chat;
mod client;
mod completions;
mod load;
mod retrieval;
mod support;
