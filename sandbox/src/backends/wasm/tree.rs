//! The in-memory file system of a sandbox.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::errno::Errno;
use super::file_data::FileData;
use crate::FileKind;
use walk::parts;

mod changes;
#[cfg(all(test, target_os = "linux"))]
mod costs;
mod walk;

pub(crate) use walk::MAX_PATH;

/// Number of a node; never used twice in one tree.
pub(crate) type Node = u64;

/// The root folder.
pub(crate) const ROOT: Node = 1;

/// What a node takes of the host's memory beside its contents: itself, and its place in a table that
/// may be half empty.
const NODE_COST: u64 = 256;
/// What a folder takes beyond that as soon as anything is in it: a node of a tree has room for eleven
/// names.
const FOLDER_COST: u64 = 384;
/// What a name takes beside its bytes: its place among the others in a tree that is half full, and
/// the allocator's share.
const ENTRY_COST: u64 = 128;
/// The largest file, holes included.
const MAX_FILE: u64 = 1 << 40;

/// Files, folders and links in memory, within a limit of bytes.
///
/// What is counted against the limit is what the host's memory takes at the most, whoever shares it:
/// names, nodes and the pieces of sparse files are charged at what they cost, not at what they hold.
///
/// A copy shares all contents until either side writes. Nothing in it names anything of the host, and
/// no path leads out of it: `..` of the root is the root, as on any system.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: HashMap<Node, Arc<Inode>>,
    next: Node,
    used: u64,
    limit: u64,
    /// Where a read-only tree can be written all the same; absent for one that is not read-only.
    writable: Option<Vec<Node>>,
    /// Files and folders that never change, with all that lies in them.
    protected: Vec<Node>,
    /// How many descriptors hold a node.
    open: HashMap<Node, usize>,
}

#[derive(Debug, Clone)]
struct Inode {
    content: Content,
    mode: u32,
    links: u64,
    /// Nanoseconds since 1970.
    accessed: u64,
    modified: u64,
}

#[derive(Debug, Clone)]
enum Content {
    File(FileData),
    Folder { entries: BTreeMap<String, Node>, parent: Node },
    Link(String),
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) node: Node,
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
}

impl Tree {
    /// A root folder with `/tmp` in it.
    pub(crate) fn new(limit: u64) -> Self {
        let root = Inode {
            content: Content::Folder { entries: BTreeMap::new(), parent: ROOT },
            mode: 0o755,
            links: 1,
            accessed: 0,
            modified: 0,
        };
        let mut tree = Self {
            nodes: HashMap::from([(ROOT, Arc::new(root))]),
            next: ROOT + 1,
            used: 0,
            limit: u64::MAX,
            writable: None,
            protected: Vec::new(),
            open: HashMap::new(),
        };
        tree.make_folder(ROOT, "tmp", 0).expect("an empty tree takes a folder");
        tree.limit = limit;
        tree
    }

    /// From now on only `/tmp` can be written.
    pub(crate) fn make_read_only(&mut self) {
        let tmp = self.find(ROOT, "tmp", true).ok();
        self.writable = Some(tmp.into_iter().collect());
    }

    /// The file or folder at `path` cannot be changed from now on.
    pub(crate) fn protect(&mut self, path: &str) -> Result<(), Errno> {
        self.protected.push(self.find(ROOT, path, true)?);
        Ok(())
    }

    /// What is in it now is not counted against its limit of `bytes`.
    pub(crate) fn limit_growth(&mut self, bytes: u64) {
        self.limit = self.used.saturating_add(bytes);
    }

    /// A copy in which nothing is open.
    pub(crate) fn fork(&self) -> Self {
        let mut copy = self.clone();
        for node in std::mem::take(&mut copy.open).into_keys() {
            copy.remove_if_unused(node);
        }
        copy
    }

    /// Bytes of the host's memory in use, at the most.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    // ---- looking ----

