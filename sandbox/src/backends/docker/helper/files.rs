//! Reading, writing and listing files, as the user and in the file system of the container.

use core::ffi::CStr;

use crate::sys::{self, AT_FDCWD, Arguments, Errno, Fd, Stat};
use crate::wire::{Failure, Input, Path, small_file, write_all};

type Outcome = Result<u64, (u64, Failure)>;

const CHUNK: usize = 1 << 16;
/// Folders within folders that are packed.
const MAX_DEPTH: usize = 512;

fn refused(errno: Errno) -> (u64, Failure) {
    (0, Failure::Errno(errno))
}

/// A regular file's bytes to standard output.
pub fn read(path: &CStr, limit: u64) -> Outcome {
    let fd = sys::open(AT_FDCWD, path, sys::O_NONBLOCK, 0).map_err(refused)?;
    let stat = sys::stat(fd, c"", 0).map_err(refused)?;
    if stat.kind() != sys::S_IFREG {
        return Err(refused(if stat.kind() == sys::S_IFDIR { 21 } else { sys::EINVAL }));
    }
    if stat.size > limit {
        return Err((0, Failure::TooLarge));
    }
    let mut buffer = [0u8; CHUNK];
    let mut total = 0u64;
    loop {
        match sys::read(fd, &mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => {
                // Files of /proc tell no size.
                if total + count as u64 > limit {
                    return Err((total, Failure::TooLarge));
                }
                write_all(1, &buffer[..count]);
                total += count as u64;
            }
            Err(sys::EINTR) => {}
            Err(errno) => return Err((total, Failure::Errno(errno))),
        }
    }
}

/// Standard input to a regular file; the folders above it are made.
pub fn write(path: &CStr, mode: u64) -> Outcome {
    sys::umask(0o022);
    make_parents(path.to_bytes()).map_err(refused)?;
    let flags = sys::O_WRONLY | sys::O_CREAT | sys::O_NONBLOCK;
    let fd = sys::open(AT_FDCWD, path, flags, 0o600).map_err(refused)?;
    if sys::stat(fd, c"", 0).map_err(refused)?.kind() != sys::S_IFREG {
        return Err(refused(sys::EINVAL));
    }
    sys::close(fd);
    let fd = sys::open(AT_FDCWD, path, sys::O_WRONLY | sys::O_TRUNC, 0).map_err(refused)?;
    let mut input = Input::default();
    let mut buffer = [0u8; CHUNK];
    loop {
        match input.read(&mut buffer) {
            0 => break,
            count => write_file(fd, &buffer[..count]).map_err(refused)?,
        }
    }
    sys::set_mode(fd, mode as usize).map_err(refused)?;
    Ok(0)
}

