//! System calls, and what a program needs that has no standard library.
//!
//! All unsafe code of the helper is here; the functions on top are safe to call.

use core::arch::{asm, global_asm};
use core::ffi::CStr;

/// A descriptor, as the kernel counts them.
pub type Fd = i32;
/// What the kernel said, as a positive number.
pub type Errno = i32;

pub const EPERM: Errno = 1;
pub const ENOENT: Errno = 2;
pub const ESRCH: Errno = 3;
pub const EINTR: Errno = 4;
pub const EAGAIN: Errno = 11;
pub const EACCES: Errno = 13;
pub const EEXIST: Errno = 17;
pub const ENOTDIR: Errno = 20;
pub const EINVAL: Errno = 22;
pub const ENAMETOOLONG: Errno = 36;
pub const ELOOP: Errno = 40;
pub const ETIMEDOUT: Errno = 110;
pub const ECONNREFUSED: Errno = 111;
const EINPROGRESS: Errno = 115;
pub const EPROTO: Errno = 71;

pub const AT_FDCWD: Fd = -100;
pub const O_WRONLY: usize = 0o1;
const O_RDWR: usize = 0o2;
const O_NOCTTY: usize = 0o400;
pub const O_CREAT: usize = 0o100;
pub const O_EXCL: usize = 0o200;
pub const O_TRUNC: usize = 0o1000;
pub const O_NONBLOCK: usize = 0o4000;
pub const O_CLOEXEC: usize = 0o2_000_000;
#[cfg(target_arch = "x86_64")]
pub const O_DIRECTORY: usize = 0o200_000;
#[cfg(target_arch = "x86_64")]
pub const O_NOFOLLOW: usize = 0o400_000;
#[cfg(target_arch = "aarch64")]
pub const O_DIRECTORY: usize = 0o40_000;
#[cfg(target_arch = "aarch64")]
pub const O_NOFOLLOW: usize = 0o100_000;
pub const AT_SYMLINK_NOFOLLOW: usize = 0x100;
pub const AT_EMPTY_PATH: usize = 0x1000;

pub const SIGKILL: usize = 9;
pub const SIGUSR1: usize = 10;
pub const SIGUSR2: usize = 12;
pub const SIGPIPE: usize = 13;
pub const SIGTERM: usize = 15;
pub const SIGCHLD: usize = 17;
pub const SIGSTOP: usize = 19;

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;

pub const S_IFMT: u16 = 0o170_000;
pub const S_IFDIR: u16 = 0o040_000;
pub const S_IFREG: u16 = 0o100_000;
pub const S_IFLNK: u16 = 0o120_000;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const IOCTL: usize = 16;
    pub const GETPID: usize = 39;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const SHUTDOWN: usize = 48;
    pub const BIND: usize = 49;
    pub const LISTEN: usize = 50;
    pub const SETSOCKOPT: usize = 54;
    pub const GETSOCKOPT: usize = 55;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const FCNTL: usize = 72;
    pub const CHDIR: usize = 80;
    pub const FCHMOD: usize = 91;
    pub const UMASK: usize = 95;
    pub const SETSID: usize = 112;
    pub const STATFS: usize = 137;
    pub const PRCTL: usize = 157;
    pub const GETDENTS64: usize = 217;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const OPENAT: usize = 257;
    pub const MKDIRAT: usize = 258;
    pub const UNLINKAT: usize = 263;
    pub const LINKAT: usize = 265;
    pub const SYMLINKAT: usize = 266;
    pub const READLINKAT: usize = 267;
    pub const PPOLL: usize = 271;
    pub const UTIMENSAT: usize = 280;
    pub const ACCEPT4: usize = 288;
    pub const SIGNALFD4: usize = 289;
    pub const DUP3: usize = 292;
    pub const PIPE2: usize = 293;
    pub const STATX: usize = 332;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const DUP3: usize = 24;
    pub const FCNTL: usize = 25;
    pub const IOCTL: usize = 29;
    pub const MKDIRAT: usize = 34;
    pub const UNLINKAT: usize = 35;
    pub const SYMLINKAT: usize = 36;
    pub const LINKAT: usize = 37;
    pub const STATFS: usize = 43;
    pub const CHDIR: usize = 49;
    pub const FCHMOD: usize = 52;
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const PIPE2: usize = 59;
    pub const GETDENTS64: usize = 61;
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const PPOLL: usize = 73;
    pub const SIGNALFD4: usize = 74;
    pub const READLINKAT: usize = 78;
    pub const UTIMENSAT: usize = 88;
    pub const EXIT_GROUP: usize = 94;
    pub const CLOCK_GETTIME: usize = 113;
    pub const KILL: usize = 129;
    pub const RT_SIGPROCMASK: usize = 135;
    pub const SETSID: usize = 157;
    pub const UMASK: usize = 166;
    pub const PRCTL: usize = 167;
    pub const GETPID: usize = 172;
    pub const SOCKET: usize = 198;
    pub const BIND: usize = 200;
    pub const LISTEN: usize = 201;
    pub const CONNECT: usize = 203;
    pub const SETSOCKOPT: usize = 208;
    pub const GETSOCKOPT: usize = 209;
    pub const SHUTDOWN: usize = 210;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const MMAP: usize = 222;
    pub const ACCEPT4: usize = 242;
    pub const WAIT4: usize = 260;
    pub const STATX: usize = 291;
}

