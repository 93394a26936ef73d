//! One command, and the container's first process.

use crate::sys::{self, Arguments, Errno, Fd, POLLIN, POLLOUT, Poll};
use crate::tree::{end_all_others, end_descendants, is_alone};
use crate::wire::{self, Failure, Heart, Kind, Path, small_file};

/// How long the end of what a command started may take.
const END_MS: u64 = 10_000;
/// How long the first process tries to end everything; what resists belongs to another user.
const END_ALL_MS: u64 = 3_000;
/// What is still taken from a pipe after the command has ended: as much as a pipe can hold. Others
/// may keep it open and go on writing.
const REST_BYTES: usize = 1 << 20;
const CHUNK: usize = 1 << 16;
/// What the backend may send to the command's input beyond what has been acknowledged. There is room for all
/// of it, so that what comes behind it is always read: a new size of the terminal, or the end.
const WINDOW: usize = 256 << 10;
/// How long a terminal that is hung up waits for what was typed before.
const LAST_KEYS_MS: u64 = 1_000;
/// What was passed on before that is acknowledged.
const WORTH_AN_ACKNOWLEDGEMENT: usize = WINDOW / 4;
const OWNER_WRITES: u16 = 0o200;

/// The first process: waits for orphans, and does what signals of the engine ask for. `SIGUSR1` ends
/// orphans, `SIGUSR2` everything, and `SIGTERM` the container.
///
/// A process of the container may send these, too. It can end others of its kind that way, as it could
/// by itself, but not the container: that would be a way to undo an episode.
pub fn init() -> i32 {
    let list = [sys::SIGCHLD, sys::SIGUSR1, sys::SIGUSR2, sys::SIGTERM, sys::SIGPIPE];
    let Ok(signals) = sys::signals(&list) else { return 125 };
    make_root_writable();
    let mut num_ended = 0;
    tell_num_ended(num_ended);
    loop {
        sys::poll(&mut [Poll { fd: signals, events: POLLIN, happened: 0 }], None);
        while let Some(signal) = sys::next_signal(signals) {
            match signal.number {
                sys::SIGTERM if signal.is_from_outside => return 143,
                sys::SIGUSR1 => {
                    end_descendants(sys::own_pid(), END_MS);
                }
                sys::SIGUSR2 if end_all_others(END_ALL_MS) => {
                    num_ended += 1;
                    tell_num_ended(num_ended);
                }
                _ => {}
            }
        }
        while matches!(sys::wait(), Ok((pid, _)) if pid > 0) {}
    }
}

/// `sweep`: ends what has fallen to the first process, as far as its user may.
pub fn sweep() -> Result<u64, (u64, Failure)> {
    const INIT: i32 = 1;
    if end_descendants(INIT, END_MS) {
        return Ok(0);
    }
    Err((0, Failure::Errno(sys::EAGAIN)))
}

/// What the first process is called: who sees it knows how often everything else has been ended.
/// Nobody but a process itself can change its name.
const NAME: &[u8] = b"spar-";

fn tell_num_ended(number: u32) {
    let mut digits = [0u8; 10];
    let mut start = digits.len();
    let mut left = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if let Ok(mut name) = Path::new(NAME)
        && name.push(&digits[start..]).is_ok()
    {
        sys::set_name(name.as_c());
    }
}

/// How often the first process has ended everything else.
fn num_ended() -> Option<u32> {
    let mut buffer = [0u8; 32];
    let name = small_file(c"/proc/1/comm", &mut buffer).ok()?.strip_suffix(b"\n")?;
    core::str::from_utf8(name.strip_prefix(NAME)?).ok()?.parse().ok()
}

/// `alone MILLISECONDS COUNT`: waits until the first process has ended everything else `COUNT` times
/// and there is nothing but that process and this one. Writes how often it has as a `u32`.
///
/// What had been running when it was asked cannot lie about this: it is gone by then.
pub fn alone(arguments: &Arguments) -> Result<u64, (u64, Failure)> {
    let until = sys::now() + arguments.number(2);
    let count = arguments.number(3);
    loop {
        if let Some(number) = num_ended()
            && u64::from(number) >= count
            && is_alone()
        {
            wire::write_all(1, &number.to_le_bytes());
            return Ok(4);
        }
        if sys::now() >= until {
            return Err((0, Failure::Errno(sys::ETIMEDOUT)));
        }
        sys::poll(&mut [], Some(1));
    }
}

