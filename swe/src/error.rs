//! What keeps instances from being read.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a row lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Its line, or its number in a file that is not made of lines; the first is 1. Absent for a folder of a task.
    pub row: Option<Row>,
    /// The id that the row gives itself, if it gives one.
    pub id: Option<String>,
}

/// Which row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A line of JSON lines, from 1.
    Line(u64),
    /// An element of an array, from 1.
    Number(u64),
}

impl Place {
    /// A whole file or folder.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), row: None, id: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path.display())?;
        match self.row {
            Some(Row::Line(line)) => write!(f, ", line {line}")?,
            Some(Row::Number(number)) => write!(f, ", row {number}")?,
            None => {}
        }
        match &self.id {
            Some(id) => write!(f, " (`{}`)", shortened(id)),
            None => Ok(()),
        }
    }
}

/// What keeps instances from being read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    #[error("read `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Something is larger than anything that is read whole.
    #[error("{place}: {what} has {bytes} bytes, and at most {limit} are read")]
    TooLarge {
        /// Where it stands.
        place: Box<Place>,
        /// What it is.
        what: String,
        /// Its size.
        bytes: u64,
        /// What is read.
        limit: u64,
    },
    /// A file or a row is not written in the language that its name promises.
    #[error("{place}: not readable as {language}: {detail}")]
    Syntax {
        /// Where.
        place: Box<Place>,
        /// JSON, YAML or TOML.
        language: &'static str,
        /// What its reader says.
        detail: String,
    },
    /// A row has the columns of no format.
    #[error("{place}: its columns belong to no format: it has {}; {hint}", list(columns))]
    UnknownFormat {
        /// Where.
        place: Box<Place>,
        /// What columns it has.
        columns: Vec<String>,
        /// Which format it comes closest to, and what it lacks for it.
        hint: String,
    },
    /// A file has rows of more than one format.
    #[error(
        "{place}: a row of {found}, and the rows before it are of {first}: keep formats in files of their own"
    )]
    MixedFormats {
        /// Where.
        place: Box<Place>,
        /// What it is.
        found: &'static str,
        /// What those before it are.
        first: &'static str,
    },
    /// A column of a row, or a field of a file, does not say what it must.
    #[error("{place}: `{column}`: {detail}")]
    Column {
        /// Where.
        place: Box<Place>,
        /// Its name; parts of a value by a path, as in `base.sha`.
        column: String,
        /// What was expected, and what is there.
        detail: String,
    },
    /// A file of a task folder does not say what it must, or is missing.
    #[error("`{}`: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected, and what is there.
        detail: String,
    },
    /// What was read is no instance that can be worked on.
    #[error("{place}: {}", problems.join("; "))]
    Instance {
        /// Where.
        place: Box<Place>,
        /// All that is wrong with it.
        problems: Vec<String>,
    },
    /// Two instances have one id.
    #[error("{place}: there is an instance of that id before it")]
    SameId {
        /// Where the second stands.
        place: Box<Place>,
    },
}

impl LoadError {
    /// For a file or folder that cannot be read.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// For a file of a folder that does not say what it must.
    pub(crate) fn file(path: &Path, detail: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), detail: detail.into() }
    }
}

/// The first of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Names in backticks.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 40;
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", shortened(name))).collect();
    match names.len() > SHOWN {
        true => format!("{} and {} more", shown.join(", "), names.len() - SHOWN),
        false => shown.join(", "),
    }
}
