//! What keeps a secret from being looked for.

/// A secret cannot be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It is so short that it would be found where it is not.
    #[error(
        "look for secret `{name}`: it has {bytes} bytes, and what has fewer than {least} stands by chance in other text"
    )]
    Short {
        /// Its name.
        name: String,
        /// Its bytes.
        bytes: usize,
        /// The fewest that are looked for.
        least: usize,
    },
    /// No rule has this name.
    #[error("find rule `{name}` of secrets: known are {known}")]
    UnknownRule {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
}
