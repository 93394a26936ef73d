//! Files as pages.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Larger files are left out.
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_DEPTH: usize = 8;

/// What a file is, by its name.
pub(crate) fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "png" => "image/png",
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// Reads a folder with all below it, by their paths within it; folders of these names are left out.
pub(crate) fn read_folder(
    folder: &Path,
    without: &[&str],
    files: &mut HashMap<String, Arc<[u8]>>,
) -> std::io::Result<()> {
    read_below(folder, "", without, files, 0)
}

fn read_below(
    folder: &Path,
    prefix: &str,
    without: &[&str],
    files: &mut HashMap<String, Arc<[u8]>>,
    depth: usize,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Links are neither: nothing is read that lies elsewhere.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH && !without.contains(&name.as_str()) {
            let prefix = format!("{prefix}{name}/");
            read_below(&entry.path(), &prefix, without, files, depth + 1)?;
        } else if kind.is_file() && entry.metadata()?.len() < MAX_FILE_BYTES {
            files.insert(format!("{prefix}{name}"), std::fs::read(entry.path())?.into());
        }
    }
    Ok(())
}