// The kernel leaves the arguments on the stack; everything else is `start`'s.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {start}",
    start = sym start,
);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x0, sp", "bl {start}", start = sym start);

/// # Safety
///
/// `stack` is the stack as the kernel makes it for a new program.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    // SAFETY: argc, then argc pointers and a null, then the environment up to a null.
    let (argv, envp) = unsafe {
        let count = *stack;
        let argv = stack.add(1).cast::<*const u8>();
        (core::slice::from_raw_parts(argv, count), stack.add(count + 2).cast())
    };
    exit(crate::main(&Arguments { argv, envp }))
}

/// The program's arguments and environment.
pub struct Arguments {
    argv: &'static [*const u8],
    envp: *const *const u8,
}

impl Arguments {
    /// The argument of this index, or nothing.
    pub fn get(&self, index: usize) -> &'static CStr {
        // SAFETY: the kernel ends each argument with a NUL and they live as long as the program.
        self.argv.get(index).map_or(c"", |p| unsafe { CStr::from_ptr(p.cast()) })
    }

    /// The argument of this index as a number, or 0.
    pub fn number(&self, index: usize) -> u64 {
        let text = core::str::from_utf8(self.get(index).to_bytes()).unwrap_or("");
        text.parse().unwrap_or(0)
    }

    pub fn len(&self) -> usize {
        self.argv.len()
    }

    /// The value of an environment variable.
    pub fn variable(&self, name: &[u8]) -> Option<&'static [u8]> {
        for index in 0.. {
            // SAFETY: the environment ends with a null pointer, at which this returns.
            let entry = unsafe { *self.envp.add(index) };
            if entry.is_null() {
                return None;
            }
            // SAFETY: as in `get`.
            let entry = unsafe { CStr::from_ptr(entry.cast()) }.to_bytes();
            if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(value);
            }
        }
        None
    }

    /// Becomes the program at `path` with the arguments from `first` on; returns only on failure.
    pub fn execute(&self, path: &CStr, first: usize) -> Errno {
        let argv = self.argv[first..].as_ptr();
        // SAFETY: argv and envp are null-terminated arrays as the kernel made them.
        let result = unsafe {
            syscall(
                number::EXECVE,
                [path.as_ptr() as usize, argv as usize, self.envp as usize, 0, 0, 0],
            )
        };
        result.err().unwrap_or(EPROTO)
    }
}

/// # Safety
///
/// As the system call of this number asks for.
#[cfg(target_arch = "x86_64")]
unsafe fn syscall(number: usize, a: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    // SAFETY: the kernel changes rax, rcx, r11 and the memory it is given, as the caller warrants.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if result < 0 { Err(-result as Errno) } else { Ok(result as usize) }
}

/// # Safety
///
/// As the system call of this number asks for.
#[cfg(target_arch = "aarch64")]
unsafe fn syscall(number: usize, a: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    // SAFETY: the kernel changes x0 and the memory it is given, as the caller warrants.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a[0] => result, in("x1") a[1],
            in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    if result < 0 { Err(-result as Errno) } else { Ok(result as usize) }
}

