//! What can go wrong with databases and queries.

use std::path::PathBuf;

/// A database cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// There is no such file.
    #[error("find database `{}`", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A file is no database, or cannot be read.
    #[error("open database `{}`: {detail}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// A database could not be made of a script.
    #[error("make a database of a script: {detail}")]
    Script {
        /// What SQLite said.
        detail: String,
    },
    /// Descriptions of columns cannot be read.
    #[error("read descriptions `{}`: {detail}", path.display())]
    Descriptions {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

/// A query has no result; the text is for who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// What SQLite says.
    #[error("{0}")]
    Sqlite(String),
    /// There is no statement, but for comments.
    #[error("the query is empty")]
    Empty,
    /// There is more than one statement.
    #[error("You can only execute one statement at a time.")]
    Several,
    /// There is a NUL in it.
    #[error("the query contains a null character")]
    Nul,
    /// It is longer than queries may be.
    #[error("the query has {found} bytes, at most {allowed} are read")]
    TooLong {
        /// Its bytes.
        found: usize,
        /// What is allowed.
        allowed: usize,
    },
    /// It has a parameter, such as `?`.
    #[error("the query has {0} parameters, and nothing is bound to them")]
    Parameters(usize),
    /// It took more steps than it may.
    #[error("interrupted: the query took more than {steps} steps")]
    Steps {
        /// What is allowed.
        steps: u64,
    },
    /// Its result is larger than it may be.
    #[error("the result has more than {rows} rows, or more bytes than are read")]
    TooLarge {
        /// Rows that were read.
        rows: usize,
    },
    /// It took longer than it may.
    #[error("interrupted: the query took more than {seconds} s")]
    Time {
        /// What is allowed.
        seconds: u64,
    },
}

impl QueryError {
    /// SQLite's own words on an error.
    pub(crate) fn of(error: rusqlite::Error) -> Self {
        Self::Sqlite(words(error))
    }
}

/// SQLite's own words on an error, without the query.
pub(crate) fn words(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        other => other.to_string(),
    }
}
