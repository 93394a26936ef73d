//! `wasi:filesystem` on the in-memory file system.

use std::ops::Bound;
use std::sync::{Arc, MutexGuard};

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::streams::{FileIn, FileOut};
use crate::FileKind;
use crate::backends::wasm::errno::Errno;
use crate::backends::wasm::host::{GuestState, SharedTree, lock};
use crate::backends::wasm::tree::{Node, ROOT, Stat, Tree};
use bindings::wasi::filesystem::preopens;
use bindings::wasi::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};

pub(super) mod bindings {
    wasmtime::component::bindgen!({
        path: "src/backends/wasm/wit",
        world: "spar:sandbox/files",
        imports: { default: trappable },
        require_store_data_send: true,
        trappable_error_type: {
            "wasi:filesystem/types.error-code" => crate::backends::wasm::errno::Errno,
        },
        with: {
            "wasi:io/error": wasmtime_wasi_io::bindings::wasi::io::error,
            "wasi:io/poll": wasmtime_wasi_io::bindings::wasi::io::poll,
            "wasi:io/streams": wasmtime_wasi_io::bindings::wasi::io::streams,
            "wasi:clocks/wall-clock": wasmtime_wasi::p2::bindings::clocks::wall_clock,
            "wasi:filesystem/types.descriptor": super::Handle,
            "wasi:filesystem/types.directory-entry-stream": super::Entries,
        },
    });
}

/// An open file or folder; lets go of it when dropped.
#[expect(unreachable_pub, reason = "the generated bindings hand it on")]
pub struct Handle {
    tree: SharedTree,
    pub(super) node: Node,
    flags: DescriptorFlags,
}

impl Handle {
    fn new(tree: &SharedTree, node: Node, flags: DescriptorFlags) -> Self {
        lock(tree).hold(node);
        Self { tree: Arc::clone(tree), node, flags }
    }

    fn again(&self) -> Self {
        Self::new(&self.tree, self.node, self.flags)
    }

    pub(super) fn tree(&self) -> MutexGuard<'_, Tree> {
        lock(&self.tree)
    }

    fn file(&self, needs: DescriptorFlags) -> Result<Node, Errno> {
        match self.tree().stat(self.node)?.kind {
            FileKind::Folder => Err(Errno::IsFolder),
            _ if !self.flags.contains(needs) => Err(Errno::BadDescriptor),
            _ => Ok(self.node),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.tree).release(self.node);
    }
}

/// How much of a folder was told. It holds one name: a copy of the folder in each of thousands of
/// handles would be memory that nobody is charged for.
#[expect(unreachable_pub, reason = "the generated bindings hand it on")]
pub struct Entries {
    folder: Handle,
    /// The name that was told last; absent before the first.
    last: Option<String>,
}

impl Entries {
    /// The first entry behind what was told, as the folder is now.
    fn next(&mut self) -> Result<Option<DirectoryEntry>, Errno> {
        let tree = self.folder.tree();
        let start = self.last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let entries = tree.entries(self.folder.node)?;
        let Some((name, node)) = entries.range::<str, _>((start, Bound::Unbounded)).next() else {
            return Ok(None);
        };
        let type_ = descriptor_type(tree.stat(*node)?.kind);
        let name = name.clone();
        drop(tree);
        self.last = Some(name.clone());
        Ok(Some(DirectoryEntry { type_, name }))
    }
}

type Own<T> = Resource<T>;

impl GuestState {
    fn handle(&mut self, handle: &Own<Handle>) -> Result<&Handle, Errno> {
        self.resources().get(handle).map_err(|_| Errno::BadDescriptor)
    }

    fn folder(&mut self, handle: &Own<Handle>) -> Result<Node, Errno> {
        let handle = self.handle(handle)?;
        match handle.tree().stat(handle.node)?.kind {
            FileKind::Folder => Ok(handle.node),
            _ => Err(Errno::NotFolder),
        }
    }

    fn keep<T: Send + 'static>(&mut self, value: T) -> Result<Own<T>, Errno> {
        self.resources().push(value).map_err(|_| Errno::TooManyOpen)
    }

    fn at(&mut self, handle: &Own<Handle>, flags: PathFlags, path: &str) -> Result<Node, Errno> {
        let base = self.folder(handle)?;
        lock(&self.tree).find(base, path, flags.contains(PathFlags::SYMLINK_FOLLOW))
    }

    fn time(&self, time: NewTimestamp) -> Option<u64> {
        match time {
            NewTimestamp::NoChange => None,
            NewTimestamp::Now => Some(self.surroundings.file_time()),
            NewTimestamp::Timestamp(at) => {
                Some(at.seconds.saturating_mul(1_000_000_000).saturating_add(at.nanoseconds.into()))
            }
        }
    }
}

