//! Stopping everything that runs in the sandbox where no control group can: by signals.
//!
//! A process that is just about to send `SIGCONT`, or that has a timer send it, undoes a stop. So
//! all are stopped until all are seen to stand still, and in the end each is looked at again: a
//! thread that ran meanwhile has given the processor away once more than before.

use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::sys;

/// How long it is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// All threads of the sandbox but this program's own, each with how often it has given the
/// processor away.
#[derive(PartialEq, Eq)]
pub struct Standstill(Vec<(u32, u32, u64)>);

impl Standstill {
    /// Stops everything; `None` if something still runs after a while.
    pub fn begin() -> Option<Self> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(100);
        while start.elapsed() < PATIENCE {
            sys::send_signal(-1, sys::SIGSTOP);
            if let Ok(Some(still)) = Self::look() {
                return Some(still);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        None
    }

    /// Whether nothing has run since it began.
    pub fn lasts(&self) -> bool {
        matches!(Self::look(), Ok(Some(still)) if still == *self)
    }

    /// Lets everything go on.
    pub fn end() {
        sys::send_signal(-1, sys::SIGCONT);
    }

    /// All threads, or `None` if one runs.
    fn look() -> io::Result<Option<Self>> {
        let mut threads = Vec::new();
        for process in numbers("/proc")? {
            if process == std::process::id() {
                continue;
            }
            for thread in numbers(&format!("/proc/{process}/task"))? {
                // What ends meanwhile has run: an error, and looked at anew.
                let status = fs::read(format!("/proc/{process}/task/{thread}/status"))?;
                let Some(switches) = switches_at_rest(&status) else { return Ok(None) };
                threads.push((process, thread, switches));
            }
        }
        threads.sort_unstable();
        Ok(Some(Self(threads)))
    }
}

/// The names in a folder that are numbers.
fn numbers(folder: &str) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// How often a thread has given the processor away; `None` if it runs or is about to.
fn switches_at_rest(status: &[u8]) -> Option<u64> {
    let status = String::from_utf8_lossy(status);
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    // Stopped, traced, dead, or in a call that nothing can interrupt: that one counts as having
    // run once it is over.
    let state = field("State:")?.trim().chars().next()?;
    if !matches!(state, 'T' | 't' | 'Z' | 'X' | 'D') {
        return None;
    }
    let count = |name| field(name)?.trim().parse::<u64>().ok();
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}
