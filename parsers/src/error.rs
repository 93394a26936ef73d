//! What goes wrong between text and actions.

use std::ops::Range;

/// A text has no action in the syntax that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct FormatError {
    /// What is wrong.
    pub kind: FormatErrorKind,
    /// The byte range within the text that it is about; the whole text where something is missing.
    pub span: Range<usize>,
    /// What is wrong and what was expected, for the policy.
    pub message: String,
}

impl FormatError {
    pub(crate) fn new(
        kind: FormatErrorKind,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, span, message: message.into() }
    }
}

/// What is wrong with the form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// There is nothing, or nothing between the marks.
    Empty,
    /// The marks of an action, or a part of it, are absent.
    Missing,
    /// An action begins and does not end.
    Unclosed,
    /// Something stands where another thing has to.
    Unexpected,
    /// What should be JSON is none.
    Json,
    /// What should be a literal of Python is none.
    Literal,
    /// A call names no tool.
    Name,
    /// The arguments of a call are no object, or cannot be told apart.
    Arguments,
    /// More actions or calls than may be.
    TooMany,
}

impl FormatErrorKind {
    /// A word for records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Missing => "missing",
            Self::Unclosed => "unclosed",
            Self::Unexpected => "unexpected",
            Self::Json => "json",
            Self::Literal => "literal",
            Self::Name => "name",
            Self::Arguments => "arguments",
            Self::TooMany => "too_many",
        }
    }
}

/// A syntax cannot say an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It has no calls.
    #[error("parser `{parser}` has no calls, only words")]
    NoCalls {
        /// The parser.
        parser: &'static str,
    },
    /// It has one call per answer.
    #[error("parser `{parser}` has one call per answer, not {found}")]
    OneCall {
        /// The parser.
        parser: &'static str,
        /// How many there are.
        found: usize,
    },
    /// It has no place for what is said beside calls.
    #[error("parser `{parser}` has no place for what is said beside calls")]
    NoTextBeside {
        /// The parser.
        parser: &'static str,
    },
    /// What would be written is read as something else, or as nothing.
    #[error("parser `{parser}` would not read the same action in `{text}`")]
    Misread {
        /// The parser.
        parser: &'static str,
        /// What would be written.
        text: String,
    },
}