/// Lets the owner of `/` write to it, if that is the container's user.
///
/// Images of Podman have a root that nobody may write to, for it relies on the capability to do so
/// nonetheless, which sandboxes do not have.
fn make_root_writable() {
    let Ok(root) = sys::open(sys::AT_FDCWD, c"/", sys::O_DIRECTORY, 0) else { return };
    if let Ok(stat) = sys::stat(root, c"", 0) {
        let mode = stat.mode & !sys::S_IFMT;
        if mode & OWNER_WRITES == 0 {
            // Somebody else's root, or one that is read-only, stays as it is.
            let _ = sys::set_mode(root, usize::from(mode | OWNER_WRITES));
        }
    }
    sys::close(root);
}

/// `run MILLISECONDS BEAT FOLDER PROGRAM ARGUMENT...`, with the milliseconds that the command may take,
/// and those between two signs of life.
pub fn run(arguments: &Arguments) -> i32 {
    const FOLDER: usize = 4;
    watch_over(arguments, FOLDER, None)
}

/// `pty MILLISECONDS BEAT ROWS COLUMNS FOLDER PROGRAM ARGUMENT...`: the same on a terminal of a size.
pub fn run_on_terminal(arguments: &Arguments) -> i32 {
    const FOLDER: usize = 6;
    let size = [arguments.number(4) as u16, arguments.number(5) as u16];
    watch_over(arguments, FOLDER, Some(size))
}

fn watch_over(arguments: &Arguments, folder: usize, terminal: Option<[u16; 2]>) -> i32 {
    sys::become_subreaper();
    match Command::start(arguments, folder, terminal) {
        Ok(mut command) => {
            let (kind, value) = command.watch(arguments.number(2), arguments.number(3));
            command.finish(kind, value);
        }
        Err((kind, errno)) => wire::status(kind, errno as u32, 0, 0),
    }
    0
}

struct Command {
    pid: i32,
    signals: Fd,
    input: Input,
    stdout: OutputPump,
    stderr: OutputPump,
    kills_before: Option<u32>,
}

impl Command {
    fn start(
        arguments: &Arguments,
        folder: usize,
        terminal: Option<[u16; 2]>,
    ) -> Result<Self, (Kind, Errno)> {
        let failed = |errno| (Kind::Failed, errno);
        let signals = sys::signals(&[sys::SIGCHLD, sys::SIGPIPE]).map_err(failed)?;
        let kills_before = memory_kills();
        let ends = Ends::make(terminal).map_err(failed)?;
        let trouble = sys::pipe().map_err(failed)?;
        let pid = sys::fork().map_err(failed)?;
        if pid == 0 {
            let (kind, errno) = become_command(arguments, folder, &ends);
            let mut message = [kind as u8; 5];
            message[1..].copy_from_slice(&errno.to_le_bytes());
            let _ = sys::write(trouble.1, &message);
            sys::exit(127);
        }
        if !ends.is_terminal {
            ends.command.into_iter().for_each(sys::close);
        }
        sys::close(trouble.1);
        let mut message = [0u8; 5];
        // The pipe ends when the new program runs.
        if sys::read(trouble.0, &mut message) == Ok(message.len()) {
            let [kind, errno @ ..] = message;
            let kind = if kind == Kind::NoFolder as u8 { Kind::NoFolder } else { Kind::NoProgram };
            return Err((kind, i32::from_le_bytes(errno)));
        }
        sys::close(trouble.0);
        for fd in [0, 1, 2, ends.stdin, ends.stdout, ends.stderr] {
            sys::set_nonblocking(fd);
        }
        Ok(Self {
            pid,
            signals,
            input: Input::new(ends.stdin, ends.is_terminal).map_err(failed)?,
            stdout: OutputPump::new(ends.stdout, 1, false),
            stderr: OutputPump::new(ends.stderr, 2, true),
            kills_before,
        })
    }

