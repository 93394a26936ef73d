use std::ops::Range;

use super::RepoPath;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// How.
    pub kind: Kind,
    /// Where it was; absent for one that is added.
    pub old_path: Option<RepoPath>,
    /// Where it is then; absent for one that is deleted.
    pub new_path: Option<RepoPath>,
    /// Type and permissions as git has them (`0o100644`, `0o120000` for a symbolic link, `0o160000` for a submodule), where
    /// the patch tells.
    pub old_mode: Option<u32>,
    /// The same afterwards, where the patch tells.
    pub new_mode: Option<u32>,
    /// The change of its content.
    pub body: Body,
    /// Its bytes in the patch, header included.
    pub span: Range<usize>,
}

/// How a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There was none.
    Added,
    /// There is none.
    Deleted,
    /// Content or mode.
    Modified,
    /// It has another name, and maybe another content.
    Renamed,
    /// Another file has its content, maybe changed.
    Copied,
}

/// How the content of a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Not at all: mode, name or an empty file.
    None,
    /// By lines.
    Text(Vec<Hunk>),
    /// By bytes.
    Binary(Binary),
}

/// The change of a binary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `Binary files a/x and b/x differ`: that they do, without how. It cannot be applied.
    Differs,
    /// The new content is there, as such or by its difference.
    Data {
        /// Bytes of the new content, or of the difference.
        bytes: u64,
        /// Whether it is given by its difference.
        is_delta: bool,
        /// Whether the way back is there as well.
        has_reverse: bool,
    },
}

/// Changed lines with what stands around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The first of its old lines, from 1; 0 where there are none.
    pub old_start: u64,
    /// Old lines.
    pub old_lines: u64,
    /// The first of its new lines.
    pub new_start: u64,
    /// New lines.
    pub new_lines: u64,
    /// Lines that are added.
    pub added: u64,
    /// Lines that are removed.
    pub removed: u64,
    /// Its bytes in the patch, header included.
    pub span: Range<usize>,
}

/// What a submodule's mode is.
pub(super) const SUBMODULE: u32 = 0o160000;
/// What a symbolic link's mode is.
pub(super) const SYMBOLIC_LINK: u32 = 0o120000;
/// The part of a mode that tells the type.
pub(super) const TYPE_BITS: u32 = 0o170000;

impl FileChange {
    /// The name under which it is listed: the new one, or the old one of a file that is deleted.
    pub fn path(&self) -> &RepoPath {
        self.new_path.as_ref().or(self.old_path.as_ref()).expect("a change has a path on one side")
    }

    /// Lines that are added and removed; absent for a binary file.
    pub fn line_counts(&self) -> Option<(u64, u64)> {
        match &self.body {
            Body::None => Some((0, 0)),
            Body::Binary(_) => None,
            Body::Text(hunks) => Some((
                hunks.iter().map(|hunk| hunk.added).sum(),
                hunks.iter().map(|hunk| hunk.removed).sum(),
            )),
        }
    }

    /// Whether it is or becomes a submodule.
    pub fn is_submodule(&self) -> bool {
        self.has_type(SUBMODULE)
    }

    /// Whether it is or becomes a symbolic link.
    pub fn is_symbolic_link(&self) -> bool {
        self.has_type(SYMBOLIC_LINK)
    }

    fn has_type(&self, kind: u32) -> bool {
        [self.old_mode, self.new_mode].into_iter().flatten().any(|mode| mode & TYPE_BITS == kind)
    }
}
