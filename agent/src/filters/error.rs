//! What can go wrong when a group filter is configured.

/// A group filter cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// No filter has this name.
    #[error("find group filter `{kind}`: known are {known}")]
    Unknown {
        /// The name asked for.
        kind: String,
        /// The names there are.
        known: String,
    },
    /// The filter does not have this option, or not with this value.
    #[error("understand the options of group filter `{kind}`")]
    Options {
        /// The filter.
        kind: &'static str,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// An option is outside its range.
    #[error("use group filter `{kind}`: {problems}")]
    Range {
        /// The filter.
        kind: &'static str,
        /// All problems, one after the other.
        problems: String,
    },
}
