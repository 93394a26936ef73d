//! Removing a sandbox, for as long as that takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::guards::Gauge;
use super::inner::{Inner, chain};
use super::live::Core;
use crate::SandboxError;

/// Waits between tries to remove what resists: doubled from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// Closes a sandbox and tells `done` what came of the first try. It keeps its room until it is gone,
/// until its time to live is over, when whoever reaps removes it, or until the pool is shut down.
pub(super) async fn close(
    inner: Arc<Inner>,
    core: Arc<Core>,
    room: OwnedSemaphorePermit,
    done: oneshot::Sender<Result<(), SandboxError>>,
) {
    let closing = Gauge::up(&inner, |counts| &counts.closing);
    let closed = try_once(&inner, &core).await;
    drop(closing);
    if closed.is_err() {
        let _ = done.send(closed);
        inner.littered.notify_one();
        go_on(&inner, &core).await;
        drop(room);
    } else {
        // Whoever is told finds the room free.
        drop(room);
        let _ = done.send(closed);
    }
    inner.wanted.notify_one();
}

/// Tries again until there is nothing left to be gained by it.
async fn go_on(inner: &Arc<Inner>, core: &Core) {
    let _stuck = Gauge::up(inner, |counts| &counts.stuck);
    let mut wait = RETRY.0;
    while !inner.is_shut() && Instant::now() < core.expires {
        let recovered = inner.recovered.notified();
        tokio::select! {
            biased;
            // A last try, below.
            () = inner.until_shut() => {}
            () = recovered => wait = RETRY.0,
            () = sleep_until((Instant::now() + wait).min(core.expires)) => {
                wait = (wait * 2).min(RETRY.1);
            }
        }
        if try_once(inner, core).await.is_ok() {
            return;
        }
    }
    let sandbox = core.sandbox.id();
    tracing::warn!(sandbox, "gave up removing a sandbox; reaping finds it");
}

async fn try_once(inner: &Inner, core: &Core) -> Result<(), SandboxError> {
    let closed = timeout(inner.config.close(), core.sandbox.close()).await;
    let closed = closed.unwrap_or_else(|_| {
        let doing = format!("close it within {} s", inner.config.close_secs);
        Err(SandboxError::Backend { doing, source: "it does not answer".into() })
    });
    let counts = &inner.counts;
    let count = if closed.is_ok() { &counts.closes } else { &counts.close_failures };
    count.fetch_add(1, Ordering::Relaxed);
    if let Err(error) = &closed {
        let sandbox = core.sandbox.id();
        tracing::warn!(sandbox, error = chain(error), "could not close a sandbox");
    }
    closed
}
