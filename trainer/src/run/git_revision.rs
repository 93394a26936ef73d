//! Which commit a folder is at.

use std::fs;
use std::path::{Path, PathBuf};

/// The commit that is checked out in `folder` or the nearest folder above it; `None` where that is
/// no git repository. Whether files differ from the commit is not told.
pub fn git_revision(folder: &Path) -> Option<String> {
    let dot_git = folder.ancestors().map(|above| above.join(".git")).find(|path| path.exists())?;
    let git = git_folder(&dot_git)?;
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned());
    };
    // A linked work tree keeps its branches in the main one.
    let common = fs::read_to_string(git.join("commondir"))
        .map_or_else(|_| git.clone(), |common| git.join(common.trim()));
    if let Ok(commit) = fs::read_to_string(common.join(reference)) {
        return Some(commit.trim().to_owned());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| {
        let (commit, name) = line.split_once(' ')?;
        (name == reference).then(|| commit.to_owned())
    })
}

fn git_folder(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let text = fs::read_to_string(dot_git).ok()?;
    Some(dot_git.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_followed_loose_and_packed() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("packed-refs"), "# pack-refs\nabc refs/heads/main\n").unwrap();
        let below = folder.path().join("src");
        assert_eq!(git_revision(&below).as_deref(), Some("abc"));
        fs::write(git.join("refs/heads/main"), "def\n").unwrap();
        assert_eq!(git_revision(&below).as_deref(), Some("def"));
        fs::write(git.join("HEAD"), "012\n").unwrap();
        assert_eq!(git_revision(&below).as_deref(), Some("012"));
    }
}
