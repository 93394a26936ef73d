//! What can go wrong while reading, running or checking household games.

use std::path::PathBuf;

/// A household game, trace or layout could not be used.
///
/// Messages are fragments that read after "could not". Every variant about a game carries the
/// name of the game, so that one bad file among thousands can be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HouseholdError {
    /// A file or folder could not be read.
    #[error("read `{}`", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A file or folder could not be written; nothing half-written was left.
    #[error("write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The game file is not the JSON object it should be; a truncated file ends here.
    #[error(
        "parse game `{game}` as a JSON object with the fields `pddl_domain`, `grammar` and `pddl_problem`"
    )]
    Json {
        /// Name of the game, normally its path.
        game: String,
        /// What the JSON parser said, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A part of the game is not well-formed.
    #[error("parse the {part} of game `{game}`: {reason} at line {line}")]
    Syntax {
        /// Name of the game, normally its path.
        game: String,
        /// Which part: `pddl_domain`, `pddl_problem` or `grammar`.
        part: &'static str,
        /// What was expected and what was found.
        reason: String,
        /// Line inside the part, counted from 1.
        line: usize,
    },
    /// A part of the game is well-formed but uses something this engine does not implement.
    #[error("honour {construct} in the {part} of game `{game}`: {reason}")]
    Unsupported {
        /// Name of the game, normally its path.
        game: String,
        /// Which part: `pddl_domain`, `pddl_problem` or `grammar`.
        part: &'static str,
        /// The construct, by the name it has in the file.
        construct: String,
        /// Why it is refused, with the allowed values where there is a list.
        reason: String,
    },
    /// A recorded trace is not in the expected format.
    #[error("parse trace `{}` line {line}", path.display())]
    Trace {
        /// The trace file.
        path: PathBuf,
        /// Line of the file, counted from 1.
        line: usize,
        /// What the JSON parser said.
        #[source]
        source: serde_json::Error,
    },
    /// A trace names a game that is in none of the places where it should be.
    #[error("find game `{game}` of trace `{}` under `{}`", trace.display(), data.display())]
    MissingGame {
        /// The game as the trace names it.
        game: String,
        /// The trace file.
        trace: PathBuf,
        /// The data folder that was searched.
        data: PathBuf,
    },
    /// No game can be made with these options.
    #[error("generate a task of {family} in a room of `{scenes}` with {size}: {possible}")]
    NoGame {
        /// The family that was asked for, in words.
        family: String,
        /// The rooms that were asked for.
        scenes: &'static str,
        /// Their size, in words.
        size: String,
        /// What is possible instead, in words.
        possible: String,
    },
    /// A folder holds nothing of what was looked for.
    #[error("find any {what} under `{}`", path.display())]
    Empty {
        /// What was looked for.
        what: &'static str,
        /// The folder.
        path: PathBuf,
    },
}

/// A fault inside one part of a game, before the name of the game is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is not well-formed.
    Syntax {
        /// What was expected and what was found.
        reason: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// The text asks for something that is not implemented.
    Unsupported {
        /// The construct, by its name in the file.
        construct: String,
        /// Why it is refused.
        reason: String,
    },
}

impl Fault {
    /// A fault of form at byte `offset` of `text`.
    pub(crate) fn syntax(text: &str, offset: usize, reason: impl Into<String>) -> Self {
        let end = offset.min(text.len());
        let line = 1 + text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count();
        Self::Syntax { reason: reason.into(), line }
    }

    /// A construct that is refused.
    pub(crate) fn unsupported(construct: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported { construct: construct.into(), reason: reason.into() }
    }

    /// The fault as an error about `part` of `game`.
    pub(crate) fn of(self, game: &str, part: &'static str) -> HouseholdError {
        let game = game.to_owned();
        match self {
            Self::Syntax { reason, line } => HouseholdError::Syntax { game, part, reason, line },
            Self::Unsupported { construct, reason } => {
                HouseholdError::Unsupported { game, part, construct, reason }
            }
        }
    }
}