    /// Moves bytes until the command ends or has to.
    fn watch(&mut self, milliseconds: u64, beat: u64) -> (Kind, u32) {
        let until = sys::now().saturating_add(milliseconds);
        let mut heart = Heart::new(beat);
        loop {
            let now = sys::now();
            if now >= until {
                let gone = end_descendants(sys::own_pid(), END_MS);
                return (Kind::TimedOut, u32::from(!gone));
            }
            let mut rest = until - now;
            if let Some(close_at) = self.input.close_at.filter(|_| self.input.to.is_some()) {
                rest = rest.min(close_at.saturating_sub(now));
            }
            if self.stderr.is_between_frames()
                && let Some(bytes) = self.input.acknowledgement()
            {
                self.stderr.acknowledge(bytes);
            }
            // While a frame is on its way, that is a sign of life.
            if self.stderr.is_between_frames() {
                heart.beat(now);
                rest = rest.min(heart.rest(now));
            }
            let mut polls = [
                Poll { fd: self.signals, events: POLLIN, happened: 0 },
                self.input.poll_host(),
                self.input.poll_command(),
                self.stdout.poll(),
                self.stderr.poll(),
            ];
            sys::poll(&mut polls, Some(rest));
            if polls[1].happened != 0 && !self.input.from_host(polls[1].happened) {
                // The backend is gone or does not want to know any more.
                end_descendants(sys::own_pid(), END_MS);
                sys::exit(1);
            }
            if polls[2].happened != 0 {
                self.input.to_command();
            }
            if self.input.close_at.is_some_and(|at| at <= sys::now()) {
                self.input.close();
            }
            if self.input.is_hung_up() {
                self.stdout.open = false;
            }
            if polls[3].happened != 0 {
                self.stdout.step();
            }
            if polls[4].happened != 0 {
                self.stderr.step();
            }
            while sys::next_signal(self.signals).is_some() {}
            if let Some(status) = self.reap() {
                return match status & 0x7f {
                    0 => (Kind::Exited, (status >> 8) as u32 & 0xff),
                    signal => (Kind::Signalled, signal as u32),
                };
            }
        }
    }

    /// The command's status, once it has one; orphans are waited for as well.
    fn reap(&self) -> Option<i32> {
        let mut own = None;
        while let Ok((pid, status)) = sys::wait() {
            if pid == 0 {
                break;
            }
            if pid == self.pid {
                own = Some(status);
            }
        }
        own
    }

    fn finish(&mut self, kind: Kind, value: u32) {
        self.stdout.drain();
        self.stderr.drain();
        let kills = match (self.kills_before, memory_kills()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => u32::MAX,
        };
        wire::status(kind, value, kills, self.stdout.total);
    }
}

/// The command's streams, and our ends of them.
struct Ends {
    command: [Fd; 3],
    stdin: Fd,
    stdout: Fd,
    /// None on a terminal, which is one stream.
    stderr: Fd,
    /// On one, the command's end stays open here as well: without anybody who holds it, be it for a moment,
    /// our end would show that again and again.
    is_terminal: bool,
}

impl Ends {
    /// Three pipes, or a terminal of a size.
    fn make(terminal: Option<[u16; 2]>) -> Result<Self, Errno> {
        if let Some([rows, columns]) = terminal {
            let (typist, program) = sys::open_terminal(rows, columns)?;
            let command = [program; 3];
            return Ok(Self { command, stdin: typist, stdout: typist, stderr: -1, is_terminal: true });
        }
        let (stdin, stdout, stderr) = (sys::pipe()?, sys::pipe()?, sys::pipe()?);
        let command = [stdin.0, stdout.1, stderr.1];
        Ok(Self { command, stdin: stdin.1, stdout: stdout.0, stderr: stderr.0, is_terminal: false })
    }
}

/// In the new process: returns only why it did not become the program. `at` is where the folder stands
/// among the arguments, before the program.
fn become_command(arguments: &Arguments, at: usize, ends: &Ends) -> (Kind, Errno) {
    sys::new_session();
    sys::release_signals();
    for (to, from) in ends.command.into_iter().enumerate() {
        if let Err(errno) = sys::duplicate(from, to as Fd) {
            return (Kind::NoProgram, errno);
        }
    }
    if ends.is_terminal
        && let Err(errno) = sys::control_terminal()
    {
        return (Kind::NoProgram, errno);
    }
    let folder = arguments.get(at);
    if !folder.is_empty()
        && let Err(errno) = sys::change_folder(folder)
    {
        return (Kind::NoFolder, errno);
    }
    let first = at + 1;
    let program = arguments.get(first);
    if arguments.len() <= first || program.is_empty() {
        return (Kind::NoProgram, sys::ENOENT);
    }
    if program.to_bytes().contains(&b'/') {
        return (Kind::NoProgram, arguments.execute(program, first));
    }
    let mut found = sys::ENOENT;
    let path = arguments.variable(b"PATH").unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    for folder in path.split(|&byte| byte == b':') {
        let folder = if folder.is_empty() { b".".as_slice() } else { folder };
        let full = Path::new(folder).and_then(|mut full| {
            full.push(b"/")?;
            full.push(program.to_bytes())?;
            Ok(full)
        });
        match full.map(|full| arguments.execute(full.as_c(), first)) {
            Ok(sys::ENOENT | sys::ENOTDIR) | Err(_) => {}
            Ok(sys::EACCES) => found = sys::EACCES,
            Ok(errno) => return (Kind::NoProgram, errno),
        }
    }
    (Kind::NoProgram, found)
}