impl preopens::Host for GuestState {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Own<Handle>, String)>> {
        let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
        let root = Handle::new(&self.tree, ROOT, flags);
        Ok(vec![(self.resources().push(root)?, "/".to_owned())])
    }
}

impl types::Host for GuestState {
    fn convert_error_code(&mut self, errno: Errno) -> wasmtime::Result<ErrorCode> {
        Ok(error_code(errno))
    }

    fn filesystem_error_code(
        &mut self,
        error: Own<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        let error = self.resources().get(&error)?;
        Ok(error.downcast_ref::<Errno>().copied().map(error_code))
    }
}

impl types::HostDirectoryEntryStream for GuestState {
    fn read_directory_entry(
        &mut self,
        entries: Own<Entries>,
    ) -> Result<Option<DirectoryEntry>, Errno> {
        self.resources().get_mut(&entries).map_err(|_| Errno::BadDescriptor)?.next()
    }

    fn drop(&mut self, entries: Own<Entries>) -> wasmtime::Result<()> {
        self.resources().delete(entries)?;
        Ok(())
    }
}

impl types::HostDescriptor for GuestState {
    fn read_via_stream(
        &mut self,
        handle: Own<Handle>,
        position: u64,
    ) -> Result<Own<DynInputStream>, Errno> {
        let handle = self.handle(&handle)?;
        handle.file(DescriptorFlags::READ)?;
        let stream: DynInputStream = Box::new(FileIn { handle: handle.again(), position });
        self.keep(stream)
    }

    fn write_via_stream(
        &mut self,
        handle: Own<Handle>,
        position: u64,
    ) -> Result<Own<DynOutputStream>, Errno> {
        self.output_stream(&handle, Some(position))
    }

    fn append_via_stream(&mut self, handle: Own<Handle>) -> Result<Own<DynOutputStream>, Errno> {
        self.output_stream(&handle, None)
    }

    fn advise(&mut self, handle: Own<Handle>, _: u64, _: u64, _: Advice) -> Result<(), Errno> {
        self.handle(&handle).map(drop)
    }

    fn sync_data(&mut self, handle: Own<Handle>) -> Result<(), Errno> {
        self.handle(&handle).map(drop)
    }

    fn sync(&mut self, handle: Own<Handle>) -> Result<(), Errno> {
        self.handle(&handle).map(drop)
    }

    fn get_flags(&mut self, handle: Own<Handle>) -> Result<DescriptorFlags, Errno> {
        Ok(self.handle(&handle)?.flags)
    }

    fn get_type(&mut self, handle: Own<Handle>) -> Result<DescriptorType, Errno> {
        let handle = self.handle(&handle)?;
        Ok(descriptor_type(handle.tree().stat(handle.node)?.kind))
    }

    fn set_size(&mut self, handle: Own<Handle>, size: u64) -> Result<(), Errno> {
        let now = self.surroundings.file_time();
        let handle = self.handle(&handle)?;
        let node = handle.file(DescriptorFlags::WRITE)?;
        handle.tree().set_len(node, size, now)
    }

    fn set_times(
        &mut self,
        handle: Own<Handle>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), Errno> {
        let (accessed, modified) = (self.time(accessed), self.time(modified));
        let handle = self.handle(&handle)?;
        handle.tree().set_times(handle.node, accessed, modified)
    }

    fn read(
        &mut self,
        handle: Own<Handle>,
        len: u64,
        position: u64,
    ) -> Result<(Vec<u8>, bool), Errno> {
        let handle = self.handle(&handle)?;
        let node = handle.file(DescriptorFlags::READ)?;
        let tree = handle.tree();
        let left = tree.stat(node)?.size.saturating_sub(position);
        let mut bytes = vec![0; len.min(left).min(1 << 20) as usize];
        let n = tree.read_at(node, position, &mut bytes)?;
        bytes.truncate(n);
        Ok((bytes, n as u64 == left))
    }

