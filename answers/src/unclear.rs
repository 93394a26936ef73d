//! Why nothing can be told of an answer.

/// Why it cannot be told whether two answers say the same; they then do not count as equal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unclear {
    /// There is no answer.
    #[error("the answer is empty")]
    Empty,
    /// It is longer than anything that is looked at.
    #[error("the answer has {bytes} bytes, at most {limit} are read")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Brackets, fractions and the like stand inside each other too deeply.
    #[error("the answer is nested deeper than {limit} levels")]
    TooDeep {
        /// How deep they may stand.
        limit: usize,
    },
    /// A number in it, or the work to compare it, is too large.
    #[error("the answer is too large to be computed")]
    TooLarge,
    /// It cannot be read.
    #[error("the answer cannot be read at `{near}`")]
    Unreadable {
        /// What stands where reading ended; empty at its end.
        near: String,
    },
    /// It has no value.
    #[error("the answer divides by zero")]
    DivisionByZero,
    /// It is of a kind that is not computed, such as an integral, or its value cannot be told with enough digits.
    #[error("the answer cannot be computed: {what}")]
    NotComputed {
        /// What cannot.
        what: &'static str,
    },
}
