//! What can go wrong.

use std::io;
use std::path::PathBuf;

use spar_sandbox::SandboxError;

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

/// Why a package cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The system refused.
    #[error("read `{path}`")]
    Io {
        /// What was read.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It has more than [`MAX_PACKAGE_BYTES`](crate::MAX_PACKAGE_BYTES) or
    /// [`MAX_PACKAGE_FILES`](crate::MAX_PACKAGE_FILES).
    #[error("the package has more than 256 MiB or 50000 files")]
    TooLarge,
    /// It is no package that is known here.
    #[error("`{path}` is no source package: {what}")]
    Unknown {
        /// Where it was looked for.
        path: PathBuf,
        /// What speaks against it.
        what: String,
    },
    /// A program that is needed does not run.
    #[error("run `{program}`")]
    Program {
        /// The program.
        program: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// Why tests could not be run. How tests end is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The sandbox could not do its part.
    #[error("run the tests in a sandbox")]
    Sandbox(#[from] SandboxError),
    /// A program could not be started or talked to.
    #[error("{doing}")]
    Io {
        /// What was done.
        doing: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The interpreter cannot be used.
    #[error("`{python}` cannot be used: {what}")]
    Interpreter {
        /// The interpreter.
        python: PathBuf,
        /// What speaks against it.
        what: String,
    },
    /// The process that runs the tests ended, or said what it should not.
    #[error("the process that runs the tests {what}")]
    Server {
        /// What it did.
        what: String,
    },
    /// The tools of the language cannot be used.
    #[error("`{program}` cannot be used: {what}")]
    Tool {
        /// The program.
        program: &'static str,
        /// What speaks against it.
        what: String,
    },
}

/// Why no tasks could be made of a package.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// The options are out of their ranges.
    #[error("the options cannot be used: {}", problems.join("; "))]
    Options {
        /// All problems.
        problems: Vec<String>,
    },
    /// Nothing here runs the tests of its language.
    #[error("`{package}` is a package of {language}, and nothing is named that runs such tests")]
    Language {
        /// The package.
        package: String,
        /// Its language.
        language: &'static str,
    },
    /// The tests of the package itself do not run.
    #[error("the tests of `{package}` cannot be used: {what}")]
    Baseline {
        /// The package.
        package: String,
        /// Why, with the last words of the tests.
        what: String,
    },
    /// Tests could not be run.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The folder of results cannot be read or written.
    #[error("{doing} `{path}`")]
    Io {
        /// What was done.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The folder of results is of something else.
    #[error("`{path}` holds other results: {what}")]
    Elsewhere {
        /// The folder.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// The repository of the tasks could not be written.
    #[error("write the repository of the tasks: {what}")]
    Git {
        /// What git says.
        what: String,
    },
}
