//! One command in a local sandbox.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::backend_error;
use super::init::{memory_file, receive};
use super::running::RunningSandbox;
use super::terminal::Terminal;
use crate::pty::with_term;
use crate::{
    ByteStream, Captured, ExecEnd, ExecRequest, ExecResult, OutputSink, Process, ProcessHandle,
    PtyProcess, PtySize, SandboxError, Stream,
};

/// How long output is waited for after the command has ended, while something that it left
/// running holds the pipes open.
const GRACE: Duration = Duration::from_millis(100);

/// How long the kernel may take to end what a deadline ends.
const ENDING: Duration = Duration::from_secs(30);

/// How long a command's terminal may take to be there.
const TERMINAL: Duration = Duration::from_secs(60);

/// Bytes read at one time.
const CHUNK: usize = 1 << 16;

/// The ends that a command is started with; they close when it has been.
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// What a command reads and writes.
enum Ends {
    Streams(Streams),
    Terminal(PtySize),
}

/// What tells how an exec ends; dropping it before that ends the exec.
#[derive(Debug)]
pub(crate) struct Status {
    /// Of the exec, unique in this process.
    id: u64,
    socket: UnixStream,
    seen: Vec<u8>,
}

/// What a status socket said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command ended with this wait status.
    Ended(i32),
    /// It could not be started: too many processes.
    NoProcess,
    /// The supervisor ended first.
    Lost,
}

impl Status {
    /// Starts `request`'s command in a process namespace of its own. Its output goes to `streams`,
    /// its deadline is the caller's.
    pub(crate) async fn start(
        sandbox: &RunningSandbox,
        request: &ExecRequest,
        streams: Streams,
    ) -> Result<Self, SandboxError> {
        Self::send(sandbox, request, Ends::Streams(streams), None).await
    }

    /// The same on a new terminal.
    async fn start_on_terminal(
        sandbox: &RunningSandbox,
        request: &ExecRequest,
        size: PtySize,
    ) -> Result<(Self, OwnedFd), SandboxError> {
        let kills = sandbox.groups.out_of_memory_kills();
        let status = Self::send(sandbox, request, Ends::Terminal(size), None).await?;
        let socket = &status.socket;
        let told = timeout(TERMINAL, socket.async_io(Interest::READABLE, || receive(socket))).await;
        match told.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok((b'M', mut fds)) if fds.len() == 1 => Ok((status, fds.remove(0))),
            Ok((b'P', _)) => Err(SandboxError::UsedUp { what: "processes" }),
            Ok(_) => Err(backend_error("make a terminal")(io::ErrorKind::InvalidData.into())),
            Err(error) => {
                lost(sandbox, kills).await?;
                Err(backend_error("make a terminal")(error))
            }
        }
    }

    /// Starts `request`'s command in the process namespace of this exec. Dropping what is returned
    /// ends the command, but not what it started.
    pub(crate) async fn join(
        &self,
        sandbox: &RunningSandbox,
        request: &ExecRequest,
        streams: Streams,
    ) -> Result<Self, SandboxError> {
        Self::send(sandbox, request, Ends::Streams(streams), Some(self.id)).await
    }

    async fn send(
        sandbox: &RunningSandbox,
        request: &ExecRequest,
        ends: Ends,
        joins: Option<u64>,
    ) -> Result<Self, SandboxError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let id = joins.unwrap_or_else(|| COUNT.fetch_add(1, Ordering::Relaxed));
        sandbox.check_alive()?;
        let failed = backend_error("start a command");
        if request.command.iter().any(|argument| argument.contains('\0')) {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let terminal = match &ends {
            Ends::Streams(_) => None,
            Ends::Terminal(size) => Some(*size),
        };
        let payload = sandbox.describe_exec(id, request, terminal)?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(&failed)?;
        ours.set_nonblocking(true).map_err(&failed)?;
        let socket = UnixStream::from_std(ours).map_err(&failed)?;
        let _gate = sandbox.gate.read().await;
        let sent = match &ends {
            Ends::Streams(Streams { stdin, stdout, stderr }) => {
                let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
                sandbox.init.execute(payload, joins.is_some(), streams, theirs.as_fd())
            }
            Ends::Terminal(_) => sandbox.init.execute_on_terminal(payload, theirs.as_fd()),
        };
        sent.map_err(|error| if sandbox.init.is_gone() { sandbox.died() } else { failed(error) })?;
        Ok(Self { id, socket, seen: Vec::new() })
    }

    /// Waits for the end. May be dropped and called again.
    pub(crate) async fn report(&mut self) -> Report {
        loop {
            match self.seen.first() {
                Some(b'X') => {
                    if let Some(bytes) = self.seen.get(1..5) {
                        let bytes = bytes.try_into().expect("the range has four bytes");
                        return Report::Ended(i32::from_le_bytes(bytes));
                    }
                }
                Some(_) => return Report::NoProcess,
                None => {}
            }
            let mut byte = [0; 5];
            match self.socket.read(&mut byte).await {
                Ok(count) if count > 0 => self.seen.extend(&byte[..count]),
                _ => return Report::Lost,
            }
        }
    }

    /// Lets what the command left running go on.
    pub(crate) fn release(self) {
        // Fails when nothing is left.
        let _ = self.socket.try_write(b"L");
    }

    /// What a report of the command's end comes to; what it left running goes on. `kills` are those for
    /// want of memory before it.
    async fn settle(
        self,
        sandbox: &RunningSandbox,
        report: Report,
        kills: Option<u64>,
    ) -> Result<ExecEnd, SandboxError> {
        match report {
            Report::Ended(code) => {
                self.release();
                let killed = sandbox.groups.out_of_memory_kills() > kills;
                let end = end_of(code);
                Ok(if killed && !end.is_success() { ExecEnd::OutOfMemory } else { end })
            }
            Report::NoProcess => Err(SandboxError::UsedUp { what: "processes" }),
            Report::Lost => lost(sandbox, kills).await,
        }
    }

    /// As [`Status::end`], but not while the sandbox's files are copied, however long that takes.
    async fn end_in(self, sandbox: &RunningSandbox) -> Result<(), SandboxError> {
        let _gate = sandbox.gate.read().await;
        self.end().await.map_err(backend_error("end a command"))
    }

    /// Ends everything that the command started, and waits until it is gone.
    pub(crate) async fn end(mut self) -> io::Result<()> {
        use tokio::io::AsyncWriteExt;
        self.socket.shutdown().await?;
        let gone = async {
            let mut byte = [0; 16];
            while self.socket.read(&mut byte).await.is_ok_and(|count| count > 0) {}
        };
        timeout(ENDING, gone).await.map_err(|_| io::ErrorKind::TimedOut.into())
    }
}