    /// The node at `path`, seen from the folder `base`.
    pub(crate) fn find(&self, base: Node, path: &str, follow: bool) -> Result<Node, Errno> {
        self.walk(base, path, follow)?.found()
    }

    pub(crate) fn stat(&self, node: Node) -> Result<Stat, Errno> {
        let inode = self.inode(node)?;
        let (kind, size) = match &inode.content {
            Content::File(data) => (FileKind::File, data.len()),
            Content::Folder { entries, .. } => (FileKind::Folder, entries.len() as u64),
            Content::Link(target) => (FileKind::Link, target.len() as u64),
        };
        let Inode { mode, links, accessed, modified, .. } = *inode;
        Ok(Stat { node, kind, size, mode, links, accessed, modified })
    }

    /// Names in a folder with their nodes, sorted.
    pub(crate) fn entries(&self, folder: Node) -> Result<&BTreeMap<String, Node>, Errno> {
        match &self.inode(folder)?.content {
            Content::Folder { entries, .. } => Ok(entries),
            _ => Err(Errno::NotFolder),
        }
    }

    /// The folder that a folder lies in.
    pub(crate) fn parent(&self, folder: Node) -> Result<Node, Errno> {
        match &self.inode(folder)?.content {
            Content::Folder { parent, .. } => Ok(*parent),
            _ => Err(Errno::NotFolder),
        }
    }

    /// Where a link leads, as it was written.
    pub(crate) fn link_target(&self, node: Node) -> Result<&str, Errno> {
        match &self.inode(node)?.content {
            Content::Link(target) => Ok(target),
            _ => Err(Errno::Invalid),
        }
    }

    pub(crate) fn read_at(&self, file: Node, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        match &self.inode(file)?.content {
            Content::File(data) => Ok(data.read_at(offset, into)),
            Content::Folder { .. } => Err(Errno::IsFolder),
            Content::Link(_) => Err(Errno::Invalid),
        }
    }

    fn inode(&self, node: Node) -> Result<&Inode, Errno> {
        self.nodes.get(&node).map(|inode| &**inode).ok_or(Errno::NotFound)
    }

    fn inode_mut(&mut self, node: Node) -> Result<&mut Inode, Errno> {
        self.nodes.get_mut(&node).map(Arc::make_mut).ok_or(Errno::NotFound)
    }

    // ---- changing ----

    /// A new, empty file; [`Errno::Exists`] with whatever is there.
    pub(crate) fn make_file(
        &mut self,
        base: Node,
        path: &str,
        mode: u32,
        now: u64,
    ) -> Result<Node, Errno> {
        let place = self.walk(base, path, true)?;
        if place.must_be_folder && place.node.is_none() {
            return Err(Errno::IsFolder);
        }
        let name = place.vacant()?.to_owned();
        self.add(place.folder, name, Content::File(FileData::default()), mode, now)
    }

    pub(crate) fn make_folder(&mut self, base: Node, path: &str, now: u64) -> Result<Node, Errno> {
        let place = self.walk(base, path, false)?;
        if place.node.is_some() {
            return Err(Errno::Exists);
        }
        let name = place.vacant()?.to_owned();
        let content = Content::Folder { entries: BTreeMap::new(), parent: place.folder };
        self.add(place.folder, name, content, 0o755, now)
    }

    /// The folder at `path`, made with those above it where they are absent.
    pub(crate) fn make_folders(&mut self, base: Node, path: &str, now: u64) -> Result<Node, Errno> {
        let mut folder = if path.starts_with('/') { ROOT } else { base };
        for part in parts(path) {
            folder = match self.find(folder, part, true) {
                Err(Errno::NotFound) => self.make_folder(folder, part, now)?,
                found => found?,
            };
            self.entries(folder)?;
        }
        Ok(folder)
    }

    pub(crate) fn make_link(
        &mut self,
        target: &str,
        base: Node,
        path: &str,
        now: u64,
    ) -> Result<Node, Errno> {
        if target.len() > MAX_PATH {
            return Err(Errno::NameTooLong);
        }
        let place = self.walk(base, path, false)?;
        let name = place.vacant()?.to_owned();
        self.add(place.folder, name, Content::Link(target.to_owned()), 0o777, now)
    }

