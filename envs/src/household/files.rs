//! Finding games and traces.

use std::path::{Path, PathBuf};

use super::error::HouseholdError;

/// Folders below folders beyond this are not searched.
const MAX_DEPTH: usize = 16;

/// All games (`game.tw-pddl`) below a folder, sorted; the path itself if it is a file.
///
/// # Errors
/// When a folder cannot be read.
pub fn find_games(root: &Path) -> Result<Vec<PathBuf>, HouseholdError> {
    find_files(root, |name| name == "game.tw-pddl")
}

/// All files below `root` whose name is `wanted`, sorted; `root` itself if it is a file.
pub(crate) fn find_files(
    root: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, HouseholdError> {
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let unreadable = |source| HouseholdError::Read { path: folder.clone(), source };
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                if depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                }
            } else if path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
