//! Talking with the helper while it carries out one operation.
//!
//! `helper/wire.rs` describes both directions.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::engine::{Engine, REQUEST, within};
use super::helper;
pub(super) use super::input::Input;
use super::input::InputFrames;

/// Bytes that are read from the connection at one time.
const CAPACITY: usize = 1 << 16;
const STATUS: u32 = u32::MAX;
const ACKNOWLEDGED: u32 = u32::MAX - 1;
/// The most bytes that the helper puts into a frame of standard error.
const MAX_FRAME: u32 = 1 << 16;
/// What is kept of words that are not the helper's.
const MAX_FOREIGN_BYTES: usize = 4096;
const STATUS_BYTES: usize = 20;
const ACKNOWLEDGED_BYTES: usize = 4;

/// How long the helper may say nothing at all, where it is to give signs of life every so often:
/// four of them.
const SILENCE_BEATS: u64 = 4;

/// How long a container may count as paused before that is an error. Behind a snapshot, for which it was paused,
/// Docker learns late from containerd of the pause and of its end.
const THAW: Duration = Duration::from_secs(2);

fn is_paused(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 409, message } if message.contains("is paused"))
}

/// Who runs the operation and where.
#[derive(Default)]
pub(super) struct Surroundings {
    pub(super) user: Option<String>,
    pub(super) env: Vec<String>,
    pub(super) workdir: Option<String>,
}

/// What the helper says.
#[derive(Debug)]
pub(super) enum Said {
    Stdout(Bytes),
    Stderr(Bytes),
    /// The last thing it says.
    Status(Status),
    /// The connection ended without a status; the engine's own words, if it had any.
    Broken(String),
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) kind: u32,
    pub(super) value: u32,
    /// Processes killed for memory meanwhile; absent where the container cannot see it.
    pub(super) memory_kills: Option<u32>,
    stdout_bytes: u64,
}

impl Status {
    pub(super) const EXITED: u32 = 0;
    pub(super) const SIGNALLED: u32 = 1;
    pub(super) const TIMED_OUT: u32 = 2;
    pub(super) const NO_FOLDER: u32 = 3;
    pub(super) const NO_PROGRAM: u32 = 4;
    pub(super) const DONE: u32 = 5;
    pub(super) const FAILED: u32 = 6;
    pub(super) const TOO_LARGE: u32 = 7;
}

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// One operation under way. Dropping it ends the operation: the helper sees that nobody listens.
pub(super) struct Conversation<'a> {
    writer: Pin<Box<dyn AsyncWrite + Send>>,
    output: Output,
    input: InputFrames<'a>,
    flushed: bool,
    frame: Bytes,
    stderr: Unframer,
    stdout_bytes: u64,
    status: Option<Status>,
    engine_says: String,
    exec: String,
    /// When something last came, signs of life included.
    heard: Instant,
    silence: Duration,
}

