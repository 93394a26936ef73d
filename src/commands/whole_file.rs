use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Writes a file whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let doing = || format!("write `{}`", path.display());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let mut file = File::create(&partial).with_context(doing)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(doing)?;
    fs::rename(&partial, path).with_context(doing)
}
