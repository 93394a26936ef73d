//! What can go wrong with servers.

use std::time::Duration;

/// A server did something that it should not, or not what it should; whatever it was asked is not to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ORS server `{server}`: {fault}")]
#[non_exhaustive]
pub struct OrsError {
    /// What it is called.
    pub server: String,
    /// What it did.
    pub fault: OrsFault,
}

/// What a server did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrsFault {
    /// It is not named in a way that it could be reached by.
    #[error("it cannot be reached: {detail}")]
    Address {
        /// Why.
        detail: String,
    },
    /// It is not there, or broke off.
    #[error("it was to {doing} and could not be reached, or broke off: {detail}")]
    Broken {
        /// What it was to do.
        doing: String,
        /// What happened.
        detail: String,
    },
    /// It answered with a status that is no success.
    #[error("it was to {doing} and answered with status {status}: {message}")]
    Status {
        /// What it was to do.
        doing: String,
        /// The status.
        status: u16,
        /// What it said, shortened.
        message: String,
    },
    /// What it was to do raised an error there.
    #[error("it was to {doing} and raised an error: {message}")]
    Raised {
        /// What it was to do.
        doing: String,
        /// What it said, shortened.
        message: String,
    },
    /// It did not answer in time.
    #[error("it did not {doing} within {} s", limit.as_secs_f64())]
    Late {
        /// What it was to do.
        doing: String,
        /// The time it had.
        limit: Duration,
    },
    /// It sent nothing for too long, not even a heartbeat.
    #[error("it was to {doing} and was silent for {} s", limit.as_secs_f64())]
    Silent {
        /// What it was to do.
        doing: String,
        /// The time it had.
        limit: Duration,
    },
    /// It answered with more than the limit.
    #[error("it was to {doing} and answered with more than {bytes} bytes")]
    TooLong {
        /// What it was to do.
        doing: String,
        /// The limit.
        bytes: usize,
    },
    /// It answered otherwise than the standard has it.
    #[error("it was to {doing} and answered what is no answer: {detail}")]
    Answer {
        /// What it was to do.
        doing: String,
        /// What is wrong with it.
        detail: String,
    },
    /// It knows the session no more.
    #[error("it has ended the session: {detail}")]
    Ended {
        /// How that was told.
        detail: String,
    },
}
