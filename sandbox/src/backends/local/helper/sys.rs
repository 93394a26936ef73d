//! System calls that the standard library does not have.
//!
//! All unsafe code of the helper is here; what is `pub` is safe to call.
#![expect(
    unsafe_code,
    reason = "namespaces, mounts, fork and seccomp have no safe interface in std"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

pub const CLONE_NEWNS: c_int = 0x0002_0000;
pub const CLONE_NEWCGROUP: c_int = 0x0200_0000;
pub const CLONE_NEWUTS: c_int = 0x0400_0000;
pub const CLONE_NEWIPC: c_int = 0x0800_0000;
pub const CLONE_NEWUSER: c_int = 0x1000_0000;
pub const CLONE_NEWPID: c_int = 0x2000_0000;
pub const CLONE_NEWNET: c_int = 0x4000_0000;

pub const MS_RDONLY: c_ulong = 1;
pub const MS_NOSUID: c_ulong = 2;
pub const MS_NODEV: c_ulong = 4;
pub const MS_NOEXEC: c_ulong = 8;
pub const MS_REMOUNT: c_ulong = 32;
pub const MS_BIND: c_ulong = 4096;
pub const MS_REC: c_ulong = 16384;
pub const MS_PRIVATE: c_ulong = 1 << 18;

pub const MOUNT_ATTR_RDONLY: u64 = 1;
pub const MOUNT_ATTR_NOSUID: u64 = 2;
pub const MOUNT_ATTR_NODEV: u64 = 4;

pub const SIGKILL: c_int = 9;
pub const SIGSTOP: c_int = 19;
pub const SIGCONT: c_int = 18;
const SIGCHLD: c_int = 17;

const SYS_CLOSE_RANGE: c_long = 436;
const SYS_OPEN_TREE: c_long = 428;
const SYS_MOVE_MOUNT: c_long = 429;
const SYS_MOUNT_SETATTR: c_long = 442;
#[cfg(target_arch = "x86_64")]
const SYS_PIVOT_ROOT: c_long = 155;
#[cfg(target_arch = "x86_64")]
const SYS_CAPSET: c_long = 126;
#[cfg(target_arch = "x86_64")]
const SYS_CLONE: c_long = 56;
#[cfg(target_arch = "aarch64")]
const SYS_PIVOT_ROOT: c_long = 41;
#[cfg(target_arch = "aarch64")]
const SYS_CAPSET: c_long = 91;
#[cfg(target_arch = "aarch64")]
const SYS_CLONE: c_long = 220;

const AT_FDCWD: c_long = -100;
const AT_EMPTY_PATH: c_long = 0x1000;
const AT_RECURSIVE: c_long = 0x8000;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn unshare(flags: c_int) -> c_int;
    fn fork() -> c_int;
    fn _exit(code: c_int) -> !;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn setsid() -> c_int;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
    fn signalfd(fd: c_int, mask: *const [u64; 16], flags: c_int) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn umount2(target: *const c_char, flags: c_int) -> c_int;
    fn sethostname(name: *const c_char, len: usize) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn umask(mask: c_uint) -> c_uint;
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn recvmsg(fd: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
    fn sendmsg(fd: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn setresuid(real: c_uint, effective: c_uint, saved: c_uint) -> c_int;
    fn setresgid(real: c_uint, effective: c_uint, saved: c_uint) -> c_int;
    fn setgroups(count: usize, groups: *const c_uint) -> c_int;
    fn setrlimit(resource: c_int, limit: *const [u64; 2]) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char)
    -> c_int;
}

/// One entry of [`wait_readable`].
#[repr(C)]
pub struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

impl PollFd {
    pub fn new(fd: RawFd) -> Self {
        // POLLIN | POLLRDHUP
        Self { fd, events: 0x1 | 0x2000, revents: 0 }
    }

    pub fn is_ready(&self) -> bool {
        self.revents != 0
    }
}

