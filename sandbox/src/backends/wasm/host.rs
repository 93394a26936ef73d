//! What belongs to one instance on the host's side.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;

use super::errno::Errno;
use super::output::Output;
use super::surroundings::Surroundings;
use super::tree::{Node, ROOT, Tree};
use super::usage::Limiter;
use crate::FileKind;

/// Descriptors that an instance may have open.
const MAX_OPEN: usize = 1024;

/// A file system that several instances work on.
pub(crate) type SharedTree = Arc<Mutex<Tree>>;

/// The tree, for one operation.
pub(crate) fn lock(tree: &SharedTree) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The data of a store: everything that a guest can reach.
pub(crate) struct GuestState {
    pub(crate) tree: SharedTree,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) output: Arc<Output>,
    pub(crate) limiter: Limiter,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdin: Arc<Mutex<Stdin>>,
    /// When it is ended.
    pub(crate) deadline: Instant,
    pub(crate) descriptors: Descriptors,
    /// What components need beside that.
    pub(crate) component: Option<Box<ComponentHost>>,
}

/// The half of [`GuestState`] that only components use.
pub(crate) struct ComponentHost {
    pub(crate) wasi: WasiCtx,
    pub(crate) resources: ResourceTable,
}

/// Standard input: bytes that end.
#[derive(Debug, Default)]
pub(crate) struct Stdin {
    bytes: Vec<u8>,
    position: usize,
}

impl Stdin {
    pub(crate) fn new(bytes: Vec<u8>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { bytes, position: 0 }))
    }

    /// The next bytes, at most `size`; none at the end.
    pub(crate) fn take(&mut self, size: usize) -> &[u8] {
        let rest = &self.bytes[self.position..];
        let taken = &rest[..rest.len().min(size)];
        self.position += taken.len();
        taken
    }
}

/// What a descriptor of WASI preview 1 stands for.
#[derive(Debug, Clone)]
pub(crate) enum Descriptor {
    Stdin,
    Stdout,
    Stderr,
    Folder { node: Node, preopened: bool },
    File { node: Node, position: u64, append: bool, readable: bool, writable: bool },
}

impl Descriptor {
    pub(crate) fn node(&self) -> Option<Node> {
        match self {
            Self::Folder { node, .. } | Self::File { node, .. } => Some(*node),
            Self::Stdin | Self::Stdout | Self::Stderr => None,
        }
    }
}

/// The table of descriptors of an instance; lets go of their files when dropped.
#[derive(Debug)]
pub(crate) struct Descriptors {
    tree: SharedTree,
    slots: Vec<Option<Descriptor>>,
}

impl Descriptors {
    /// Standard streams and the root folder as descriptor 3.
    pub(crate) fn new(tree: &SharedTree) -> Self {
        let slots = [
            Descriptor::Stdin,
            Descriptor::Stdout,
            Descriptor::Stderr,
            Descriptor::Folder { node: ROOT, preopened: true },
        ];
        lock(tree).hold(ROOT);
        Self { tree: Arc::clone(tree), slots: slots.map(Some).into() }
    }

    pub(crate) fn get(&self, fd: i32) -> Result<&Descriptor, Errno> {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.slots.get(fd));
        slot.and_then(Option::as_ref).ok_or(Errno::BadDescriptor)
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Result<&mut Descriptor, Errno> {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.slots.get_mut(fd));
        slot.and_then(Option::as_mut).ok_or(Errno::BadDescriptor)
    }

    /// The node of a folder.
    pub(crate) fn folder(&self, fd: i32) -> Result<Node, Errno> {
        match self.get(fd)? {
            Descriptor::Folder { node, .. } => Ok(*node),
            _ => Err(Errno::NotFolder),
        }
    }

    /// The lowest free number from now on stands for `node`.
    pub(crate) fn open(&mut self, node: Node, descriptor: Descriptor) -> Result<i32, Errno> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free >= MAX_OPEN {
            return Err(Errno::TooManyOpen);
        }
        lock(&self.tree).hold(node);
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(descriptor);
        Ok(free as i32)
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let node = self.get(fd)?.node();
        self.slots[fd as usize] = None;
        if let Some(node) = node {
            lock(&self.tree).release(node);
        }
        Ok(())
    }

    /// `to` from now on is what `from` was.
    pub(crate) fn renumber(&mut self, from: i32, to: i32) -> Result<(), Errno> {
        self.get(from)?;
        self.get(to)?;
        if from != to {
            self.close(to)?;
            self.slots[to as usize] = self.slots[from as usize].take();
        }
        Ok(())
    }

    /// What they are, to be had again by [`Descriptors::restore`].
    pub(crate) fn slots(&self) -> Vec<Option<Descriptor>> {
        self.slots.clone()
    }

    /// The same descriptors on a copy of the tree; those whose file is not in it are closed.
    pub(crate) fn restore(tree: &SharedTree, mut slots: Vec<Option<Descriptor>>) -> Self {
        let mut copy = lock(tree);
        for slot in &mut slots {
            if let Some(node) = slot.as_ref().and_then(Descriptor::node) {
                match copy.stat(node) {
                    Ok(_) => copy.hold(node),
                    Err(_) => *slot = None,
                }
            }
        }
        drop(copy);
        Self { tree: Arc::clone(tree), slots }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        let mut tree = lock(&self.tree);
        for node in self.slots.iter().flatten().filter_map(Descriptor::node) {
            tree.release(node);
        }
    }
}

/// The number of a kind of file in WASI preview 1.
pub(crate) fn file_type(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => 4,
        FileKind::Folder => 3,
        FileKind::Link => 7,
        FileKind::Other => 0,
    }
}