/// A system call whose arguments are numbers only, so that no memory is touched.
fn plain(number: usize, a: usize, b: usize, c: usize) -> Result<usize, Errno> {
    // SAFETY: callers in this file pass numbers of calls that take no pointers.
    unsafe { syscall(number, [a, b, c, 0, 0, 0]) }
}

pub fn exit(code: i32) -> ! {
    loop {
        let _ = plain(number::EXIT_GROUP, code as usize, 0, 0);
    }
}

pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `len` bytes into the buffer.
    unsafe {
        syscall(number::READ, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0])
    }
}

pub fn write(fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel reads at most `len` bytes.
    unsafe { syscall(number::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

pub fn close(fd: Fd) {
    let _ = plain(number::CLOSE, fd as usize, 0, 0);
}

/// Opens a path below `folder`, or an absolute one.
pub fn open(folder: Fd, path: &CStr, flags: usize, mode: usize) -> Result<Fd, Errno> {
    // SAFETY: the path ends with a NUL.
    let fd = unsafe {
        let path = path.as_ptr() as usize;
        syscall(number::OPENAT, [folder as usize, path, flags | O_CLOEXEC, mode, 0, 0])
    }?;
    Ok(fd as Fd)
}

pub fn make_folder(folder: Fd, path: &CStr, mode: usize) -> Result<(), Errno> {
    // SAFETY: the path ends with a NUL.
    unsafe { syscall(number::MKDIRAT, [folder as usize, path.as_ptr() as usize, mode, 0, 0, 0]) }?;
    Ok(())
}

pub fn remove(folder: Fd, path: &CStr, flags: usize) -> Result<(), Errno> {
    // SAFETY: the path ends with a NUL.
    unsafe {
        syscall(number::UNLINKAT, [folder as usize, path.as_ptr() as usize, flags, 0, 0, 0])
    }?;
    Ok(())
}

pub fn symbolic_link(target: &CStr, folder: Fd, path: &CStr) -> Result<(), Errno> {
    let (target, path) = (target.as_ptr() as usize, path.as_ptr() as usize);
    // SAFETY: both paths end with a NUL.
    unsafe { syscall(number::SYMLINKAT, [target, folder as usize, path, 0, 0, 0]) }?;
    Ok(())
}

pub fn hard_link(from: Fd, target: &CStr, folder: Fd, path: &CStr) -> Result<(), Errno> {
    let (target, path) = (target.as_ptr() as usize, path.as_ptr() as usize);
    // SAFETY: both paths end with a NUL.
    unsafe { syscall(number::LINKAT, [from as usize, target, folder as usize, path, 0, 0]) }?;
    Ok(())
}

pub fn read_link(folder: Fd, path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (path, to) = (path.as_ptr() as usize, buffer.as_mut_ptr() as usize);
    // SAFETY: the path ends with a NUL and the kernel writes at most `len` bytes.
    unsafe { syscall(number::READLINKAT, [folder as usize, path, to, buffer.len(), 0, 0]) }
}

/// Entries of an open folder, as `linux_dirent64`.
pub fn entries(fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let to = buffer.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most `len` bytes.
    unsafe { syscall(number::GETDENTS64, [fd as usize, to, buffer.len(), 0, 0, 0]) }
}

/// What the kernel tells of a file.
#[derive(Clone, Copy, Default)]
pub struct Stat {
    pub mode: u16,
    pub size: u64,
    pub modified: i64,
    /// Seconds at which the file itself was last written or changed in any way, which nobody can set.
    pub changed: i64,
    /// Blocks of 512 bytes that it takes up.
    pub blocks: u64,
    /// What file system it is of; files of an overlay may be told to be of another than their folder.
    pub device: (u32, u32),
}

impl Stat {
    pub fn kind(&self) -> u16 {
        self.mode & S_IFMT
    }
}

/// Asks for a file by its path, or for the descriptor itself where the path is empty.
pub fn stat(folder: Fd, path: &CStr, flags: usize) -> Result<Stat, Errno> {
    let mut raw = [0u8; 256];
    let flags = flags | if path.is_empty() { AT_EMPTY_PATH } else { 0 };
    let (path, to) = (path.as_ptr() as usize, raw.as_mut_ptr() as usize);
    // SAFETY: the path ends with a NUL and `struct statx` has 256 bytes.
    unsafe { syscall(number::STATX, [folder as usize, path, flags, 0x7ff, to, 0]) }?;
    let word = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().expect("8 bytes"));
    let mode = u16::from_le_bytes([raw[28], raw[29]]);
    let half = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("4 bytes"));
    Ok(Stat {
        mode,
        size: word(40),
        modified: word(112) as i64,
        changed: word(96) as i64,
        blocks: word(48),
        device: (half(136), half(140)),
    })
}

/// Bytes that may still be written to the file system of `path`; 0 where no more files can be made.
pub fn free_bytes(path: &CStr) -> Result<u64, Errno> {
    let mut raw = [0u64; 16];
    // SAFETY: the path ends with a NUL, and `struct statfs` has 120 bytes.
    unsafe {
        syscall(number::STATFS, [path.as_ptr() as usize, raw.as_mut_ptr() as usize, 0, 0, 0, 0])
    }?;
    let (block_bytes, blocks, files, free_files) = (raw[1], raw[4], raw[5], raw[6]);
    // Some file systems count no files.
    let has_no_more = files > 0 && free_files == 0;
    Ok(if has_no_more { 0 } else { blocks.saturating_mul(block_bytes) })
}

pub fn set_mode(fd: Fd, mode: usize) -> Result<(), Errno> {
    plain(number::FCHMOD, fd as usize, mode, 0).map(|_| ())
}

/// Sets the time at which an open file was changed.
pub fn set_time(fd: Fd, seconds: i64) -> Result<(), Errno> {
    let times = [seconds, 0, seconds, 0];
    let times = times.as_ptr() as usize;
    // SAFETY: two `struct timespec`; a null path means the descriptor itself.
    unsafe { syscall(number::UTIMENSAT, [fd as usize, 0, times, 0, 0, 0]) }?;
    Ok(())
}

pub fn umask(mask: usize) {
    let _ = plain(number::UMASK, mask, 0, 0);
}

pub fn change_folder(path: &CStr) -> Result<(), Errno> {
    // SAFETY: the path ends with a NUL.
    unsafe { syscall(number::CHDIR, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }?;
    Ok(())
}

/// A pipe: the end to read from and the end to write to, both closed by `execute`.
pub fn pipe() -> Result<(Fd, Fd), Errno> {
    let mut ends = [0i32; 2];
    // SAFETY: the kernel writes two descriptors.
    unsafe { syscall(number::PIPE2, [ends.as_mut_ptr() as usize, O_CLOEXEC, 0, 0, 0, 0]) }?;
    Ok((ends[0], ends[1]))
}

pub fn duplicate(from: Fd, to: Fd) -> Result<(), Errno> {
    plain(number::DUP3, from as usize, to as usize, 0).map(|_| ())
}

pub fn set_nonblocking(fd: Fd) {
    const F_GETFL: usize = 3;
    const F_SETFL: usize = 4;
    if let Ok(flags) = plain(number::FCNTL, fd as usize, F_GETFL, 0) {
        let _ = plain(number::FCNTL, fd as usize, F_SETFL, flags | O_NONBLOCK);
    }
}

/// A socket that listens on a port of loopback, without waiting for who connects.
pub fn listen_on_loopback(port: u16) -> Result<Fd, Errno> {
    const AF_INET: u16 = 2;
    const SOCK_STREAM: usize = 1;
    const SOL_SOCKET: usize = 1;
    const SO_REUSEADDR: usize = 2;
    const BACKLOG: usize = 512;
    let kind = SOCK_STREAM | O_CLOEXEC | O_NONBLOCK;
    let fd = plain(number::SOCKET, usize::from(AF_INET), kind, 0)?;
    // An earlier program's connections may still be remembered.
    let one = 1i32;
    let value = (&raw const one) as usize;
    // SAFETY: the kernel reads four bytes.
    unsafe { syscall(number::SETSOCKOPT, [fd, SOL_SOCKET, SO_REUSEADDR, value, 4, 0]) }?;
    let mut address = [0u8; 16];
    address[..2].copy_from_slice(&AF_INET.to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    // SAFETY: the kernel reads one `struct sockaddr_in`.
    unsafe { syscall(number::BIND, [fd, address.as_ptr() as usize, address.len(), 0, 0, 0]) }?;
    plain(number::LISTEN, fd, BACKLOG, 0)?;
    Ok(fd as Fd)
}

/// A socket on its way to a port of loopback, without waiting for the answer.
pub fn connect_to_loopback(port: u16, is_v6: bool) -> Result<Fd, Errno> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    const SOCK_STREAM: usize = 1;
    const IPPROTO_TCP: usize = 6;
    const TCP_NODELAY: usize = 1;
    let (family, length) = if is_v6 { (AF_INET6, 28) } else { (AF_INET, 16) };
    let kind = SOCK_STREAM | O_CLOEXEC | O_NONBLOCK;
    let fd = plain(number::SOCKET, usize::from(family), kind, 0)?;
    // Questions and answers are small and wait for each other.
    let one = 1i32;
    let value = (&raw const one) as usize;
    // SAFETY: the kernel reads four bytes.
    let _ = unsafe { syscall(number::SETSOCKOPT, [fd, IPPROTO_TCP, TCP_NODELAY, value, 4, 0]) };
    // `struct sockaddr_in`, or `struct sockaddr_in6` with `::1`.
    let mut address = [0u8; 28];
    address[..2].copy_from_slice(&family.to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    if is_v6 {
        address[23] = 1;
    } else {
        address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    }
    // SAFETY: the kernel reads `length` bytes, which the array has.
    match unsafe { syscall(number::CONNECT, [fd, address.as_ptr() as usize, length, 0, 0, 0]) } {
        Ok(_) | Err(EINPROGRESS) => Ok(fd as Fd),
        Err(errno) => {
            close(fd as Fd);
            Err(errno)
        }
    }
}

/// What became of a socket that was on its way: 0 where it is connected.
pub fn socket_error(fd: Fd) -> Errno {
    const SOL_SOCKET: usize = 1;
    const SO_ERROR: usize = 4;
    let (mut errno, mut length) = (0i32, 4u32);
    let (to, size) = ((&raw mut errno) as usize, (&raw mut length) as usize);
    // SAFETY: the kernel writes two numbers of four bytes.
    match unsafe { syscall(number::GETSOCKOPT, [fd as usize, SOL_SOCKET, SO_ERROR, to, size, 0]) } {
        Ok(_) => errno,
        Err(failed) => failed,
    }
}

/// A new pseudo-terminal: its side for whoever types, and its side for programs.
pub fn open_terminal(rows: u16, columns: u16) -> Result<(Fd, Fd), Errno> {
    const TIOCSPTLCK: usize = 0x4004_5431;
    const TIOCGPTPEER: usize = 0x5441;
    // Where there is no link to it, the file system of terminals has it itself.
    let flags = O_RDWR | O_NOCTTY | O_NONBLOCK;
    let typist = open(AT_FDCWD, c"/dev/pts/ptmx", flags, 0)
        .or_else(|_| open(AT_FDCWD, c"/dev/ptmx", flags, 0))?;
    let unlocked = 0i32;
    let value = (&raw const unlocked) as usize;
    // SAFETY: the kernel reads four bytes.
    unsafe { syscall(number::IOCTL, [typist as usize, TIOCSPTLCK, value, 0, 0, 0]) }?;
    let flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
    let program = plain(number::IOCTL, typist as usize, TIOCGPTPEER, flags)? as Fd;
    resize_terminal(typist, rows, columns);
    Ok((typist, program))
}

/// Gives a terminal a size; what is on it is told.
pub fn resize_terminal(terminal: Fd, rows: u16, columns: u16) {
    const TIOCSWINSZ: usize = 0x5414;
    let size = [rows, columns, 0, 0];
    let value = size.as_ptr() as usize;
    // SAFETY: the kernel reads one `struct winsize`.
    let _ = unsafe { syscall(number::IOCTL, [terminal as usize, TIOCSWINSZ, value, 0, 0, 0]) };
}

/// Makes the terminal that is standard input the one of this session.
pub fn control_terminal() -> Result<(), Errno> {
    const TIOCSCTTY: usize = 0x540e;
    plain(number::IOCTL, 0, TIOCSCTTY, 0).map(|_| ())
}

/// The next connection.
pub fn accept(listener: Fd) -> Result<Fd, Errno> {
    let flags = O_CLOEXEC | O_NONBLOCK;
    // SAFETY: with null pointers the kernel tells no address.
    let fd = unsafe { syscall(number::ACCEPT4, [listener as usize, 0, 0, flags, 0, 0]) }?;
    Ok(fd as Fd)
}

/// Tells the other side of a connection that nothing more comes.
pub fn shut_down_writing(fd: Fd) {
    const SHUT_WR: usize = 1;
    let _ = plain(number::SHUTDOWN, fd as usize, SHUT_WR, 0);
}

/// Memory that takes up room only where it is used.
pub fn memory(bytes: usize) -> Result<&'static mut [u8], Errno> {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let nowhere = usize::MAX;
    // SAFETY: a new mapping touches nothing that is there.
    let start =
        unsafe { syscall(number::MMAP, [0, bytes, READ_WRITE, PRIVATE_ANONYMOUS, nowhere, 0]) }?;
    // SAFETY: the mapping has that size, is zero, is never removed, and nobody else knows it.
    Ok(unsafe { core::slice::from_raw_parts_mut(start as *mut u8, bytes) })
}

/// A second process; 0 in the new one.
pub fn fork() -> Result<i32, Errno> {
    // SAFETY: a plain copy of the process, with a stack of its own since no memory is shared.
    let pid = unsafe { syscall(number::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) }?;
    Ok(pid as i32)
}

/// The next child that ended, with its status, or 0 where none did.
pub fn wait() -> Result<(i32, i32), Errno> {
    const WNOHANG: usize = 1;
    let mut status = 0i32;
    let to = (&raw mut status) as usize;
    // SAFETY: the kernel writes one number.
    let pid = unsafe { syscall(number::WAIT4, [usize::MAX, to, WNOHANG, 0, 0, 0]) }?;
    Ok((pid as i32, status))
}

/// Sends a signal; false where the caller may not. To a process that is gone it may.
pub fn kill(pid: i32, signal: usize) -> bool {
    plain(number::KILL, pid as isize as usize, signal, 0) != Err(EPERM)
}

/// Sends a signal to every process that the caller may signal, but for itself and the first one.
/// Returns whether there was any, be it one that may not be signalled.
///
/// To the kernel this is one step: a process that is being forked meanwhile gets the signal, too.
pub fn kill_all_others(signal: usize) -> bool {
    plain(number::KILL, usize::MAX, signal, 0) != Err(ESRCH)
}

/// Gives the calling process a name, of which 15 bytes count.
pub fn set_name(name: &CStr) {
    const PR_SET_NAME: usize = 15;
    let name = name.as_ptr() as usize;
    // SAFETY: the name ends with a NUL.
    let _ = unsafe { syscall(number::PRCTL, [PR_SET_NAME, name, 0, 0, 0, 0]) };
}

pub fn own_pid() -> i32 {
    plain(number::GETPID, 0, 0, 0).unwrap_or(0) as i32
}

pub fn new_session() {
    let _ = plain(number::SETSID, 0, 0, 0);
}

/// Children of children that lose their parent become ours.
pub fn become_subreaper() {
    const PR_SET_CHILD_SUBREAPER: usize = 36;
    let _ = plain(number::PRCTL, PR_SET_CHILD_SUBREAPER, 1, 0);
}

/// Keeps processes of the same user from looking into this one and writing to its pipes, also where
/// the program can be read.
pub fn hide_memory() {
    const PR_SET_DUMPABLE: usize = 4;
    let _ = plain(number::PRCTL, PR_SET_DUMPABLE, 0, 0);
}

fn signal_mask(how: usize, mask: u64) {
    let mask = (&raw const mask) as usize;
    // SAFETY: the kernel reads eight bytes.
    let _ = unsafe { syscall(number::RT_SIGPROCMASK, [how, mask, 0, 8, 0, 0]) };
}

/// Holds these signals back and hands them out through a descriptor.
pub fn signals(list: &[usize]) -> Result<Fd, Errno> {
    let mask = list.iter().fold(0u64, |mask, signal| mask | 1 << (signal - 1));
    signal_mask(0, mask);
    let mask = (&raw const mask) as usize;
    let flags = O_CLOEXEC | O_NONBLOCK;
    // SAFETY: the kernel reads eight bytes.
    let fd = unsafe { syscall(number::SIGNALFD4, [usize::MAX, mask, 8, flags, 0, 0]) }?;
    Ok(fd as Fd)
}

/// A signal as such a descriptor tells it.
pub struct Signal {
    pub number: usize,
    /// Whether the sender is no process of this namespace; a container's engine is none.
    pub is_from_outside: bool,
}

/// The next signal of such a descriptor.
///
/// The kernel gives a sender whom this namespace cannot see the number 0. Who sends it with a number of
/// its choice (`rt_sigqueueinfo`) has to mark it with a negative code.
pub fn next_signal(fd: Fd) -> Option<Signal> {
    let mut info = [0u8; 128];
    let got = read(fd, &mut info).ok()?;
    // `ssi_code` and `ssi_pid` of `struct signalfd_siginfo`; `SI_USER` is 0.
    let is_from_outside = info[8..16].iter().all(|byte| *byte == 0);
    (got == info.len()).then_some(Signal { number: info[0] as usize, is_from_outside })
}

/// Lets all signals through again.
pub fn release_signals() {
    signal_mask(2, 0);
}

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Poll {
    pub fd: Fd,
    pub events: i16,
    pub happened: i16,
}

/// Waits until something happens or the time is over; a negative descriptor is left out.
pub fn poll(list: &mut [Poll], milliseconds: Option<u64>) {
    let time = milliseconds.map(|ms| [ms / 1000, ms % 1000 * 1_000_000]);
    let time = time.as_ref().map_or(0, |time| time.as_ptr() as usize);
    for poll in &mut *list {
        poll.happened = 0;
    }
    // SAFETY: the kernel writes `happened` of each entry and reads one `struct timespec`.
    let _ =
        unsafe { syscall(number::PPOLL, [list.as_mut_ptr() as usize, list.len(), time, 0, 8, 0]) };
}

/// Milliseconds on a clock that only goes forward.
pub fn now() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    let time = clock(CLOCK_MONOTONIC);
    time[0] * 1000 + time[1] / 1_000_000
}

/// Seconds since 1970, on the clock by which files are marked.
pub fn seconds() -> i64 {
    const CLOCK_REALTIME: usize = 0;
    clock(CLOCK_REALTIME)[0] as i64
}

/// Seconds and nanoseconds.
fn clock(which: usize) -> [u64; 2] {
    let mut time = [0u64; 2];
    let to = time.as_mut_ptr() as usize;
    // SAFETY: the kernel writes one `struct timespec`.
    let _ = unsafe { syscall(number::CLOCK_GETTIME, [which, to, 0, 0, 0, 0]) };
    time
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(125)
}

/// The compiled core library names it; nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The compiler calls these; byte by byte is quick enough here, since files and output are moved
/// by the kernel.
mod memory {
    use core::ptr::{read_volatile, write_volatile};

    #[cfg(target_arch = "x86_64")]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        // SAFETY: the caller warrants both ranges; the direction flag is clear by the ABI.
        unsafe {
            core::arch::asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _,
                inout("rsi") from => _, options(nostack, preserves_flags));
        }
        to
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        for index in 0..count {
            // SAFETY: the caller warrants both ranges.
            unsafe { write_volatile(to.add(index), read_volatile(from.add(index))) };
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        if (to as usize) <= from as usize || to as usize >= from as usize + count {
            for index in 0..count {
                // SAFETY: the caller warrants both ranges; upwards nothing is read after written.
                unsafe { write_volatile(to.add(index), read_volatile(from.add(index))) };
            }
        } else {
            for index in (0..count).rev() {
                // SAFETY: the same downwards.
                unsafe { write_volatile(to.add(index), read_volatile(from.add(index))) };
            }
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
        for index in 0..count {
            // SAFETY: the caller warrants the range.
            unsafe { write_volatile(to.add(index), byte as u8) };
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
        for index in 0..count {
            // SAFETY: the caller warrants both ranges.
            let (a, b) = unsafe { (read_volatile(a.add(index)), read_volatile(b.add(index))) };
            if a != b {
                return i32::from(a) - i32::from(b);
            }
        }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
        // SAFETY: the caller warrants both ranges.
        unsafe { memcmp(a, b, count) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn strlen(text: *const u8) -> usize {
        let mut length = 0;
        // SAFETY: the caller warrants a NUL, at which this ends.
        while unsafe { read_volatile(text.add(length)) } != 0 {
            length += 1;
        }
        length
    }
}
