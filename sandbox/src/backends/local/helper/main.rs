//! The first process of a local sandbox.
//!
//! Compiled on its own by the crate's build script and embedded in the library, which runs it
//! from memory. It goes into new namespaces, builds the sandbox's root there, and then starts
//! commands as it is told through the socket that is its standard input:
//!
//! ```text
//!   library ──control──▶ outer ──▶ init (pid 1)  ──▶ supervisor (pid 1 of one exec) ──▶ command
//!      │                             │                     │
//!      └──────── status ◀────────────┴─────────────────────┘
//! ```
//!
//! Each exec has a process namespace of its own, so that ending its supervisor ends everything
//! it started, whatever that did. The status socket of an exec says how the command ended (four
//! bytes), and its end says that nothing of it is left; closing it from the other side before
//! that ends the exec. When the control socket closes, the sandbox ends.
//!
//! An exec on a terminal has no streams of its own: its supervisor makes the terminal, and sends the
//! library's side of it through the status socket before anything else. For a connection into the
//! sandbox, the first process hands out sockets of its network, which the library connects.
#![deny(unsafe_code)]

mod build_root;
mod command;
mod payload;
mod standstill;
mod sys;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use payload::Payload;
use standstill::Standstill;
use sys::{Children, PollFd};

/// The control socket is standard input.
const CONTROL: RawFd = 0;

/// How long the kernel may take to end everything.
const END: Duration = Duration::from_secs(10);

fn main() {
    let result = match env::args().nth(1).as_deref() {
        Some("init") => outer(),
        _ => Err(Failure::new("read the arguments", io::ErrorKind::InvalidInput.into())),
    };
    if let Err(failure) = result {
        // The other side reads it from standard error up to its end.
        let _ = writeln!(io::stderr(), "{}: {}", failure.doing, failure.source);
        sys::exit_now(1);
    }
}

/// What could not be done.
struct Failure {
    doing: String,
    source: io::Error,
}

impl Failure {
    fn new(doing: impl Into<String>, source: io::Error) -> Self {
        Self { doing: doing.into(), source }
    }
}

/// Names what was being done in an error.
trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Failure>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &str) -> Result<T, Failure> {
        self.map_err(|source| Failure::new(what, source))
    }
}

/// Enters the namespaces and waits for the first process in them.
fn outer() -> Result<(), Failure> {
    sys::die_with_parent().doing("follow the parent")?;
    let Some((b'C', fds)) = sys::receive(CONTROL).doing("receive the set-up")? else {
        return Err(Failure::new("receive the set-up", io::ErrorKind::UnexpectedEof.into()));
    };
    let mut payload = read_payload(fds.first())?;
    let share_network = payload.number().doing("read the set-up")? != 0;
    let proxy_port = payload.number().doing("read the set-up")? as u16;
    sys::leave_namespaces(sys::CLONE_NEWUSER).doing("make a user namespace")?;
    // The other side writes the user map and puts this process into its control groups.
    sys::send(CONTROL, b'U', &[]).doing("ask for a user map")?;
    let Some((b'G', _)) = sys::receive(CONTROL).doing("wait for the user map")? else {
        return Err(Failure::new("wait for the user map", io::ErrorKind::UnexpectedEof.into()));
    };
    sys::become_user(0, 0, &[]).doing("become the first user of the namespace")?;
    let mut namespaces = sys::CLONE_NEWNS
        | sys::CLONE_NEWPID
        | sys::CLONE_NEWIPC
        | sys::CLONE_NEWUTS
        | sys::CLONE_NEWCGROUP;
    if !share_network {
        namespaces |= sys::CLONE_NEWNET;
    }
    sys::leave_namespaces(namespaces).doing("make namespaces")?;
    // Changing the user has cleared both.
    sys::die_with_parent().doing("follow the parent")?;
    sys::hide_memory().doing("hide the memory")?;
    if sys::fork_process().doing("start the first process")?.is_none() {
        let result = init(payload, share_network, proxy_port);
        if let Err(failure) = result {
            let _ = writeln!(io::stderr(), "{}: {}", failure.doing, failure.source);
        }
        sys::exit_now(1);
    }
    // Only the first process may keep the control socket open.
    sys::close_others(0, &[]);
    sys::wait_child(true);
    sys::exit_now(0)
}

