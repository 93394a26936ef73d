//! One command's way through a session: text in, marked output back.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::driver;
use super::posix::Ids;
use super::scanner::{Piece, Scanner};
use super::transport::ShellProcess;
use crate::Captured;

/// Clock ticks in a second, in `/proc/PID/stat`; the same on all machines Linux runs on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// How driving a session came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// What was waited for is there.
    Reached,
    /// The deadline came first.
    TimedOut,
    /// The session is broken and the command never began.
    Lost,
    /// The session ended while the command ran.
    Ended,
}

/// What came back for one command.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) nonce: String,
    stdout: Side,
    stderr: Side,
    uptime: Option<String>,
    code: Option<i32>,
    /// The shell ended with this code.
    gone: Option<i32>,
    is_lost: bool,
    /// Text of the other marks, by kind.
    others: Vec<(u8, String)>,
}

#[derive(Debug)]
struct Side {
    phase: Phase,
    output: Captured,
    /// What came when no command ran; kept for the error when a shell cannot be started.
    noise: Captured,
    path: Vec<u8>,
    is_flushed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Inside,
    Path,
    After,
}

impl Exchange {
    pub(super) fn new(nonce: String, limit_bytes: usize) -> Self {
        let side = || Side {
            phase: Phase::Before,
            output: Captured::new(limit_bytes),
            noise: Captured::new(2048),
            path: Vec::new(),
            is_flushed: false,
        };
        Self {
            nonce,
            stdout: side(),
            stderr: side(),
            uptime: None,
            code: None,
            gone: None,
            is_lost: false,
            others: Vec::new(),
        }
    }

    /// Whether the command ended, or its shell did.
    pub(super) fn is_over(&self) -> bool {
        self.gone.is_some() || self.both(Phase::After)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.uptime.is_some()
    }

    /// When the command began, in clock ticks since the machine did; 0 where that is not known.
    pub(super) fn since_ticks(&self) -> u64 {
        let seconds = self.uptime.as_deref().unwrap_or_default().split(' ').next();
        let seconds: f64 = seconds.and_then(|text| text.parse().ok()).unwrap_or(0.0);
        (seconds * TICKS_PER_SECOND).round() as u64
    }

    pub(super) fn code(&self) -> Option<i32> {
        if self.both(Phase::After) { self.code } else { self.gone }
    }

    /// Whether the shell ended in the command.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_some() && !self.both(Phase::After)
    }

    /// Code and working directory, if the shell is still there.
    pub(super) fn take_end(&mut self) -> Option<(i32, Vec<u8>)> {
        if !self.both(Phase::After) || self.gone.is_some() {
            return None;
        }
        let mut path = std::mem::take(&mut self.stdout.path);
        if path.last() == Some(&b'\n') {
            path.pop();
        }
        Some((self.code?, path))
    }

    pub(super) fn into_output(self) -> (Captured, Captured) {
        (self.stdout.output, self.stderr.output)
    }

    fn both(&self, phase: Phase) -> bool {
        self.stdout.phase == phase && self.stderr.phase == phase
    }

    fn other(&self, kind: u8) -> Option<&str> {
        self.others.iter().find(|(known, _)| *known == kind).map(|(_, text)| text.as_str())
    }

    fn data(&mut self, is_stdout: bool, bytes: &[u8]) {
        let side = if is_stdout { &mut self.stdout } else { &mut self.stderr };
        match side.phase {
            Phase::Inside => side.output.push(bytes),
            Phase::Path => side.path.extend_from_slice(bytes),
            Phase::Before | Phase::After => side.noise.push(bytes),
        }
    }

    fn mark(&mut self, is_stdout: bool, kind: u8, text: String) {
        let side = if is_stdout { &mut self.stdout } else { &mut self.stderr };
        match kind {
            b'S' => {
                side.phase = Phase::Inside;
                if is_stdout {
                    self.uptime = Some(text);
                }
            }
            b'E' if is_stdout => {
                side.phase = Phase::Path;
                self.code = text.parse().ok();
            }
            b'E' | b'Z' => side.phase = Phase::After,
            b'F' => side.is_flushed = true,
            b'X' => self.gone = Some(text.parse().unwrap_or(1)),
            b'L' => self.is_lost = true,
            kind => self.others.push((kind, text)),
        }
    }
}

/// The three streams of a started supervisor.
pub(super) struct Session {
    pub(super) ids: Ids,
    /// `$?` of the last command.
    pub(super) status: i32,
    name: String,
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Lane,
    stderr: Lane,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("ids", &self.ids).finish_non_exhaustive()
    }
}

struct Lane {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    chunk: Box<[u8]>,
    scanner: Scanner,
}

impl Lane {
    fn new(reader: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { reader, chunk: vec![0; 1 << 16].into(), scanner: Scanner::default() }
    }

    /// Reads once; `false` at the end. Nothing is lost if the future is dropped.
    async fn fill(&mut self) -> bool {
        match self.reader.read(&mut self.chunk).await {
            Ok(0) | Err(_) => false,
            Ok(num) => {
                self.scanner.push(&self.chunk[..num]);
                true
            }
        }
    }