pub fn write_file(fd: Fd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match sys::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(sys::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes every folder above the last part of a path.
pub fn make_parents(path: &[u8]) -> Result<(), Errno> {
    for (at, _) in path.iter().enumerate().filter(|&(at, &byte)| at > 0 && byte == b'/') {
        let folder = Path::new(&path[..at])?;
        match sys::make_folder(AT_FDCWD, folder.as_c(), 0o755) {
            // One that is there may be on a file system that cannot be written.
            Ok(()) | Err(sys::EEXIST) => {}
            Err(errno) => {
                if sys::stat(AT_FDCWD, folder.as_c(), 0).is_err() {
                    return Err(errno);
                }
            }
        }
    }
    Ok(())
}

/// What lies in a folder: kind `u8`, size `u64`, length of the name `u16`, name.
pub fn list(path: &CStr, limit: u64) -> Outcome {
    let flags = sys::O_DIRECTORY | sys::O_NONBLOCK;
    let fd = sys::open(AT_FDCWD, path, flags, 0).map_err(refused)?;
    let mut total = 0;
    let mut buffer = [0u8; CHUNK];
    loop {
        let count = sys::entries(fd, &mut buffer).map_err(|e| (total, Failure::Errno(e)))?;
        if count == 0 {
            return Ok(total);
        }
        let mut is_too_large = false;
        for_each_name(&buffer[..count], |name, name_c| {
            let Ok(stat) = sys::stat(fd, name_c, sys::AT_SYMLINK_NOFOLLOW) else { return };
            is_too_large |= total + 11 + name.len() as u64 > limit;
            if is_too_large {
                return;
            }
            let mut header = [0u8; 11];
            header[0] = letter(&stat);
            let size = if stat.kind() == sys::S_IFREG { stat.size } else { 0 };
            header[1..9].copy_from_slice(&size.to_le_bytes());
            header[9..].copy_from_slice(&(name.len() as u16).to_le_bytes());
            write_all(1, &header);
            write_all(1, name);
            total += (header.len() + name.len()) as u64;
        });
        if is_too_large {
            return Err((total, Failure::TooLarge));
        }
    }
}

fn letter(stat: &Stat) -> u8 {
    match stat.kind() {
        sys::S_IFREG => b'f',
        sys::S_IFDIR => b'd',
        sys::S_IFLNK => b'l',
        _ => b'o',
    }
}

/// Names in a buffer of `linux_dirent64`, without `.` and `..`.
pub fn for_each_name(mut buffer: &[u8], mut visit: impl FnMut(&[u8], &CStr)) {
    while buffer.len() > 19 {
        let length = u16::from_le_bytes([buffer[16], buffer[17]]) as usize;
        let Some(entry) = buffer.get(19..length) else { return };
        let Ok(name) = CStr::from_bytes_until_nul(entry) else { return };
        if !matches!(name.to_bytes(), b"." | b"..") {
            visit(name.to_bytes(), name);
        }
        buffer = &buffer[length..];
    }
}

/// A file or folder with all that is in it, as entries that `unpack.rs` describes. The thing
/// itself has an empty path.
pub fn pack(path: &CStr, limit: u64) -> Outcome {
    let mut pack = Pack { limit, taken: 0, written: 0 };
    let walked = sys::stat(AT_FDCWD, path, 0).map_err(Failure::Errno).and_then(|_| {
        let mut name = Path::new(b"")?;
        pack.entry(AT_FDCWD, path, 0, &mut name, 0)
    });
    walked.map(|()| pack.written).map_err(|failure| (pack.written, failure))
}

struct Pack {
    limit: u64,
    taken: u64,
    written: u64,
}

impl Pack {
    fn entry(
        &mut self,
        folder: Fd,
        name: &CStr,
        follow: usize,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), Failure> {
        let stat = sys::stat(folder, name, follow)?;
        match stat.kind() {
            sys::S_IFREG => {
                let flags = sys::O_NONBLOCK | if depth > 0 { sys::O_NOFOLLOW } else { 0 };
                let fd = sys::open(folder, name, flags, 0)?;
                let result = self.file(fd, path);
                sys::close(fd);
                result
            }
            sys::S_IFDIR if depth < MAX_DEPTH => {
                self.header(b'd', &stat, path.as_bytes(), b"", 0)?;
                let flags = sys::O_DIRECTORY | if depth > 0 { sys::O_NOFOLLOW } else { 0 };
                let fd = sys::open(folder, name, flags, 0)?;
                let result = self.folder(fd, path, depth);
                sys::close(fd);
                result
            }
            sys::S_IFDIR => Err(Failure::Errno(sys::ELOOP)),
            sys::S_IFLNK => {
                let mut target = [0u8; 4096];
                let length = sys::read_link(folder, name, &mut target)?;
                self.header(b'l', &stat, path.as_bytes(), &target[..length], 0)
            }
            // Pipes, sockets and devices stay.
            _ => Ok(()),
        }
    }

    fn folder(&mut self, fd: Fd, path: &mut Path, depth: usize) -> Result<(), Failure> {
        let length = path.len();
        let mut buffer = [0u8; 2048];
        loop {
            let count = sys::entries(fd, &mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            let mut result = Ok(());
            for_each_name(&buffer[..count], |name, name_c| {
                if result.is_err() {
                    return;
                }
                let pushed = if length > 0 { path.push(b"/") } else { Ok(()) };
                result = pushed.and_then(|()| path.push(name)).map_err(Failure::Errno);
                if result.is_ok() {
                    result = match self.entry(fd, name_c, sys::AT_SYMLINK_NOFOLLOW, path, depth + 1)
                    {
                        // It was removed meanwhile.
                        Err(Failure::Errno(sys::ENOENT)) => Ok(()),
                        other => other,
                    };
                }
                path.cut(length);
            });
            result?;
        }
    }

    fn file(&mut self, fd: Fd, path: &Path) -> Result<(), Failure> {
        let stat = sys::stat(fd, c"", 0)?;
        self.header(b'f', &stat, path.as_bytes(), b"", stat.size)?;
        // As many bytes as were announced, whatever happens to the file meanwhile.
        let mut left = stat.size;
        let mut buffer = [0u8; CHUNK];
        while left > 0 {
            let room = left.min(CHUNK as u64) as usize;
            let count = match sys::read(fd, &mut buffer[..room]) {
                Ok(0) | Err(_) => {
                    buffer[..room].fill(0);
                    room
                }
                Ok(count) => count,
            };
            write_all(1, &buffer[..count]);
            self.written += count as u64;
            left -= count as u64;
        }
        Ok(())
    }

    fn header(
        &mut self,
        kind: u8,
        stat: &Stat,
        path: &[u8],
        link: &[u8],
        size: u64,
    ) -> Result<(), Failure> {
        // A tar archive has blocks of 512 bytes.
        self.taken = self.taken.saturating_add(512).saturating_add(size);
        if self.taken > self.limit {
            return Err(Failure::TooLarge);
        }
        let mut header = [0u8; 25];
        header[0] = kind;
        header[1..5].copy_from_slice(&u32::from(stat.mode & 0o7777).to_le_bytes());
        header[5..13].copy_from_slice(&stat.modified.to_le_bytes());
        header[13..15].copy_from_slice(&(path.len() as u16).to_le_bytes());
        header[15..17].copy_from_slice(&(link.len() as u16).to_le_bytes());
        header[17..].copy_from_slice(&size.to_le_bytes());
        for part in [&header[..], path, link] {
            write_all(1, part);
            self.written += part.len() as u64;
        }
        Ok(())
    }
}

/// Small files one after the other: length `u32`, which is `u32::MAX` for one that cannot be read,
/// and bytes. Then a `u64`: the bytes that may still be written where the root lies, which is `u64::MAX` where nobody
/// can tell.
pub fn usage(arguments: &Arguments) -> Outcome {
    let mut total = 0;
    for index in 2..arguments.len() {
        let mut buffer = [0u8; 1 << 14];
        let bytes = small_file(arguments.get(index), &mut buffer);
        let length = bytes.map_or(u32::MAX, |bytes| bytes.len() as u32);
        write_all(1, &length.to_le_bytes());
        write_all(1, bytes.unwrap_or(&[]));
        total += 4 + bytes.map_or(0, <[u8]>::len) as u64;
    }
    write_all(1, &sys::free_bytes(c"/").unwrap_or(u64::MAX).to_le_bytes());
    Ok(total + 8)
}

/// How much has been written below folders in the last so many seconds, as a `u64`: bytes on the disk, 4096 at least of each file and
/// folder, since one that is empty takes a place there, too. No more is looked at once it is enough, or so many milliseconds are over.
///
/// The arguments are seconds, enough bytes, milliseconds, and the folders. What is mounted below one is left out.
pub fn written(arguments: &Arguments) -> Outcome {
    let mut written = Written {
        since: sys::seconds().saturating_sub(arguments.number(2) as i64),
        enough: arguments.number(3),
        until: sys::now().saturating_add(arguments.number(4)),
        bytes: 0,
    };
    for index in 5..arguments.len() {
        let path = arguments.get(index);
        if let Ok(fd) = sys::open(AT_FDCWD, path, sys::O_DIRECTORY | sys::O_NONBLOCK, 0) {
            if let Ok(stat) = sys::stat(fd, c"", 0) {
                written.folder(fd, stat.device, 0);
            }
            sys::close(fd);
        }
    }
    write_all(1, &written.bytes.to_le_bytes());
    Ok(8)
}

struct Written {
    since: i64,
    enough: u64,
    until: u64,
    bytes: u64,
}

impl Written {
    fn is_over(&self) -> bool {
        self.bytes >= self.enough || sys::now() >= self.until
    }

    fn folder(&mut self, fd: Fd, device: (u32, u32), depth: usize) {
        let mut buffer = [0u8; 2048];
        while let Ok(count @ 1..) = sys::entries(fd, &mut buffer) {
            for_each_name(&buffer[..count], |_, name| {
                if !self.is_over() {
                    self.entry(fd, name, device, depth + 1);
                }
            });
            if self.is_over() {
                return;
            }
        }
    }

    fn entry(&mut self, above: Fd, name: &CStr, device: (u32, u32), depth: usize) {
        const LEAST_BYTES: u64 = 4096;
        let Ok(stat) = sys::stat(above, name, sys::AT_SYMLINK_NOFOLLOW) else { return };
        let is_folder = stat.kind() == sys::S_IFDIR;
        // Folders of an overlay are all of one file system.
        if is_folder && stat.device != device {
            return;
        }
        let is_new = stat.changed >= self.since;
        if is_new {
            let bytes = stat.blocks.saturating_mul(512).max(LEAST_BYTES);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if !is_folder {
            return;
        }
        let flags = sys::O_DIRECTORY | sys::O_NOFOLLOW | sys::O_NONBLOCK;
        match sys::open(above, name, flags, 0) {
            Ok(fd) if depth < MAX_DEPTH => {
                self.folder(fd, device, depth);
                sys::close(fd);
            }
            // Whoever hides what lies in a folder, or puts it that deep, may have put anything there.
            Ok(fd) => {
                self.bytes = if is_new { self.enough } else { self.bytes };
                sys::close(fd);
            }
            Err(sys::ENOENT | sys::ENOTDIR | sys::ELOOP) => {}
            Err(_) => self.bytes = if is_new { self.enough } else { self.bytes },
        }
    }
}
