//! The suites that have a name.

use std::path::{Path, PathBuf};

use crate::formats::{format_of, suite_formats};
use crate::{GameFolderSuite, Suite, SuiteError, TemplateSuite};

/// What a suite may need from the user.
#[derive(Debug, Clone, Default)]
pub struct SuiteOptions {
    /// The folder of third-party data.
    pub data: Option<PathBuf>,
}

/// A suite that has a name.
pub struct SuiteEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it is about.
    pub about: &'static str,
    /// Whether it needs a folder of third-party data.
    pub needs_data: bool,
    /// Opens it.
    pub open: fn(&SuiteOptions) -> Result<Box<dyn Suite>, SuiteError>,
}

/// All suites that have a name.
pub fn suite_registry() -> &'static [SuiteEntry] {
    &[
        SuiteEntry {
            name: "household",
            about: "Household chores in text, in generated rooms.",
            needs_data: false,
            open: |_| shipped("household", include_str!("../suites/household/suite.toml")),
        },
        SuiteEntry {
            name: "frozen-lake",
            about: "Cross a frozen lake without falling into a hole.",
            needs_data: false,
            open: |_| shipped("frozen-lake", include_str!("../suites/frozen-lake/suite.toml")),
        },
        SuiteEntry {
            name: "terminal",
            about: "Small chores at a shell in a sandbox: count, replace, sort, move, find.",
            needs_data: false,
            open: |_| shipped("terminal", include_str!("../suites/terminal/suite.toml")),
        },
        SuiteEntry {
            name: "sums",
            about: "Add two numbers from 0 to 9: questions that are answered in one turn.",
            needs_data: false,
            open: |_| shipped("sums", include_str!("../suites/sums/suite.toml")),
        },
        SuiteEntry {
            name: "alfworld",
            about: "ALFWorld's household games, from the user's own download.",
            needs_data: true,
            open: |options| {
                let data = options.data.as_deref().ok_or(SuiteError::NoData {
                    suite: "alfworld".to_owned(),
                    variable: "ALFWORLD_DATA",
                })?;
                Ok(Box::new(GameFolderSuite::open(data)?))
            },
        },
    ]
}

/// Opens a suite by its name, or by a path of one of the [formats](suite_formats).
///
/// # Errors
///
/// [`SuiteError`] when there is no such suite or it cannot be read; unknown names list the known, paths of no format or
/// of several what was looked for.
pub fn open_suite(name: &str, options: &SuiteOptions) -> Result<Box<dyn Suite>, SuiteError> {
    if let Some(entry) = suite_registry().iter().find(|entry| entry.name == name) {
        return (entry.open)(options);
    }
    let path = Path::new(name);
    if path.exists() {
        return format_of(path)?.open(path);
    }
    let known: Vec<_> = suite_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
    let formats: Vec<_> = suite_formats().iter().map(|format| format.looks_for()).collect();
    let (known, formats) = (known.join(", "), formats.join(", or "));
    Err(SuiteError::Unknown { name: name.to_owned(), known, formats })
}

fn shipped(name: &str, text: &str) -> Result<Box<dyn Suite>, SuiteError> {
    let path = PathBuf::from(format!("{name}/suite.toml"));
    Ok(Box::new(TemplateSuite::parse(text, &path)?))
}
