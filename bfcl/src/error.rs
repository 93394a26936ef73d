//! What can be wrong with data.

use std::path::PathBuf;

/// Data of the leaderboard that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BfclError {
    /// A file cannot be read.
    #[error("read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Something is not as the release has it.
    #[error("understand `{what}`: {detail}")]
    Malformed {
        /// The file, entry or part.
        what: String,
        /// What is wrong.
        detail: String,
    },
    /// A class that there is not.
    #[error("find the class `{name}`: known are {known}")]
    UnknownClass {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// An entry of long context without the texts of it.
    #[error(
        "find the texts of long contexts, which `{entry}` needs: put `long_context.py` of the release or `long_context.json` beside the data"
    )]
    NoLongContext {
        /// The entry.
        entry: String,
    },
    /// What a class raises when it is loaded.
    #[error("load the scenario of `{class}`: {raised}")]
    Scenario {
        /// The class.
        class: &'static str,
        /// What was raised.
        raised: spar_python::Exception,
    },
}
