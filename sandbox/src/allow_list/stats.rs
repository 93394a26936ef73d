//! What passed an allow-list's proxy.

use serde::{Deserialize, Serialize};

/// What passed the proxy of a sandbox with an allow-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkStats {
    /// Connections to the proxy so far.
    pub connections: u64,
    /// Those that are open now.
    pub open: u64,
    /// Those that the list, or the use of all bytes, forbade.
    pub refused: u64,
    /// Those that came to nothing for other reasons: the host was not found or did not answer, or
    /// the client did not speak as it has to.
    pub failed: u64,
    /// Bytes to hosts.
    pub sent_bytes: u64,
    /// Bytes from hosts.
    pub received_bytes: u64,
}
