use std::io;
use std::path::PathBuf;

use crate::child::ChildError;

/// Why no image was built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Instances of this kind are not built here.
    #[error("`{id}` has no image that can be built here: {why}")]
    Unsupported {
        /// The instance.
        id: String,
        /// What speaks against it.
        why: String,
    },
    /// There is no interpreter of the version.
    #[error("`{folder}` has no Python {version}: {why}")]
    Interpreter {
        /// Where it was looked for.
        folder: PathBuf,
        /// The version that is needed.
        version: String,
        /// What speaks against it.
        why: String,
    },
    /// The repository lacks what is needed of it.
    #[error("`{folder}` cannot be used: {why}")]
    Mirror {
        /// The repository.
        folder: PathBuf,
        /// What git says.
        why: String,
    },
    /// A program does not run, or does not end.
    #[error(transparent)]
    Program(#[from] ChildError),
    /// The engine refuses.
    #[error("{doing}: {why}")]
    Engine {
        /// What was asked of it.
        doing: String,
        /// Its last words.
        why: String,
    },
    /// An image of the same name is there that was not built from this.
    #[error(
        "build `{image}`: an image of this name is there that was built from something else; --force takes its place"
    )]
    Taken {
        /// The name.
        image: String,
    },
    /// Files of the build cannot be written.
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
}

impl ImageError {
    /// What may help, if anything is known to.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Interpreter { .. } => {
                Some("name the folder of one with --python, such as `~/.pyenv/versions/3.9.18`")
            }
            Self::Program(ChildError::Start { program, .. }) if program == "docker" => {
                Some("docker/start-engine.sh installs and starts an engine")
            }
            Self::Engine { doing, .. } if doing.starts_with("find the base image `spar-base") => {
                Some("build it with docker/build-images.sh base")
            }
            Self::Engine { doing, .. } if doing.starts_with("ask the engine") => {
                Some("docker/start-engine.sh starts one")
            }
            _ => None,
        }
    }
}
