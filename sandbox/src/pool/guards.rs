//! Things that undo themselves, whichever way a task ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, timeout_at};

use super::breaker::Refusal;
use super::breakers::{Change, Leave, Outcome};
use super::inner::{Counts, Inner, shut_down};
use super::metrics::BreakerState;
use crate::SandboxError;

/// One more of something, as long as it lives.
pub(super) struct Gauge {
    inner: Arc<Inner>,
    which: fn(&Counts) -> &AtomicUsize,
}

impl Gauge {
    pub(super) fn up(inner: &Arc<Inner>, which: fn(&Counts) -> &AtomicUsize) -> Self {
        which(&inner.counts).fetch_add(1, Ordering::Relaxed);
        Self { inner: Arc::clone(inner), which }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        (self.which)(&self.inner.counts).fetch_sub(1, Ordering::Relaxed);
    }
}

/// Leave to start; says nothing about backend and spec unless it is settled.
pub(super) struct Ticket {
    inner: Arc<Inner>,
    leave: Option<Leave>,
}

impl Ticket {
    /// Asks the breakers for leave to start a sandbox of the spec `key`; where that is being tried,
    /// waits for what comes of it, until `deadline`.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Saturated`] with the reason why not.
    pub(super) async fn get(
        inner: &Arc<Inner>,
        key: &str,
        deadline: Instant,
    ) -> Result<Self, SandboxError> {
        loop {
            let changed = inner.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            if inner.is_shut() {
                return Err(shut_down());
            }
            // The guard must not live as long as the match.
            let asked = inner.state().breakers.admit(key, Instant::now());
            match asked {
                Ok(leave) => return Ok(Self { inner: Arc::clone(inner), leave: Some(leave) }),
                Err(Refusal::Open { reason }) => return Err(SandboxError::Saturated { reason }),
                Err(Refusal::Probing) => {}
            }
            if timeout_at(deadline, changed).await.is_err() {
                return Err(inner.still_probing());
            }
        }
    }

    /// Leave to prepare a sandbox of the spec `key`: what fails counts, but no start is tried in place of others.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Saturated`] while nothing would be started.
    pub(super) fn aside(inner: &Arc<Inner>, key: &str) -> Result<Self, SandboxError> {
        let state = inner.state();
        match state.breakers.refusal(key, Instant::now()) {
            Some(Refusal::Open { reason }) => Err(SandboxError::Saturated { reason }),
            Some(Refusal::Probing) | None => {
                Ok(Self { inner: Arc::clone(inner), leave: Some(Leave::aside(key)) })
            }
        }
    }

    /// Tells the breakers how the start went.
    pub(super) fn settle(&mut self, outcome: Outcome, why: &str) {
        let Some(leave) = self.leave.take() else { return };
        let now = Instant::now();
        let (change, has_opened) = {
            let mut state = self.inner.state();
            let was = state.breakers.state();
            let change = state.breakers.record(now, &leave, outcome, why);
            (change, was != BreakerState::Open && state.breakers.state() == BreakerState::Open)
        };
        if has_opened && outcome != Outcome::Nothing {
            tracing::warn!(why, "the backend keeps failing: no sandbox is started for a while");
        }
        if change == Change::Recovered {
            // What could not be removed meanwhile can be removed now.
            self.inner.littered.notify_one();
            self.inner.recovered.notify_waiters();
        }
        if change != Change::Nothing {
            self.inner.changed.notify_waiters();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.settle(Outcome::Nothing, "");
    }
}

/// A refill on its way to the shelf of its spec.
pub(super) struct Refill {
    inner: Arc<Inner>,
    key: String,
}

impl Refill {
    pub(super) fn new(inner: &Arc<Inner>, key: String) -> Self {
        Self { inner: Arc::clone(inner), key }
    }

    /// It is there, or failed; the key of its shelf.
    pub(super) fn arrived(self) -> String {
        self.key.clone()
    }
}

impl Drop for Refill {
    fn drop(&mut self) {
        self.inner.state().shelves.refilled(&self.key);
    }
}
