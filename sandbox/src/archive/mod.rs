//! Paths and tar archives that cross the wall of a sandbox.

mod carried;
mod check;
mod part_file;
mod pattern;
#[cfg(test)]
mod tests;
mod tree;

use crate::SandboxError;

pub use carried::{Carried, CarriedPath};
pub(crate) use check::check_tar;
pub(crate) use part_file::PartFile;

/// Bytes of a path inside, as Linux limits them.
const MAX_PATH_BYTES: usize = 4096;

/// `path` as an absolute path without `.`, `..`, doubled or trailing slashes; a relative one starts
/// at `workdir`. As everywhere on Linux, `..` of the root is the root.
///
/// Links are not looked at: what a path leads to is only known inside.
///
/// # Errors
///
/// [`SandboxError::PathRefused`] for an empty path, one with a NUL byte, and an overlong one.
pub(crate) fn normalise(path: &str, workdir: &str) -> Result<String, SandboxError> {
    let refuse = |reason: &str| SandboxError::PathRefused {
        path: path.chars().take(200).collect(),
        reason: reason.into(),
    };
    if path.is_empty() {
        return Err(refuse("it is empty"));
    }
    if path.contains('\0') {
        return Err(refuse("it holds a NUL byte"));
    }
    let start = if path.starts_with('/') { "" } else { workdir };
    let mut parts = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let whole = format!("/{}", parts.join("/"));
    if whole.len() >= MAX_PATH_BYTES {
        return Err(refuse("it is longer than 4095 bytes"));
    }
    Ok(whole)
}