/// A pipe from a command: the end that is read here, and the other.
pub(crate) fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(read)?, write))
}

/// Standard input that ends at once.
pub(crate) fn no_input() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

/// How a wait status reads.
pub(crate) fn end_of(status: i32) -> ExecEnd {
    match status & 0x7f {
        0 => ExecEnd::Exited { code: (status >> 8) & 0xff },
        signal => ExecEnd::Signalled { signal },
    }
}

/// Runs a command to its end or its deadline.
pub(crate) async fn run(
    sandbox: &RunningSandbox,
    request: &ExecRequest,
    sink: &mut dyn OutputSink,
) -> Result<ExecResult, SandboxError> {
    let start = Instant::now();
    let timeout = request.timeout.unwrap_or_else(|| sandbox.record.spec.lifetimes.exec());
    let failed = backend_error("start a command");
    let kills = sandbox.groups.out_of_memory_kills();
    let stdin = if request.stdin.is_empty() {
        no_input().map_err(&failed)?
    } else {
        memory_file("stdin", &request.stdin).map_err(&failed)?
    };
    let (out, stdout) = output_pipe().map_err(&failed)?;
    let (err, stderr) = output_pipe().map_err(&failed)?;
    let mut status = Status::start(sandbox, request, Streams { stdin, stdout, stderr }).await?;
    let limit = request.output_limit_bytes;
    let mut output = Output::new(out, err, limit, sink);

    let deadline = tokio::time::sleep_until(start + timeout);
    tokio::pin!(deadline);
    let report = loop {
        tokio::select! {
            biased;
            () = &mut deadline => break None,
            report = status.report() => break Some(report),
            () = output.read(), if output.is_open() => {}
        }
    };
    let end = match report {
        None => status.end_in(sandbox).await.map(|()| ExecEnd::TimedOut),
        Some(report) => status.settle(sandbox, report, kills).await,
    };
    output.drain(GRACE).await;
    let (stdout, stderr) = output.finish();
    Ok(ExecResult { end: end?, stdout, stderr, wall: start.elapsed() })
}

/// Starts a command that its starter talks to.
pub(crate) async fn spawn(
    sandbox: &Arc<RunningSandbox>,
    request: &ExecRequest,
) -> Result<Process, SandboxError> {
    let failed = backend_error("start a process");
    let kills = sandbox.groups.out_of_memory_kills();
    let (pipes, streams) = Pipes::new().map_err(&failed)?;
    let status = Status::start(sandbox, request, streams).await?;
    let Pipes { stdin, stdout, stderr } = pipes;
    Ok(Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        handle: follow(sandbox, request, status, kills, None),
    })
}

/// The same on a terminal.
pub(crate) async fn spawn_pty(
    sandbox: &Arc<RunningSandbox>,
    request: &ExecRequest,
    size: PtySize,
) -> Result<PtyProcess, SandboxError> {
    let kills = sandbox.groups.out_of_memory_kills();
    let request = with_term(request, &sandbox.record.spec.env);
    let (status, terminal) = Status::start_on_terminal(sandbox, &request, size).await?;
    let (running, runs) = oneshot::channel();
    let terminal = Terminal::new(terminal, runs).map_err(backend_error("use a terminal"))?;
    let window = terminal.window();
    let handle = follow(sandbox, &request, status, kills, Some(running));
    Ok(PtyProcess { terminal: ByteStream::new(terminal), window, handle })
}

