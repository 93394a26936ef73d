//! Images, each prepared once for all who want a sandbox of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, interval, timeout, timeout_at};

use super::breakers::Outcome;
use super::guards::{Gauge, Ticket};
use super::inner::{Inner, START_GRACE, chain, shut_down};
use crate::{SandboxError, SandboxSpec};

/// Images that are known to be prepared at one time; beyond it all are forgotten and asked for again.
const MAX_IMAGES: usize = 4096;
/// Between two words about a preparation that takes its time.
const NEWS: Duration = Duration::from_secs(30);

/// Which images are prepared, and which are being.
pub(super) struct Preparations {
    slots: Arc<Semaphore>,
    images: Mutex<HashMap<String, State>>,
}

enum State {
    Ready,
    UnderWay(watch::Receiver<Told>),
}

/// What came of a preparation, once it is over.
type Told = Option<Result<(), Arc<SandboxError>>>;

/// What somebody does who wants an image.
enum Part {
    GoOn,
    Wait(watch::Receiver<Told>),
    Prepare(watch::Sender<Told>, watch::Receiver<Told>),
}

impl Preparations {
    /// At most `most` at one time.
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(most)), images: Mutex::default() }
    }

    /// Whether nothing is to be done for sandboxes of this spec.
    pub(super) fn is_ready(&self, spec: &SandboxSpec) -> bool {
        matches!(self.images().get(&key(spec)), Some(State::Ready))
    }

    /// Somebody has found that the image of this spec is not there any more.
    pub(super) fn forget(&self, spec: &SandboxSpec) {
        let (mut images, key) = (self.images(), key(spec));
        if matches!(images.get(&key), Some(State::Ready)) {
            images.remove(&key);
        }
    }

    fn take_part(&self, spec: &SandboxSpec) -> Part {
        let (mut images, key) = (self.images(), key(spec));
        match images.get(&key) {
            Some(State::Ready) => Part::GoOn,
            Some(State::UnderWay(told)) => Part::Wait(told.clone()),
            None => {
                let (sender, receiver) = watch::channel(None);
                images.insert(key, State::UnderWay(receiver.clone()));
                Part::Prepare(sender, receiver)
            }
        }
    }

    fn images(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a preparation depends on: the image, and what backends compile differently.
fn key(spec: &SandboxSpec) -> String {
    let (fuel, is_fixed) = (spec.limits.fuel.is_some(), spec.determinism.is_some());
    format!("{:?} {fuel} {is_fixed} {}", spec.image, spec.setup.is_empty())
}

impl Inner {
    /// Makes sure that the image of a spec is prepared, or waits for whoever does. Gives the deadline for what
    /// follows, which is the same where there was nothing to wait for: only the wait for a turn counts.
    ///
    /// A caller who leaves interrupts nothing, since others may wait for the same.
    ///
    /// # Errors
    ///
    /// Those of [`SandboxBackend::prepare`](crate::SandboxBackend::prepare), told to all who waited;
    /// [`SandboxError::Saturated`].
    pub(super) async fn prepared(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        deadline: Instant,
    ) -> Result<Instant, SandboxError> {
        loop {
            let (mut told, is_own) = match self.preparations.take_part(spec) {
                Part::GoOn => return Ok(deadline),
                Part::Wait(told) => (told, false),
                Part::Prepare(sender, told) => {
                    self.spawn(lead(Arc::clone(self), spec.clone(), sender, deadline));
                    (told, true)
                }
            };
            let told = tokio::select! {
                biased;
                () = self.until_shut() => return Err(shut_down()),
                told = told.wait_for(Option::is_some) => told.map(|told| told.clone()),
            };
            return match told {
                Ok(Some(Ok(()))) => Ok(Instant::now() + self.config.acquire()),
                // Somebody else's time was over, who came before: there may be enough of one's own.
                Ok(Some(Err(error)))
                    if !is_own
                        && matches!(*error, SandboxError::Saturated { .. })
                        && Instant::now() < deadline =>
                {
                    continue;
                }
                Ok(Some(Err(error))) => Err(error.told_again()),
                // Its task has panicked, which the pool reports.
                Ok(None) | Err(_) => Err(SandboxError::Backend {
                    doing: format!("prepare image `{}`", spec.image),
                    source: "its task ended".into(),
                }),
            };
        }
    }

    /// Prepares an image, once there is room among the preparations.
    async fn prepare(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        deadline: Instant,
    ) -> Result<(), SandboxError> {
        let slot = Arc::clone(&self.preparations.slots).acquire_owned();
        let slot = timeout_at(deadline, slot).await.map_err(|_| SandboxError::Saturated {
            reason: format!(
                "{} other images are being prepared, and the turn of `{}` did not come within {} s",
                self.config.max_preparations, spec.image, self.config.acquire_secs
            ),
        })?;
        let _slot = slot.expect("the semaphore is never closed");
        let mut ticket = Ticket::aside(self, &spec.key())?;
        let _preparing = Gauge::up(self, |counts| &counts.preparing);
        let made = timeout(self.config.prepare(), self.backend.prepare(spec)).await;
        let made = made.unwrap_or_else(|_| {
            let seconds = self.config.prepare_secs;
            let doing = format!("prepare image `{}` within {seconds} s", spec.image);
            Err(SandboxError::Backend { doing, source: "it took longer".into() })
        });
        if let Err(error) = &made {
            ticket.settle(Outcome::of(error), &chain(error));
        }
        made
    }
}

/// Prepares an image, and tells all who wait how it went.
async fn lead(
    inner: Arc<Inner>,
    spec: SandboxSpec,
    sender: watch::Sender<Told>,
    deadline: Instant,
) {
    let mut entry = Entry { inner: Arc::clone(&inner), key: key(&spec), is_ready: false };
    let (image, began) = (spec.image.to_string(), Instant::now());
    tracing::debug!(image, "an image is being prepared");
    let given_up = async {
        inner.until_shut().await;
        tokio::time::sleep(START_GRACE).await;
    };
    let made = tokio::select! {
        biased;
        made = inner.prepare(&spec, deadline) => made,
        () = news(&image, began) => unreachable!("there is always more to tell"),
        () = given_up => Err(shut_down()),
    };
    let secs = began.elapsed().as_secs_f64();
    inner.counts.prepared(made.is_ok());
    match &made {
        Ok(()) => tracing::debug!(image, secs, "an image is prepared"),
        Err(error) => tracing::warn!(image, secs, error = chain(error), "an image is not prepared"),
    }
    entry.is_ready = made.is_ok();
    // Before it is told: who asks from now on begins anew where it failed.
    drop(entry);
    sender.send_replace(Some(made.map_err(Arc::new)));
    inner.wanted.notify_one();
}

/// Says now and then that a preparation goes on.
async fn news(image: &str, began: Instant) {
    let mut ticks = interval(NEWS);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        tracing::info!(image, secs = began.elapsed().as_secs(), "an image is still being prepared");
    }
}

/// An image under way; whichever way its preparation ends, it is not under way any more.
struct Entry {
    inner: Arc<Inner>,
    key: String,
    is_ready: bool,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut images = self.inner.preparations.images();
        images.remove(&self.key);
        if self.is_ready {
            if images.len() >= MAX_IMAGES {
                images.retain(|_, state| matches!(state, State::UnderWay(_)));
            }
            images.insert(std::mem::take(&mut self.key), State::Ready);
        }
    }
}
