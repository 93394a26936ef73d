//! How paths are followed.

use super::{Content, Node, ROOT, Tree};
use crate::backends::wasm::errno::Errno;

/// Bytes of the longest path, and of the longest target of a link.
pub(crate) const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;
const MAX_LINKS: usize = 40;

/// Where a path leads: an entry of a folder that may not exist, or a folder itself.
pub(super) struct Place {
    pub(super) folder: Node,
    /// Absent where the path ends in the folder itself (`/`, `.`, `..`).
    pub(super) name: Option<String>,
    pub(super) node: Option<Node>,
    pub(super) must_be_folder: bool,
}

impl Place {
    pub(super) fn found(&self) -> Result<Node, Errno> {
        self.node.ok_or(Errno::NotFound)
    }

    /// The name of an entry that is to be made or removed.
    pub(super) fn entry(&self) -> Result<&str, Errno> {
        let name = self.name.as_deref().ok_or(Errno::Busy)?;
        if name.len() > MAX_NAME { Err(Errno::NameTooLong) } else { Ok(name) }
    }

    pub(super) fn vacant(&self) -> Result<&str, Errno> {
        if self.node.is_some() { Err(Errno::Exists) } else { self.entry() }
    }
}

impl Tree {
    /// Follows `path` from the folder `base`, and its last part too if it is a link and `follow`.
    pub(super) fn walk(&self, base: Node, path: &str, follow: bool) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::NotFound);
        }
        if path.len() > MAX_PATH {
            return Err(Errno::NameTooLong);
        }
        if path.contains('\0') {
            return Err(Errno::Invalid);
        }
        let mut folder = if path.starts_with('/') { ROOT } else { base };
        let mut must_be_folder = ends_as_folder(path);
        let mut rest: Vec<String> = parts(path).rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                folder = self.parent(folder)?;
                continue;
            }
            let last = rest.is_empty();
            let node = self.entries(folder)?.get(&name).copied();
            let Some(node) = node else {
                if last {
                    return Ok(Place { folder, name: Some(name), node: None, must_be_folder });
                }
                return Err(Errno::NotFound);
            };
            match &self.inode(node)?.content {
                Content::Link(target) if !last || follow || must_be_folder => {
                    links += 1;
                    if links > MAX_LINKS || target.is_empty() {
                        return Err(if target.is_empty() { Errno::NotFound } else { Errno::Loop });
                    }
                    if target.starts_with('/') {
                        folder = ROOT;
                    }
                    must_be_folder |= last && ends_as_folder(target);
                    rest.extend(parts(target).rev().map(str::to_owned));
                }
                Content::Folder { .. } if !last => folder = node,
                content => {
                    let is_folder = matches!(content, Content::Folder { .. });
                    if !last || (must_be_folder && !is_folder) {
                        return Err(Errno::NotFolder);
                    }
                    return Ok(Place {
                        folder,
                        name: Some(name),
                        node: Some(node),
                        must_be_folder,
                    });
                }
            }
        }
        self.entries(folder)?;
        Ok(Place { folder, name: None, node: Some(folder), must_be_folder: true })
    }
}

/// The names in a path.
pub(super) fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn ends_as_folder(path: &str) -> bool {
    path.ends_with('/') || path.ends_with("/.") || path == "."
}
