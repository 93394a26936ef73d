//! What differs between two trees of which one was once the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Content, Inode, Node, ROOT, Tree};
use crate::{Change, ChangeKind, FileKind, FileState};

impl Tree {
    /// What is not as it is in `base`, at most `limit` of it, and whether there is more. Paths that are not wanted
    /// are passed over with all below them.
    pub(crate) fn changes(
        &self,
        base: &Self,
        limit: usize,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> (Vec<Change>, bool) {
        let mut found = Vec::new();
        // Folders that are still to be looked at: path, what was there, what is. The next one is the last.
        let mut pending = vec![(String::new(), Some(ROOT), Some(ROOT))];
        while let Some((path, was, is)) = pending.pop() {
            if !path.is_empty() {
                if !is_wanted(path.as_bytes()) {
                    continue;
                }
                let kind = self.kind_of_change(base, was, is);
                if let Some(kind) = kind {
                    if found.len() >= limit {
                        return (found, true);
                    }
                    let now = is.and_then(|node| self.state(node));
                    found.push(Change::new(path.as_bytes(), kind, now));
                }
            }
            let Some(inside) = is.and_then(|node| self.folder(node)) else { continue };
            let nothing = BTreeMap::new();
            let before = was.and_then(|node| base.folder(node)).unwrap_or(&nothing);
            let mut names: Vec<&String> = inside.keys().chain(before.keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().rev() {
                let (was, is) = (before.get(name).copied(), inside.get(name).copied());
                pending.push((format!("{path}/{name}"), was, is));
            }
        }
        (found, false)
    }

    fn kind_of_change(
        &self,
        base: &Self,
        was: Option<Node>,
        is: Option<Node>,
    ) -> Option<ChangeKind> {
        let old = was.and_then(|node| base.nodes.get(&node));
        let new = is.and_then(|node| self.nodes.get(&node));
        match (old, new) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Deleted),
            (Some(old), Some(new)) => (!is_same(old, new)).then_some(ChangeKind::Modified),
        }
    }

    fn folder(&self, node: Node) -> Option<&BTreeMap<String, Node>> {
        match &self.nodes.get(&node)?.content {
            Content::Folder { entries, .. } => Some(entries),
            _ => None,
        }
    }

    fn state(&self, node: Node) -> Option<FileState> {
        let inode = self.nodes.get(&node)?;
        let (kind, size_bytes, link) = match &inode.content {
            Content::File(data) => (FileKind::File, data.len(), None),
            Content::Folder { .. } => (FileKind::Folder, 0, None),
            Content::Link(target) => (FileKind::Link, 0, Some(target.clone())),
        };
        Some(FileState { kind, mode: inode.mode & 0o7777, size_bytes, link })
    }
}

fn is_same(old: &Arc<Inode>, new: &Arc<Inode>) -> bool {
    if Arc::ptr_eq(old, new) {
        return true;
    }
    old.mode == new.mode
        && match (&old.content, &new.content) {
            (Content::File(old), Content::File(new)) => old.has_same_bytes(new),
            (Content::Folder { .. }, Content::Folder { .. }) => true,
            (Content::Link(old), Content::Link(new)) => old == new,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tree: &Tree, base: &Tree, limit: usize) -> (Vec<String>, bool) {
        let (found, is_cut) = tree.changes(base, limit, &|path| path != b"/apart");
        let line =
            |change: &Change| format!("{} {}", &format!("{:?}", change.kind)[..1], change.path);
        (found.iter().map(line).collect(), is_cut)
    }

    #[test]
    fn trees_differ_by_what_was_done_and_nothing_else() {
        let mut base = Tree::new(1 << 20);
        for folder in ["/a/b", "/gone/deep", "/d"] {
            base.make_folders(ROOT, folder, 0).unwrap();
        }
        for file in ["/a/same", "/a/b/file", "/gone/deep/file", "/d/other"] {
            let node = base.make_file(ROOT, file, 0o644, 0).unwrap();
            base.write_at(node, 0, b"before", 0).unwrap();
        }
        let mut tree = base.fork();
        assert_eq!(told(&tree, &base, 9), (vec![], false));
        let file = tree.find(ROOT, "/a/b/file", true).unwrap();
        tree.write_at(file, 5, b"E", 1).unwrap();
        let same = tree.find(ROOT, "/a/same", true).unwrap();
        tree.write_at(same, 0, b"before", 1).unwrap();
        let folder = tree.find(ROOT, "/d", true).unwrap();
        tree.set_mode(folder, 0o700).unwrap();
        tree.remove_file(ROOT, "/gone/deep/file", 1).unwrap();
        tree.remove_folder(ROOT, "/gone/deep", 1).unwrap();
        tree.remove_folder(ROOT, "/gone", 1).unwrap();
        tree.rename((ROOT, "/d/other"), (ROOT, "/d/new"), 1).unwrap();
        tree.make_folders(ROOT, "/apart/x", 1).unwrap();
        tree.make_link("a", ROOT, "/link", 1).unwrap();
        let expected = ["M /a/b/file", "M /d", "A /d/new", "D /d/other", "D /gone", "A /link"];
        let expected: Vec<String> = expected.map(str::to_owned).to_vec();
        assert_eq!(told(&tree, &base, 6), (expected.clone(), false));
        assert_eq!(told(&tree, &base, 5), (expected[..5].to_vec(), true));
        // A file of a thousand gigabytes of holes is no more to read than what was written.
        tree.set_len(file, 1 << 40, 1).unwrap();
        base.set_len(file, 1 << 40, 1).unwrap();
        assert_eq!(told(&tree, &base, 6).0[0], "M /a/b/file");
    }
}
