//! Files that come out of a sandbox.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt;

use crate::SandboxError;

/// A file of the host that is being written beside its place; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct PartFile {
    file: tokio::fs::File,
    part: PathBuf,
    target: PathBuf,
    inside: String,
    limit_bytes: u64,
    written_bytes: u64,
    is_finished: bool,
}

impl PartFile {
    /// Begins a file that takes its place at `target` when it is finished.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Host`].
    pub(crate) async fn create(
        inside: &str,
        target: &Path,
        limit_bytes: u64,
    ) -> Result<Self, SandboxError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", crate::nonce::nonce()));
        let part = target.with_file_name(name);
        let file =
            tokio::fs::OpenOptions::new().write(true).create_new(true).open(&part).await.map_err(
                |source| SandboxError::Host { doing: "create", path: target.into(), source },
            )?;
        let (target, inside) = (target.to_owned(), inside.to_owned());
        Ok(Self { file, part, target, inside, limit_bytes, written_bytes: 0, is_finished: false })
    }

    /// Appends.
    ///
    /// # Errors
    ///
    /// [`SandboxError::TooLarge`], [`SandboxError::Host`].
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), SandboxError> {
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes > self.limit_bytes {
            return Err(SandboxError::TooLarge {
                path: self.inside.clone(),
                limit_bytes: self.limit_bytes,
            });
        }
        self.file.write_all(bytes).await.map_err(|source| self.error(source))
    }

    /// Puts it in its place.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Host`].
    pub(crate) async fn finish(mut self) -> Result<(), SandboxError> {
        self.file.flush().await.map_err(|source| self.error(source))?;
        tokio::fs::rename(&self.part, &self.target).await.map_err(|source| self.error(source))?;
        self.is_finished = true;
        Ok(())
    }

    fn error(&self, source: io::Error) -> SandboxError {
        SandboxError::Host { doing: "write", path: self.target.clone(), source }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // A file that was never written, or is gone already, is as good as removed.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
