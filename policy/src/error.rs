//! What can go wrong with files of a model.

use std::path::PathBuf;

/// A tokenizer could not be made, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The vocabulary cannot hold what every vocabulary holds.
    #[error("make a vocabulary of {found} tokens; bytes and marks alone are {least}")]
    VocabularyTooSmall {
        /// What was asked for.
        found: usize,
        /// The least that works.
        least: usize,
    },
    /// The file could not be read or written.
    #[error("access `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is no tokenizer.
    #[error("read `{}` as a tokenizer: {detail}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The tokenizer has no marks that tell who says a message.
    #[error(
        "use the tokenizer `{}`: it has neither the marks {own} nor the marks {chat_ml}",
        path.display()
    )]
    NoMarks {
        /// The file.
        path: PathBuf,
        /// Marks of tokenizers made here.
        own: String,
        /// Marks of the ChatML layout.
        chat_ml: String,
    },
}