    /// A second name for a file.
    pub(crate) fn make_hard_link(
        &mut self,
        node: Node,
        base: Node,
        path: &str,
        now: u64,
    ) -> Result<(), Errno> {
        if self.entries(node).is_ok() {
            return Err(Errno::NotPermitted);
        }
        if self.writable.is_some() || !self.protected.is_empty() {
            // The file could then be written under its new name.
            return Err(Errno::CrossDevice);
        }
        let place = self.walk(base, path, false)?;
        let name = place.vacant()?.to_owned();
        self.charge(entry_cost(&name))?;
        self.inode_mut(node)?.links += 1;
        self.entries_mut(place.folder, now)?.insert(name, node);
        Ok(())
    }

    pub(crate) fn remove_file(&mut self, base: Node, path: &str, now: u64) -> Result<(), Errno> {
        let place = self.walk(base, path, false)?;
        let node = place.found()?;
        if self.entries(node).is_ok() {
            return Err(Errno::IsFolder);
        }
        let name = place.entry()?.to_owned();
        self.detach(place.folder, &name, node, now)
    }

    pub(crate) fn remove_folder(&mut self, base: Node, path: &str, now: u64) -> Result<(), Errno> {
        let place = self.walk(base, path, false)?;
        let node = place.found()?;
        if !self.entries(node)?.is_empty() {
            return Err(Errno::NotEmpty);
        }
        let name = place.entry()?.to_owned();
        self.detach(place.folder, &name, node, now)
    }

    pub(crate) fn rename(
        &mut self,
        (old_base, old_path): (Node, &str),
        (new_base, new_path): (Node, &str),
        now: u64,
    ) -> Result<(), Errno> {
        let old = self.walk(old_base, old_path, false)?;
        let new = self.walk(new_base, new_path, false)?;
        let node = old.found()?;
        let is_folder = self.entries(node).is_ok();
        let (old_name, new_name) = (old.entry()?.to_owned(), new.entry()?.to_owned());
        self.check_writable(old.folder)?;
        self.check_writable(new.folder)?;
        if self.protected.contains(&node) {
            return Err(Errno::Busy);
        }
        if new.node == Some(node) {
            return Ok(());
        }
        if new.must_be_folder && !is_folder {
            return Err(Errno::NotFolder);
        }
        if is_folder && self.is_within(new.folder, node)? {
            return Err(Errno::Invalid);
        }
        // Before anything changes: a target that is replaced stays where there is no room.
        let (old_cost, new_cost) = (entry_cost(&old_name), entry_cost(&new_name));
        let replaced = if new.node.is_some() { new_cost } else { 0 };
        if self.used - old_cost - replaced + new_cost > self.limit.max(self.used) {
            return Err(Errno::NoSpace);
        }
        if let Some(target) = new.node {
            match self.entries(target) {
                Ok(_) if !is_folder => return Err(Errno::IsFolder),
                Ok(entries) if !entries.is_empty() => return Err(Errno::NotEmpty),
                Err(_) if is_folder => return Err(Errno::NotFolder),
                _ => self.detach(new.folder, &new_name, target, now)?,
            }
        }
        self.entries_mut(old.folder, now)?.remove(&old_name);
        self.used = self.used - old_cost + new_cost;
        self.entries_mut(new.folder, now)?.insert(new_name, node);
        if let Content::Folder { parent, .. } = &mut self.inode_mut(node)?.content {
            *parent = new.folder;
        }
        Ok(())
    }

