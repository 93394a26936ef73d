//! What the helper and the backend say to each other, all numbers little-endian.
//!
//! - Standard input: frames of a `u32` length and that many bytes; a length of 0 ends the input.
//!   The pipe stays open until the backend has its answer, so that its end before means that the
//!   backend is gone, and its end after that the answer has arrived: the program waits for it.
//!   Of a command's input, at most 256 KiB may come beyond what was acknowledged as passed on.
//!   On a terminal, a length of `u32::MAX` is followed by its new size: rows and columns as `u16`.
//! - Standard output: the bytes themselves.
//! - Standard error: frames as above; one of length 0 only says that the program works, so that no
//!   way between the two is idle for long; a length of `u32::MAX - 1` is followed by a `u32`: so many more
//!   bytes of a command's input have been passed on; a length of `u32::MAX` begins the status, the last thing
//!   said: kind, value and kills for memory as `u32`, bytes of standard output as `u64`.

use core::ffi::CStr;

use crate::sys::{self, Errno};

/// How long the backend may take to hang up.
const HANG_UP_MS: u64 = 10_000;

/// In place of a frame's length: an acknowledgement follows.
pub const ACKNOWLEDGED: u32 = u32::MAX - 1;

/// What came of the operation.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Kind {
    Exited = 0,
    Signalled = 1,
    TimedOut = 2,
    NoFolder = 3,
    NoProgram = 4,
    Done = 5,
    Failed = 6,
    TooLarge = 7,
}

/// Writes all of it; a backend that does not read any more ends the program.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match sys::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(sys::EINTR) => {}
            Err(sys::EAGAIN) => {
                sys::poll(&mut [sys::Poll { fd, events: sys::POLLOUT, happened: 0 }], Some(1000));
            }
            Err(_) => sys::exit(1),
        }
    }
}

/// Writes the status.
pub fn status(kind: Kind, value: u32, memory_kills: u32, stdout_bytes: u64) {
    let mut frame = [0u8; 24];
    frame[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    frame[4..8].copy_from_slice(&(kind as u32).to_le_bytes());
    frame[8..12].copy_from_slice(&value.to_le_bytes());
    frame[12..16].copy_from_slice(&memory_kills.to_le_bytes());
    frame[16..].copy_from_slice(&stdout_bytes.to_le_bytes());
    write_all(2, &frame);
}

/// Says now and then that the program works.
pub struct Heart {
    every: u64,
    next: u64,
}

impl Heart {
    /// One that beats every so many milliseconds.
    pub fn new(every: u64) -> Self {
        let every = every.max(1);
        Self { every, next: sys::now().saturating_add(every) }
    }

    /// Milliseconds until it beats.
    pub fn rest(&self, now: u64) -> u64 {
        self.next.saturating_sub(now)
    }

    /// Beats where it is time to; no frame may be half written. What is not taken at once is left
    /// out: then there is more on the way already.
    pub fn beat(&mut self, now: u64) {
        if now < self.next {
            return;
        }
        self.next = now.saturating_add(self.every);
        let frame = 0u32.to_le_bytes();
        if let Ok(count @ 1..) = sys::write(2, &frame) {
            write_all(2, &frame[count..]);
        }
    }
}

/// Waits until the backend hangs up, as it does once it has the status, or until nobody can want it
/// any more.
///
/// Podman loses what a process said last if it ends before that was handed on.
pub fn await_hang_up() {
    let until = sys::now() + HANG_UP_MS;
    let mut rest = [0u8; 4096];
    loop {
        let now = sys::now();
        if now >= until {
            return;
        }
        let mut polls = [sys::Poll { fd: 0, events: sys::POLLIN, happened: 0 }];
        sys::poll(&mut polls, Some(until - now));
        if polls[0].happened != 0
            && !matches!(sys::read(0, &mut rest), Ok(1..) | Err(sys::EAGAIN | sys::EINTR))
        {
            return;
        }
    }
}

/// Writes text to standard error.
pub fn explain(text: &[u8]) {
    if !text.is_empty() {
        write_all(2, &(text.len() as u32).to_le_bytes());
        write_all(2, text);
    }
}

/// Why a file operation did not succeed.
pub enum Failure {
    Errno(Errno),
    TooLarge,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Says what came of a file operation that wrote so many bytes to standard output.
pub fn report(result: Result<u64, (u64, Failure)>) -> i32 {
    match result {
        Ok(bytes) => status(Kind::Done, 0, u32::MAX, bytes),
        Err((bytes, Failure::Errno(errno))) => status(Kind::Failed, errno as u32, u32::MAX, bytes),
        Err((bytes, Failure::TooLarge)) => status(Kind::TooLarge, 0, u32::MAX, bytes),
    }
    0
}

/// Standard input without its frames.
#[derive(Default)]
pub struct Input {
    left: u32,
    ended: bool,
}

impl Input {
    /// Some of the next bytes; 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        while self.left == 0 {
            if self.ended {
                return 0;
            }
            let mut header = [0u8; 4];
            read_raw(&mut header);
            self.left = u32::from_le_bytes(header);
            self.ended = self.left == 0;
        }
        let room = buffer.len().min(self.left as usize);
        match sys::read(0, &mut buffer[..room]) {
            // The backend is gone: nobody waits for an answer.
            Ok(0) => sys::exit(1),
            Ok(count) => {
                self.left -= count as u32;
                count
            }
            Err(_) => self.read(buffer),
        }
    }

    /// Fills the buffer; false at the end.
    pub fn read_exact(&mut self, buffer: &mut [u8]) -> bool {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                0 => return false,
                count => filled += count,
            }
        }
        true
    }
}

fn read_raw(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read(0, &mut buffer[filled..]) {
            Ok(0) => sys::exit(1),
            Ok(count) => filled += count,
            Err(sys::EINTR) => {}
            Err(_) => sys::exit(1),
        }
    }
}

/// A path with the NUL that the kernel wants.
pub struct Path {
    bytes: [u8; 4096],
    length: usize,
}

impl Path {
    pub fn new(path: &[u8]) -> Result<Self, Errno> {
        let mut new = Self { bytes: [0; 4096], length: 0 };
        new.push(path)?;
        Ok(new)
    }

    /// Appends bytes as they are.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.contains(&0) {
            return Err(sys::EINVAL);
        }
        let end = self.length + bytes.len();
        if end >= self.bytes.len() {
            return Err(sys::ENAMETOOLONG);
        }
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    pub fn cut(&mut self, length: usize) {
        self.bytes[length..self.length].fill(0);
        self.length = length;
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// A small file, cut to the buffer.
pub fn small_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let fd = sys::open(sys::AT_FDCWD, path, 0, 0)?;
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read(fd, &mut buffer[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    sys::close(fd);
    Ok(&buffer[..filled])
}
