//! The pool.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::inner::{Inner, Origin, Turn, shut_down};
use super::{PoolConfig, PoolConfigError, PoolMetrics, PooledSandbox};
use crate::{SandboxBackend, SandboxError, SandboxSpec, Snapshot};

/// A bounded number of sandboxes of one backend, some of them made in advance.
///
/// Dropping it begins to close everything, sandboxes that are handed out included;
/// [`SandboxPool::shutdown`] does and waits.
///
/// ```
/// use std::sync::Arc;
///
/// use spar_sandbox::backends::fake::FakeBackend;
/// use spar_sandbox::pool::{PoolConfig, SandboxPool};
/// use spar_sandbox::{ExecRequest, Image, Sandbox, SandboxSpec};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let config = PoolConfig { max_live: 4, ..PoolConfig::default() };
/// let pool = SandboxPool::new(Arc::new(FakeBackend::new()), config)?;
/// let spec = SandboxSpec::new(Image::Default);
/// pool.keep_warm(&spec, 2);
/// let sandbox = pool.acquire(&spec).await?;
/// sandbox.exec(&ExecRequest::new(["echo", "hello"])).await?;
/// drop(sandbox);
/// pool.shutdown().await;
/// assert_eq!(pool.metrics().live, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct SandboxPool {
    inner: Arc<Inner>,
}

/// Pools of this process that may still have sandboxes.
static POOLS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl SandboxPool {
    /// A pool over a backend. Its tasks run on the present runtime.
    ///
    /// # Errors
    ///
    /// What is wrong with `config`.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(
        backend: Arc<dyn SandboxBackend>,
        config: PoolConfig,
    ) -> Result<Self, PoolConfigError> {
        config.validate()?;
        let inner = Arc::new(Inner::new(backend, config));
        inner.spawn(super::keeper::keep(Arc::clone(&inner)));
        inner.spawn(super::tidy::tidy(Arc::clone(&inner)));
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&inner));
        Ok(Self { inner })
    }

    /// The backend it takes sandboxes from.
    pub fn backend(&self) -> &Arc<dyn SandboxBackend> {
        &self.inner.backend
    }

    /// As it was made.
    pub fn config(&self) -> &PoolConfig {
        &self.inner.config
    }

    /// A new sandbox of this spec: at once where one is warm, else when there is room and a turn.
    ///
    /// Dropping the future leaves nothing behind: what was being made for it is kept warm or
    /// closed.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Saturated`] after [`PoolConfig::acquire_secs`], or at once while the
    /// backend, or sandboxes of this spec, keep failing or after [`SandboxPool::shutdown`]; otherwise as
    /// [`SandboxBackend::create`].
    pub async fn acquire(&self, spec: &SandboxSpec) -> Result<PooledSandbox, SandboxError> {
        spec.validate()?;
        acquire(&self.inner, Origin::Spec(spec.clone())).await
    }

    /// A new sandbox that goes on from `snapshot`.
    ///
    /// # Errors
    ///
    /// As [`SandboxPool::acquire`], and as [`SandboxBackend::restore`].
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<PooledSandbox, SandboxError> {
        acquire(&self.inner, Origin::Snapshot(snapshot.clone())).await
    }

    /// Keeps `target` sandboxes of this spec ready from now on, until nobody has asked for one in
    /// [`PoolConfig::idle_secs`]; asking again, or for another number, revives it. Warm sandboxes
    /// make way for callers who want another spec.
    pub fn keep_warm(&self, spec: &SandboxSpec, target: usize) {
        if self.inner.is_shut() {
            return;
        }
        let surplus = self.inner.state().shelves.keep(spec, target, Instant::now());
        self.inner.discard(surplus);
        self.inner.wanted.notify_one();
    }

    /// What it is doing, and what it has done so far.
    pub fn metrics(&self) -> PoolMetrics {
        self.inner.metrics()
    }

    /// Closes everything, sandboxes that are handed out included, looks a last time for what dead
    /// runs left, and waits for it; at most twice [`PoolConfig::close_secs`] and a few seconds. Nothing is handed out afterwards.
    ///
    /// May be called again, and from several places; dropping the future does not stop it.
    pub async fn shutdown(&self) {
        self.inner.begin_shutdown();
        self.inner.finish().await;
    }
}

impl Drop for SandboxPool {
    fn drop(&mut self) {
        self.inner.begin_shutdown();
    }
}

/// Shuts down all pools of this process, in `within` at the most; whether that sufficed.
///
/// For the end of a process that nobody waits for any more, such as a second Ctrl-C: what is left
/// then, reaping finds.
pub async fn shut_down_all(within: Duration) -> bool {
    let pools: Vec<_> = {
        let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).collect()
    };
    for pool in &pools {
        pool.begin_shutdown();
    }
    let all = futures::future::join_all(pools.iter().map(|pool| pool.finish()));
    timeout(within, all).await.is_ok()
}

/// A sandbox that goes on from `origin`.
pub(super) async fn acquire(
    inner: &Arc<Inner>,
    origin: Origin,
) -> Result<PooledSandbox, SandboxError> {
    let deadline = Instant::now() + inner.config.acquire();
    let prepared = match &origin {
        Origin::Spec(spec) => inner.prepared(spec, deadline).await,
        Origin::Snapshot(_) | Origin::Fork(_) => Ok(deadline),
    };
    let (turn, deadline) = match prepared {
        Ok(deadline) => (take_turn(inner, &origin, deadline).await, deadline),
        Err(error) => (Err(error), deadline),
    };
    let (live, count) = match turn {
        Ok(Turn::Warm(live)) => (Ok(live), &inner.counts.warm_hits),
        Ok(Turn::Room(room)) => {
            let made = inner.start(origin, room, None, deadline).await;
            // Absent where the backend panicked, which the pool has reported.
            let doing = "start a sandbox".to_owned();
            let gone = |_| Err(SandboxError::Backend { doing, source: "its task ended".into() });
            (made.unwrap_or_else(gone), &inner.counts.cold_starts)
        }
        Err(error) => (Err(error), &inner.counts.cold_starts),
    };
    match live {
        Ok(_) if inner.is_shut() => Err(shut_down()),
        Ok(live) => {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(PooledSandbox::new(live))
        }
        Err(error) => {
            if matches!(error, SandboxError::Saturated { .. }) {
                inner.counts.refusals.fetch_add(1, Ordering::Relaxed);
            }
            Err(error)
        }
    }
}

/// Room for a sandbox of this origin, or a warm one that still lives.
async fn take_turn(
    inner: &Arc<Inner>,
    origin: &Origin,
    deadline: Instant,
) -> Result<Turn, SandboxError> {
    loop {
        match inner.turn(origin, deadline).await {
            // It may have died on its shelf, with its daemon or by somebody's hand.
            Ok(Turn::Warm(live)) if !inner.is_sound(&live).await => inner.discard([live]),
            turn => return turn,
        }
    }
}