    /// How many bytes there was room for.
    pub(crate) fn write_at(
        &mut self,
        file: Node,
        offset: u64,
        bytes: &[u8],
        now: u64,
    ) -> Result<usize, Errno> {
        if offset.saturating_add(bytes.len() as u64) > MAX_FILE {
            return Err(Errno::TooLarge);
        }
        let room = self.limit.saturating_sub(self.used);
        let inode = self.inode_mut(file)?;
        let Content::File(data) = &mut inode.content else { return Err(Errno::Invalid) };
        inode.modified = now;
        let before = data.cost();
        let written = data.write_at(offset, bytes, room);
        self.used += data.cost() - before;
        if written == 0 && !bytes.is_empty() { Err(Errno::NoSpace) } else { Ok(written) }
    }

    pub(crate) fn set_len(&mut self, file: Node, len: u64, now: u64) -> Result<(), Errno> {
        if len > MAX_FILE {
            return Err(Errno::TooLarge);
        }
        let inode = self.inode_mut(file)?;
        let Content::File(data) = &mut inode.content else { return Err(Errno::Invalid) };
        inode.modified = now;
        let before = data.cost();
        data.set_len(len);
        let freed = before - data.cost();
        self.used -= freed;
        Ok(())
    }

    pub(crate) fn set_times(
        &mut self,
        node: Node,
        accessed: Option<u64>,
        modified: Option<u64>,
    ) -> Result<(), Errno> {
        let inode = self.inode_mut(node)?;
        inode.accessed = accessed.unwrap_or(inode.accessed);
        inode.modified = modified.unwrap_or(inode.modified);
        Ok(())
    }

    pub(crate) fn set_mode(&mut self, node: Node, mode: u32) -> Result<(), Errno> {
        self.inode_mut(node)?.mode = mode & 0o7777;
        Ok(())
    }

    /// Refuses where the file or folder at `path` must not be changed.
    pub(crate) fn check_path_writable(&self, base: Node, path: &str) -> Result<(), Errno> {
        let place = self.walk(base, path, true)?;
        if place.node.is_some_and(|node| self.protected.contains(&node)) {
            return Err(Errno::ReadOnly);
        }
        self.check_writable(match place.node {
            Some(node) if self.entries(node).is_ok() => node,
            _ => place.folder,
        })
    }

    /// A descriptor holds the node from now on: it stays when its last name goes.
    pub(crate) fn hold(&mut self, node: Node) {
        *self.open.entry(node).or_default() += 1;
    }

