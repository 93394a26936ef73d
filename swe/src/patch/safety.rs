use std::collections::BTreeSet;

use super::change::{SUBMODULE, SYMBOLIC_LINK, TYPE_BITS};
use super::{Body, FileChange, Kind, Patch, RepoPath};

/// Why a patch may not be given to a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeChange {
    /// A path that is none inside a repository.
    #[error("`{path}` is no path inside a repository: {reason}")]
    Path {
        /// The path.
        path: RepoPath,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file behind a symbolic link that the patch itself makes.
    #[error("`{path}` lies behind `{link}`, which the patch makes a symbolic link")]
    BehindLink {
        /// The file.
        path: RepoPath,
        /// The link.
        link: RepoPath,
    },
    /// A symbolic link that leads out of the repository.
    #[error("`{path}` becomes a symbolic link to `{target}`, which lies outside of the repository")]
    LinkOut {
        /// The link.
        path: RepoPath,
        /// Where it leads.
        target: String,
    },
    /// A type of file that git does not have.
    #[error("`{path}` has the mode {mode:o}, which is none of git's")]
    Mode {
        /// The file.
        path: RepoPath,
        /// Its mode.
        mode: u32,
    },
}

impl Patch {
    /// Why the patch may not be given to a repository; empty where it may. `patch` is what it was read from.
    ///
    /// Paths must be relative and have no `.`, `..`, empty or `.git` part, in whatever case and with the spellings that
    /// other file systems take for it; no file may lie behind a symbolic link that the patch makes; links must lead to
    /// places inside.
    pub fn unsafe_changes(&self, patch: &[u8]) -> Vec<UnsafeChange> {
        let mut found = Vec::new();
        let links: BTreeSet<&RepoPath> = self
            .files
            .iter()
            .filter(|change| change.new_mode.is_some_and(|mode| mode & TYPE_BITS == SYMBOLIC_LINK))
            .filter_map(|change| change.new_path.as_ref())
            .collect();
        for change in &self.files {
            let paths: BTreeSet<&RepoPath> =
                change.old_path.iter().chain(change.new_path.as_ref()).collect();
            for path in paths {
                if let Some(reason) = problem(path) {
                    found.push(UnsafeChange::Path { path: path.clone(), reason });
                }
                if let Some(link) = behind(path, &links) {
                    found.push(UnsafeChange::BehindLink { path: path.clone(), link });
                }
            }
            for mode in [change.old_mode, change.new_mode].into_iter().flatten() {
                let kinds = [0o100000, 0o040000, SYMBOLIC_LINK, SUBMODULE];
                if !kinds.contains(&(mode & TYPE_BITS)) {
                    found.push(UnsafeChange::Mode { path: change.path().clone(), mode });
                }
            }
            found.extend(link_out(change, patch));
        }
        found
    }
}

/// What is wrong with a path, if anything is.
fn problem(path: &RepoPath) -> Option<&'static str> {
    let bytes = path.as_bytes();
    if bytes.first() == Some(&b'/') {
        return Some("it is absolute");
    }
    if bytes.contains(&0) {
        return Some("it has a zero byte");
    }
    path.parts().find_map(|part| match part {
        b"" => Some("a part of it is empty"),
        b"." | b".." => Some("it has a part `.` or `..`"),
        part if is_git_folder(part) => Some("it lies in `.git`"),
        _ => None,
    })
}

/// Whether a file system takes a name for `.git`: in other cases, with dots and spaces at its end, by its short name, or
/// with characters that are ignored.
fn is_git_folder(part: &[u8]) -> bool {
    let name = String::from_utf8_lossy(part);
    let is_ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(|c| !is_ignored(*c)).collect();
    let name = name.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git" || name == "git~1"
}

fn behind(path: &RepoPath, links: &BTreeSet<&RepoPath>) -> Option<RepoPath> {
    let bytes = path.as_bytes();
    let slashes = (0..bytes.len()).filter(|at| bytes[*at] == b'/');
    slashes.map(|at| RepoPath::new(&bytes[..at])).find(|folder| links.contains(folder))
}

/// A link whose new target lies outside. The target is what the hunk adds; one that cannot be seen is not judged here.
fn link_out(change: &FileChange, patch: &[u8]) -> Option<UnsafeChange> {
    let is_link = change.new_mode.is_some_and(|mode| mode & TYPE_BITS == SYMBOLIC_LINK);
    let (true, Body::Text(hunks), Some(path)) = (is_link, &change.body, &change.new_path) else {
        return None;
    };
    debug_assert!(change.kind != Kind::Deleted, "a deleted file has no new mode");
    let lines = hunks
        .iter()
        .flat_map(|hunk| patch.get(hunk.span.clone()).unwrap_or_default().split(|b| *b == b'\n'));
    let target = lines.skip(1).find_map(|line| line.strip_prefix(b"+"))?;
    let mut depth = path.parts().count() - 1;
    let is_out = target.first() == Some(&b'/')
        || target.split(|byte| *byte == b'/').any(|part| match part {
            b"" | b"." => false,
            b".." if depth == 0 => true,
            b".." => {
                depth -= 1;
                false
            }
            _ => {
                depth += 1;
                false
            }
        });
    is_out.then(|| UnsafeChange::LinkOut {
        path: path.clone(),
        target: String::from_utf8_lossy(target).into_owned(),
    })
}
