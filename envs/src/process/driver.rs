//! The task that reads what a program writes, and sees it to its end.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::launch::Running;
use super::messages::parse_line;
use super::program::Shared;
use super::program_error::ProgramFault;
use spar_sandbox::output::{LastWords, Tail, printable};
use spar_sandbox::output::{LineReader, NextLine};

/// Bytes of standard error that are read at a time.
const CHUNK: usize = 8 << 10;
/// How long a program that has closed a stream may take to tell how it ended.
const UNTIL_ENDED: Duration = Duration::from_millis(300);
/// How long one that has ended may hold its streams open by what it started.
const UNTIL_CLOSED: Duration = Duration::from_millis(300);
/// How long one that was told to end may take for that.
const UNTIL_GONE: Duration = Duration::from_millis(500);
/// How long its last words on standard error are read at the most.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Bytes of its last words that are read, of whatever length they are.
const MOST_LAST_WORDS: usize = 1 << 20;

type Source = Box<dyn AsyncRead + Send + Unpin>;

/// What a program's end is followed with.
pub(super) struct Driver {
    shared: Arc<Shared>,
    lines: LineReader<Source>,
    /// Absent once it has ended.
    stderr: Option<Source>,
    running: Running,
    tail: Tail,
    last_line: String,
    chunk: Vec<u8>,
}

/// What happened next.
enum Event {
    /// It did something that it should not, or ended.
    Fault(ProgramFault),
    /// The program itself has ended; its streams may be open.
    Ended(String),
    /// A fault was found elsewhere.
    Stopped,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        stdout: Source,
        stderr: Source,
        running: Running,
        line_bytes: usize,
    ) -> Self {
        let lines = LineReader::new(stdout, line_bytes);
        let (tail, last_line, chunk) = (Tail::default(), String::new(), vec![0; CHUNK]);
        Self { shared, lines, stderr: Some(stderr), running, tail, last_line, chunk }
    }

    /// Hands answers on until something happens; that the program ended is told only where `with_end`.
    async fn next(&mut self, with_end: bool) -> Event {
        let Self { shared, lines, stderr, running, tail, last_line, chunk } = self;
        loop {
            let read_stderr = async {
                match stderr.as_mut() {
                    Some(stderr) => stderr.read(chunk).await.unwrap_or(0),
                    None => pending().await,
                }
            };
            let ended = async {
                match with_end {
                    true => running.wait().await,
                    false => pending().await,
                }
            };
            tokio::select! {
                // What floods standard error keeps nothing else from being heard.
                biased;
                next = lines.next() => {
                    let fault = match next {
                        Ok(NextLine::Line(line)) => match parse_line(line) {
                            Ok((id, answer)) => match shared.answered(id, answer) {
                                Ok(()) => continue,
                                Err(fault) => {
                                    *last_line = printable_start(line);
                                    fault
                                }
                            },
                            Err(detail) => {
                                *last_line = printable_start(line);
                                ProgramFault::NotUnderstood { detail }
                            }
                        },
                        Ok(NextLine::TooLong(line)) => {
                            *last_line = printable_start(line);
                            let limit_bytes = lines.limit();
                            ProgramFault::LineTooLong { limit_bytes }
                        }
                        Ok(NextLine::End(rest)) => {
                            *last_line = printable(rest);
                            ProgramFault::ClosedOutput
                        }
                        Err(_) => ProgramFault::ClosedOutput,
                    };
                    return Event::Fault(fault);
                }
                () = shared.stop.notified() => return Event::Stopped,
                how = ended => return Event::Ended(how),
                count = read_stderr => match count {
                    0 => *stderr = None,
                    count => tail.push(&chunk[..count]),
                },
            }
        }
    }

    /// Reads what is left on standard error, for a moment.
    async fn read_last_words(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        let mut left = MOST_LAST_WORDS;
        while left > 0
            && let Some(stderr) = &mut self.stderr
        {
            match timeout_at(until, stderr.read(&mut self.chunk)).await {
                Ok(Ok(count)) if count > 0 => {
                    self.tail.push(&self.chunk[..count]);
                    left = left.saturating_sub(count);
                }
                _ => return,
            }
        }
    }
}

/// The beginning of a line, made printable.
fn printable_start(line: &[u8]) -> String {
    printable(&line[..line.len().min(300)])
}

/// Whoever waits for a program's end is told of it, and be it that this task was given up or panicked.
struct Told(Arc<Shared>);

impl Drop for Told {
    fn drop(&mut self) {
        if !self.0.is_over() {
            let fault = self.0.fault().unwrap_or(ProgramFault::GivenUp);
            self.0.over(fault, LastWords::default());
        }
    }
}

/// Follows a program to its end, and ends it where it does something that it should not.
pub(super) async fn drive(mut driver: Driver) {
    let _told = Told(Arc::clone(&driver.shared));
    let mut has_ended = false;
    let mut fault = match driver.next(true).await {
        Event::Fault(fault) => fault,
        Event::Ended(how) => {
            has_ended = true;
            // What it wrote before may be an answer still; what it started may hold its output open.
            let rest = timeout(UNTIL_CLOSED, driver.next(false)).await;
            match rest {
                Ok(Event::Fault(fault)) if fault != ProgramFault::ClosedOutput => fault,
                _ => ProgramFault::Ended { how },
            }
        }
        Event::Stopped => driver.shared.fault().unwrap_or(ProgramFault::ToldToEnd),
    };
    // One that was told to end may have done so before the driver was told that it would be.
    if driver.shared.fault() == Some(ProgramFault::ToldToEnd)
        && matches!(fault, ProgramFault::Ended { .. } | ProgramFault::ClosedOutput)
    {
        fault = ProgramFault::ToldToEnd;
    }
    // Whoever asks from now on is told.
    driver.shared.fail(fault.clone());
    match fault {
        ProgramFault::ClosedOutput | ProgramFault::ClosedInput => {
            if let Ok(how) = timeout(UNTIL_ENDED, driver.running.wait()).await {
                fault = ProgramFault::Ended { how };
            }
        }
        ProgramFault::ToldToEnd
            if !has_ended && timeout(UNTIL_GONE, driver.running.wait()).await.is_err() =>
        {
            fault = ProgramFault::Lingered;
        }
        _ => {}
    }
    driver.read_last_words().await;
    let Driver { shared, running, tail, last_line, .. } = driver;
    running.end().await;
    shared.over(fault, LastWords { stderr: tail.told(), stdout: last_line });
}