#[repr(C)]
struct IoVec {
    base: *mut c_void,
    len: usize,
}

#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_len: c_uint,
    iov: *mut IoVec,
    iov_len: usize,
    control: *mut c_void,
    control_len: usize,
    flags: c_int,
}

/// Room for one control message of up to eight descriptors.
#[repr(C)]
struct ControlMessage {
    len: usize,
    level: c_int,
    kind: c_int,
    fds: [c_int; 8],
}

const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
const MSG_NOSIGNAL: c_int = 0x4000;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub fn leave_namespaces(flags: c_int) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { unshare(flags) }).map(drop)
}

/// `None` in the child.
pub fn fork_process() -> io::Result<Option<c_int>> {
    // SAFETY: this program has one thread, so the child may go on as the parent would.
    let pid = check(unsafe { fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// A child in new namespaces; `None` in the child.
pub fn clone_process(namespaces: c_int) -> io::Result<Option<c_int>> {
    let flags = c_long::from(namespaces | SIGCHLD);
    // SAFETY: without a stack of its own and with zeros elsewhere this is fork; one thread.
    let pid = check_long(unsafe { syscall(SYS_CLONE, flags, 0, 0, 0, 0) })?;
    Ok((pid != 0).then_some(pid as c_int))
}

pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(code) }
}

/// What is known of a process's children.
pub enum Children {
    /// This one ended, with this wait status.
    Ended(c_int, c_int),
    /// None has ended, or (when blocking) none can.
    Running,
    /// There are none.
    None,
}

pub fn wait_child(block: bool) -> Children {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let pid = unsafe { waitpid(-1, &mut status, c_int::from(!block)) };
        if pid > 0 {
            return Children::Ended(pid, status);
        }
        if pid == 0 {
            return Children::Running;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Children::None;
        }
    }
}

/// Kills every process of the namespace, in which the calling one is the first; whether there was any.
/// To the kernel this is one step: a process that is being forked meanwhile is killed, too.
pub fn kill_all_others() -> bool {
    // SAFETY: takes no pointers.
    let result = unsafe { kill(-1, SIGKILL) };
    // ESRCH
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(3)
}

pub fn send_signal(pid: c_int, number: c_int) {
    // SAFETY: takes no pointers.
    unsafe { kill(pid, number) };
}

pub fn new_session() {
    // SAFETY: takes no pointers.
    unsafe { setsid() };
}

