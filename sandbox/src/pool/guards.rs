//! Things that undo themselves, whichever way a task ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;

use super::breaker::{Admission, Verdict};
use super::inner::{Counts, Inner};
use super::metrics::BreakerState;

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

/// Leave to start; says nothing about the backend unless it is settled.
pub(super) struct Ticket {
    inner: Arc<Inner>,
    admission: Option<Admission>,
}

impl Ticket {
    /// Asks the breaker; it gives the reason why not.
    pub(super) fn new(inner: &Arc<Inner>) -> Result<Self, String> {
        let admission = inner.state().breaker.admit(Instant::now())?;
        Ok(Self { inner: Arc::clone(inner), admission: Some(admission) })
    }

    /// Tells the breaker how the start went.
    pub(super) fn settle(&mut self, verdict: Verdict, why: &str) {
        let Some(admission) = self.admission.take() else { return };
        let now = Instant::now();
        let (opened, closed) = {
            let mut state = self.inner.state();
            let was = state.breaker.state();
            let opened = state.breaker.record(now, admission, verdict, why);
            let is = state.breaker.state();
            (opened, was != BreakerState::Closed && is == BreakerState::Closed)
        };
        if closed {
            // What could not be removed meanwhile can be removed now.
            self.inner.littered.notify_one();
        }
        if opened {
            tracing::warn!(why, "the backend keeps failing: no sandbox is started for a while");
            self.inner.changed.notify_waiters();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.settle(Verdict::Nothing, "");
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