fn read_payload(fd: Option<&OwnedFd>) -> Result<Payload, Failure> {
    let read = || -> io::Result<Vec<u8>> {
        let fd = fd.ok_or(io::ErrorKind::InvalidData)?;
        let file = fs::File::from(fd.try_clone()?);
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        // The other side's position lies at the end.
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map(Payload::new).doing("read a description")
}

/// The first process: builds the root and serves until the control socket closes.
///
/// With a `proxy_port`, the library gets the socket that listens there: it belongs to this network
/// namespace wherever it is used, and is the only way out of it.
fn init(mut payload: Payload, share_network: bool, proxy_port: u16) -> Result<(), Failure> {
    sys::die_with_parent().doing("follow the parent")?;
    sys::new_session();
    sys::set_mask();
    let (root, upper) = build_root::build(&mut payload)?;
    let filter = payload.bytes().doing("read the set-up")?.to_vec();
    if !share_network {
        sys::loopback_up().doing("set the loopback device up")?;
    }
    let children = sys::child_signals().doing("wait for children")?;
    let mut report = vec![root, upper];
    if proxy_port != 0 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, proxy_port))
            .doing("listen where the proxy answers")?;
        report.push(listener.into());
    }
    let fds: Vec<RawFd> = report.iter().map(AsRawFd::as_raw_fd).collect();
    sys::send(CONTROL, b'R', &fds).doing("report")?;
    drop(report);
    // Errors of set-up have been told; nothing else may hold the pipe open.
    let null = sys::open_path("/dev/null").doing("open /dev/null")?;
    sys::duplicate(null.as_raw_fd(), 2).doing("close standard error")?;
    drop(null);
    serve(&children, &filter);
    Ok(())
}

/// A running exec.
struct Running {
    /// As the library counts them.
    id: u64,
    supervisor: i32,
    /// To the supervisor, for commands that join it.
    side: UnixStream,
    status: OwnedFd,
    /// Nobody listens any more, and it may go on alone.
    released: bool,
}

fn serve(children: &OwnedFd, filter: &[u8]) {
    let mut running: Vec<Running> = Vec::new();
    let mut standstill = None;
    loop {
        let mut fds = vec![PollFd::new(CONTROL), PollFd::new(children.as_raw_fd())];
        let listened = running.iter().filter(|exec| !exec.released);
        fds.extend(listened.map(|exec| PollFd::new(exec.status.as_raw_fd())));
        sys::wait_readable(&mut fds);
        for (exec, fd) in running.iter_mut().filter(|exec| !exec.released).zip(&fds[2..]) {
            if fd.is_ready() {
                match sys::receive(exec.status.as_raw_fd()) {
                    Ok(Some((b'L', _))) => exec.released = true,
                    _ => {
                        sys::send_signal(exec.supervisor, sys::SIGKILL);
                        exec.released = true;
                    }
                }
            }
        }
        if fds[1].is_ready() {
            // The signals themselves are not read one by one: several may have become one.
            let _ = read_from_signals(children);
            while let Children::Ended(pid, _) = sys::wait_child(false) {
                // Closing the status socket tells that nothing of the exec is left.
                running.retain(|exec| exec.supervisor != pid);
            }
        }
        if fds[0].is_ready() {
            match sys::receive(CONTROL) {
                Ok(Some((b'E', fds))) => start(fds, filter, &mut running),
                Ok(Some((b'J', fds))) => join(&fds, &running),
                Ok(Some((b'N', fds))) => hand_out_sockets(&fds),
                Ok(Some((b'F', _))) => {
                    standstill = Standstill::begin();
                    let answer = if standstill.is_some() { b'f' } else { b'x' };
                    let _ = sys::send(CONTROL, answer, &[]);
                }
                Ok(Some((b'T', _))) => {
                    let lasted = standstill.take().is_some_and(|standstill| standstill.lasts());
                    Standstill::end();
                    let _ = sys::send(CONTROL, if lasted { b't' } else { b'x' }, &[]);
                }
                Ok(Some((b'K', _))) => {
                    let is_done = end_all(&mut running);
                    let _ = sys::send(CONTROL, if is_done { b'k' } else { b'n' }, &[]);
                }
                // Ending the first process ends all others in the sandbox.
                _ => return,
            }
        }
    }
}

