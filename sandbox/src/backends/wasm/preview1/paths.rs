//! Functions on paths.

use wasmtime::Linker;

use super::descriptors::{put_stat, times};
use super::guest::Memory;
use super::{Context, MODULE, with_guest};
use crate::FileKind;
use crate::backends::wasm::errno::Errno;
use crate::backends::wasm::host::{Descriptor, GuestState, lock};

const READ_RIGHT: u64 = 1 << 1;
const WRITE_RIGHT: u64 = 1 << 6;

pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "path_open",
        |mut c: Context<'_>,
         fd: i32,
         lookup: i32,
         path: i32,
         len: i32,
         flags: i32,
         rights: i64,
         _inheriting: i64,
         fd_flags: i32,
         at: i32| {
            with_guest(&mut c, |mut m, host| {
                let path = m.text(path, len)?;
                let flags = OpenFlags::new(lookup, flags, rights as u64, fd_flags);
                let opened = open(host, fd, &path, &flags)?;
                m.put_u32(at, opened as u32)
            })
        },
    )?;
    add_attributes(linker)?;
    add_changes(linker)?;
    add_links(linker)
}

struct OpenFlags {
    follow: bool,
    create: bool,
    folder: bool,
    exclusive: bool,
    truncate: bool,
    readable: bool,
    writable: bool,
    append: bool,
}

impl OpenFlags {
    fn new(lookup: i32, flags: i32, rights: u64, fd_flags: i32) -> Self {
        Self {
            follow: lookup & 1 != 0,
            create: flags & 1 != 0,
            folder: flags & 2 != 0,
            exclusive: flags & 4 != 0,
            truncate: flags & 8 != 0,
            readable: rights & READ_RIGHT != 0,
            writable: rights & WRITE_RIGHT != 0,
            append: fd_flags & 1 != 0,
        }
    }
}

fn open(host: &mut GuestState, fd: i32, path: &str, flags: &OpenFlags) -> Result<i32, Errno> {
    let base = host.descriptors.folder(fd)?;
    let now = host.surroundings.file_time();
    let mut tree = lock(&host.tree);
    let node = match tree.find(base, path, flags.follow && !flags.exclusive) {
        Ok(_) if flags.create && flags.exclusive => return Err(Errno::Exists),
        Err(Errno::NotFound) if flags.create && !flags.folder => {
            tree.make_file(base, path, 0o644, now)?
        }
        found => found?,
    };
    let descriptor = match tree.stat(node)?.kind {
        FileKind::Folder if flags.writable && !flags.folder && !flags.readable => {
            return Err(Errno::IsFolder);
        }
        FileKind::Folder => Descriptor::Folder { node, preopened: false },
        _ if flags.folder => return Err(Errno::NotFolder),
        FileKind::Link => return Err(Errno::Loop),
        _ => {
            if flags.writable || flags.truncate {
                tree.check_path_writable(base, path)?;
            }
            if flags.truncate {
                tree.set_len(node, 0, now)?;
            }
            let OpenFlags { append, readable, writable, .. } = *flags;
            Descriptor::File { node, position: 0, append, readable, writable }
        }
    };
    drop(tree);
    host.descriptors.open(node, descriptor)
}

