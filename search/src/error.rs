//! What can go wrong with corpora, indexes, searches and files of questions.

use std::io;
use std::path::PathBuf;

use serde_json::Value;
use tantivy::TantivyError;

/// A field of a record is not what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {detail}")]
pub struct FieldError {
    /// The field, with the way to it.
    pub field: String,
    /// What is wrong with it; reads well behind its name.
    pub detail: String,
}

impl FieldError {
    /// That something is wrong with a field.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }

    /// That a field is not there.
    pub fn absent(field: impl Into<String>) -> Self {
        Self::new(field, "is absent")
    }

    /// That a field is of another type.
    pub fn wrong_type(field: impl Into<String>, wanted: &str, found: &Value) -> Self {
        Self::new(field, format!("is {}, must be {wanted}", kind_of(found)))
    }
}

/// What kind of value something is, in words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A corpus or a file of questions cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// The file cannot be read.
    #[error("read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A record of the file is wrong.
    #[error("understand `{}`, {place}: {detail}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which record, in words.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// There is no record in it.
    #[error("find anything in `{}`: it is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It became another file while it was read.
    #[error("read `{}`: it changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// An index cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The documents cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The index could not be built or opened.
    #[error("{doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        /// What the engine said.
        #[source]
        source: Box<TantivyError>,
    },
    /// The folder of indexes cannot be used.
    #[error("use `{}` as a folder of indexes", path.display())]
    Folder {
        /// The folder, or what is in it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What lies where the index would be kept is something else.
    #[error(
        "keep an index at `{}`: what lies there is none of this corpus ({detail}); remove it, or name another folder",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },
}

impl IndexError {
    pub(crate) fn engine(doing: &'static str) -> impl Fn(TantivyError) -> Self {
        move |source| Self::Engine { doing, source: Box::new(source) }
    }
}

/// A search cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query is too long.
    #[error("search for a query of {bytes} bytes: {limit} are allowed")]
    QueryTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Too many documents are asked for.
    #[error("find {asked} documents at a time: {limit} are allowed")]
    TooMany {
        /// How many.
        asked: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// The index could not be read.
    #[error("read the index")]
    Engine(#[source] Box<TantivyError>),
    /// The retrieval server did not answer as it has to, however often it was asked.
    #[error("search at `{url}`, asked {attempts} times: {detail}")]
    Server {
        /// Its address.
        url: String,
        /// How often it was asked.
        attempts: u32,
        /// What went wrong the last time.
        detail: String,
    },
    /// The retrieval server cannot be asked as it is configured.
    #[error("ask a retrieval server: {detail}")]
    Config {
        /// All that is wrong.
        detail: String,
    },
}

impl SearchError {
    /// Whether the query itself is the reason, and not what answers it.
    pub fn is_about_query(&self) -> bool {
        matches!(self, Self::QueryTooLong { .. } | Self::TooMany { .. })
    }
}