impl<'a> Conversation<'a> {
    /// Starts an operation in a container.
    pub(super) async fn start(
        engine: &Engine,
        container: &str,
        operation: Vec<String>,
        surroundings: Surroundings,
        input: Input<'a>,
    ) -> Result<Self, Error> {
        let mut command = vec![helper::PATH.to_owned()];
        command.extend(operation);
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command),
            env: Some(surroundings.env),
            user: surroundings.user,
            working_dir: surroundings.workdir,
            ..Default::default()
        };
        let due = Instant::now() + THAW;
        let (exec, started) = loop {
            let begun = async {
                let options = options.clone();
                let exec = within(REQUEST, engine.docker.create_exec(container, options)).await?;
                let options =
                    StartExecOptions { output_capacity: Some(CAPACITY), ..Default::default() };
                let started = engine.docker.start_exec(&exec.id, Some(options));
                let started = within(REQUEST, started).await?;
                Ok((exec, started))
            };
            match begun.await {
                Err(error) if is_paused(&error) && Instant::now() < due => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                begun => break begun?,
            }
        };
        let StartExecResults::Attached { output, input: writer } = started else {
            unreachable!("it was not asked to be detached");
        };
        Ok(Self {
            writer,
            output,
            input: InputFrames::new(input),
            flushed: true,
            frame: Bytes::new(),
            stderr: Unframer::default(),
            stdout_bytes: 0,
            status: None,
            engine_says: String::new(),
            exec: exec.id,
            heard: Instant::now(),
            silence: Duration::from_millis(
                SILENCE_BEATS * engine.heartbeat_ms.load(Ordering::Relaxed),
            ),
        })
    }

    /// The same with an operation that acknowledges its input, of which it gets so much at one time that it
    /// always notices when this is dropped. For new ones only.
    pub(super) fn with_acknowledgements(mut self) -> Self {
        self.input.expect_acknowledgements();
        self
    }

    /// Gives the helper its input and does not listen, for as long as somebody waits for this.
    pub(super) async fn feed(&mut self) -> Infallible {
        poll_fn(|context| {
            self.poll_input(context);
            Poll::Pending
        })
        .await
    }

    /// The next thing the helper says, while it is given its input. Cancel-safe.
    pub(super) async fn next(&mut self) -> Said {
        poll_fn(|context| self.poll(context)).await
    }

    /// As [`Conversation::next`]; absent where not a sign of life has come for too long, for an
    /// operation that gives them.
    pub(super) async fn listen(&mut self) -> Option<Said> {
        loop {
            let until = self.heard + self.silence;
            if let Ok(said) = timeout_at(until, self.next()).await {
                return Some(said);
            }
            if self.heard + self.silence <= Instant::now() {
                self.heard = Instant::now();
                return None;
            }
        }
    }

    /// Whether the engine could not even start the operation. Then what came as output are its words.
    pub(super) async fn never_started(&mut self, engine: &Engine) -> bool {
        // Podman forgets the processes of what has ended.
        if engine.is_podman() {
            return false;
        }
        let exec = within(REQUEST, engine.docker.inspect_exec(&self.exec)).await;
        exec.is_ok_and(|exec| exec.pid.unwrap_or(0) == 0)
    }

    /// Ends the operation and waits until it has ended, with everything that came of it.
    pub(super) async fn hang_up(mut self) {
        let _ = self.writer.shutdown().await;
        // What it still says is of no interest; the helper's own deadline ends this.
        while let Some(Ok(_)) = self.output.next().await {}
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Said> {
        self.poll_input(context);
        loop {
            if let Some(bytes) = self.stderr.pop() {
                return Poll::Ready(Said::Stderr(bytes));
            }
            self.status = self.status.or(self.stderr.status);
            if let Some(status) = self.status
                && self.stdout_bytes >= status.stdout_bytes
            {
                // Both streams come by ways of their own, the status sometimes first.
                return Poll::Ready(Said::Status(status));
            }
            let came = futures::ready!(self.output.as_mut().poll_next(context));
            self.heard = Instant::now();
            match came {
                Some(Ok(LogOutput::StdOut { message })) => {
                    self.stdout_bytes += message.len() as u64;
                    return Poll::Ready(Said::Stdout(message));
                }
                Some(Ok(LogOutput::StdErr { message })) => {
                    self.stderr.push(&message);
                    let acknowledged = std::mem::take(&mut self.stderr.acknowledged);
                    if acknowledged > 0 {
                        self.input.acknowledge(acknowledged);
                        self.poll_input(context);
                    }
                }
                Some(Ok(LogOutput::Console { message } | LogOutput::StdIn { message })) => {
                    self.engine_says.push_str(&String::from_utf8_lossy(&message));
                }
                Some(Err(error)) => {
                    return Poll::Ready(Said::Broken(super::engine::message(&error)));
                }
                None => {
                    let mut said = std::mem::take(&mut self.engine_says);
                    said.push_str(&String::from_utf8_lossy(&self.stderr.foreign));
                    return Poll::Ready(match self.status {
                        Some(status) => Said::Status(status),
                        None => Said::Broken(said.trim().to_owned()),
                    });
                }
            }
        }
    }

    /// Writes as much of the input as the connection takes. That it is broken shows on the output.
    fn poll_input(&mut self, context: &mut Context<'_>) {
        loop {
            if !self.frame.is_empty() {
                match self.writer.as_mut().poll_write(context, &self.frame) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        self.frame.advance(count);
                        self.flushed = false;
                    }
                    Poll::Ready(_) => {
                        self.frame = Bytes::new();
                        self.input.cut();
                    }
                    Poll::Pending => return,
                }
            } else if self.input.has_ended() {
                if !self.flushed {
                    self.flushed = self.writer.as_mut().poll_flush(context).is_ready();
                }
                return;
            } else if let Poll::Ready(next) = self.input.poll_next(context) {
                self.frame = next;
            } else {
                return;
            }
        }
    }
}

/// Takes the frames of standard error apart.
///
/// Where the program that the engine runs before the helper does not get to it, for want of a thread
/// for instance, it writes why to the same stream.
#[derive(Default)]
struct Unframer {
    header: Vec<u8>,
    /// Bytes of the present frame that are still to come.
    left: usize,
    kind: FrameKind,
    pieces: VecDeque<Bytes>,
    /// What came of the numbers of the present frame, where it is one of numbers.
    numbers: Vec<u8>,
    /// Bytes of the input that were passed on since somebody last looked.
    acknowledged: usize,
    status: Option<Status>,
    /// What is not of the helper, from its first byte on.
    foreign: Vec<u8>,
}

#[derive(Default, PartialEq, Eq)]
enum FrameKind {
    #[default]
    Bytes,
    Acknowledgement,
    Status,
}

