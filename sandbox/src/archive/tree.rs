//! What an archive has put where so far.

use std::collections::HashMap;

/// Things that an archive may make, folders that only paths imply included.
const MAX_NODES: usize = 2_000_000;

/// What an archive puts at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
}

/// All that is there so far, as a tree: a path is looked up part by part, so that the work grows with
/// its length and not with the square of its depth.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    /// Absent where there are none, as in most nodes.
    #[expect(clippy::box_collection, reason = "most of up to two million nodes have none")]
    children: Option<Box<HashMap<Box<[u8]>, u32>>>,
}

impl Node {
    fn new(kind: Kind) -> Self {
        Self { kind, children: None }
    }
}

const ROOT: u32 = 0;

impl Tree {
    /// One that has only the folder that is unpacked into.
    pub(super) fn new() -> Self {
        Self { nodes: vec![Node::new(Kind::Folder)] }
    }

    fn child(&self, node: u32, part: &[u8]) -> Option<u32> {
        self.nodes[node as usize].children.as_ref()?.get(part).copied()
    }

    fn add(&mut self, node: u32, part: &[u8], kind: Kind) -> Result<u32, &'static str> {
        if self.nodes.len() >= MAX_NODES {
            return Err("the archive makes more than two million files and folders");
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node::new(kind));
        let children = self.nodes[node as usize].children.get_or_insert_default();
        children.insert(part.into(), new);
        Ok(new)
    }

    /// What is at a path.
    pub(super) fn at(&self, parts: &[&[u8]]) -> Option<Kind> {
        let node = parts.iter().try_fold(ROOT, |node, part| self.child(node, part))?;
        Some(self.nodes[node as usize].kind)
    }

    /// Notes that `what` is at the path; nothing may be beneath, or come in place of, a link.
    pub(super) fn claim(&mut self, parts: &[&[u8]], what: Kind) -> Result<(), &'static str> {
        let Some((name, above)) = parts.split_last() else {
            return match what {
                Kind::Folder => Ok(()),
                Kind::Link => Err("it turns what is there into a symbolic link"),
                Kind::File => Err("it turns a folder into a file"),
            };
        };
        let mut node = ROOT;
        for part in above {
            node = match self.child(node, part) {
                Some(child) => child,
                None => self.add(node, part, Kind::Folder)?,
            };
            match self.nodes[node as usize].kind {
                Kind::Folder => {}
                Kind::File => return Err("it lies beneath a file"),
                Kind::Link => return Err("it lies beneath a symbolic link"),
            }
        }
        let Some(there) = self.child(node, name) else {
            return self.add(node, name, what).map(drop);
        };
        match (self.nodes[there as usize].kind, what) {
            (Kind::File, Kind::File) | (Kind::Folder, Kind::Folder) => Ok(()),
            (Kind::Link, _) => Err("it comes in place of a symbolic link"),
            (_, Kind::Link) => Err("it turns what is there into a symbolic link"),
            (Kind::Folder, Kind::File) => Err("it turns a folder into a file"),
            (Kind::File, Kind::Folder) => Err("it turns a file into a folder"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beneath_or_in_place_of_something_is_told() {
        let mut tree = Tree::new();
        let parts = |path: &'static str| path.split('/').map(str::as_bytes).collect::<Vec<_>>();
        tree.claim(&parts("a/b/file"), Kind::File).unwrap();
        tree.claim(&parts("a/link"), Kind::Link).unwrap();
        assert_eq!(tree.at(&parts("a/b")), Some(Kind::Folder));
        assert_eq!(tree.at(&parts("a/c")), None);
        tree.claim(&parts("a/b"), Kind::Folder).unwrap();
        tree.claim(&[], Kind::Folder).unwrap();
        for (path, what, reason) in [
            ("a/b/file/c", Kind::File, "beneath a file"),
            ("a/link/c", Kind::File, "beneath a symbolic link"),
            ("a/link", Kind::File, "in place of a symbolic link"),
            ("a/b", Kind::Link, "into a symbolic link"),
            ("a/b", Kind::File, "a folder into a file"),
            ("a/b/file", Kind::Folder, "a file into a folder"),
        ] {
            let error = tree.claim(&parts(path), what).unwrap_err();
            assert!(error.contains(reason), "{path}: {error}");
        }
    }
    #[test]
    fn a_folder_stands_once_and_holds_its_own_name_alone() {
        // What is looked at for a path is then its own bytes, and not those of every prefix of it.
        let mut tree = Tree::new();
        for number in 0..200 {
            let name = format!("{number:03}");
            let mut parts = vec![b"d".as_slice(); 2000];
            parts.push(name.as_bytes());
            tree.claim(&parts, Kind::File).unwrap();
        }
        assert_eq!(tree.nodes.len(), 1 + 2000 + 200);
        let names = tree.nodes.iter().flat_map(|node| node.children.iter().flat_map(|c| c.keys()));
        assert_eq!(names.map(|name| name.len()).sum::<usize>(), 2000 + 200 * 3);
    }
}
