//! The shared state of a pool and how sandboxes come and go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::PoolConfig;
use super::breaker::Refusal;
use super::breakers::{Breakers, Outcome};
use super::guards::{Gauge, Refill, Ticket};
use super::live::{Core, Live};
use super::metrics::PoolMetrics;
use super::preparations::Preparations;
use super::rate::StartRate;
use super::shelf::Shelves;
use crate::{Death, Owner, Sandbox, SandboxBackend, SandboxError, SandboxSpec, Snapshot};

/// How long a start that is under way may go on after the pool was shut down. What it has made by
/// then is closed; what it has not is left to the backend's own net.
pub(super) const START_GRACE: Duration = Duration::from_secs(5);

/// How long a warm sandbox may take to say that it lives.
const SOUND: Duration = Duration::from_secs(5);

/// The shared state of a pool.
///
/// Locks are taken in the order `state`, `open`, `tasks`; none is held over an await, and no
/// [`Live`] is dropped under one.
pub(super) struct Inner {
    pub(super) backend: Arc<dyn SandboxBackend>,
    pub(super) config: PoolConfig,
    handle: Handle,
    room: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    rate: StartRate,
    pub(super) preparations: Preparations,
    state: Mutex<State>,
    /// Handed out or warm, by number: everything that nobody has begun to close.
    open: Mutex<HashMap<u64, Weak<Core>>>,
    tasks: Mutex<JoinSet<()>>,
    /// Only one waits for the tasks at a time.
    joining: tokio::sync::Mutex<()>,
    /// Whether it was shut down.
    shut: watch::Sender<bool>,
    /// For callers that wait: a warm one came, a breaker changed, the pool was shut down.
    pub(super) changed: Notify,
    /// For those who could not remove something: the backend works again.
    pub(super) recovered: Notify,
    /// For the keeper: something may have to be refilled.
    pub(super) wanted: Notify,
    /// For whoever reaps: something could not be removed, or can be removed again.
    pub(super) littered: Notify,
    pub(super) had_last_look: AtomicBool,
    pub(super) counts: Counts,
}

pub(super) struct State {
    pub(super) breakers: Breakers,
    pub(super) shelves: Shelves,
}

/// No time to live is longer, and no moment so far away overflows.
const LONGEST_SECS: u64 = 1 << 30;

/// Numbers for [`PoolMetrics`].
#[derive(Default)]
pub(super) struct Counts {
    pub(super) waiting: AtomicUsize,
    pub(super) starting: AtomicUsize,
    pub(super) preparing: AtomicUsize,
    pub(super) closing: AtomicUsize,
    pub(super) stuck: AtomicUsize,
    next: AtomicU64,
    starts: AtomicU64,
    preparations: AtomicU64,
    preparation_failures: AtomicU64,
    start_failures: AtomicU64,
    pub(super) warm_hits: AtomicU64,
    pub(super) cold_starts: AtomicU64,
    pub(super) refusals: AtomicU64,
    pub(super) closes: AtomicU64,
    pub(super) close_failures: AtomicU64,
    pub(super) discarded: AtomicU64,
}

/// What a new sandbox goes on from.
pub(super) enum Origin {
    Spec(SandboxSpec),
    Snapshot(Snapshot),
    Fork(Arc<Core>),
}

/// What a caller gets who waited.
pub(super) enum Turn {
    Warm(Live),
    Room(OwnedSemaphorePermit),
}