/// A descriptor that is readable when a child has ended; the signal is held back.
pub fn child_signals() -> io::Result<OwnedFd> {
    let mut mask = [0u64; 16];
    mask[0] = 1 << (SIGCHLD - 1);
    // SAFETY: the mask has the size of sigset_t; the new descriptor is ours alone.
    unsafe {
        check(sigprocmask(0, &mask, ptr::null_mut()))?;
        let fd = check(signalfd(-1, &mask, 0o2_000_000 | 0o4000))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// All signals as a program expects to find them.
pub fn default_signals() {
    // SAFETY: SIG_DFL is 0; the empty mask has the size of sigset_t.
    unsafe {
        for number in 1..65 {
            signal(number, 0);
        }
        sigprocmask(2, &[0u64; 16], ptr::null_mut());
    }
}

fn control(option: c_int, value: c_ulong) -> io::Result<()> {
    // SAFETY: the options used here take numbers.
    check(unsafe { prctl(option, value, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) }).map(drop)
}

/// Gets SIGKILL when the parent ends.
pub fn die_with_parent() -> io::Result<()> {
    control(1, SIGKILL as c_ulong)
}

/// Nobody without capabilities may look into this process.
pub fn hide_memory() -> io::Result<()> {
    control(4, 0)
}

pub fn no_new_privileges() -> io::Result<()> {
    control(38, 1)
}

/// Gives up all capabilities for good but those of the bits that are set.
pub fn drop_bounding_set(kept: u64) -> io::Result<()> {
    control(47, 4)?;
    for capability in 0..64 {
        if kept >> capability & 1 == 1 {
            continue;
        }
        match control(24, capability) {
            // Behind the last one that this kernel has: EINVAL.
            Err(error) if capability > 0 && error.raw_os_error() == Some(22) => return Ok(()),
            given_up => given_up?,
        }
    }
    Ok(())
}

/// Gives up the capabilities at hand but those of the bits that are set.
pub fn keep_capabilities(kept: u64) -> io::Result<()> {
    let header: [u32; 2] = [0x2008_0522, 0];
    // Effective, permitted and inheritable, the lower halves first.
    let (low, high) = (kept as u32, (kept >> 32) as u32);
    let sets: [u32; 6] = [low, low, 0, high, high, 0];
    // SAFETY: both arrays have the layout of version 3 and outlive the call.
    check_long(unsafe { syscall(SYS_CAPSET, header.as_ptr(), sets.as_ptr()) }).map(drop)
}

/// `program` is an array of `sock_filter`.
pub fn filter_system_calls(program: &[u8]) -> io::Result<()> {
    #[repr(C)]
    struct Program {
        len: u16,
        filter: *const c_void,
    }
    let program =
        Program { len: (program.len() / 8) as u16, filter: program.as_ptr().cast::<c_void>() };
    // SAFETY: the kernel copies the program during the call.
    check(unsafe { prctl(22, 2 as c_ulong, &raw const program, 0 as c_ulong, 0 as c_ulong) })
        .map(drop)
}

pub fn become_user(user: u32, group: u32, groups: &[u32]) -> io::Result<()> {
    // SAFETY: the slice outlives the call.
    unsafe {
        // Where only one user is mapped, groups can neither be set nor are there any to lose.
        let _ = setgroups(groups.len(), groups.as_ptr());
        check(setresgid(group, group, group))?;
        check(setresuid(user, user, user)).map(drop)
    }
}

pub fn limit_resource(resource: u32, value: u64) -> io::Result<()> {
    // SAFETY: the array has the layout of rlimit.
    check(unsafe { setrlimit(resource as c_int, &[value, value]) }).map(drop)
}

pub fn set_mask() {
    // SAFETY: takes no pointers.
    unsafe { umask(0o022) };
}

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}

pub fn mount_at(
    source: &str,
    target: &str,
    kind: &str,
    flags: c_ulong,
    data: &[u8],
) -> io::Result<()> {
    let (source, target) = (c_string(source.as_bytes())?, c_string(target.as_bytes())?);
    let (kind, data) = (c_string(kind.as_bytes())?, c_string(data)?);
    // SAFETY: all strings outlive the call.
    check(unsafe {
        mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
    })
    .map(drop)
}

pub fn detach(target: &str) -> io::Result<()> {
    let target = c_string(target.as_bytes())?;
    // SAFETY: the string outlives the call. 2 is MNT_DETACH.
    check(unsafe { umount2(target.as_ptr(), 2) }).map(drop)
}

/// The working directory becomes the root; the old root lies on top of it.
pub fn pivot_here() -> io::Result<()> {
    // SAFETY: the strings outlive the call.
    check_long(unsafe { syscall(SYS_PIVOT_ROOT, c".".as_ptr(), c".".as_ptr()) }).map(drop)
}

/// A copy of what is mounted at `path`, not attached anywhere.
pub fn copy_mount(path: &[u8]) -> io::Result<OwnedFd> {
    let path = c_string(path)?;
    // OPEN_TREE_CLONE | O_CLOEXEC
    let flags = 1 | 0o2_000_000 | AT_RECURSIVE;
    // SAFETY: the string outlives the call; the new descriptor is ours alone.
    unsafe {
        let fd = check_long(syscall(SYS_OPEN_TREE, AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd as c_int))
    }
}

pub fn restrict_mount(tree: &OwnedFd, attributes: u64) -> io::Result<()> {
    let attributes: [u64; 4] = [attributes, 0, 0, 0];
    let fd = c_long::from(tree.as_raw_fd());
    // SAFETY: the array has the layout of mount_attr and outlives the call.
    check_long(unsafe {
        syscall(
            SYS_MOUNT_SETATTR,
            fd,
            c"".as_ptr(),
            AT_EMPTY_PATH | AT_RECURSIVE,
            attributes.as_ptr(),
            mem::size_of_val(&attributes),
        )
    })
    .map(drop)
}

pub fn attach_mount(tree: &OwnedFd, target: &str) -> io::Result<()> {
    let target = c_string(target.as_bytes())?;
    let fd = c_long::from(tree.as_raw_fd());
    // MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS
    let flags: c_long = 0x4 | 0x10;
    // SAFETY: the strings outlive the call.
    check_long(unsafe {
        syscall(SYS_MOVE_MOUNT, fd, c"".as_ptr(), AT_FDCWD, target.as_ptr(), flags)
    })
    .map(drop)
}

pub fn name_host(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length belong together.
    check(unsafe { sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Sets the loopback device of this network namespace up.
pub fn loopback_up() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: i16,
        rest: [u8; 22],
    }
    let mut request = Request { name: [0; 16], flags: 0x1 | 0x40, rest: [0; 22] };
    request.name[..2].copy_from_slice(b"lo");
    // SAFETY: the request has the layout of ifreq; the socket is ours alone.
    unsafe {
        let socket = OwnedFd::from_raw_fd(check(socket(2, 2 | 0o2_000_000, 0))?);
        check(ioctl(socket.as_raw_fd(), 0x8914, &raw mut request)).map(drop)
    }
}

/// A TCP socket of this network namespace that leads nowhere yet, of IPv4 or of IPv6.
pub fn tcp_socket(is_v6: bool) -> io::Result<OwnedFd> {
    // AF_INET or AF_INET6; SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK
    let (domain, kind) = (if is_v6 { 10 } else { 2 }, 1 | 0o2_000_000 | 0o4000);
    // SAFETY: takes no pointers; the new descriptor is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(socket(domain, kind, 0))?)) }
}

/// A new pseudo-terminal of the `/dev/pts` that is mounted: its side for whoever types, which does not
/// wait, and its side for programs.
pub fn open_terminal(rows: u16, columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    const TIOCSPTLCK: c_ulong = 0x4004_5431;
    const TIOCGPTPEER: c_ulong = 0x5441;
    // O_RDWR | O_NOCTTY | O_CLOEXEC
    let flags: c_int = 0o2 | 0o400 | 0o2_000_000;
    let unlocked: c_int = 0;
    // SAFETY: the string and the number outlive the calls; the new descriptors are ours alone. What is no
    // terminal, because somebody inside put it there, knows none of the requests.
    unsafe {
        let typist = check(open(c"/dev/pts/ptmx".as_ptr(), flags | 0o4000))?;
        let typist = OwnedFd::from_raw_fd(typist);
        check(ioctl(typist.as_raw_fd(), TIOCSPTLCK, &raw const unlocked))?;
        let program = check(ioctl(typist.as_raw_fd(), TIOCGPTPEER, flags))?;
        let program = OwnedFd::from_raw_fd(program);
        set_terminal_size(&program, rows, columns)?;
        Ok((typist, program))
    }
}

fn set_terminal_size(terminal: &OwnedFd, rows: u16, columns: u16) -> io::Result<()> {
    const TIOCSWINSZ: c_ulong = 0x5414;
    let size = [rows, columns, 0, 0];
    // SAFETY: the array has the layout of winsize and outlives the call.
    check(unsafe { ioctl(terminal.as_raw_fd(), TIOCSWINSZ, size.as_ptr()) }).map(drop)
}

/// Makes the terminal that is standard input the one of this session.
pub fn control_terminal() -> io::Result<()> {
    const TIOCSCTTY: c_ulong = 0x540e;
    // SAFETY: takes no pointers.
    check(unsafe { ioctl(0, TIOCSCTTY, 0 as c_ulong) }).map(drop)
}

/// A descriptor that only names `path`.
pub fn open_path(path: &str) -> io::Result<OwnedFd> {
    let path = c_string(path.as_bytes())?;
    // O_PATH | O_CLOEXEC
    let flags = 0o10_000_000 | 0o2_000_000;
    // SAFETY: the string outlives the call; the new descriptor is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(open(path.as_ptr(), flags))?)) }
}

pub fn duplicate(fd: RawFd, onto: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointers; `onto` is a standard stream that nothing owns.
    check(unsafe { dup2(fd, onto) }).map(drop)
}

/// Closes all descriptors from `first` on, but not those in `keep`.
///
/// What owned them must not be used or dropped any more.
pub fn close_others(first: u32, keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).collect();
    keep.sort_unstable();
    let mut first = first;
    keep.retain(|fd| *fd >= first);
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: takes no pointers; callers are new processes that use nothing else.
            unsafe { syscall(SYS_CLOSE_RANGE, c_long::from(first), c_long::from(fd - 1), 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Waits until at least one is readable or closed on the other side.
pub fn wait_readable(fds: &mut [PollFd]) {
    // SAFETY: pointer and length belong together. An interruption shows as nothing ready.
    unsafe { poll(fds.as_mut_ptr(), fds.len() as c_ulong, -1) };
}

/// One byte and the descriptors that came with it; `None` at the end.
pub fn receive(socket: RawFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = 0u8;
    let mut iov = IoVec { base: (&raw mut byte).cast(), len: 1 };
    let mut control = ControlMessage { len: 0, level: 0, kind: 0, fds: [-1; 8] };
    let mut header = MessageHeader {
        name: ptr::null_mut(),
        name_len: 0,
        iov: &raw mut iov,
        iov_len: 1,
        control: (&raw mut control).cast(),
        control_len: mem::size_of::<ControlMessage>(),
        flags: 0,
    };
    loop {
        // SAFETY: all buffers outlive the call and their lengths are true.
        let got = unsafe { recvmsg(socket, &raw mut header, MSG_CMSG_CLOEXEC) };
        if got == 0 {
            return Ok(None);
        }
        if got > 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let mut fds = Vec::new();
    if header.control_len >= 16 && control.level == SOL_SOCKET && control.kind == SCM_RIGHTS {
        for fd in &control.fds[..((control.len - 16) / 4).min(8)] {
            // SAFETY: the kernel has just made it for us.
            fds.push(unsafe { OwnedFd::from_raw_fd(*fd) });
        }
    }
    Ok(Some((byte, fds)))
}

/// Sends one byte with up to eight descriptors.
pub fn send(socket: RawFd, byte: u8, fds: &[RawFd]) -> io::Result<()> {
    let mut byte = byte;
    let mut iov = IoVec { base: (&raw mut byte).cast(), len: 1 };
    let mut control = ControlMessage {
        len: 16 + 4 * fds.len(),
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        fds: [-1; 8],
    };
    control.fds[..fds.len()].copy_from_slice(fds);
    let header = MessageHeader {
        name: ptr::null_mut(),
        name_len: 0,
        iov: &raw mut iov,
        iov_len: 1,
        control: if fds.is_empty() { ptr::null_mut() } else { (&raw mut control).cast() },
        control_len: if fds.is_empty() { 0 } else { (16 + 4 * fds.len()).next_multiple_of(8) },
        flags: 0,
    };
    // SAFETY: all buffers outlive the call and their lengths are true.
    if unsafe { sendmsg(socket, &raw const header, MSG_NOSIGNAL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Becomes the program; returns only if that fails.
pub fn execute(path: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays end in null and outlive the call, as do the strings in them.
    unsafe { execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
