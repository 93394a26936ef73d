//! What can go wrong when something is chosen by name.

/// What has a name cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// No row has this name.
    #[error("find {what} `{name}`: known are {known}")]
    Unknown {
        /// What was looked for, such as `advantage estimator`.
        what: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are, those that resemble it first.
        known: String,
    },
    /// The row does not have these options, not with these values, or not together.
    #[error("use {what} `{name}`: {}", problems.join("; "))]
    Options {
        /// What the row is, such as `advantage estimator`.
        what: &'static str,
        /// The row's name.
        name: String,
        /// All that is wrong, at least one thing.
        problems: Vec<String>,
    },
}

impl RowError {
    /// Refuses a row's options where there are problems with them.
    ///
    /// # Errors
    ///
    /// [`RowError::Options`] when there are any.
    pub fn refuse(what: &'static str, name: &str, problems: Vec<String>) -> Result<(), Self> {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Self::Options { what, name: name.to_owned(), problems }),
        }
    }

    /// All that is wrong, each a sentence of its own.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Unknown { .. } => vec![self.to_string()],
            Self::Options { what, name, problems } => {
                problems.iter().map(|problem| format!("{what} `{name}`: {problem}")).collect()
            }
        }
    }
}

/// A row cannot be added to a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The table has been read, so that somebody has seen it without the row.
    #[error(
        "add {what} `{name}`: the table of {axis} is in use already; add rows before anything else is done"
    )]
    InUse {
        /// What the row is, such as `advantage estimator`.
        what: &'static str,
        /// The axis, as it is listed.
        axis: &'static str,
        /// The row's name.
        name: &'static str,
    },
    /// Another row has the name.
    #[error("add {what} `{name}`: there is one of this name")]
    Duplicate {
        /// What the row is, such as `advantage estimator`.
        what: &'static str,
        /// The name.
        name: &'static str,
    },
    /// The row does not say what it has to.
    #[error("add {what} `{name}`: {}", problems.join("; "))]
    Incomplete {
        /// What the row is, such as `advantage estimator`.
        what: &'static str,
        /// The row's name.
        name: &'static str,
        /// All that is wrong, at least one thing.
        problems: Vec<String>,
    },
}
