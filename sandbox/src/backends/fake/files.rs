//! A file system in memory.

use std::collections::BTreeMap;

use crate::archive::normalise;
use crate::{Change, ChangeKind, FileEntry, FileKind, FileState, SandboxError};

/// How many links a path may lead through, as Linux limits them.
const MAX_LINKS: usize = 40;

/// Files, folders and symbolic links in memory. Relative paths start at the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FakeFiles {
    /// By absolute normal path; the root is always there and not among them.
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { bytes: Vec<u8>, mode: u32 },
    Folder,
    Link { target: String },
}

impl Node {
    fn state(&self) -> FileState {
        let (kind, mode, size_bytes, link) = match self {
            Self::File { bytes, mode } => (FileKind::File, *mode, bytes.len() as u64, None),
            Self::Folder => (FileKind::Folder, 0o755, 0, None),
            Self::Link { target } => (FileKind::Link, 0o777, 0, Some(target.clone())),
        };
        FileState { kind, mode, size_bytes, link }
    }
}

impl FakeFiles {
    /// The bytes of a file; absent if there is none at `path`.
    pub fn read(&self, path: &str) -> Option<&[u8]> {
        self.file(path).ok()
    }

    /// Makes or replaces a file, folders above it included; `false` if the path cannot be a file.
    pub fn write(&mut self, path: &str, bytes: impl Into<Vec<u8>>) -> bool {
        self.put(path, bytes.into(), 0o644).is_ok()
    }

    /// Removes a file, or a folder with all that is in it; `false` if there was none.
    pub fn remove(&mut self, path: &str) -> bool {
        let Ok(path) = normalise(path, "/") else { return false };
        let beneath = format!("{path}/");
        let before = self.nodes.len();
        self.nodes.retain(|node, _| *node != path && !node.starts_with(&beneath));
        self.nodes.len() < before
    }

