//! What a guest writes, on its way to the caller.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Captured, OutputSink, Stream};

/// From this many bytes on that no sink has taken, a guest waits before it writes more.
const PENDING_BYTES: usize = 256 << 10;

/// Both output streams of an exec: what is kept of them, and what the sink has not had yet.
#[derive(Debug)]
pub(crate) struct Output {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stdout: Captured,
    stderr: Captured,
    pending: Vec<(Stream, Vec<u8>)>,
    pending_bytes: usize,
}

impl Output {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { state: Mutex::new(State::new(limit_bytes)) }
    }

    /// Takes in what the guest wrote: whether it should wait until [`Output::drain`] was called.
    pub(crate) fn push(&self, stream: Stream, bytes: &[u8]) -> bool {
        let mut state = self.lock();
        match stream {
            Stream::Stdout => state.stdout.push(bytes),
            Stream::Stderr => state.stderr.push(bytes),
        }
        state.pending_bytes += bytes.len();
        match state.pending.last_mut() {
            Some((last, pending)) if *last == stream => pending.extend_from_slice(bytes),
            _ => state.pending.push((stream, bytes.to_vec())),
        }
        state.pending_bytes > PENDING_BYTES
    }

    /// Whether the sink has fallen behind.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().pending_bytes > PENDING_BYTES
    }

    /// Hands what came since the last time to `sink`.
    pub(crate) fn drain(&self, sink: &mut dyn OutputSink) {
        let pending = {
            let mut state = self.lock();
            state.pending_bytes = 0;
            std::mem::take(&mut state.pending)
        };
        for (stream, bytes) in pending {
            sink.output(stream, &bytes);
        }
    }

    /// What was kept since it was made or last taken.
    pub(crate) fn take(&self, limit_bytes: usize) -> (Captured, Captured) {
        let state = std::mem::replace(&mut *self.lock(), State::new(limit_bytes));
        (state.stdout, state.stderr)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(limit_bytes: usize) -> Self {
        Self {
            stdout: Captured::new(limit_bytes),
            stderr: Captured::new(limit_bytes),
            pending: Vec::new(),
            pending_bytes: 0,
        }
    }
}
