//! Functions on open files, folders and streams.

use wasmtime::Linker;

use super::guest::Memory;
use super::{Context, MODULE, with_guest};
use crate::Stream;
use crate::backends::wasm::errno::Errno;
use crate::backends::wasm::host::{Descriptor, GuestState, file_type, lock};
use crate::backends::wasm::tree::Stat;

const APPEND: u16 = 1;
const READ_RIGHT: u64 = 1 << 1;
const WRITE_RIGHT: u64 = 1 << 6;
const SEEK_RIGHTS: u64 = 1 << 2 | 1 << 5;
const ALL_RIGHTS: u64 = (1 << 30) - 1;

pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    add_streams(linker)?;
    add_positions(linker)?;
    add_attributes(linker)?;
    add_table(linker)?;
    linker.func_wrap(
        MODULE,
        "fd_readdir",
        |mut c: Context<'_>, fd: i32, buffer: i32, len: i32, cookie: i64, used: i32| {
            with_guest(&mut c, |m, host| read_folder(m, host, fd, (buffer, len), cookie, used))
        },
    )?;
    Ok(())
}

fn add_streams(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "fd_read",
        |mut c: Context<'_>, fd: i32, list: i32, count: i32, num: i32| {
            with_guest(&mut c, |m, host| {
                read(m, host, Transfer { fd, list, count, offset: None, num })
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_pread",
        |mut c: Context<'_>, fd: i32, list: i32, count: i32, offset: i64, num: i32| {
            let offset = Some(offset as u64);
            with_guest(&mut c, |m, host| read(m, host, Transfer { fd, list, count, offset, num }))
        },
    )?;
    linker.func_wrap_async(
        MODULE,
        "fd_write",
        |mut c: Context<'_>, (fd, list, count, num): (i32, i32, i32, i32)| {
            Box::new(async move {
                let transfer = Transfer { fd, list, count, offset: None, num };
                let errno = with_guest(&mut c, |m, host| write(m, host, transfer))?;
                while c.data().output.is_full() {
                    tokio::task::yield_now().await;
                }
                Ok::<_, wasmtime::Error>(errno)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_pwrite",
        |mut c: Context<'_>, fd: i32, list: i32, count: i32, offset: i64, num: i32| {
            let offset = Some(offset as u64);
            with_guest(&mut c, |m, host| write(m, host, Transfer { fd, list, count, offset, num }))
        },
    )?;
    Ok(())
}

/// What a guest asks for when it reads or writes.
struct Transfer {
    fd: i32,
    /// Where the list of buffers lies in its memory, and how many there are.
    list: i32,
    count: i32,
    /// Where in the file; absent: where the descriptor is, which moves on.
    offset: Option<u64>,
    /// Where to put the number of bytes.
    num: i32,
}

fn read(mut m: Memory<'_>, host: &mut GuestState, transfer: Transfer) -> Result<(), Errno> {
    let Transfer { fd, offset, .. } = transfer;
    let buffers = m.buffers(transfer.list, transfer.count)?;
    let mut total = 0;
    match host.descriptors.get_mut(fd)? {
        Descriptor::Stdin => {
            if offset.is_some() {
                return Err(Errno::IllegalSeek);
            }
            let mut stdin = host.stdin.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for (at, len) in buffers {
                let bytes = stdin.take(len as usize);
                m.put(at, bytes)?;
                total += bytes.len();
            }
        }
        Descriptor::File { node, position, readable: true, .. } => {
            let start = offset.unwrap_or(*position);
            let tree = lock(&host.tree);
            for (at, len) in buffers {
                total += tree.read_at(*node, start + total as u64, m.bytes(at, len)?)?;
            }
            if offset.is_none() {
                *position += total as u64;
            }
        }
        Descriptor::Folder { .. } => return Err(Errno::IsFolder),
        _ => return Err(Errno::BadDescriptor),
    }
    m.put_u32(transfer.num, total as u32)
}

fn write(mut m: Memory<'_>, host: &mut GuestState, transfer: Transfer) -> Result<(), Errno> {
    let Transfer { fd, offset, .. } = transfer;
    let buffers = m.buffers(transfer.list, transfer.count)?;
    let mut total = 0;
    match host.descriptors.get_mut(fd)? {
        stream @ (Descriptor::Stdout | Descriptor::Stderr) => {
            if offset.is_some() {
                return Err(Errno::IllegalSeek);
            }
            let is_stdout = matches!(stream, Descriptor::Stdout);
            let stream = if is_stdout { Stream::Stdout } else { Stream::Stderr };
            for (at, len) in buffers {
                host.output.push(stream, m.bytes(at, len)?);
                total += len as usize;
            }
        }
        Descriptor::File { node, position, append, writable: true, .. } => {
            let mut tree = lock(&host.tree);
            let start = match offset {
                Some(offset) => offset,
                None if *append => tree.stat(*node)?.size,
                None => *position,
            };
            let now = host.surroundings.file_time();
            for (at, len) in buffers {
                match tree.write_at(*node, start + total as u64, m.bytes(at, len)?, now) {
                    Ok(written) => total += written,
                    Err(_) if total > 0 => break,
                    Err(errno) => return Err(errno),
                }
            }
            if offset.is_none() {
                *position = start + total as u64;
            }
        }
        Descriptor::Folder { .. } => return Err(Errno::IsFolder),
        _ => return Err(Errno::BadDescriptor),
    }
    m.put_u32(transfer.num, total as u32)
}

fn add_positions(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "fd_seek",
        |mut c: Context<'_>, fd: i32, offset: i64, whence: i32, at: i32| {
            with_guest(&mut c, |mut m, host| {
                let new = seek(host, fd, offset, whence)?;
                m.put_u64(at, new)
            })
        },
    )?;
    linker.func_wrap(MODULE, "fd_tell", |mut c: Context<'_>, fd: i32, at: i32| {
        with_guest(&mut c, |mut m, host| {
            let position = seek(host, fd, 0, 1)?;
            m.put_u64(at, position)
        })
    })?;
    for name in ["fd_sync", "fd_datasync"] {
        linker.func_wrap(MODULE, name, |mut c: Context<'_>, fd: i32| {
            with_guest(&mut c, |_, host| host.descriptors.get(fd).map(drop))
        })?;
    }
    linker.func_wrap(
        MODULE,
        "fd_advise",
        |mut c: Context<'_>, fd: i32, _: i64, _: i64, _: i32| {
            with_guest(&mut c, |_, host| file_node(host, fd).map(drop))
        },
    )?;
    Ok(())
}

