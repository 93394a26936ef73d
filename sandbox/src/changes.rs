//! What differs in the files of a sandbox from those it began with.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{FileKind, SandboxSpec};

/// What differs in the files of a sandbox from the state that it began in: that of its image, of the
/// snapshot that it goes on from, or of the sandbox that it was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// One for each path, folders before what lies in them, and what lies in one folder by its names'
    /// bytes.
    pub changes: Vec<Change>,
    /// Whether there are more than were asked for, or than a backend takes from its engine; those are left out.
    pub is_cut: bool,
}

/// One path that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The absolute path; bytes that are no UTF-8 become U+FFFD.
    pub path: String,
    /// The path's own bytes, where they are no UTF-8 and are known: docker's engine does not tell them of
    /// what was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<Vec<u8>>,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What is there now. Absent for what was deleted, for what went or came meanwhile, and for what the
    /// sandbox's users may not look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<FileState>,
}

/// What happened to a path. What was renamed was deleted at one path and added at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Nothing was there.
    Added,
    /// Something else was there, or the same with other content, permissions or owner. A file that was
    /// opened to be written counts, even if nothing was; a folder does not for what lies in it.
    Modified,
    /// It is gone. A folder is told alone, without what lay in it.
    Deleted,
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// What it is.
    pub kind: FileKind,
    /// Permissions, the twelve lowest bits of the mode.
    pub mode: u32,
    /// Bytes of a regular file, else 0.
    pub size_bytes: u64,
    /// Where a symbolic link leads, as it was written; bytes that are no UTF-8 become U+FFFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Change {
    /// A change of the path of these bytes.
    pub(crate) fn new(path: &[u8], kind: ChangeKind, now: Option<FileState>) -> Self {
        let (path, path_bytes) = match std::str::from_utf8(path) {
            Ok(path) => (path.to_owned(), None),
            Err(_) => (String::from_utf8_lossy(path).into_owned(), Some(path.to_owned())),
        };
        Self { path, path_bytes, kind, now }
    }

    /// The path's own bytes as far as they are known.
    pub fn bytes(&self) -> &[u8] {
        self.path_bytes.as_deref().unwrap_or(self.path.as_bytes())
    }
}

impl Changes {
    /// At most `limit` of what was found, in order, without what is no part of the sandbox's own files: what every
    /// system has in memory, and where folders of the host appear.
    pub(crate) fn settle(mut found: Vec<Change>, spec: &SandboxSpec, limit: usize) -> Self {
        found.retain(|change| !is_apart(change.bytes(), spec));
        found.sort_by(|one, other| by_parts(one.bytes(), other.bytes()));
        let is_cut = found.len() > limit;
        found.truncate(limit);
        Self { changes: found, is_cut }
    }
}

/// Whether a path is none of the sandbox's own files.
pub(crate) fn is_apart(path: &[u8], spec: &SandboxSpec) -> bool {
    let is_below = |place: &[u8]| {
        path.strip_prefix(place).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    };
    let mounted = spec.mounts.iter().map(|mount| mount.guest.trim_end_matches('/').as_bytes());
    ["/dev", "/proc", "/sys"].map(str::as_bytes).into_iter().chain(mounted).any(is_below)
}

/// Folders before what lies in them, names by their bytes.
pub(crate) fn by_parts(one: &[u8], other: &[u8]) -> Ordering {
    one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Mount};

    fn change(path: &[u8]) -> Change {
        Change::new(path, ChangeKind::Added, None)
    }

    #[test]
    fn changes_are_in_order_cut_and_without_what_is_no_file_of_the_sandbox() {
        let mut spec = SandboxSpec::new(Image::Default);
        let guest = "/data".to_owned();
        spec.mounts.push(Mount { host: "/x".into(), guest, read_only: false });
        let paths: [&[u8]; 9] = [
            b"/b/c",
            b"/b.txt",
            b"/b",
            b"/dev/x",
            b"/data/x",
            b"/data",
            b"/database",
            b"/a\xff",
            b"/proc",
        ];
        let found = || paths.map(change).to_vec();
        let all = Changes::settle(found(), &spec, 5);
        let told: Vec<&str> = all.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(told, ["/a\u{fffd}", "/b", "/b/c", "/b.txt", "/database"]);
        assert_eq!(all.changes[0].path_bytes.as_deref(), Some(b"/a\xff".as_slice()));
        assert!(!all.is_cut && all.changes[1].path_bytes.is_none());
        let cut = Changes::settle(found(), &spec, 2);
        assert!(cut.is_cut && cut.changes[..] == all.changes[..2]);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Changes>(&text).unwrap(), all);
    }
}
