//! How much a server may answer.

use std::time::Duration;

/// How much a server may answer, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpLimits {
    /// From the start to the end of the handshake. Default 60 seconds.
    pub start: Duration,
    /// Of lists, resources, prompts and pings. Default 30 seconds.
    pub request: Duration,
    /// Bytes of one message. Default 8 MiB.
    pub message_bytes: usize,
    /// Bytes of all media of one answer, decoded. Default 8 MiB.
    pub media_bytes: usize,
    /// Messages that answer nothing, such as notifications, between two requests. Default 100 000.
    pub unasked: usize,
    /// Items of one list, all of its pages together. Default 1024.
    pub items: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            request: Duration::from_secs(30),
            message_bytes: 8 << 20,
            media_bytes: 8 << 20,
            unasked: 100_000,
            items: 1024,
        }
    }
}
