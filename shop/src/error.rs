//! What keeps a shop from opening.

use std::path::PathBuf;

/// A catalogue could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShopError {
    /// A catalogue of a size that is not made.
    #[error("a catalogue of {found} products, allowed are {least} to {most}")]
    Size {
        /// How many were asked for.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A file could not be read.
    #[error("read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file is not of the form that WebShop's have.
    #[error("`{path}` is not of WebShop's form")]
    Form {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// Something in a file has no meaning.
    #[error("`{path}`: {detail}")]
    Meaning {
        /// The file.
        path: PathBuf,
        /// What, and what is allowed.
        detail: String,
    },
    /// A folder lacks a file.
    #[error("`{folder}` has no {wanted}")]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// What was looked for.
        wanted: &'static str,
    },
}
