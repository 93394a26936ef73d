//! Starting the first process of a sandbox, and talking to it.
//!
//! The program (`helper/`) is embedded in the library and run from memory: a sandbox can neither
//! see nor change a file of the host through it.

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::cgroup::Groups;

/// The helper; empty where it cannot be built.
static HELPER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/spar-init"));

/// How long the first process may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Fields of a length and as many bytes each.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    pub(crate) fn bytes(&mut self, field: &[u8]) -> &mut Self {
        self.bytes.extend((field.len() as u32).to_le_bytes());
        self.bytes.extend(field);
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// A count and then as many items.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut item: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        let items = items.into_iter();
        self.number(items.len() as u64);
        for one in items {
            item(self, one);
        }
        self
    }

    pub(crate) fn into_file(self) -> io::Result<OwnedFd> {
        memory_file("spar-request", &self.bytes)
    }
}

/// A file in memory that holds `bytes`, at its beginning.
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = fs::File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// The running first process of a sandbox.
#[derive(Debug)]
pub(crate) struct Init {
    control: UnixStream,
    child: Mutex<Child>,
    /// The root as it is inside.
    pub(crate) root: OwnedFd,
    /// The folder of its own layers.
    pub(crate) upper: OwnedFd,
    /// The socket that listens inside, if one was asked for and nobody took it yet.
    pub(crate) listener: Option<OwnedFd>,
}