/// Sends new sockets of this network namespace to whoever wants to connect: of IPv4, then of IPv6 where
/// the kernel knows it. What fails is told by the early end.
fn hand_out_sockets(fds: &[OwnedFd]) {
    let Some(reply) = fds.first() else { return };
    let sockets: Vec<OwnedFd> =
        [false, true].into_iter().map_while(|is_v6| sys::tcp_socket(is_v6).ok()).collect();
    let sockets: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    let _ = sys::send(reply.as_raw_fd(), b'N', &sockets);
}

/// Ends every process of the sandbox but this one; whether nothing is left.
fn end_all(running: &mut Vec<Running>) -> bool {
    let start = Instant::now();
    while sys::kill_all_others() {
        while let Children::Ended(pid, _) = sys::wait_child(false) {
            running.retain(|exec| exec.supervisor != pid);
        }
        if start.elapsed() >= END {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn read_from_signals(children: &OwnedFd) -> io::Result<usize> {
    let mut file = fs::File::from(children.try_clone()?);
    let mut buffer = [0; 128 * 8];
    file.read(&mut buffer)
}

/// Starts the supervisor of one exec. What fails is told by the status socket's early end.
fn start(fds: Vec<OwnedFd>, filter: &[u8], running: &mut Vec<Running>) {
    let Ok(exec) = Exec::new(fds) else { return };
    let Ok((side, theirs)) = UnixStream::pair() else { return };
    match sys::clone_process(sys::CLONE_NEWPID | sys::CLONE_NEWNS) {
        Ok(Some(supervisor)) => {
            let Exec { id, status, .. } = exec;
            running.push(Running { id, supervisor, side, status, released: false });
        }
        Ok(None) => command::supervise(exec, &theirs, filter),
        // The process limit is used up.
        Err(_) => {
            let _ = sys::send(exec.status.as_raw_fd(), b'P', &[]);
        }
    }
}

/// Hands a command over to the supervisor of another one that still runs.
fn join(fds: &[OwnedFd], running: &[Running]) {
    let Ok(mut payload) = read_payload(fds.first()) else { return };
    let Ok(id) = payload.number() else { return };
    if let Some(exec) = running.iter().find(|exec| exec.id == id) {
        let fds: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let _ = sys::send(exec.side.as_raw_fd(), b'J', &fds);
    }
}

/// A command as it is sent: what it is, its streams, and the socket that tells how it ends.
struct Exec {
    id: u64,
    payload: Payload,
    streams: Streams,
    status: OwnedFd,
}

/// What a command's standard streams are.
enum Streams {
    Given([OwnedFd; 3]),
    /// A terminal that is still to be made.
    Terminal { rows: u16, columns: u16 },
}

impl Exec {
    fn new(fds: Vec<OwnedFd>) -> Result<Self, Failure> {
        let invalid = |_: Vec<OwnedFd>| Failure::new("receive a command", io::ErrorKind::InvalidData.into());
        let mut fds = fds.into_iter();
        let mut payload = read_payload(fds.next().as_ref())?;
        let id = payload.number().doing("read a command")?;
        let is_on_terminal = payload.number().doing("read a command")? != 0;
        let size = [payload.number(), payload.number()].map(|number| number.unwrap_or(0) as u16);
        let mut streams = Vec::from_iter(fds);
        let status = streams.pop();
        let streams = match (is_on_terminal, <[OwnedFd; 3]>::try_from(streams)) {
            (false, streams) => Streams::Given(streams.map_err(invalid)?),
            (true, _) => Streams::Terminal { rows: size[0], columns: size[1] },
        };
        let status = status.ok_or_else(|| invalid(Vec::new()))?;
        Ok(Self { id, payload, streams, status })
    }
}
