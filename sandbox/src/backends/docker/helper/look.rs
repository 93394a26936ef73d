//! Telling what lies at many paths.
//!
//! Standard input has for each path: a number `u16`, the length of the path `u16`, and the path, absolute. For each,
//! in turn, standard output gets: kind `u8` (`f`, `d`, `l`, `o`; `x` for nothing, `?` for what may not be looked at),
//! permissions `u32`, size `u64`, lengths of the path and of the link's target `u16` each, then both.
//!
//! Where a path has U+FFFD and nothing is called so, it stands for each byte that is no UTF-8, as engines write it; of
//! several such names the one of the number is meant, in the order in which the folder has them. The path that is
//! told is the real one.

use crate::files::for_each_name;
use crate::sys::{self, AT_FDCWD, AT_SYMLINK_NOFOLLOW, Errno};
use crate::wire::{Failure, Input, Path, write_all};

/// U+FFFD in UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Answers paths until the input ends.
pub fn look() -> Result<u64, (u64, Failure)> {
    let mut input = Input::default();
    let (mut header, mut written) = ([0u8; 4], 0);
    while input.read_exact(&mut header) {
        let number = u16::from_le_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
        let mut path = [0u8; 4096];
        let Some(path) = path.get_mut(..length) else {
            return Err((written, Failure::Errno(sys::ENAMETOOLONG)));
        };
        if !input.read_exact(path) {
            return Err((written, Failure::Errno(sys::EPROTO)));
        }
        written += answer(path, number);
    }
    Ok(written)
}

fn answer(path: &[u8], number: u16) -> u64 {
    let mut target = [0u8; 4096];
    let mut answer = [0u8; 17];
    let found = find(path, number);
    let (path, link): (&[u8], usize) = match &found {
        Ok((real, stat)) => {
            answer[0] = match stat.kind() {
                sys::S_IFREG => b'f',
                sys::S_IFDIR => b'd',
                sys::S_IFLNK => b'l',
                _ => b'o',
            };
            answer[1..5].copy_from_slice(&u32::from(stat.mode & 0o7777).to_le_bytes());
            let size = if stat.kind() == sys::S_IFREG { stat.size } else { 0 };
            answer[5..13].copy_from_slice(&size.to_le_bytes());
            let is_link = stat.kind() == sys::S_IFLNK;
            let link = if is_link { sys::read_link(AT_FDCWD, real.as_c(), &mut target) } else { Ok(0) };
            (real.as_bytes(), link.unwrap_or(0))
        }
        Err(errno) => {
            let is_absent = matches!(*errno, sys::ENOENT | sys::ENOTDIR);
            answer[0] = if is_absent { b'x' } else { b'?' };
            (path, 0)
        }
    };
    answer[13..15].copy_from_slice(&(path.len() as u16).to_le_bytes());
    answer[15..].copy_from_slice(&(link as u16).to_le_bytes());
    for part in [&answer[..], path, &target[..link]] {
        write_all(1, part);
    }
    (answer.len() + path.len() + link) as u64
}

/// What a path stands for, and what lies there.
fn find(path: &[u8], number: u16) -> Result<(Path, sys::Stat), Errno> {
    let whole = Path::new(path)?;
    match sys::stat(AT_FDCWD, whole.as_c(), AT_SYMLINK_NOFOLLOW) {
        Err(sys::ENOENT) if has_replacement(path) => {}
        stat => return stat.map(|stat| (whole, stat)),
    }
    let mut real = Path::new(b"")?;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        let length = real.len();
        real.push(b"/")?;
        real.push(part)?;
        let is_there = sys::stat(AT_FDCWD, real.as_c(), AT_SYMLINK_NOFOLLOW).is_ok();
        if !is_there && has_replacement(part) {
            real.cut(length);
            find_name(&mut real, part, number)?;
        }
    }
    let stat = sys::stat(AT_FDCWD, real.as_c(), AT_SYMLINK_NOFOLLOW)?;
    Ok((real, stat))
}

/// Goes on from the folder `real` by the name of this number that engines write as `shown`.
fn find_name(real: &mut Path, shown: &[u8], number: u16) -> Result<(), Errno> {
    let folder = if real.len() == 0 { c"/" } else { real.as_c() };
    let fd = sys::open(AT_FDCWD, folder, sys::O_DIRECTORY | sys::O_NOFOLLOW, 0)?;
    let (mut buffer, mut left) = ([0u8; 1 << 14], number);
    let mut outcome = Err(sys::ENOENT);
    while outcome == Err(sys::ENOENT) {
        let count = match sys::entries(fd, &mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(errno) => {
                outcome = Err(errno);
                break;
            }
        };
        for_each_name(&buffer[..count], |name, _| {
            if outcome.is_ok() || !is_shown_as(name, shown) {
                return;
            }
            if left == 0 {
                outcome = real.push(b"/").and_then(|()| real.push(name));
            } else {
                left -= 1;
            }
        });
    }
    sys::close(fd);
    outcome
}

fn has_replacement(bytes: &[u8]) -> bool {
    bytes.windows(REPLACEMENT.len()).any(|part| part == REPLACEMENT)
}

/// Whether `name`, each byte that is no UTF-8 replaced, is `shown`; a name of UTF-8 alone is not.
fn is_shown_as(name: &[u8], mut shown: &[u8]) -> bool {
    if core::str::from_utf8(name).is_ok() {
        return false;
    }
    let mut take = |bytes: &[u8]| match shown.strip_prefix(bytes) {
        Some(rest) => {
            shown = rest;
            true
        }
        None => false,
    };
    for chunk in name.utf8_chunks() {
        if !take(chunk.valid().as_bytes()) || !chunk.invalid().iter().all(|_| take(REPLACEMENT)) {
            return false;
        }
    }
    shown.is_empty()
}