impl Inner {
    pub(super) fn new(backend: Arc<dyn SandboxBackend>, config: PoolConfig) -> Self {
        let seed = blake3::hash(Owner::this_process().run.as_bytes());
        let seed = u64::from_le_bytes(seed.as_bytes()[..8].try_into().expect("eight bytes"));
        Self {
            backend,
            handle: Handle::current(),
            room: Arc::new(Semaphore::new(config.max_live)),
            slots: Arc::new(Semaphore::new(config.max_starts)),
            rate: StartRate::new(config.start_interval()),
            preparations: Preparations::new(config.max_preparations),
            state: Mutex::new(State {
                breakers: Breakers::new(config.breaker.clone(), seed),
                shelves: Shelves::default(),
            }),
            open: Mutex::default(),
            tasks: Mutex::new(JoinSet::new()),
            joining: tokio::sync::Mutex::default(),
            shut: watch::Sender::new(false),
            changed: Notify::new(),
            recovered: Notify::new(),
            wanted: Notify::new(),
            littered: Notify::new(),
            had_last_look: AtomicBool::new(false),
            counts: Counts::default(),
            config,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Weak<Core>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task that the pool owns.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(done) = tasks.try_join_next() {
            report(done);
        }
        tasks.spawn_on(task, &self.handle);
    }

    pub(super) fn is_shut(&self) -> bool {
        *self.shut.borrow()
    }

    /// Ends when the pool is shut down.
    pub(super) async fn until_shut(&self) {
        // The sender lives as long as this does.
        let _ = self.shut.subscribe().wait_for(|shut| *shut).await;
    }

    /// A warm one that can be handed out.
    pub(super) fn take_warm(&self, key: &str) -> Option<Live> {
        let mut stale = Vec::new();
        let live = self.state().shelves.take(key, Instant::now(), &mut stale);
        self.discard(stale);
        self.wanted.notify_one();
        live
    }

    /// Whether a warm one can still be used.
    pub(super) async fn is_sound(&self, live: &Live) -> bool {
        let sandbox = &live.core.sandbox;
        match timeout(SOUND, sandbox.check()).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => self.suspect(sandbox.engine(), &error),
            // Whoever waits for this one need not wait for the others of a silent engine as well.
            Err(_) => self.give_up_warm(sandbox.engine()),
        }
        false
    }

