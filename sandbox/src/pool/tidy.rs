//! The task that removes what dead runs, and failed removals, have left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::inner::Inner;

/// Between the first look and the second, and between a removal that failed and trying again: a
/// daemon goes on for a moment with what a process asked for before it was killed.
const SOON: Duration = Duration::from_secs(2);
/// How long a look may keep the pool from shutting down.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reaps at once, soon again, and then every [`PoolConfig::reap_secs`](super::PoolConfig), until the
/// pool is shut down; sooner where something could not be removed, or when the daemon is back.
pub(super) async fn tidy(inner: Arc<Inner>) {
    let Some(interval) = inner.config.reap() else { return };
    let mut is_first = true;
    let mut failures = 0;
    loop {
        let look = reap(&inner);
        tokio::pin!(look);
        let is_clean = tokio::select! {
            biased;
            is_clean = &mut look => is_clean,
            () = inner.until_shut() => {
                let _ = timeout(PATIENCE, look).await;
                return;
            }
        };
        failures = if is_clean { 0 } else { failures + 1 };
        let wait = match (failures, is_first) {
            (0, false) => interval,
            (0, true) => SOON,
            _ => SOON * (1 << (failures - 1).min(10)),
        };
        is_first = false;
        tokio::select! {
            biased;
            () = inner.until_shut() => return,
            () = inner.littered.notified() => tokio::select! {
                () = inner.until_shut() => return,
                () = sleep(SOON) => {}
            },
            () = sleep(wait.min(interval)) => {}
        }
    }
}

/// The last look, when everything of the pool is closed.
pub(super) async fn last(inner: &Inner) {
    if inner.config.reap().is_some() && !inner.had_last_look.swap(true, Ordering::AcqRel) {
        let _ = timeout(PATIENCE, reap(inner)).await;
    }
}

/// Whether all is gone that has to be.
async fn reap(inner: &Inner) -> bool {
    match inner.backend.reap().await {
        Ok(report) => {
            if !report.removed.is_empty() {
                tracing::info!(removed = ?report.removed, "removed what was left behind");
            }
            if !report.failed.is_empty() {
                tracing::warn!(failed = ?report.failed, "could not remove what was left behind");
            }
            report.failed.is_empty()
        }
        Err(error) => {
            // What keeps it from reaping keeps it from starting, which tells.
            tracing::debug!(%error, "could not reap");
            false
        }
    }
}
