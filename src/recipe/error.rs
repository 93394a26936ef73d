//! Why a recipe cannot be used.

use std::path::PathBuf;

/// A recipe cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("read recipe `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No recipe has this name.
    #[error("find recipe `{name}`: known are {known}, or the path of a .toml file")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The text is no recipe.
    #[error("understand recipe `{name}`")]
    Malformed {
        /// Name or path of the recipe.
        name: String,
        /// What is wrong with it.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Settings are outside their range.
    #[error("use the recipe:\n{}", problems.iter().map(|p| format!("  - {p}")).collect::<Vec<_>>().join("\n"))]
    Problems {
        /// All that is wrong.
        problems: Vec<String>,
    },
}
