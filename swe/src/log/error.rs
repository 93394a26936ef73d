use super::Origin;

/// A log that no map of statuses comes of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// No parser of that origin has the name.
    #[error("find log parser `{name}` of {origin}: known are {}", quoted(known))]
    UnknownParser {
        /// The name that was asked for.
        name: String,
        /// Whose parsers were searched.
        origin: Origin,
        /// All names of that origin.
        known: Vec<&'static str>,
    },
    /// The original ends in an exception on this log, so that its harness grades nothing.
    #[error("parse log: {problem}")]
    Malformed {
        /// What the original could not do.
        problem: String,
    },
    /// A parser that reads the log as a whole was given too much of it.
    #[error("parse log: longer than {limit} bytes, which this parser reads at once")]
    TooLong {
        /// Bytes of a whole log at most, [`MAX_WHOLE_BYTES`](super::MAX_WHOLE_BYTES).
        limit: usize,
    },
    /// The log names more tests, or longer ones, than are kept.
    #[error(
        "parse log: more than {} tests, or {} bytes of names",
        super::MAX_TESTS,
        super::MAX_NAME_BYTES
    )]
    TooManyTests,
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