    fn write(&mut self, handle: Own<Handle>, bytes: Vec<u8>, at: u64) -> Result<u64, Errno> {
        let now = self.surroundings.file_time();
        let handle = self.handle(&handle)?;
        let node = handle.file(DescriptorFlags::WRITE)?;
        Ok(handle.tree().write_at(node, at, &bytes, now)? as u64)
    }

    fn read_directory(&mut self, handle: Own<Handle>) -> Result<Own<Entries>, Errno> {
        self.folder(&handle)?;
        let folder = self.handle(&handle)?.again();
        self.keep(Entries { folder, last: None })
    }

    fn create_directory_at(&mut self, handle: Own<Handle>, path: String) -> Result<(), Errno> {
        let (base, now) = (self.folder(&handle)?, self.surroundings.file_time());
        lock(&self.tree).make_folder(base, &path, now).map(drop)
    }

    fn stat(&mut self, handle: Own<Handle>) -> Result<DescriptorStat, Errno> {
        let handle = self.handle(&handle)?;
        Ok(descriptor_stat(&handle.tree().stat(handle.node)?))
    }

    fn stat_at(
        &mut self,
        handle: Own<Handle>,
        flags: PathFlags,
        path: String,
    ) -> Result<DescriptorStat, Errno> {
        let node = self.at(&handle, flags, &path)?;
        Ok(descriptor_stat(&lock(&self.tree).stat(node)?))
    }

    fn set_times_at(
        &mut self,
        handle: Own<Handle>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), Errno> {
        let (accessed, modified) = (self.time(accessed), self.time(modified));
        let base = self.folder(&handle)?;
        let node = self.at(&handle, flags, &path)?;
        let mut tree = lock(&self.tree);
        tree.check_path_writable(base, &path)?;
        tree.set_times(node, accessed, modified)
    }

    fn link_at(
        &mut self,
        handle: Own<Handle>,
        flags: PathFlags,
        path: String,
        to: Own<Handle>,
        to_path: String,
    ) -> Result<(), Errno> {
        let node = self.at(&handle, flags, &path)?;
        let (to, now) = (self.folder(&to)?, self.surroundings.file_time());
        lock(&self.tree).make_hard_link(node, to, &to_path, now)
    }

