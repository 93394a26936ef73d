//! What can go wrong with servers.

use std::time::Duration;

use spar_sandbox::output::LastWords;

/// A server did something that it should not, or not what it should; whatever it was asked is not to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}`: {fault}{last_words}")]
#[non_exhaustive]
pub struct McpError {
    /// What it is called.
    pub server: String,
    /// What it did.
    pub fault: McpFault,
    /// What it last wrote.
    pub last_words: Box<LastWords>,
}

impl McpError {
    /// The same, where it is known how the server's process ended: that takes the place of its streams' end.
    #[must_use]
    pub fn with_end(mut self, how: impl Into<String>) -> Self {
        if let McpFault::Closed { end, .. } = &mut self.fault {
            *end = Some(how.into());
        }
        self
    }

    /// Whether nothing more can be asked of the server.
    pub fn is_final(&self) -> bool {
        !matches!(self.fault, McpFault::Answer { .. } | McpFault::Refused { .. })
    }
}

/// What a server did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpFault {
    /// It and this client found no common ground.
    #[error("it did not take up the connection: {detail}")]
    Handshake {
        /// What happened.
        detail: String,
    },
    /// It has ended, or cannot be reached any more.
    #[error("it was to {doing} and {}", end.as_deref().unwrap_or("has closed the connection"))]
    Closed {
        /// What it was to do.
        doing: String,
        /// How its process ended, where that is known.
        end: Option<String>,
    },
    /// It did not answer in time.
    #[error("it did not {doing} within {} s", limit.as_secs_f64())]
    Late {
        /// What it was to do.
        doing: String,
        /// The time it had.
        limit: Duration,
    },
    /// It answered something too late, and then a ping not at all.
    #[error("it hangs: it answered neither {asked} nor a ping behind it")]
    Hangs {
        /// What it was asked, such as a call.
        asked: String,
    },
    /// It sends messages without end.
    #[error("it sent more than {count} messages that nobody had asked for")]
    Flood {
        /// The limit.
        count: usize,
    },
    /// It sent a message beyond the limit.
    #[error("it sent a message of more than {bytes} bytes")]
    TooLong {
        /// The limit.
        bytes: usize,
    },
    /// It sends what are no messages.
    #[error("it sent more than {count} lines that are no messages")]
    Nonsense {
        /// The limit.
        count: usize,
    },
    /// It answered otherwise than the protocol has it.
    #[error("it was to {doing} and answered what is no answer: {detail}")]
    Answer {
        /// What it was to do.
        doing: String,
        /// What is wrong with it.
        detail: String,
    },
    /// It said itself that it could not do what it was asked.
    #[error("it could not {doing}: {message}")]
    Refused {
        /// What it was to do.
        doing: String,
        /// What it said, shortened.
        message: String,
    },
    /// It is reached over HTTP, and cannot be.
    #[error("it cannot be reached: {detail}")]
    Unreachable {
        /// Why.
        detail: String,
    },
}

/// A call of a tool, or a request for something else that a server has, came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The tool, or the server for it, says why: for whoever called.
    #[error("{text}")]
    Told {
        /// What it says.
        text: String,
    },
    /// It took longer than it might, and was given up; the server goes on.
    #[error("not done within {} s", limit.as_secs_f64())]
    Late {
        /// The time it had.
        limit: Duration,
    },
    /// The server broke.
    #[error(transparent)]
    Server(#[from] McpError),
}

impl CallFailure {
    /// That a call could not be carried out, in words for whoever called.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::Told { text: text.into() }
    }
}