    fn scan(&mut self, exchange: &mut Exchange, is_stdout: bool, name: &str) {
        let nonce = exchange.nonce.clone();
        while let Some(piece) = self.scanner.next([name, &nonce]) {
            match piece {
                Piece::Data(range) => exchange.data(is_stdout, self.scanner.bytes(range)),
                Piece::Mark { kind, text } => exchange.mark(is_stdout, kind, text),
            }
        }
    }
}

impl Session {
    /// Says hello to a started supervisor and its first shell.
    ///
    /// The error is the reason, `missing TOOL` if the sandbox lacks something.
    pub(super) async fn begin(
        process: ShellProcess,
        name: &str,
        workdir: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Self, String> {
        let ShellProcess { stdin, stdout, stderr } = process;
        let ids = Ids { shell: 0, supervisor: 0, first: 0, second: 0, folder: String::new() };
        let (stdout, stderr) = (Lane::new(stdout), Lane::new(stderr));
        let mut session = Self { ids, status: 0, name: name.to_owned(), stdin, stdout, stderr };
        let mut hello = Exchange::new(String::new(), 0);
        let text = format!("{name}\n");
        let is_there = |hello: &Exchange| hello.other(b'B').or(hello.other(b'N')).is_some();
        session.drive(&mut hello, text.as_bytes(), Instant::now() + limit, limit, is_there).await;
        if let Some(tool) = hello.other(b'N') {
            let tool = if tool == "-" { "a folder that can be written" } else { tool };
            return Err(format!("missing {tool}"));
        }
        let parsed = hello.other(b'B').and_then(|text| {
            let mut parts = text.splitn(4, ' ');
            let mut number = || parts.next()?.parse().ok();
            let (supervisor, first, second) = (number()?, number()?, number()?);
            Some(Ids { shell: 0, supervisor, first, second, folder: parts.next()?.to_owned() })
        });
        let Some(ids) = parsed else {
            let said = hello.stderr.noise.text();
            return Err(format!("it did not say hello: {}", said.trim()));
        };
        session.ids = ids;
        if session.meet(workdir, limit).await {
            Ok(session)
        } else {
            Err("its shell did not say hello".to_owned())
        }
    }

    /// Writes `text` and takes what comes back until `goal`. The command has to begin within `begin`
    /// of the last progress in writing; from then on the deadline counts.
    pub(super) async fn drive(
        &mut self,
        exchange: &mut Exchange,
        text: &[u8],
        deadline: Instant,
        begin: Duration,
        goal: impl Fn(&Exchange) -> bool,
    ) -> Outcome {
        let mut rest = text;
        let mut begin_by = Instant::now() + begin;
        loop {
            if goal(exchange) && rest.is_empty() {
                return Outcome::Reached;
            }
            if exchange.is_lost {
                return Outcome::Lost;
            }
            let has_begun = exchange.has_begun();
            let stops = if has_begun { deadline } else { begin_by };
            let is_open = tokio::select! {
                () = sleep_until(stops) => {
                    return if has_begun { Outcome::TimedOut } else { Outcome::Lost };
                }
                written = self.stdin.write(rest), if !rest.is_empty() => match written {
                    Ok(num) if num > 0 => {
                        rest = &rest[num..];
                        // A long command takes its time to be sent.
                        begin_by = Instant::now() + begin;
                        !rest.is_empty() || self.stdin.flush().await.is_ok()
                    }
                    _ => false,
                },
                is_open = self.stdout.fill() => is_open,
                is_open = self.stderr.fill() => is_open,
            };
            self.stdout.scan(exchange, true, &self.name);
            self.stderr.scan(exchange, false, &self.name);
            if !is_open && !goal(exchange) {
                return if exchange.has_begun() { Outcome::Ended } else { Outcome::Lost };
            }
        }
    }

    /// After a command: the pumps start over. The shell waits for them, we need not.
    pub(super) async fn settle(
        &mut self,
        exchange: &mut Exchange,
        how: char,
        limit: Duration,
    ) -> bool {
        let text = driver::settle(&self.ids.folder, how);
        let until = Instant::now() + limit;
        self.drive(exchange, &text, until, limit, |_| true).await == Outcome::Reached
    }

    /// After the shell ended: the rest of its output, and the next shell in `workdir`.
    pub(super) async fn revive(
        &mut self,
        exchange: &mut Exchange,
        workdir: Option<&[u8]>,
        limit: Duration,
    ) -> bool {
        let mut text = format!("go {}\n", self.name).into_bytes();
        text.extend(driver::settle(&self.ids.folder, 'f'));
        let until = Instant::now() + limit;
        let is_flushed =
            |exchange: &Exchange| exchange.stdout.is_flushed && exchange.stderr.is_flushed;
        self.status = 0;
        self.drive(exchange, &text, until, limit, is_flushed).await == Outcome::Reached
            && self.meet(workdir, limit).await
    }

    async fn meet(&mut self, workdir: Option<&[u8]>, limit: Duration) -> bool {
        let mut hello = Exchange::new(String::new(), 0);
        let text = driver::begin(&self.name, workdir);
        let until = Instant::now() + limit;
        let is_there = |hello: &Exchange| hello.other(b'M').is_some();
        self.drive(&mut hello, &text, until, limit, is_there).await;
        match hello.other(b'M').and_then(|text| text.parse().ok()) {
            Some(shell) => {
                self.ids.shell = shell;
                true
            }
            None => false,
        }
    }
}