    /// Waits for room for a sandbox of this origin, or for a warm one, until `deadline`.
    pub(super) async fn turn(
        self: &Arc<Self>,
        origin: &Origin,
        deadline: Instant,
    ) -> Result<Turn, SandboxError> {
        let (warm, key) = (origin.warm_key(), origin.key());
        let _waiting = Gauge::up(self, |counts| &counts.waiting);
        let room = Arc::clone(&self.room).acquire_owned();
        tokio::pin!(room);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            if self.is_shut() {
                return Err(shut_down());
            }
            if let Some(live) = warm.as_deref().and_then(|key| self.take_warm(key)) {
                return Ok(Turn::Warm(live));
            }
            // The guard must not live as long as the match.
            let refusal = self.state().breakers.refusal(&key, Instant::now());
            let is_probing = match refusal {
                Some(Refusal::Open { reason }) => return Err(SandboxError::Saturated { reason }),
                Some(Refusal::Probing) => true,
                None => false,
            };
            if self.room.available_permits() == 0 {
                self.make_way(warm.as_deref());
            }
            tokio::select! {
                biased;
                permit = &mut room, if !is_probing => {
                    return Ok(Turn::Room(permit.expect("the semaphore is never closed")));
                }
                () = &mut changed => {}
                () = tokio::time::sleep_until(deadline) => {
                    return Err(if is_probing { self.still_probing() } else { self.no_room() });
                }
            }
        }
    }

    /// Removes a warm sandbox of another spec, unless enough are being removed already.
    fn make_way(&self, key: Option<&str>) {
        let closing = self.counts.closing.load(Ordering::Relaxed);
        if closing < self.counts.waiting.load(Ordering::Relaxed) {
            let found = self.state().shelves.make_way(key);
            self.discard(found);
        }
    }

    fn no_room(&self) -> SandboxError {
        let PoolConfig { max_live, acquire_secs, .. } = self.config;
        let waiting = self.counts.waiting.load(Ordering::Relaxed).saturating_sub(1);
        let stuck = match self.counts.stuck.load(Ordering::Relaxed) {
            0 => String::new(),
            stuck => format!(" ({stuck} of them cannot be removed)"),
        };
        SandboxError::Saturated {
            reason: format!(
                "all {max_live} of the pool are in use{stuck}, none came free within \
                 {acquire_secs} s, and {waiting} others wait"
            ),
        }
    }

    /// What a caller is told whose time is over while it is tried whether starts work again.
    pub(super) fn still_probing(&self) -> SandboxError {
        let reason = format!(
            "starts kept failing, and what came of trying again was not known within {} s",
            self.config.acquire_secs
        );
        SandboxError::Saturated { reason }
    }

    /// Starts a sandbox in a task of its own, so that a caller who leaves interrupts nothing.
    /// Whoever does not take the result leaves it to the shelf, or to be closed.
    pub(super) fn start(
        self: &Arc<Self>,
        origin: Origin,
        room: OwnedSemaphorePermit,
        slot: Option<OwnedSemaphorePermit>,
        deadline: Instant,
    ) -> oneshot::Receiver<Result<Live, SandboxError>> {
        let (mut sender, receiver) = oneshot::channel();
        let inner = Arc::clone(self);
        self.spawn(async move {
            let _starting = Gauge::up(&inner, |counts| &counts.starting);
            // A caller who leaves before anything was begun takes nothing up any more.
            let slot = tokio::select! {
                biased;
                () = sender.closed() => return,
                slot = inner.start_turn(slot, deadline) => slot,
            };
            let made = match slot {
                Ok(slot) => inner.make(&origin, room, slot, deadline).await,
                Err(error) => Err(error),
            };
            if let Err(Ok(live)) = sender.send(made)
                && let Origin::Spec(spec) = &origin
            {
                inner.put_on_shelf(&spec.key(), live);
            }
            inner.wanted.notify_one();
        });
        receiver
    }

    /// A slot, and the turn by the rate.
    async fn start_turn(
        &self,
        slot: Option<OwnedSemaphorePermit>,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, SandboxError> {
        let turn = async {
            let slot = match slot {
                Some(slot) => slot,
                None => Arc::clone(&self.slots)
                    .acquire_owned()
                    .await
                    .expect("the semaphore is never closed"),
            };
            self.rate.turn().await;
            slot
        };
        tokio::select! {
            biased;
            () = self.until_shut() => Err(shut_down()),
            turn = timeout_at(deadline, turn) => turn.map_err(|_| SandboxError::Saturated {
                reason: format!(
                    "{} are being started, and its turn did not come within {} s",
                    self.counts.starting.load(Ordering::Relaxed).saturating_sub(1),
                    self.config.acquire_secs,
                ),
            }),
        }
    }

    /// Asks the backend for a sandbox, if the breakers allow it, and tells them about it.
    async fn make(
        self: &Arc<Self>,
        origin: &Origin,
        room: OwnedSemaphorePermit,
        _slot: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Live, SandboxError> {
        let mut ticket = Ticket::get(self, &origin.key(), deadline).await?;
        let began = Instant::now();
        self.counts.starts.fetch_add(1, Ordering::Relaxed);
        let given_up = async {
            self.until_shut().await;
            tokio::time::sleep(START_GRACE).await;
        };
        let made = tokio::select! {
            biased;
            made = timeout(self.config.start(), origin.make(self.backend.as_ref())) => made
                .unwrap_or(Err(SandboxError::CreateTimedOut { seconds: self.config.start_secs })),
            () = given_up => return Err(shut_down()),
        };
        match made {
            Ok(sandbox) => {
                ticket.settle(Outcome::Worked, "");
                Ok(self.admit(sandbox, began, room))
            }
            Err(error) => {
                if let (Origin::Spec(spec), SandboxError::ImageMissing { .. }) = (origin, &error) {
                    self.preparations.forget(spec);
                }
                self.counts.start_failures.fetch_add(1, Ordering::Relaxed);
                ticket.settle(Outcome::of(&error), &chain(&error));
                Err(error)
            }
        }
    }

    /// Takes charge of a new sandbox.
    fn admit(
        self: &Arc<Self>,
        sandbox: Box<dyn Sandbox>,
        began: Instant,
        room: OwnedSemaphorePermit,
    ) -> Live {
        let lifetimes = &sandbox.spec().lifetimes;
        // What is left of its time to live then is for agent, verifier and half of the margin.
        let slack = lifetimes
            .create_secs
            .saturating_add(lifetimes.setup_secs)
            .saturating_add(lifetimes.margin_secs / 2)
            .min(LONGEST_SECS);
        let number = self.counts.next.fetch_add(1, Ordering::Relaxed);
        let expires = began + lifetimes.time_to_live().min(Duration::from_secs(LONGEST_SECS));
        let core = Core::new(number, sandbox, began + Duration::from_secs(slack), expires, room);
        let core = Arc::new(core);
        self.open().insert(number, Arc::downgrade(&core));
        let live = Live { inner: Arc::clone(self), core };
        if self.is_shut() {
            // Shutting down may have looked for it just before it was there.
            self.close_later(&live.core);
        }
        live
    }

    /// Puts a sandbox on its shelf; it is closed where none is wanted.
    pub(super) fn put_on_shelf(&self, key: &str, live: Live) {
        let surplus = if self.is_shut() { Some(live) } else { self.state().shelves.put(key, live) };
        self.discard(surplus);
        self.changed.notify_waiters();
    }

    /// Closes sandboxes that were warm.
    pub(super) fn discard(&self, lives: impl IntoIterator<Item = Live>) {
        for live in lives {
            self.counts.discarded.fetch_add(1, Ordering::Relaxed);
            drop(live);
        }
    }

    /// Begins to start refills, as many as there is room for that nobody waits for.
    pub(super) fn refill(self: &Arc<Self>) {
        while !self.is_shut() && self.counts.waiting.load(Ordering::Relaxed) == 0 {
            let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return };
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { return };
            let now = Instant::now();
            let spec = {
                let mut state = self.state();
                let State { breakers, shelves } = &mut *state;
                let may_start = |key: &str| breakers.refusal(key, now).is_none();
                shelves.refill(now, self.config.idle(), may_start)
            };
            let Some(spec) = spec else { return };
            let inner = Arc::clone(self);
            let on_its_way = Refill::new(self, spec.key());
            if !self.preparations.is_ready(&spec) {
                // Neither room nor slot wait for that.
                drop((room, slot));
                self.spawn(inner.prepare_refill(spec, on_its_way));
                continue;
            }
            self.spawn(async move {
                let deadline = Instant::now() + inner.config.acquire();
                let made = inner.start(Origin::Spec(spec), room, Some(slot), deadline).await;
                let Ok(made) = made else { return };
                let key = on_its_way.arrived();
                inner.state().shelves.record(&key, made.is_ok(), Instant::now());
                match made {
                    Ok(live) => inner.put_on_shelf(&key, live),
                    Err(error) => {
                        tracing::warn!(error = chain(&error), "could not make a warm sandbox");
                    }
                }
            });
        }
    }

    /// Prepares the image of a refill, which is begun anew when that is done.
    async fn prepare_refill(self: Arc<Self>, spec: SandboxSpec, on_its_way: Refill) {
        let prepared = self.prepared(&spec, Instant::now() + self.config.acquire()).await;
        let key = on_its_way.arrived();
        if let Err(error) = prepared {
            self.state().shelves.record(&key, false, Instant::now());
            tracing::warn!(error = chain(&error), "could not make a warm sandbox");
        }
        self.wanted.notify_one();
    }

    /// Removes a sandbox in the background; nothing where somebody does already.
    pub(super) fn close_later(
        self: &Arc<Self>,
        core: &Arc<Core>,
    ) -> Option<oneshot::Receiver<Result<(), SandboxError>>> {
        let room = core.take_room()?;
        self.open().remove(&core.number);
        let (sender, receiver) = oneshot::channel();
        self.spawn(super::closing::close(Arc::clone(self), Arc::clone(core), room, sender));
        Some(receiver)
    }

    /// A sandbox in use on `engine` failed; where the engine is to blame, those fail that are warm
    /// there. Whether it can start others, its next start tells.
    pub(super) fn suspect(&self, engine: &str, error: &SandboxError) {
        let is_daemon = matches!(
            error,
            SandboxError::Died { death: Death::DaemonGone, .. } | SandboxError::Unavailable { .. }
        );
        if is_daemon {
            self.give_up_warm(engine);
        }
    }

    fn give_up_warm(&self, engine: &str) {
        let warm = self.state().shelves.empty(engine);
        self.discard(warm);
        self.wanted.notify_one();
    }

    /// Nothing is handed out any more, and everything begins to close.
    pub(super) fn begin_shutdown(self: &Arc<Self>) {
        self.shut.send_replace(true);
        self.changed.notify_waiters();
        let warm = self.state().shelves.clear();
        self.discard(warm);
        let open: Vec<_> = self.open().values().filter_map(Weak::upgrade).collect();
        for core in open {
            self.close_later(&core);
        }
    }

    /// Waits for all tasks.
    pub(super) async fn finish(&self) {
        let _turn = self.joining.lock().await;
        let all = std::future::poll_fn(|context| {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(done) = std::task::ready!(tasks.poll_join_next(context)) {
                report(done);
            }
            std::task::Poll::Ready(())
        });
        let longest = self.config.close().saturating_mul(2).saturating_add(START_GRACE);
        if timeout(longest, all).await.is_err() {
            tracing::warn!("some sandboxes did not close in time");
            self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        }
        super::tidy::last(self).await;
    }

    pub(super) fn metrics(&self) -> PoolMetrics {
        let (warm, breaker, refused_specs) = {
            let State { breakers, shelves } = &*self.state();
            (shelves.num_warm(), breakers.state(), breakers.num_refused_specs())
        };
        let many = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        PoolMetrics {
            live: self.config.max_live - self.room.available_permits(),
            warm,
            starting: counts.starting.load(Ordering::Relaxed),
            in_use: self.open().len().saturating_sub(warm),
            closing: counts.closing.load(Ordering::Relaxed),
            stuck: counts.stuck.load(Ordering::Relaxed),
            waiting: counts.waiting.load(Ordering::Relaxed),
            preparing: counts.preparing.load(Ordering::Relaxed),
            preparations: many(&counts.preparations),
            preparation_failures: many(&counts.preparation_failures),
            starts: many(&counts.starts),
            start_failures: many(&counts.start_failures),
            warm_hits: many(&counts.warm_hits),
            cold_starts: many(&counts.cold_starts),
            refusals: many(&counts.refusals),
            closes: many(&counts.closes),
            close_failures: many(&counts.close_failures),
            discarded: many(&counts.discarded),
            breaker,
            refused_specs,
        }
    }
}