impl Unframer {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.status.is_none() {
            if !self.foreign.is_empty() {
                let room = MAX_FOREIGN_BYTES.saturating_sub(self.foreign.len());
                self.foreign.extend_from_slice(&bytes[..room.min(bytes.len())]);
                return;
            }
            if self.left == 0 {
                let (part, rest) = bytes.split_at((4 - self.header.len()).min(bytes.len()));
                self.header.extend_from_slice(part);
                bytes = rest;
                if let Ok(header) = <[u8; 4]>::try_from(self.header.as_slice()) {
                    self.header.clear();
                    let length = u32::from_le_bytes(header);
                    (self.kind, self.left) = match length {
                        STATUS => (FrameKind::Status, STATUS_BYTES),
                        ACKNOWLEDGED => (FrameKind::Acknowledgement, ACKNOWLEDGED_BYTES),
                        0..=MAX_FRAME => (FrameKind::Bytes, length as usize),
                        _ => {
                            self.foreign.extend_from_slice(&header);
                            continue;
                        }
                    };
                }
                continue;
            }
            let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= part.len();
            bytes = rest;
            if self.kind == FrameKind::Bytes {
                self.pieces.push_back(Bytes::copy_from_slice(part));
                continue;
            }
            self.numbers.extend_from_slice(part);
            if self.left > 0 {
                continue;
            }
            if self.kind == FrameKind::Status {
                self.status = parse_status(&self.numbers);
            } else if let Ok(count) = <[u8; 4]>::try_from(self.numbers.as_slice()) {
                self.acknowledged =
                    self.acknowledged.saturating_add(u32::from_le_bytes(count) as usize);
            }
            self.numbers.clear();
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        self.pieces.pop_front()
    }
}

fn parse_status(bytes: &[u8]) -> Option<Status> {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().expect("4 bytes")))
    };
    let total = bytes.get(12..STATUS_BYTES)?;
    Some(Status {
        kind: number(0)?,
        value: number(4)?,
        memory_kills: number(8).filter(|&kills| kills != u32::MAX),
        stdout_bytes: u64::from_le_bytes(total.try_into().expect("8 bytes")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> (Vec<u8>, Status) {
        let mut bytes = Vec::new();
        for text in ["one", "two"] {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.bytes());
        }
        bytes.extend(STATUS.to_le_bytes());
        for number in [Status::SIGNALLED, 9, 1] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(77u64.to_le_bytes());
        let status =
            Status { kind: Status::SIGNALLED, value: 9, memory_kills: Some(1), stdout_bytes: 77 };
        (bytes, status)
    }

    #[test]
    fn frames_are_understood_wherever_they_are_cut() {
        let (bytes, status) = frames();
        for size in 1..bytes.len() {
            let mut unframer = Unframer::default();
            let mut text = Vec::new();
            for piece in bytes.chunks(size) {
                unframer.push(piece);
                while let Some(piece) = unframer.pop() {
                    text.extend_from_slice(&piece);
                }
            }
            assert_eq!((text.as_slice(), unframer.status), (b"onetwo".as_slice(), Some(status)));
        }
    }

    #[test]
    fn what_is_not_of_the_helper_is_kept_as_words() {
        let words = b"runtime/cgo: pthread_create failed: Resource temporarily unavailable\n";
        for size in [1, 3, 4, 5, words.len()] {
            let mut unframer = Unframer::default();
            unframer.push(&[3, 0, 0, 0]);
            unframer.push(b"one");
            words.chunks(size).for_each(|piece| unframer.push(piece));
            assert_eq!(unframer.pop().as_deref(), Some(&b"one"[..]));
            assert_eq!((unframer.foreign.as_slice(), unframer.status), (&words[..], None));
            unframer.push(&[b'x'; 10_000]);
            assert_eq!(unframer.foreign.len(), MAX_FOREIGN_BYTES);
        }
    }

    #[test]
    fn signs_of_life_say_nothing_wherever_they_come() {
        let (bytes, status) = frames();
        let beat = [0; 4];
        let mut unframer = Unframer::default();
        let mut text = Vec::new();
        // Behind each frame: they are 7, 7 and 24 bytes long.
        for piece in [&beat[..], &bytes[..7], &beat, &beat, &bytes[7..14], &beat, &bytes[14..]] {
            unframer.push(piece);
            while let Some(piece) = unframer.pop() {
                assert!(!piece.is_empty());
                text.extend_from_slice(&piece);
            }
        }
        assert_eq!((text.as_slice(), unframer.status), (b"onetwo".as_slice(), Some(status)));
        assert!(unframer.foreign.is_empty());
    }

    #[test]
    fn acknowledgements_add_up_wherever_they_are_cut() {
        let (bytes, status) = frames();
        let mut all = Vec::new();
        for (count, piece) in [(1u32, &bytes[..7]), (70_000, &bytes[7..14]), (5, &bytes[14..])] {
            all.extend(ACKNOWLEDGED.to_le_bytes());
            all.extend(count.to_le_bytes());
            all.extend(piece);
        }
        for size in 1..all.len() {
            let mut unframer = Unframer::default();
            all.chunks(size).for_each(|piece| unframer.push(piece));
            let words: Vec<u8> = unframer.pieces.iter().flatten().copied().collect();
            assert_eq!((words.as_slice(), unframer.status), (&b"onetwo"[..], Some(status)));
            assert_eq!(unframer.acknowledged, 70_006);
            assert!(unframer.foreign.is_empty());
        }
    }

    #[test]
    fn half_a_status_is_none() {
        let (bytes, _) = frames();
        let mut unframer = Unframer::default();
        unframer.push(&bytes[..bytes.len() - 1]);
        assert_eq!(unframer.status, None);
    }
}
