//! All that lies in a folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// Files, folders and links of one task.
const MAX_ENTRIES: usize = 100_000;
/// Folders inside each other.
const MAX_DEPTH: usize = 64;

/// All that lies in a folder: files, folders and links, which are not followed.
pub(super) struct Tree {
    /// Without links on the way.
    root: PathBuf,
    /// By their paths below the folder, folders before what lies in them, names in order.
    entries: Vec<(PathBuf, Kind)>,
}

enum Kind {
    Folder,
    File,
    /// With where it leads, as it was written.
    Link(PathBuf),
}

impl Tree {
    /// Looks at all of a folder.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self { root: root.to_owned(), entries: Vec::new() };
        tree.look(Path::new(""), MAX_DEPTH)?;
        Ok(tree)
    }

    fn look(&mut self, below: &Path, depth: usize) -> anyhow::Result<()> {
        let folder = self.root.join(below);
        let doing = || format!("read `{}`", folder.display());
        ensure!(depth > 0, "{}: more than {MAX_DEPTH} folders lie inside each other", doing());
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.with_context(doing)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            ensure!(
                self.entries.len() < MAX_ENTRIES,
                "`{}`: it has more than {MAX_ENTRIES} files",
                self.root.display()
            );
            let (path, found) = (below.join(entry.file_name()), entry.file_type());
            let found = found.with_context(doing)?;
            let kind = if found.is_dir() {
                Kind::Folder
            } else if found.is_file() {
                Kind::File
            } else if found.is_symlink() {
                Kind::Link(fs::read_link(entry.path()).with_context(doing)?)
            } else {
                bail!("`{}`: it is neither a file, a folder nor a link", entry.path().display());
            };
            let is_folder = matches!(kind, Kind::Folder);
            self.entries.push((path.clone(), kind));
            if is_folder {
                self.look(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Adds what lies there to a hash: paths, kinds, whether files can be run, and bytes.
    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) -> anyhow::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let tell = |hasher: &mut blake3::Hasher, kind: u8, parts: [&Path; 2]| {
            hasher.update(&[kind]);
            for part in parts {
                let bytes = part.as_os_str().as_encoded_bytes();
                hasher.update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(bytes);
            }
        };
        for (path, kind) in &self.entries {
            match kind {
                Kind::Folder => tell(hasher, b'd', [path, Path::new("")]),
                Kind::Link(to) => tell(hasher, b'l', [path, to]),
                Kind::File => {
                    let place = self.root.join(path);
                    let doing = || format!("read `{}`", place.display());
                    let mut file = File::open(&place).with_context(doing)?;
                    let told = file.metadata().with_context(doing)?;
                    let kind = if is_executable(&told) { b'x' } else { b'f' };
                    tell(hasher, kind, [path, Path::new("")]);
                    let mut total = 0u64;
                    loop {
                        let read = file.read(&mut buffer).with_context(doing)?;
                        if read == 0 {
                            break;
                        }
                        hasher.update(&buffer[..read]);
                        total += read as u64;
                    }
                    // Files do not run into each other.
                    hasher.update(&total.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    /// Copies all of it into a folder, which is made. Links stay links; those that name the folder by its whole path lead to
    /// the same place in the copy.
    pub(super) fn copy(&self, into: &Path) -> anyhow::Result<()> {
        let doing = |place: &Path| format!("write `{}`", place.display());
        fs::create_dir(into).with_context(|| doing(into))?;
        for (path, kind) in &self.entries {
            let to = into.join(path);
            let written = match kind {
                Kind::Folder => fs::create_dir(&to),
                Kind::File => fs::copy(self.root.join(path), &to).map(drop),
                Kind::Link(target) => link(&self.moved(path, target), &to),
            };
            written.with_context(|| doing(&to))?;
        }
        Ok(())
    }

    /// Where the link at `path` leads in a copy.
    fn moved(&self, path: &Path, target: &Path) -> PathBuf {
        let inside = target.is_absolute().then(|| target.canonicalize().ok()).flatten();
        let Some(inside) = inside.as_deref().and_then(|it| it.strip_prefix(&self.root).ok()) else {
            return target.to_owned();
        };
        let above = path.components().skip(1).map(|_| Component::ParentDir);
        let moved = above.collect::<PathBuf>().join(inside);
        if moved.as_os_str().is_empty() { PathBuf::from(".") } else { moved }
    }

    /// Links to what is there and lies outside of the folder.
    pub(super) fn outward(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.entries.iter().filter_map(|(path, kind)| {
            let Kind::Link(to) = kind else { return None };
            let real = self.root.join(path).canonicalize().ok()?;
            (!real.starts_with(&self.root)).then_some((path.as_path(), to.as_path()))
        })
    }
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::other("links cannot be made on this system"))
}

#[cfg(unix)]
fn is_executable(told: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&told.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_all_that_lay_there_and_links_lead_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("from");
        fs::create_dir_all(root.join("a/empty")).unwrap();
        fs::write(root.join("a/file"), "one").unwrap();
        fs::write(root.join("run.sh"), "two").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(root.join("run.sh"), mode).unwrap();
        link(Path::new("file"), &root.join("a/near")).unwrap();
        link(&root.join("run.sh"), &root.join("a/far")).unwrap();
        link(Path::new("/no/where"), &root.join("nowhere")).unwrap();
        let tree = Tree::read(&root).unwrap();
        assert_eq!(tree.outward().count(), 0);
        let copy = root.with_file_name("to");
        tree.copy(&copy).unwrap();
        fs::rename(&root, root.with_file_name("gone")).unwrap();
        assert!(copy.join("a/empty").is_dir());
        assert_eq!(fs::read_to_string(copy.join("a/near")).unwrap(), "one");
        assert_eq!(fs::read_to_string(copy.join("a/far")).unwrap(), "two");
        assert_eq!(fs::read_link(copy.join("nowhere")).unwrap(), Path::new("/no/where"));
        assert!(is_executable(&fs::metadata(copy.join("run.sh")).unwrap()));

        // Whatever differs makes another hash, but where a link leads that was made anew.
        let hash = |folder: &Path| {
            let mut hasher = blake3::Hasher::new();
            Tree::read(folder).unwrap().hash(&mut hasher).unwrap();
            hasher.finalize()
        };
        let before = hash(&copy);
        assert_eq!(hash(&copy), before);
        fs::write(copy.join("a/file"), "three").unwrap();
        assert_ne!(hash(&copy), before);
        link(folder.path(), &copy.join("out")).unwrap();
        let tree = Tree::read(&copy).unwrap();
        assert_eq!(tree.outward().next().unwrap(), (Path::new("out"), folder.path()));
    }
}
