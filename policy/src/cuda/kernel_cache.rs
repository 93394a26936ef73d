//! Compiled kernels on disk.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::DeviceError;
use super::driver::HeadKind;
use super::kernels::KernelFile;
use super::library::{compile, options};
use spar_text::write_atomically;

/// Compiled kernels in a folder, by the hash of all that they depend on.
#[derive(Debug, Clone)]
pub(super) struct KernelCache {
    folder: PathBuf,
    /// As in `sm_90`.
    architecture: String,
    /// Version of the compiler.
    compiler: String,
}

impl KernelCache {
    pub(super) fn new(folder: PathBuf, architecture: String, compiler: String) -> Self {
        Self { folder, architecture, compiler }
    }

    /// Below `XDG_CACHE_HOME`, or else the user's `.cache`.
    pub(super) fn user_folder() -> Result<PathBuf, DeviceError> {
        let variable = |name| std::env::var_os(name).filter(|path| !path.is_empty());
        let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let caches = caches.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
        caches.map(|caches| caches.join("spar/kernels")).ok_or_else(|| DeviceError::Cache {
            folder: "$HOME/.cache/spar/kernels".to_owned(),
            detail: "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
        })
    }

    /// The machine code of a file of kernels; compiled where it is not known yet.
    pub(super) fn load(
        &self,
        file: &KernelFile,
        heads: Option<HeadKind>,
    ) -> Result<Vec<u8>, DeviceError> {
        let options = options(file, heads, &self.architecture);
        let mut hash = Sha256::new();
        for part in [&file.source(), &options.join(" "), &self.compiler] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.folder.join(format!("{}-{}-{hash}.cubin", file.name, self.architecture));
        if let Ok(image) = std::fs::read(&path)
            && !image.is_empty()
        {
            return Ok(image);
        }
        let image = compile(file, &self.architecture, &options)?.image;
        let written =
            std::fs::create_dir_all(&self.folder).and_then(|()| write_atomically(&path, &image));
        written.map_err(|error| DeviceError::Cache {
            folder: self.folder.display().to_string(),
            detail: error.to_string(),
        })?;
        Ok(image)
    }
}