impl Counts {
    /// A preparation is over.
    pub(super) fn prepared(&self, is_done: bool) {
        let count = if is_done { &self.preparations } else { &self.preparation_failures };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Origin {
    /// The shelf from which one may come.
    fn warm_key(&self) -> Option<String> {
        match self {
            Self::Spec(spec) => Some(spec.key()),
            Self::Snapshot(_) | Self::Fork(_) => None,
        }
    }

    /// What a failure is told apart by: that a state of a sandbox cannot be gone on from says
    /// nothing about new ones.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Spec(spec) => spec.key(),
            Self::Snapshot(snapshot) => format!("restore {}", snapshot.spec.key()),
            Self::Fork(core) => format!("fork {}", core.sandbox.spec().key()),
        }
    }

    async fn make(&self, backend: &dyn SandboxBackend) -> Result<Box<dyn Sandbox>, SandboxError> {
        match self {
            Self::Spec(spec) => backend.create(spec).await,
            Self::Snapshot(snapshot) => backend.restore(snapshot).await,
            Self::Fork(core) => core.sandbox.fork().await,
        }
    }
}

pub(super) fn shut_down() -> SandboxError {
    SandboxError::Saturated { reason: "the pool was shut down".to_owned() }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn report(done: Result<(), tokio::task::JoinError>) {
    if let Err(error) = done
        && error.is_panic()
    {
        tracing::error!(%error, "a task of the pool panicked");
    }
}