/// Standard input on its way from the backend to the command.
struct Input {
    to: Option<Fd>,
    is_terminal: bool,
    /// The length of a frame, and behind one that says so the size of a terminal.
    header: [u8; 8],
    header_filled: usize,
    left: usize,
    ended: bool,
    /// When a terminal is closed at the latest, once it is hung up.
    close_at: Option<u64>,
    /// Where bytes wait for the command, `WINDOW` in a ring.
    memory: &'static mut [u8],
    start: usize,
    waiting: usize,
    /// Bytes passed on or thrown away since the last acknowledgement.
    passed_on: usize,
}

impl Input {
    fn new(to: Fd, is_terminal: bool) -> Result<Self, Errno> {
        Ok(Self {
            to: Some(to),
            is_terminal,
            header: [0; 8],
            header_filled: 0,
            left: 0,
            ended: false,
            close_at: None,
            memory: sys::memory(WINDOW)?,
            start: 0,
            waiting: 0,
            passed_on: 0,
        })
    }

    /// The backend's end is always watched for its closing, and read as long as there is room, which a
    /// backend that keeps to the window always finds.
    fn poll_host(&self) -> Poll {
        let has_room = self.left == 0 || self.waiting < WINDOW;
        Poll { fd: 0, events: if has_room { POLLIN } else { 0 }, happened: 0 }
    }

    fn poll_command(&self) -> Poll {
        let fd = if self.waiting > 0 { self.to.unwrap_or(-1) } else { -1 };
        Poll { fd, events: POLLOUT, happened: 0 }
    }

    /// How many bytes are to be acknowledged, if that is worth a word; they count as acknowledged then.
    fn acknowledgement(&mut self) -> Option<u32> {
        let is_worth_it = self.passed_on >= WORTH_AN_ACKNOWLEDGEMENT;
        is_worth_it.then(|| core::mem::take(&mut self.passed_on) as u32)
    }

    /// Takes in what the backend sent; false if it is gone.
    fn from_host(&mut self, happened: i16) -> bool {
        if happened & POLLIN == 0 {
            return false;
        }
        if self.left == 0 {
            let at = self.header_filled;
            let whole = if at < 4 { 4 } else { self.header.len() };
            return match sys::read(0, &mut self.header[at..whole]) {
                Ok(0) => false,
                Ok(count) => {
                    self.header_filled += count;
                    self.take_header();
                    true
                }
                Err(errno) => matches!(errno, sys::EAGAIN | sys::EINTR),
            };
        }
        let from = (self.start + self.waiting) % WINDOW;
        let room = self.left.min(WINDOW - self.waiting).min(WINDOW - from);
        match sys::read(0, &mut self.memory[from..from + room]) {
            Ok(0) => false,
            Ok(count) => {
                self.left -= count;
                if self.to.is_some() {
                    self.waiting += count;
                    self.to_command();
                } else {
                    self.passed_on += count;
                }
                true
            }
            Err(errno) => matches!(errno, sys::EAGAIN | sys::EINTR),
        }
    }

    /// Obeys a header that is whole.
    fn take_header(&mut self) {
        let [a, b, c, d, rows @ .., e, f] = self.header;
        let length = u32::from_le_bytes([a, b, c, d]);
        let is_size = self.is_terminal && length == u32::MAX;
        if self.header_filled < 4 || is_size && self.header_filled < self.header.len() {
            return;
        }
        self.header_filled = 0;
        if is_size {
            if let Some(terminal) = self.to {
                let (rows, columns) = (u16::from_le_bytes(rows), u16::from_le_bytes([e, f]));
                sys::resize_terminal(terminal, rows, columns);
            }
            return;
        }
        self.left = length as usize;
        if self.left == 0 {
            self.ended = true;
            if self.is_terminal {
                self.close_at = Some(sys::now() + LAST_KEYS_MS);
            }
            if self.waiting == 0 {
                self.close();
            }
        }
    }

    /// Whether the backend has hung up the terminal.
    fn is_hung_up(&self) -> bool {
        self.is_terminal && self.to.is_none()
    }