/// Follows a process to its end, or brings that about; until then keeps `running`.
fn follow(
    sandbox: &Arc<RunningSandbox>,
    request: &ExecRequest,
    mut status: Status,
    kills: Option<u64>,
    running: Option<oneshot::Sender<()>>,
) -> ProcessHandle {
    let deadline = request.timeout.map(|timeout| Instant::now() + timeout);
    let sandbox = Arc::clone(sandbox);
    ProcessHandle::of(async move |hung_up| {
        let _running = running;
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = hung_up => {
                status.end_in(&sandbox).await.map(|()| ExecEnd::Signalled { signal: libc::SIGKILL })
            }
            () = late => status.end_in(&sandbox).await.map(|()| ExecEnd::TimedOut),
            report = status.report() => status.settle(&sandbox, report, kills).await,
        }
    })
}

/// Our ends of a process's streams.
pub(crate) struct Pipes {
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
}

impl Pipes {
    /// New ones, with the ends of the process.
    pub(crate) fn new() -> io::Result<(Self, Streams)> {
        let (theirs, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let stdin = Sender::from_owned_fd(stdin)?;
        let (stdout, out) = output_pipe()?;
        let (stderr, err) = output_pipe()?;
        let streams = Streams { stdin: theirs, stdout: out, stderr: err };
        Ok((Self { stdin, stdout, stderr }, streams))
    }
}

/// The supervisor ended before its command did.
pub(crate) async fn lost(
    sandbox: &RunningSandbox,
    kills: Option<u64>,
) -> Result<ExecEnd, SandboxError> {
    // The sockets close a moment before the process can be seen to be gone.
    for _ in 0..50 {
        if sandbox.is_closed() || sandbox.init.is_gone() {
            return Err(sandbox.died());
        }
        if sandbox.groups.out_of_memory_kills() > kills {
            return Ok(ExecEnd::OutOfMemory);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Somebody on the host killed it, and with it the command.
    Ok(ExecEnd::Signalled { signal: libc::SIGKILL })
}

/// Both streams of output as they come.
struct Output<'a> {
    pipes: [Option<Receiver>; 2],
    buffers: [Vec<u8>; 2],
    captured: [Captured; 2],
    sink: &'a mut dyn OutputSink,
}

impl<'a> Output<'a> {
    fn new(out: Receiver, err: Receiver, limit: usize, sink: &'a mut dyn OutputSink) -> Self {
        Self {
            pipes: [Some(out), Some(err)],
            buffers: [vec![0; CHUNK], vec![0; CHUNK]],
            captured: [Captured::new(limit), Captured::new(limit)],
            sink,
        }
    }

    fn is_open(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// Takes what comes next on one of them.
    async fn read(&mut self) {
        let [out, err] = &mut self.pipes;
        let [out_buffer, err_buffer] = &mut self.buffers;
        let (index, got) = tokio::select! {
            got = read_pipe(out, out_buffer), if out.is_some() => (0, got),
            got = read_pipe(err, err_buffer), if err.is_some() => (1, got),
        };
        if got == 0 {
            self.pipes[index] = None;
            return;
        }
        let bytes = &self.buffers[index][..got];
        self.captured[index].push(bytes);
        self.sink.output([Stream::Stdout, Stream::Stderr][index], bytes);
    }

    /// Takes what was written up to now, and for `grace` what something else may write before it
    /// closes the pipes.
    async fn drain(&mut self, grace: Duration) {
        for index in 0..2 {
            // Bounded, since something else may write without end: a pipe holds no more. Read
            // directly: what was written just now need not have been announced yet.
            for _ in 0..16 {
                let Some(pipe) = &self.pipes[index] else { break };
                match rustix::io::read(pipe, self.buffers[index].as_mut_slice()) {
                    Ok(0) => self.pipes[index] = None,
                    Ok(got) => {
                        let bytes = &self.buffers[index][..got];
                        self.captured[index].push(bytes);
                        self.sink.output([Stream::Stdout, Stream::Stderr][index], bytes);
                    }
                    Err(_) => break,
                }
            }
        }
        let until = Instant::now() + grace;
        while self.is_open() && Instant::now() < until {
            if tokio::time::timeout_at(until, self.read()).await.is_err() {
                break;
            }
        }
    }

    fn finish(self) -> (Captured, Captured) {
        let [stdout, stderr] = self.captured;
        (stdout, stderr)
    }
}

async fn read_pipe(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_read_as_ends() {
        assert_eq!(end_of(0), ExecEnd::Exited { code: 0 });
        assert_eq!(end_of(42 << 8), ExecEnd::Exited { code: 42 });
        assert_eq!(end_of(9), ExecEnd::Signalled { signal: 9 });
        assert_eq!(end_of(11 | 0x80), ExecEnd::Signalled { signal: 11 });
    }
}
