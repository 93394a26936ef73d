//! A snapshot that a pool removes.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::inner::{Inner, chain};
use super::live::Core;
use crate::{SandboxError, Snapshot};

/// A snapshot of a sandbox that a pool handed out. Dropping it removes it in the background;
/// [`SandboxPool::shutdown`](super::SandboxPool::shutdown) waits for that. Sandboxes that go on from it are closed before.
pub struct PooledSnapshot {
    inner: Arc<Inner>,
    /// Absent once somebody removes it.
    kept: Option<Snapshot>,
}

impl PooledSnapshot {
    /// What is kept.
    pub fn snapshot(&self) -> &Snapshot {
        self.kept.as_ref().expect("it is there until it is removed, which takes this")
    }

    /// Removes it, and waits for that. Dropping the future does not stop it.
    ///
    /// # Errors
    ///
    /// As [`SandboxBackend::remove_snapshot`](crate::SandboxBackend::remove_snapshot), and where that takes longer than a sandbox
    /// may take to close.
    pub async fn remove(mut self) -> Result<(), SandboxError> {
        let Some(removed) = self.remove_later() else { return Ok(()) };
        let given_up = |_| {
            let doing = "remove a snapshot".to_owned();
            Err(SandboxError::Backend { doing, source: "the pool gave up waiting for it".into() })
        };
        removed.await.unwrap_or_else(given_up)
    }

    /// Removes it in a task of the pool, which tells what came of it.
    fn remove_later(&mut self) -> Option<oneshot::Receiver<Result<(), SandboxError>>> {
        let kept = self.kept.take()?;
        let (sender, receiver) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move {
            let limit = inner.config.close();
            let removed = timeout(limit, inner.backend.remove_snapshot(&kept)).await;
            let removed = removed.unwrap_or_else(|_| {
                let doing = format!("remove a snapshot within {} s", limit.as_secs());
                Err(SandboxError::Backend { doing, source: "it does not answer".into() })
            });
            if let Err(Err(error)) = sender.send(removed) {
                // Nobody waits for it.
                let (id, error) = (&kept.id, chain(&error));
                tracing::warn!(snapshot = id, error, "could not remove a snapshot");
            }
        });
        Some(receiver)
    }
}

impl Drop for PooledSnapshot {
    fn drop(&mut self) {
        self.remove_later();
    }
}

/// Keeps the state of a sandbox, in a task of the pool: what comes of it when the caller has left is removed.
pub(super) async fn keep(
    inner: &Arc<Inner>,
    core: &Arc<Core>,
) -> Result<PooledSnapshot, SandboxError> {
    let (mut sender, receiver) = oneshot::channel();
    let (pool, core) = (Arc::clone(inner), Arc::clone(core));
    inner.spawn(async move {
        let mut snapshot = core.sandbox.snapshot();
        let kept = tokio::select! {
            kept = &mut snapshot => kept,
            // Whoever has left bounds it no more.
            () = sender.closed() => match timeout(pool.config.close(), snapshot).await {
                Ok(kept) => kept,
                Err(_) => {
                    tracing::warn!("gave up a snapshot that nobody waits for and that does not end");
                    return;
                }
            },
        };
        if let Err(error) = &kept {
            pool.suspect(core.sandbox.engine(), error);
        }
        let kept = kept.map(|kept| PooledSnapshot { inner: pool, kept: Some(kept) });
        // One that nobody takes is dropped, and so removed.
        drop(sender.send(kept));
    });
    receiver.await.unwrap_or_else(|_| {
        let doing = "keep a snapshot".to_owned();
        Err(SandboxError::Backend { doing, source: "the pool was shut down".into() })
    })
}
