//! The languages that there are interpreters of.

use serde::{Deserialize, Serialize};

use crate::Image;

/// A language that there is an interpreter of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Python 3: CPython 3.14 in WebAssembly.
    #[default]
    Python,
    /// JavaScript: QuickJS-NG in WebAssembly, Node.js elsewhere.
    Javascript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Python, Self::Javascript];

    /// Its name, which is that of its tool and of its guest in WebAssembly.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
        }
    }

    /// As people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Javascript => "JavaScript",
        }
    }

    /// The image of its sandboxes on the backend of this name, where a task names none.
    pub fn image(self, backend: &str) -> Image {
        match (backend, self) {
            ("wasm", _) => Image::Reference(self.name().to_owned()),
            ("docker", Self::Python) => Image::Reference("python:3-slim".to_owned()),
            ("docker", Self::Javascript) => Image::Reference("node:22-slim".to_owned()),
            _ => Image::Default,
        }
    }

    /// The arguments that have a sandbox of the backend of this name run the program in the file `path`.
    pub fn run_file(self, backend: &str, path: &str) -> Vec<String> {
        let program = match self {
            _ if backend == "wasm" => None,
            Self::Python => Some("python3"),
            Self::Javascript => Some("node"),
        };
        program.into_iter().chain([path]).map(str::to_owned).collect()
    }
}