fn seek(host: &mut GuestState, fd: i32, offset: i64, whence: i32) -> Result<u64, Errno> {
    let Descriptor::File { node, position, .. } = host.descriptors.get_mut(fd)? else {
        return Err(Errno::IllegalSeek);
    };
    let base = match whence {
        0 => 0,
        1 => *position,
        2 => lock(&host.tree).stat(*node)?.size,
        _ => return Err(Errno::Invalid),
    };
    *position = base.checked_add_signed(offset).ok_or(Errno::Invalid)?;
    Ok(*position)
}

/// The node of a file that is open for writing.
fn file_node(host: &GuestState, fd: i32) -> Result<u64, Errno> {
    match host.descriptors.get(fd)? {
        Descriptor::File { node, writable: true, .. } => Ok(*node),
        Descriptor::File { .. } => Err(Errno::BadDescriptor),
        Descriptor::Folder { .. } => Err(Errno::IsFolder),
        _ => Err(Errno::IllegalSeek),
    }
}

fn add_attributes(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "fd_fdstat_get", |mut c: Context<'_>, fd: i32, at: i32| {
        with_guest(&mut c, |m, host| put_descriptor(m, host, fd, at))
    })?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_set_flags",
        |mut c: Context<'_>, fd: i32, flags: i32| {
            with_guest(&mut c, |_, host| {
                if let Descriptor::File { append, .. } = host.descriptors.get_mut(fd)? {
                    *append = flags as u16 & APPEND != 0;
                }
                Ok(())
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_set_rights",
        |mut c: Context<'_>, fd: i32, _: i64, _: i64| {
            with_guest(&mut c, |_, host| host.descriptors.get(fd).map(drop))
        },
    )?;
    linker.func_wrap(MODULE, "fd_filestat_get", |mut c: Context<'_>, fd: i32, at: i32| {
        with_guest(&mut c, |m, host| match host.descriptors.get(fd)?.node() {
            Some(node) => {
                let stat = lock(&host.tree).stat(node)?;
                put_stat(m, &stat, at)
            }
            None => put_stat_of_stream(m, at),
        })
    })?;
    linker.func_wrap(
        MODULE,
        "fd_filestat_set_size",
        |mut c: Context<'_>, fd: i32, size: i64| {
            with_guest(&mut c, |_, host| {
                let now = host.surroundings.file_time();
                lock(&host.tree).set_len(file_node(host, fd)?, size as u64, now)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_allocate",
        |mut c: Context<'_>, fd: i32, offset: i64, len: i64| {
            with_guest(&mut c, |_, host| {
                let node = file_node(host, fd)?;
                let end = (offset as u64).saturating_add(len as u64);
                let mut tree = lock(&host.tree);
                if end > tree.stat(node)?.size {
                    tree.set_len(node, end, host.surroundings.file_time())?;
                }
                Ok(())
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_filestat_set_times",
        |mut c: Context<'_>, fd: i32, accessed: i64, modified: i64, flags: i32| {
            with_guest(&mut c, |_, host| {
                let node = host.descriptors.get(fd)?.node().ok_or(Errno::Invalid)?;
                let (accessed, modified) = times(host, accessed, modified, flags)?;
                lock(&host.tree).set_times(node, accessed, modified)
            })
        },
    )?;
    Ok(())
}

/// The times that a call wants set; absent ones stay.
pub(super) fn times(
    host: &GuestState,
    accessed: i64,
    modified: i64,
    flags: i32,
) -> Result<(Option<u64>, Option<u64>), Errno> {
    let pick = |value: i64, flags: i32| match flags & 3 {
        0 => Ok(None),
        1 => Ok(Some(value as u64)),
        2 => Ok(Some(host.surroundings.file_time())),
        _ => Err(Errno::Invalid),
    };
    Ok((pick(accessed, flags)?, pick(modified, flags >> 2)?))
}

pub(super) fn put_stat(mut m: Memory<'_>, stat: &Stat, at: i32) -> Result<(), Errno> {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    bytes[8..16].copy_from_slice(&stat.node.to_le_bytes());
    bytes[16] = file_type(stat.kind);
    bytes[24..32].copy_from_slice(&stat.links.to_le_bytes());
    bytes[32..40].copy_from_slice(&stat.size.to_le_bytes());
    bytes[40..48].copy_from_slice(&stat.accessed.to_le_bytes());
    bytes[48..56].copy_from_slice(&stat.modified.to_le_bytes());
    bytes[56..64].copy_from_slice(&stat.modified.to_le_bytes());
    m.put(at, &bytes)
}

fn put_stat_of_stream(mut m: Memory<'_>, at: i32) -> Result<(), Errno> {
    m.put(at, &[0; 64])
}

fn put_descriptor(mut m: Memory<'_>, host: &GuestState, fd: i32, at: i32) -> Result<(), Errno> {
    // Streams are of no known type: guests take them for what they are, no terminals.
    let (kind, flags, rights) = match host.descriptors.get(fd)? {
        Descriptor::Stdin => (0, 0, READ_RIGHT),
        Descriptor::Stdout | Descriptor::Stderr => (0, 0, WRITE_RIGHT),
        Descriptor::Folder { .. } => (3, 0, ALL_RIGHTS & !SEEK_RIGHTS),
        Descriptor::File { append, readable, writable, .. } => {
            let denied =
                if *readable { 0 } else { READ_RIGHT } | if *writable { 0 } else { WRITE_RIGHT };
            (4, if *append { APPEND } else { 0 }, ALL_RIGHTS & !denied)
        }
    };
    let mut bytes = [0; 24];
    bytes[0] = kind;
    bytes[2..4].copy_from_slice(&flags.to_le_bytes());
    bytes[8..16].copy_from_slice(&rights.to_le_bytes());
    bytes[16..24].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
    m.put(at, &bytes)
}

fn add_table(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "fd_close", |mut c: Context<'_>, fd: i32| {
        with_guest(&mut c, |_, host| host.descriptors.close(fd))
    })?;
    linker.func_wrap(MODULE, "fd_renumber", |mut c: Context<'_>, from: i32, to: i32| {
        with_guest(&mut c, |_, host| host.descriptors.renumber(from, to))
    })?;
    linker.func_wrap(MODULE, "fd_prestat_get", |mut c: Context<'_>, fd: i32, at: i32| {
        with_guest(&mut c, |mut m, host| match host.descriptors.get(fd)? {
            Descriptor::Folder { preopened: true, .. } => {
                m.put_u32(at, 0)?;
                m.put_u32(at.wrapping_add(4), 1)
            }
            _ => Err(Errno::BadDescriptor),
        })
    })?;
    linker.func_wrap(
        MODULE,
        "fd_prestat_dir_name",
        |mut c: Context<'_>, fd: i32, at: i32, len: i32| {
            with_guest(&mut c, |mut m, host| match host.descriptors.get(fd)? {
                Descriptor::Folder { preopened: true, .. } if len >= 1 => m.put(at, b"/"),
                Descriptor::Folder { preopened: true, .. } => Err(Errno::NameTooLong),
                _ => Err(Errno::BadDescriptor),
            })
        },
    )?;
    Ok(())
}