fn add_attributes(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "path_filestat_get",
        |mut c: Context<'_>, fd: i32, lookup: i32, path: i32, len: i32, at: i32| {
            with_guest(&mut c, |mut m, host| {
                let path = m.text(path, len)?;
                let tree = lock(&host.tree);
                let node = tree.find(host.descriptors.folder(fd)?, &path, lookup & 1 != 0)?;
                put_stat(m, &tree.stat(node)?, at)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "path_filestat_set_times",
        |mut c: Context<'_>,
         fd: i32,
         lookup: i32,
         path: i32,
         len: i32,
         accessed: i64,
         modified: i64,
         flags: i32| {
            with_guest(&mut c, |mut m, host| {
                let path = m.text(path, len)?;
                let (accessed, modified) = times(host, accessed, modified, flags)?;
                let base = host.descriptors.folder(fd)?;
                let mut tree = lock(&host.tree);
                let node = tree.find(base, &path, lookup & 1 != 0)?;
                tree.check_path_writable(base, &path)?;
                tree.set_times(node, accessed, modified)
            })
        },
    )?;
    Ok(())
}

fn add_changes(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    let changes: [(&str, Change); 3] = [
        ("path_create_directory", |tree, base, path, now| {
            tree.make_folder(base, path, now).map(drop)
        }),
        ("path_remove_directory", |tree, base, path, now| tree.remove_folder(base, path, now)),
        ("path_unlink_file", |tree, base, path, now| tree.remove_file(base, path, now)),
    ];
    for (name, change) in changes {
        linker.func_wrap(
            MODULE,
            name,
            move |mut c: Context<'_>, fd: i32, path: i32, len: i32| {
                with_guest(&mut c, |mut m, host| {
                    let path = m.text(path, len)?;
                    let base = host.descriptors.folder(fd)?;
                    let now = host.surroundings.file_time();
                    change(&mut lock(&host.tree), base, &path, now)
                })
            },
        )?;
    }
    linker.func_wrap(
        MODULE,
        "path_rename",
        |mut c: Context<'_>, fd: i32, path: i32, len: i32, to_fd: i32, to: i32, to_len: i32| {
            with_guest(&mut c, |mut m, host| {
                let (from, to) = (m.text(path, len)?, m.text(to, to_len)?);
                let (base, to_base) =
                    (host.descriptors.folder(fd)?, host.descriptors.folder(to_fd)?);
                let now = host.surroundings.file_time();
                lock(&host.tree).rename((base, &from), (to_base, &to), now)
            })
        },
    )?;
    Ok(())
}

type Change = fn(&mut crate::backends::wasm::tree::Tree, u64, &str, u64) -> Result<(), Errno>;

fn add_links(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "path_link",
        |mut c: Context<'_>,
         fd: i32,
         lookup: i32,
         path: i32,
         len: i32,
         to_fd: i32,
         to: i32,
         to_len: i32| {
            with_guest(&mut c, |mut m, host| {
                let (from, to) = (m.text(path, len)?, m.text(to, to_len)?);
                let (base, to_base) =
                    (host.descriptors.folder(fd)?, host.descriptors.folder(to_fd)?);
                let now = host.surroundings.file_time();
                let mut tree = lock(&host.tree);
                let node = tree.find(base, &from, lookup & 1 != 0)?;
                tree.make_hard_link(node, to_base, &to, now)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "path_symlink",
        |mut c: Context<'_>, target: i32, target_len: i32, fd: i32, path: i32, len: i32| {
            with_guest(&mut c, |mut m, host| {
                let (target, path) = (m.text(target, target_len)?, m.text(path, len)?);
                let base = host.descriptors.folder(fd)?;
                let now = host.surroundings.file_time();
                lock(&host.tree).make_link(&target, base, &path, now).map(drop)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        "path_readlink",
        |mut c: Context<'_>,
         fd: i32,
         path: i32,
         len: i32,
         buffer: i32,
         buffer_len: i32,
         used: i32| {
            with_guest(&mut c, |m, host| {
                read_link(m, host, fd, (path, len), (buffer, buffer_len), used)
            })
        },
    )?;
    Ok(())
}

fn read_link(
    mut m: Memory<'_>,
    host: &GuestState,
    fd: i32,
    (path, len): (i32, i32),
    (buffer, buffer_len): (i32, i32),
    used: i32,
) -> Result<(), Errno> {
    let path = m.text(path, len)?;
    let tree = lock(&host.tree);
    let node = tree.find(host.descriptors.folder(fd)?, &path, false)?;
    let target = tree.link_target(node)?.as_bytes();
    let n = target.len().min(buffer_len as u32 as usize);
    m.put(buffer, &target[..n])?;
    m.put_u32(used, n as u32)
}