impl Init {
    /// Starts it as `payload` describes, in the control groups `groups`. `started` is told its
    /// number before it does anything.
    ///
    /// # Errors
    ///
    /// With what the helper said.
    pub(crate) fn start(
        payload: Payload,
        groups: &Groups,
        started: impl FnOnce(u32) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_read_timeout(Some(ANSWER))?;
        control.set_write_timeout(Some(ANSWER))?;
        let program = program()?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.arg("init").env_clear();
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = spawn(command)?;
        let stderr = child.stderr.take();
        let mut guard = Unfinished(Some(child));
        let child = guard.0.as_mut().expect("it was just put there");
        let talk = || -> io::Result<(OwnedFd, OwnedFd, Option<OwnedFd>)> {
            started(child.id())?;
            send(&control, b'C', &[payload.into_file()?.as_fd()])?;
            expect(&control, b'U')?;
            write_user_map(child.id())?;
            groups.enter(child.id())?;
            // Memory is taken from commands first, which set themselves back. Only root may ask
            // for that, and without it the sandbox works as well.
            let _ = fs::write(format!("/proc/{}/oom_score_adj", child.id()), "-900");
            send(&control, b'G', &[])?;
            let mut fds = expect(&control, b'R')?.into_iter();
            match (fds.next(), fds.next(), fds.next()) {
                (Some(root), Some(upper), listener) => Ok((root, upper, listener)),
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        match talk() {
            Ok((root, upper, listener)) => {
                let child = guard.0.take().expect("nobody took it");
                Ok(Self { control, child: Mutex::new(child), root, upper, listener })
            }
            Err(error) => {
                let _ = child.kill();
                let mut said = String::new();
                if let Some(stderr) = stderr {
                    let _ = stderr.take(4096).read_to_string(&mut said);
                }
                let said = said.trim();
                Err(if said.is_empty() {
                    error
                } else {
                    io::Error::new(error.kind(), said.to_owned())
                })
            }
        }
    }

    /// Starts an exec, or a command that joins a running one, as `payload` describes it. `status`
    /// tells how it ends.
    pub(crate) fn execute(
        &self,
        payload: Payload,
        joins: bool,
        streams: [BorrowedFd<'_>; 3],
        status: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let payload = payload.into_file()?;
        let [stdin, stdout, stderr] = streams;
        let order = if joins { b'J' } else { b'E' };
        send(&self.control, order, &[payload.as_fd(), stdin, stdout, stderr, status])
    }

    /// As [`Init::execute`], on a terminal, which `status` hands out first.
    pub(crate) fn execute_on_terminal(
        &self,
        payload: Payload,
        status: BorrowedFd<'_>,
    ) -> io::Result<()> {
        send(&self.control, b'E', &[payload.into_file()?.as_fd(), status])
    }

    /// Asks for sockets of the sandbox's network, which `reply` hands out.
    pub(crate) fn ask_for_sockets(&self, reply: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.control, b'N', &[reply])
    }

    /// Stops all commands by signals: whether they stand still. They may find a way to go on; what
    /// [`Init::go_on`] says tells. One caller at a time.
    pub(crate) fn stop(&self) -> io::Result<bool> {
        send(&self.control, b'F', &[])?;
        Ok(receive(&self.control)?.0 == b'f')
    }

    /// Lets them go on: whether all stood still the whole time.
    pub(crate) fn go_on(&self) -> io::Result<bool> {
        send(&self.control, b'T', &[])?;
        Ok(receive(&self.control)?.0 == b't')
    }

    /// Ends everything else in the sandbox. One caller at a time.
    pub(crate) fn end_others(&self) -> io::Result<()> {
        send(&self.control, b'K', &[])?;
        expect(&self.control, b'k').map(drop)
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(&self) -> bool {
        let mut child = self.child.lock().expect("nobody panics while holding it");
        !matches!(child.try_wait(), Ok(None))
    }

    /// Ends it and everything in the sandbox, and waits for that.
    pub(crate) fn end(&self) {
        let mut child = self.child.lock().expect("nobody panics while holding it");
        // The first process ends when its socket closes and takes all others along; the outer
        // one ends after it.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let start = Instant::now();
        while let Ok(None) = child.try_wait() {
            if start.elapsed() > ANSWER {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            thread::sleep(Duration::from_micros(500));
        }
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.end();
    }
}

/// A child that is not to outlive a failed start.
struct Unfinished(Option<Child>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The helper as a file in memory that nobody can change.
fn program() -> io::Result<BorrowedFd<'static>> {
    static PROGRAM: OnceLock<OwnedFd> = OnceLock::new();
    if HELPER.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if let Some(program) = PROGRAM.get() {
        return Ok(program.as_fd());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = fs::File::from(memfd_create("spar-init", flags)?);
    file.write_all(HELPER)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(PROGRAM.get_or_init(|| file.into()).as_fd())
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Spawns from a thread that lives as long as this process: the helper dies with the *thread*
/// that started it, and threads of an async runtime come and go.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::Builder::new()
            .name("spar-spawner".to_owned())
            .spawn(move || {
                for (mut command, reply) in orders {
                    if let Err(mpsc::SendError(Ok(mut child))) = reply.send(command.spawn()) {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                }
            })
            .expect("a thread can be started");
        Mutex::new(sender)
    });
    let gone = || io::Error::other("the spawning thread is gone");
    let (reply, answer) = mpsc::channel();
    let sender = spawner.lock().expect("nobody panics while holding it").clone();
    sender.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// As root every user is mapped to itself; an ordinary user becomes the first one.
fn write_user_map(pid: u32) -> io::Result<()> {
    let user = rustix::process::geteuid();
    let group = rustix::process::getegid();
    if user.is_root() {
        for kind in ["uid_map", "gid_map"] {
            let own = fs::read_to_string(format!("/proc/self/{kind}"))?;
            let mut map = String::new();
            for line in own.lines() {
                let fields: Vec<&str> = line.split_whitespace().collect();
                if let [inside, _, count] = fields[..] {
                    map += &format!("{inside} {inside} {count}\n");
                }
            }
            fs::write(format!("/proc/{pid}/{kind}"), map)?;
        }
        return Ok(());
    }
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/uid_map"), format!("0 {} 1", user.as_raw()))?;
    fs::write(format!("/proc/{pid}/gid_map"), format!("0 {} 1", group.as_raw()))
}

fn send(socket: &UnixStream, byte: u8, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(&[byte])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the byte `wanted` and returns what came with it.
fn expect(socket: &UnixStream, wanted: u8) -> io::Result<Vec<OwnedFd>> {
    let (byte, fds) = receive(socket)?;
    if byte == wanted { Ok(fds) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Receives a byte and what comes with it.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(u8, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let message = loop {
        let mut slices = [IoSliceMut::new(&mut byte)];
        match recvmsg(&socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    if message.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the first process has ended"));
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((byte[0], fds))
}
