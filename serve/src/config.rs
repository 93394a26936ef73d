//! How a server behaves.

use std::path::PathBuf;
use std::time::Duration;

use spar_policy::checkpoint::KeepAs;

use crate::ToolFormat;

/// How a server behaves; how much generation may take is set in the model's generator.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// What clients have to show as `Authorization: Bearer ...`. Default absent: nothing.
    pub api_key: Option<String>,
    /// Bytes that a request may have. Default 16 MiB.
    pub max_body_bytes: usize,
    /// Connections at the same time; further ones wait to be accepted. Default 1024.
    pub max_connections: usize,
    /// Answers that one request may ask for, over all its prompts. Default 128.
    pub max_choices: usize,
    /// How long a request's head may take to arrive, and a connection may idle. Default 30 s.
    pub head_timeout: Duration,
    /// How long a request's body may take to arrive. Default 60 s.
    pub body_timeout: Duration,
    /// How long a client may leave bytes unread. Default 60 s.
    pub write_timeout: Duration,
    /// How long an answer may take. Default 600 s.
    pub answer_timeout: Duration,
    /// How long answers under way may go on when the server is told to stop. Default 30 s.
    pub shutdown_grace: Duration,
    /// The folder that `/weights` may load checkpoints below. Default absent: none.
    pub weights_root: Option<PathBuf>,
    /// In which form weights that `/weights` loads are kept. Default as they are stored.
    pub keep_weights_as: KeepAs,
    /// How tool calls are written. Default absent: as the model's chat template has them.
    pub tool_format: Option<ToolFormat>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            api_key: None,
            max_body_bytes: 16 << 20,
            max_connections: 1024,
            max_choices: 128,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(600),
            shutdown_grace: Duration::from_secs(30),
            weights_root: None,
            keep_weights_as: KeepAs::Stored,
            tool_format: None,
        }
    }
}