/// Entries from number `cookie` on, the last one cut off where the buffer ends.
fn read_folder(
    mut m: Memory<'_>,
    host: &GuestState,
    fd: i32,
    (buffer, len): (i32, i32),
    cookie: i64,
    used: i32,
) -> Result<(), Errno> {
    let folder = host.descriptors.folder(fd)?;
    let tree = lock(&host.tree);
    let parent = tree.parent(folder)?;
    let own = [(".", folder), ("..", parent)];
    let entries = tree.entries(folder)?.iter().map(|(name, node)| (name.as_str(), *node));
    let target = m.bytes(buffer, len)?;
    let mut filled = 0;
    let mut next = cookie as u64;
    for (name, node) in own.into_iter().chain(entries).skip(cookie as u64 as usize) {
        next += 1;
        let mut entry = Vec::with_capacity(24 + name.len());
        entry.extend_from_slice(&next.to_le_bytes());
        entry.extend_from_slice(&node.to_le_bytes());
        entry.extend_from_slice(&(name.len() as u32).to_le_bytes());
        entry.extend_from_slice(&[file_type(tree.stat(node)?.kind), 0, 0, 0]);
        entry.extend_from_slice(name.as_bytes());
        let n = entry.len().min(target.len() - filled);
        target[filled..filled + n].copy_from_slice(&entry[..n]);
        filled += n;
        if filled == target.len() {
            break;
        }
    }
    m.put_u32(used, filled as u32)
}