    /// Hands on what the command takes; one that closed its end loses the rest.
    fn to_command(&mut self) {
        let Some(fd) = self.to else { return };
        while self.waiting > 0 {
            let end = (self.start + self.waiting).min(WINDOW);
            match sys::write(fd, &self.memory[self.start..end]) {
                Ok(count) => {
                    self.start = (self.start + count) % WINDOW;
                    self.waiting -= count;
                    self.passed_on += count;
                }
                Err(sys::EINTR) => {}
                Err(sys::EAGAIN) => return,
                Err(_) => return self.close(),
            }
        }
        // From the beginning, so that reads and writes are in one piece.
        self.start = 0;
        if self.ended {
            self.close();
        }
    }

    fn close(&mut self) {
        self.passed_on += core::mem::take(&mut self.waiting);
        if let Some(fd) = self.to.take() {
            sys::close(fd);
        }
    }
}

/// Output on its way from the command to the backend.
struct OutputPump {
    from: Fd,
    to: Fd,
    framed: bool,
    open: bool,
    /// Bytes of the command so far.
    total: u64,
    buffer: [u8; CHUNK + 4],
    start: usize,
    end: usize,
}

impl OutputPump {
    fn new(from: Fd, to: Fd, framed: bool) -> Self {
        Self { from, to, framed, open: from >= 0, total: 0, buffer: [0; CHUNK + 4], start: 0, end: 0 }
    }

    /// Whether all that was begun is handed on.
    fn is_between_frames(&self) -> bool {
        self.start == self.end
    }

    /// Says between two frames how many bytes of the input have been passed on.
    fn acknowledge(&mut self, bytes: u32) {
        self.buffer[..4].copy_from_slice(&wire::ACKNOWLEDGED.to_le_bytes());
        self.buffer[4..8].copy_from_slice(&bytes.to_le_bytes());
        (self.start, self.end) = (0, 8);
        self.flush();
    }

    /// Either there is something to hand on, or something to wait for.
    fn poll(&self) -> Poll {
        if self.start < self.end {
            Poll { fd: self.to, events: POLLOUT, happened: 0 }
        } else {
            Poll { fd: if self.open { self.from } else { -1 }, events: POLLIN, happened: 0 }
        }
    }

    fn step(&mut self) {
        if self.start == self.end {
            self.fill();
        }
        self.flush();
    }

    /// Takes in what there is; returns how much.
    fn fill(&mut self) -> usize {
        if !self.open {
            return 0;
        }
        match sys::read(self.from, &mut self.buffer[4..]) {
            Ok(0) => {
                self.open = false;
                0
            }
            Ok(count) => {
                self.total += count as u64;
                self.buffer[..4].copy_from_slice(&(count as u32).to_le_bytes());
                self.start = if self.framed { 0 } else { 4 };
                self.end = 4 + count;
                count
            }
            Err(_) => 0,
        }
    }

    fn flush(&mut self) {
        if self.start < self.end {
            match sys::write(self.to, &self.buffer[self.start..self.end]) {
                Ok(count) => self.start += count,
                Err(sys::EAGAIN | sys::EINTR) => {}
                // Nobody reads any more; that the backend is gone shows on standard input.
                Err(_) => self.start = self.end,
            }
        }
    }

    /// Hands on what is left in the pipe now.
    fn drain(&mut self) {
        let until = sys::now() + END_MS;
        let mut budget = REST_BYTES;
        loop {
            while self.start < self.end {
                let now = sys::now();
                if now >= until {
                    return;
                }
                let poll = Poll { fd: self.to, events: POLLOUT, happened: 0 };
                sys::poll(&mut [poll], Some(until - now));
                self.flush();
            }
            if budget == 0 || !self.open {
                return;
            }
            match self.fill() {
                0 => return,
                count => budget = budget.saturating_sub(count),
            }
        }
    }
}

/// Processes of this container that were killed for memory so far.
fn memory_kills() -> Option<u32> {
    let mut buffer = [0u8; 4096];
    for path in [c"/sys/fs/cgroup/memory.events", c"/sys/fs/cgroup/memory/memory.oom_control"] {
        let Ok(text) = small_file(path, &mut buffer) else { continue };
        for line in text.split(|&byte| byte == b'\n') {
            if let Some(number) = line.strip_prefix(b"oom_kill ") {
                return core::str::from_utf8(number).ok()?.trim().parse().ok();
            }
        }
    }
    None
}