    /// Absolute paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes
            .iter()
            .filter(|(_, node)| matches!(node, Node::File { .. }))
            .map(|(path, _)| path.as_str())
    }

    /// What is not as it is in `base`.
    pub(super) fn changes(&self, base: &Self) -> Vec<Change> {
        let now = self.nodes.iter().filter_map(|(path, node)| {
            let kind = match base.nodes.get(path) {
                None => ChangeKind::Added,
                Some(was) if was != node => ChangeKind::Modified,
                Some(_) => return None,
            };
            Some(Change::new(path.as_bytes(), kind, Some(node.state())))
        });
        let gone = base.nodes.keys().filter(|path| {
            // What lay in a folder that is gone went with it.
            let above = parent(path);
            !self.nodes.contains_key(*path) && (above == "/" || self.nodes.contains_key(above))
        });
        now.chain(gone.map(|path| Change::new(path.as_bytes(), ChangeKind::Deleted, None)))
            .collect()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        let size = |node: &Node| if let Node::File { bytes, .. } = node { bytes.len() } else { 0 };
        self.nodes.values().map(|node| size(node) as u64).sum()
    }

    pub(super) fn file(&self, path: &str) -> Result<&[u8], SandboxError> {
        match self.nodes.get(&self.resolve(path)?) {
            Some(Node::File { bytes, .. }) => Ok(bytes),
            Some(_) => Err(refused(path, "it is a folder")),
            None if self.resolve(path)? == "/" => Err(refused(path, "it is a folder")),
            None => Err(SandboxError::NotFound { path: path.to_owned() }),
        }
    }

    pub(super) fn put(
        &mut self,
        path: &str,
        bytes: Vec<u8>,
        mode: u32,
    ) -> Result<(), SandboxError> {
        let place = self.resolve(path)?;
        if place == "/" || path.ends_with('/') || self.nodes.get(&place) == Some(&Node::Folder) {
            return Err(refused(path, "it is a folder"));
        }
        self.make_folder(parent(&place))?;
        self.nodes.insert(place, Node::File { bytes, mode });
        Ok(())
    }

    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<(), SandboxError> {
        let place = normalise(path, "/")?;
        self.make_folder(parent(&place))?;
        self.nodes.insert(place, Node::Link { target: target.to_owned() });
        Ok(())
    }

    /// Makes a folder and those above it.
    pub(super) fn make_folder(&mut self, path: &str) -> Result<(), SandboxError> {
        let place = self.resolve(path)?;
        let mut above = String::new();
        for part in place.split('/').filter(|part| !part.is_empty()) {
            above = format!("{above}/{part}");
            if !matches!(self.nodes.entry(above.clone()).or_insert(Node::Folder), Node::Folder) {
                return Err(refused(path, "a part of it is no folder"));
            }
        }
        Ok(())
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        let place = self.resolve(path)?;
        match self.nodes.get(&place) {
            Some(Node::Folder) => {}
            None if place == "/" => {}
            None => return Err(SandboxError::NotFound { path: path.to_owned() }),
            Some(_) => return Err(refused(path, "it is no folder")),
        }
        let beneath = if place == "/" { place } else { format!("{place}/") };
        let entries = self.nodes.range(beneath.clone()..).map_while(|(path, node)| {
            let name = path.strip_prefix(&beneath)?;
            let (kind, size_bytes) = match node {
                Node::File { bytes, .. } => (FileKind::File, bytes.len() as u64),
                Node::Folder => (FileKind::Folder, 0),
                Node::Link { .. } => (FileKind::Link, 0),
            };
            Some(FileEntry { name: name.to_owned(), kind, size_bytes })
        });
        let mut entries: Vec<_> = entries.filter(|entry| !entry.name.contains('/')).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Takes in an archive that [`check_tar`](crate::archive::check_tar) has taken.
    pub(super) fn unpack(&mut self, path: &str, archive: &[u8]) -> Result<(), SandboxError> {
        let unpack = |source: std::io::Error| SandboxError::Backend {
            doing: format!("unpack an archive into `{path}`"),
            source: source.into(),
        };
        self.make_folder(path)?;
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries().map_err(unpack)? {
            let mut entry = entry.map_err(unpack)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let place = normalise(&name, path)?;
            let link = entry.link_name_bytes();
            let target = link.map(|link| String::from_utf8_lossy(&link).into_owned());
            match entry.header().entry_type() {
                tar::EntryType::Directory => self.make_folder(&place)?,
                tar::EntryType::Symlink => self.link(&place, &target.unwrap_or_default())?,
                tar::EntryType::Link => {
                    let bytes = self.file(&normalise(&target.unwrap_or_default(), path)?)?;
                    self.put(&place, bytes.to_vec(), 0o644)?;
                }
                tar::EntryType::Regular => {
                    let mode = entry.header().mode().unwrap_or(0o644);
                    let mut bytes = Vec::new();
                    std::io::Read::read_to_end(&mut entry, &mut bytes).map_err(unpack)?;
                    self.put(&place, bytes, mode)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An archive of the file or folder `path`.
    pub(super) fn pack(&self, path: &str) -> Result<Vec<u8>, SandboxError> {
        let place = self.resolve(path)?;
        if place != "/" && !self.nodes.contains_key(&place) {
            return Err(SandboxError::NotFound { path: path.to_owned() });
        }
        let last = place.rsplit('/').next().expect("split yields at least one");
        let beneath = format!("{}/", place.trim_end_matches('/'));
        let mut builder = tar::Builder::new(Vec::new());
        for (node_path, node) in &self.nodes {
            let name = match node_path.strip_prefix(&beneath) {
                Some(rest) if last.is_empty() => rest.to_owned(),
                Some(rest) => format!("{last}/{rest}"),
                None if *node_path == place => last.to_owned(),
                None => continue,
            };
            append(&mut builder, &name, node).map_err(|source| SandboxError::Backend {
                doing: format!("pack `{path}`"),
                source: source.into(),
            })?;
        }
        Ok(builder.into_inner().expect("memory takes everything"))
    }

    /// Where a path leads through links; its last part need not exist.
    fn resolve(&self, path: &str) -> Result<String, SandboxError> {
        let checked = normalise(path, "/")?;
        let has_links = self.nodes.values().any(|node| matches!(node, Node::Link { .. }));
        if !has_links {
            return Ok(checked);
        }
        let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let (mut place, mut num_links) = (String::new(), 0);
        while let Some(part) = left.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    place.truncate(place.rfind('/').unwrap_or(0));
                    continue;
                }
                part => {
                    let next = format!("{place}/{part}");
                    if let Some(Node::Link { target }) = self.nodes.get(&next) {
                        num_links += 1;
                        if num_links > MAX_LINKS {
                            return Err(refused(path, "it leads through too many links"));
                        }
                        if target.starts_with('/') {
                            place.clear();
                        }
                        left.extend(target.split('/').rev().map(str::to_owned));
                    } else {
                        place = next;
                    }
                }
            }
        }
        Ok(if place.is_empty() { "/".to_owned() } else { place })
    }
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, node: &Node) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    match node {
        Node::File { bytes, mode } => {
            header.set_mode(*mode);
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, bytes.as_slice())
        }
        Node::Folder => {
            header.set_mode(0o755);
            header.set_size(0);
            header.set_entry_type(tar::EntryType::Directory);
            builder.append_data(&mut header, format!("{name}/"), &[][..])
        }
        Node::Link { target } => {
            header.set_mode(0o777);
            header.set_size(0);
            header.set_entry_type(tar::EntryType::Symlink);
            builder.append_link(&mut header, name, target)
        }
    }
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

fn refused(path: &str, reason: &str) -> SandboxError {
    SandboxError::PathRefused { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_never_lead_out() {
        let mut files = FakeFiles::default();
        assert!(files.write("/a/b/file", "x"));
        files.link("/l", "a/b").unwrap();
        files.link("/a/up", "../../../../a").unwrap();
        files.link("/loop", "loop").unwrap();
        assert_eq!(files.read("/l/file"), Some(b"x".as_slice()));
        assert_eq!(files.read("/a/up/b/file"), Some(b"x".as_slice()));
        assert_eq!(files.read("/l/../b/file"), Some(b"x".as_slice()));
        assert!(matches!(files.file("/loop/x"), Err(SandboxError::PathRefused { .. })));
        assert!(matches!(files.file("/a"), Err(SandboxError::PathRefused { .. })));
        assert!(matches!(files.file("/none"), Err(SandboxError::NotFound { .. })));
        assert!(!files.write("/a/b/file/beneath", "y"));
        assert!(files.remove("/a"));
        assert_eq!(files.paths().count(), 0);
    }

    #[test]
    fn what_is_packed_unpacks_the_same() {
        let mut files = FakeFiles::default();
        files.write("/d/one", "1");
        files.write("/d/e/two", "2");
        files.link("/d/link", "one").unwrap();
        let archive = files.pack("/d").unwrap();
        let mut others = FakeFiles::default();
        others.unpack("/", &archive).unwrap();
        assert_eq!(files, others);
    }
}