    /// A descriptor lets go of it.
    pub(crate) fn release(&mut self, node: Node) {
        if let Some(count) = self.open.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&node);
                self.remove_if_unused(node);
            }
        }
    }

    fn add(
        &mut self,
        folder: Node,
        name: String,
        content: Content,
        mode: u32,
        now: u64,
    ) -> Result<Node, Errno> {
        self.check_writable(folder)?;
        self.charge(entry_cost(&name) + node_cost(&content))?;
        let node = self.next;
        self.next += 1;
        self.entries_mut(folder, now)?.insert(name, node);
        let inode = Inode { content, mode, links: 1, accessed: now, modified: now };
        self.nodes.insert(node, Arc::new(inode));
        Ok(node)
    }

    fn detach(&mut self, folder: Node, name: &str, node: Node, now: u64) -> Result<(), Errno> {
        self.check_writable(folder)?;
        if self.protected.contains(&node) {
            return Err(Errno::Busy);
        }
        self.entries_mut(folder, now)?.remove(name);
        self.used -= entry_cost(name);
        self.inode_mut(node)?.links -= 1;
        self.remove_if_unused(node);
        Ok(())
    }

    fn remove_if_unused(&mut self, node: Node) {
        if self.open.contains_key(&node) {
            return;
        }
        let Some(inode) = self.nodes.get(&node).filter(|inode| inode.links == 0) else { return };
        self.used -= node_cost(&inode.content);
        self.nodes.remove(&node);
        if self.nodes.len() < self.nodes.capacity() / 4 {
            // Its places were paid for by nodes that are gone.
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }

    fn entries_mut(
        &mut self,
        folder: Node,
        now: u64,
    ) -> Result<&mut BTreeMap<String, Node>, Errno> {
        let inode = self.inode_mut(folder)?;
        inode.modified = now;
        match &mut inode.content {
            Content::Folder { entries, .. } => Ok(entries),
            _ => Err(Errno::NotFolder),
        }
    }

    fn check_writable(&self, folder: Node) -> Result<(), Errno> {
        let inode = self.inode(folder)?;
        if inode.links == 0 {
            // A folder that was removed while it is open takes nothing more.
            return Err(Errno::NotFound);
        }
        for root in &self.protected {
            if self.entries(*root).is_ok() && self.is_within(folder, *root)? {
                return Err(Errno::ReadOnly);
            }
        }
        let Some(writable) = &self.writable else { return Ok(()) };
        for root in writable {
            if self.is_within(folder, *root)? {
                return Ok(());
            }
        }
        Err(Errno::ReadOnly)
    }

    fn is_within(&self, mut folder: Node, ancestor: Node) -> Result<bool, Errno> {
        while folder != ancestor {
            if folder == ROOT {
                return Ok(false);
            }
            folder = self.parent(folder)?;
        }
        Ok(true)
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Errno> {
        if self.used + bytes > self.limit {
            return Err(Errno::NoSpace);
        }
        self.used += bytes;
        Ok(())
    }
}

/// What a name in a folder takes.
fn entry_cost(name: &str) -> u64 {
    ENTRY_COST + name.len() as u64
}

/// What a node takes, its names left out.
fn node_cost(content: &Content) -> u64 {
    NODE_COST
        + match content {
            Content::File(data) => data.cost(),
            Content::Folder { .. } => FOLDER_COST,
            Content::Link(target) => target.len() as u64,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(tree: &mut Tree, path: &str, text: &str) -> Node {
        let node = tree.make_file(ROOT, path, 0o644, 1).unwrap();
        assert_eq!(tree.write_at(node, 0, text.as_bytes(), 1), Ok(text.len()));
        node
    }

    fn read(tree: &Tree, path: &str) -> Result<String, Errno> {
        let node = tree.find(ROOT, path, true)?;
        let mut bytes = vec![0; tree.stat(node)?.size as usize];
        tree.read_at(node, 0, &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn no_path_leads_out() {
        let mut tree = Tree::new(1 << 20);
        write(&mut tree, "passwd", "inside");
        tree.make_link("../../../../passwd", ROOT, "tmp/up", 1).unwrap();
        tree.make_link("/passwd", ROOT, "tmp/absolute", 1).unwrap();
        let tmp = tree.find(ROOT, "tmp", true).unwrap();
        for path in ["/../../passwd", "../../passwd", "up", "absolute", "./../tmp/../passwd"] {
            let node = tree.find(tmp, path, true).unwrap();
            assert_eq!(Ok(node), tree.find(ROOT, "passwd", true), "{path}");
        }
    }

    #[test]
    fn links_in_a_circle_end() {
        let mut tree = Tree::new(1 << 20);
        tree.make_link("b", ROOT, "a", 1).unwrap();
        tree.make_link("a", ROOT, "b", 1).unwrap();
        assert_eq!(tree.find(ROOT, "a", true), Err(Errno::Loop));
        assert_eq!(tree.make_file(ROOT, "a", 0o644, 1), Err(Errno::Loop));
        assert!(tree.find(ROOT, "a", false).is_ok());
    }

    #[test]
    fn a_file_written_through_a_dangling_link_appears_where_the_link_leads() {
        let mut tree = Tree::new(1 << 20);
        tree.make_link("tmp/target", ROOT, "link", 1).unwrap();
        write(&mut tree, "link", "x");
        assert_eq!(read(&tree, "tmp/target").as_deref(), Ok("x"));
    }

    #[test]
    fn everything_is_counted_and_given_back() {
        let mut tree = Tree::new(10_000);
        let before = tree.used();
        let node = write(&mut tree, "file", "hello");
        assert_eq!(tree.write_at(node, 5, &[0; 20_000], 1), Err(Errno::NoSpace));
        tree.rename((ROOT, "file"), (ROOT, "tmp/a longer name"), 1).unwrap();
        tree.make_hard_link(node, ROOT, "second", 1).unwrap();
        tree.remove_file(ROOT, "tmp/a longer name", 1).unwrap();
        assert_eq!(read(&tree, "second").as_deref(), Ok("hello"));
        tree.remove_file(ROOT, "second", 1).unwrap();
        assert_eq!(tree.used(), before);
        let mut made = 0;
        while tree.make_folder(ROOT, &format!("d{made}"), 1).is_ok() {
            made += 1;
        }
        assert!(made < 40, "{made} folders");
    }

    #[test]
    fn a_rename_without_room_changes_nothing() {
        let mut tree = Tree::new(2_000);
        write(&mut tree, "old", "old");
        tree.make_link("old", ROOT, "new", 1).unwrap();
        tree.limit = tree.used();
        let before = tree.used();
        let long = "x".repeat(200);
        assert_eq!(tree.rename((ROOT, "old"), (ROOT, &long), 1), Err(Errno::NoSpace));
        assert_eq!(read(&tree, "old").as_deref(), Ok("old"));
        tree.rename((ROOT, "old"), (ROOT, "new"), 1).unwrap();
        assert_eq!(read(&tree, "new").as_deref(), Ok("old"));
        assert!(tree.used() < before);
    }

    #[test]
    fn what_is_open_outlives_its_name() {
        let mut tree = Tree::new(1 << 20);
        let before = tree.used();
        let node = write(&mut tree, "file", "hello");
        tree.hold(node);
        tree.remove_file(ROOT, "file", 1).unwrap();
        assert_eq!(tree.stat(node).unwrap().size, 5);
        assert_eq!(tree.fork().used(), before);
        tree.release(node);
        assert_eq!(tree.stat(node), Err(Errno::NotFound));
        assert_eq!(tree.used(), before);
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let mut tree = Tree::new(1 << 20);
        let node = write(&mut tree, "file", "one");
        let mut fork = tree.fork();
        fork.write_at(node, 0, b"two", 2).unwrap();
        fork.make_folder(ROOT, "new", 2).unwrap();
        assert_eq!(read(&tree, "file").as_deref(), Ok("one"));
        assert_eq!(read(&fork, "file").as_deref(), Ok("two"));
        assert_eq!(tree.find(ROOT, "new", true), Err(Errno::NotFound));
    }

    #[test]
    fn a_folder_does_not_move_into_itself() {
        let mut tree = Tree::new(1 << 20);
        tree.make_folders(ROOT, "a/b", 1).unwrap();
        assert_eq!(tree.rename((ROOT, "a"), (ROOT, "a/b/c"), 1), Err(Errno::Invalid));
        assert_eq!(tree.rename((ROOT, "a"), (ROOT, "/"), 1), Err(Errno::Busy));
        write(&mut tree, "f", "");
        assert_eq!(tree.rename((ROOT, "f"), (ROOT, "a"), 1), Err(Errno::IsFolder));
        assert_eq!(tree.rename((ROOT, "a/b"), (ROOT, "f"), 1), Err(Errno::NotFolder));
    }

    #[test]
    fn a_read_only_tree_takes_writes_in_tmp_alone() {
        let mut tree = Tree::new(1 << 20);
        write(&mut tree, "file", "x");
        tree.make_read_only();
        assert_eq!(tree.make_file(ROOT, "other", 0o644, 1), Err(Errno::ReadOnly));
        assert_eq!(tree.remove_file(ROOT, "file", 1), Err(Errno::ReadOnly));
        assert_eq!(tree.rename((ROOT, "file"), (ROOT, "tmp/f"), 1), Err(Errno::ReadOnly));
        assert_eq!(tree.check_path_writable(ROOT, "file"), Err(Errno::ReadOnly));
        let node = tree.find(ROOT, "file", true).unwrap();
        assert_eq!(tree.make_hard_link(node, ROOT, "tmp/f", 1), Err(Errno::CrossDevice));
        write(&mut tree, "tmp/fine", "x");
    }
}
