//! How much a server may answer.

use std::time::Duration;

/// How much a server may answer, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrsLimits {
    /// From asking for a session to knowing its prompt and tools. Default 600 seconds.
    pub start: Duration,
    /// Of lists, pings and the end of a session. Default 30 seconds.
    pub request: Duration,
    /// Without a byte, not even a heartbeat, in a stream of events. Default 60 seconds; servers of the reference send one
    /// every 10.
    pub silence: Duration,
    /// Between two pings, by which a server knows that a session is still wanted. Default 10 seconds.
    pub ping: Duration,
    /// Bytes of one answer. Default 8 MiB.
    pub answer_bytes: usize,
    /// Bytes of all media of one answer, decoded. Default 8 MiB.
    pub media_bytes: usize,
    /// Tools, splits, environments, or blocks of an answer. Default 1024.
    pub items: usize,
}

impl Default for OrsLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(600),
            request: Duration::from_secs(30),
            silence: Duration::from_secs(60),
            ping: Duration::from_secs(10),
            answer_bytes: 8 << 20,
            media_bytes: 8 << 20,
            items: 1024,
        }
    }
}
