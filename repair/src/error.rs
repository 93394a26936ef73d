//! What can go wrong.

/// Why a file has no mutations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// The file is larger than what is looked at.
    #[error("the source has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most that are looked at.
        limit: usize,
    },
    /// The file is not in the language's syntax.
    #[error("the source is no {language} that its grammar knows: line {line} cannot be read")]
    Syntax {
        /// The language.
        language: &'static str,
        /// The first line with an error, from 1.
        line: usize,
    },
}
