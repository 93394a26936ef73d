//! Putting a tree of files below a folder.
//!
//! An entry is: kind `u8` (`f`, `d`, `l` or `h` for a second name), permissions `u32`, time of
//! change `i64`, length of the path `u16`, length of the link's target `u16`, size `u64`, then
//! path, target and bytes. Paths are relative, and no link on the way to them is followed.

use core::ffi::CStr;

use crate::files::{make_parents, write_file};
use crate::sys::{self, AT_FDCWD, Errno, Fd};
use crate::wire::{Failure, Input, Path, explain};

/// Unpacks standard input below `folder`, which is made where it is absent.
pub fn unpack(folder: &CStr) -> Result<u64, (u64, Failure)> {
    sys::umask(0);
    let fail = |errno| (0, Failure::Errno(errno));
    let root = open_root(folder).map_err(|errno| {
        explain(folder.to_bytes());
        fail(errno)
    })?;
    let mut input = Input::default();
    let mut header = [0u8; 25];
    while input.read_exact(&mut header) {
        let (mut path, mut link) = ([0u8; 4096], [0u8; 4096]);
        let path = part(&mut input, &mut path, &header[13..15]).map_err(fail)?;
        let link = part(&mut input, &mut link, &header[15..17]).map_err(fail)?;
        entry(root, &header, path, link, &mut input).map_err(|errno| {
            explain(path);
            fail(errno)
        })?;
    }
    Ok(0)
}

fn open_root(folder: &CStr) -> Result<Fd, Errno> {
    make_parents(folder.to_bytes())?;
    match sys::make_folder(AT_FDCWD, folder, 0o755) {
        Ok(()) | Err(_) => sys::open(AT_FDCWD, folder, sys::O_DIRECTORY, 0),
    }
}

fn part<'a>(input: &mut Input, to: &'a mut [u8], length: &[u8]) -> Result<&'a [u8], Errno> {
    let length = u16::from_le_bytes([length[0], length[1]]) as usize;
    let to = to.get_mut(..length).ok_or(sys::ENAMETOOLONG)?;
    if input.read_exact(to) { Ok(to) } else { Err(sys::EPROTO) }
}

fn entry(
    root: Fd,
    header: &[u8; 25],
    path: &[u8],
    link: &[u8],
    input: &mut Input,
) -> Result<(), Errno> {
    let mode = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize & 0o7777;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    if header[0] == b'd' {
        let fd = descend(root, path)?;
        if !path.is_empty() {
            // A folder that was there and belongs to others keeps its permissions.
            let _ = sys::set_mode(fd, mode);
        }
        sys::close(fd);
        return Ok(());
    }
    let (above, name) = split(path);
    if name.is_empty() {
        return Err(sys::EINVAL);
    }
    let folder = descend(root, above)?;
    let name = Path::new(name)?;
    match sys::remove(folder, name.as_c(), 0) {
        Ok(()) | Err(sys::ENOENT) => {}
        Err(errno) => return Err(errno),
    }
    match header[0] {
        b'f' => {
            let flags = sys::O_WRONLY | sys::O_CREAT | sys::O_EXCL | sys::O_NOFOLLOW;
            let fd = sys::open(folder, name.as_c(), flags, 0o600)?;
            let mut left = number(17);
            let mut buffer = [0u8; 1 << 16];
            while left > 0 {
                let room = left.min(buffer.len() as u64) as usize;
                if !input.read_exact(&mut buffer[..room]) {
                    return Err(sys::EPROTO);
                }
                write_file(fd, &buffer[..room])?;
                left -= room as u64;
            }
            sys::set_mode(fd, mode)?;
            let _ = sys::set_time(fd, number(5) as i64);
            sys::close(fd);
        }
        b'l' => sys::symbolic_link(Path::new(link)?.as_c(), folder, name.as_c())?,
        b'h' => {
            let (above, target) = split(link);
            let from = descend(root, above)?;
            sys::hard_link(from, Path::new(target)?.as_c(), folder, name.as_c())?;
            sys::close(from);
        }
        _ => return Err(sys::EPROTO),
    }
    sys::close(folder);
    Ok(())
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// Opens a folder below `root`, step by step and through no link; what is absent is made.
fn descend(root: Fd, path: &[u8]) -> Result<Fd, Errno> {
    let flags = sys::O_DIRECTORY | sys::O_NOFOLLOW;
    let mut fd = sys::open(root, c".", flags, 0)?;
    for part in path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        if part == b".." {
            return Err(sys::EINVAL);
        }
        let name = Path::new(part)?;
        match sys::make_folder(fd, name.as_c(), 0o755) {
            Ok(()) | Err(sys::EEXIST) => {}
            // The kernel may name the read-only file system first.
            Err(_) if sys::stat(fd, name.as_c(), 0).is_ok() => {}
            Err(errno) => return Err(errno),
        }
        let next = sys::open(fd, name.as_c(), flags, 0)?;
        sys::close(fd);
        fd = next;
    }
    Ok(fd)
}