    fn open_at(
        &mut self,
        handle: Own<Handle>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Own<Handle>, Errno> {
        let (base, now) = (self.folder(&handle)?, self.surroundings.file_time());
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let (create, exclusive) =
            (open_flags.contains(OpenFlags::CREATE), open_flags.contains(OpenFlags::EXCLUSIVE));
        let must_be_folder = open_flags.contains(OpenFlags::DIRECTORY);
        let truncate = open_flags.contains(OpenFlags::TRUNCATE);
        let mut tree = lock(&self.tree);
        let node = match tree.find(base, &path, follow && !exclusive) {
            Ok(_) if create && exclusive => return Err(Errno::Exists),
            Err(Errno::NotFound) if create && !must_be_folder => {
                tree.make_file(base, &path, 0o644, now)?
            }
            found => found?,
        };
        match tree.stat(node)?.kind {
            FileKind::Folder if flags.contains(DescriptorFlags::WRITE) || truncate => {
                return Err(Errno::IsFolder);
            }
            FileKind::Folder => {}
            _ if must_be_folder => return Err(Errno::NotFolder),
            FileKind::Link => return Err(Errno::Loop),
            _ => {
                if flags.contains(DescriptorFlags::WRITE) || truncate {
                    tree.check_path_writable(base, &path)?;
                }
                if truncate {
                    tree.set_len(node, 0, now)?;
                }
            }
        }
        drop(tree);
        let opened = Handle::new(&self.tree, node, flags);
        self.keep(opened)
    }

    fn readlink_at(&mut self, handle: Own<Handle>, path: String) -> Result<String, Errno> {
        let node = self.at(&handle, PathFlags::empty(), &path)?;
        lock(&self.tree).link_target(node).map(str::to_owned)
    }

    fn remove_directory_at(&mut self, handle: Own<Handle>, path: String) -> Result<(), Errno> {
        let (base, now) = (self.folder(&handle)?, self.surroundings.file_time());
        lock(&self.tree).remove_folder(base, &path, now)
    }

    fn rename_at(
        &mut self,
        handle: Own<Handle>,
        path: String,
        to: Own<Handle>,
        to_path: String,
    ) -> Result<(), Errno> {
        let (base, to) = (self.folder(&handle)?, self.folder(&to)?);
        let now = self.surroundings.file_time();
        lock(&self.tree).rename((base, &path), (to, &to_path), now)
    }

    fn symlink_at(
        &mut self,
        handle: Own<Handle>,
        target: String,
        path: String,
    ) -> Result<(), Errno> {
        let (base, now) = (self.folder(&handle)?, self.surroundings.file_time());
        lock(&self.tree).make_link(&target, base, &path, now).map(drop)
    }

    fn unlink_file_at(&mut self, handle: Own<Handle>, path: String) -> Result<(), Errno> {
        let (base, now) = (self.folder(&handle)?, self.surroundings.file_time());
        lock(&self.tree).remove_file(base, &path, now)
    }

    fn is_same_object(&mut self, one: Own<Handle>, other: Own<Handle>) -> wasmtime::Result<bool> {
        let one = self.resources().get(&one)?.node;
        Ok(one == self.resources().get(&other)?.node)
    }

    fn metadata_hash(&mut self, handle: Own<Handle>) -> Result<MetadataHashValue, Errno> {
        Ok(MetadataHashValue { lower: self.handle(&handle)?.node, upper: 0 })
    }

    fn metadata_hash_at(
        &mut self,
        handle: Own<Handle>,
        flags: PathFlags,
        path: String,
    ) -> Result<MetadataHashValue, Errno> {
        Ok(MetadataHashValue { lower: self.at(&handle, flags, &path)?, upper: 0 })
    }

    fn drop(&mut self, handle: Own<Handle>) -> wasmtime::Result<()> {
        self.resources().delete(handle)?;
        Ok(())
    }
}

impl GuestState {
    fn output_stream(
        &mut self,
        handle: &Own<Handle>,
        position: Option<u64>,
    ) -> Result<Own<DynOutputStream>, Errno> {
        let now = self.surroundings.file_time();
        let handle = self.handle(handle)?;
        handle.file(DescriptorFlags::WRITE)?;
        let stream: DynOutputStream = Box::new(FileOut { handle: handle.again(), position, now });
        self.keep(stream)
    }
}

fn descriptor_type(kind: FileKind) -> DescriptorType {
    match kind {
        FileKind::File => DescriptorType::RegularFile,
        FileKind::Folder => DescriptorType::Directory,
        FileKind::Link => DescriptorType::SymbolicLink,
        FileKind::Other => DescriptorType::Unknown,
    }
}

fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    let time = |nanos: u64| {
        Some(Datetime {
            seconds: nanos / 1_000_000_000,
            nanoseconds: (nanos % 1_000_000_000) as u32,
        })
    };
    DescriptorStat {
        type_: descriptor_type(stat.kind),
        link_count: stat.links,
        size: stat.size,
        data_access_timestamp: time(stat.accessed),
        data_modification_timestamp: time(stat.modified),
        status_change_timestamp: time(stat.modified),
    }
}

fn error_code(errno: Errno) -> ErrorCode {
    match errno {
        Errno::BadDescriptor => ErrorCode::BadDescriptor,
        Errno::Busy => ErrorCode::Busy,
        Errno::Exists => ErrorCode::Exist,
        Errno::Fault | Errno::Invalid => ErrorCode::Invalid,
        Errno::TooLarge => ErrorCode::FileTooLarge,
        Errno::NotUtf8 => ErrorCode::IllegalByteSequence,
        Errno::IsFolder => ErrorCode::IsDirectory,
        Errno::Loop => ErrorCode::Loop,
        Errno::TooManyOpen => ErrorCode::InsufficientMemory,
        Errno::NameTooLong => ErrorCode::NameTooLong,
        Errno::NotFound => ErrorCode::NoEntry,
        Errno::NoSpace => ErrorCode::InsufficientSpace,
        Errno::NotFolder => ErrorCode::NotDirectory,
        Errno::NotEmpty => ErrorCode::NotEmpty,
        Errno::NotSocket | Errno::Unsupported => ErrorCode::Unsupported,
        Errno::NotPermitted => ErrorCode::NotPermitted,
        Errno::ReadOnly => ErrorCode::ReadOnly,
        Errno::IllegalSeek => ErrorCode::InvalidSeek,
        Errno::CrossDevice => ErrorCode::CrossDevice,
    }
}
