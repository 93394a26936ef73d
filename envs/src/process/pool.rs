//! The programs of one kind, and the places in them.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use spar_tasks::ProgramSpec;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::launch::Launcher;
use super::messages::{Call, Nothing};
use super::program::Program;
use crate::EnvironmentError;

/// The programs of one kind. An episode takes a [`Place`] in one of them: in the one that has the fewest sessions, or in one
/// that is started for it where all are full and there may be more.
pub(super) struct ProgramPool {
    spec: Arc<ProgramSpec>,
    launcher: Launcher,
    state: Mutex<State>,
    /// A place has become free.
    freed: Notify,
}

#[derive(Default)]
struct State {
    programs: Vec<Used>,
    starting: usize,
    /// Who waits for a place.
    waiting: usize,
    /// Places that would do no harm to lose, those longest parked in front.
    parked: VecDeque<Weak<Mutex<Option<Place>>>>,
    is_closed: bool,
}

struct Used {
    program: Arc<Program>,
    sessions: usize,
}

/// A session in a program. Dropping it closes the session, and makes room when the program has said that it is closed.
pub(super) struct Place {
    pool: Arc<ProgramPool>,
    pub(super) program: Arc<Program>,
    /// The session's number.
    pub(super) env: u64,
    /// Whether the program has heard of it.
    pub(super) is_known: bool,
    is_given_back: bool,
}

/// The place of a session that can be brought up anew: it is lost where others wait for one.
pub(super) type Parked = Arc<Mutex<Option<Place>>>;

impl ProgramPool {
    pub(super) fn new(spec: Arc<ProgramSpec>) -> Arc<Self> {
        let launcher = Launcher::new(Arc::clone(&spec));
        Arc::new(Self { spec, launcher, state: Mutex::default(), freed: Notify::new() })
    }

    /// How its programs are run.
    pub(super) fn spec(&self) -> &ProgramSpec {
        &self.spec
    }

    /// A place for a session, waited for where there is none.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::NoPlace`] where none becomes free in time, [`EnvironmentError::Program`] and
    /// [`EnvironmentError::Sandbox`] where a program could not be started.
    pub(super) async fn place(self: &Arc<Self>) -> Result<Place, EnvironmentError> {
        let seconds = self.spec.limits.wait_secs;
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut waiting = None;
        loop {
            let mut freed = pin!(self.freed.notified());
            // From here on nothing is missed.
            freed.as_mut().enable();
            match self.look() {
                Found::Place(place) => return Ok(place),
                Found::Start(starting) => return self.start(starting).await,
                Found::Parked(lost) => drop(lost),
                Found::Closed => return Err(EnvironmentError::NoPlace { seconds: 0 }),
                // Looked at once more when places are no longer parked.
                Found::Nothing if waiting.is_none() => {
                    waiting = Some(Waiting::new(self));
                    continue;
                }
                Found::Nothing => {}
            }
            let in_time = timeout_at(until, freed).await;
            in_time.map_err(|_| EnvironmentError::NoPlace { seconds })?;
        }
    }

    /// As [`ProgramPool::place`], but for waiting: absent where there is none.
    pub(super) async fn place_at_once(self: &Arc<Self>) -> Result<Option<Place>, EnvironmentError> {
        match self.look() {
            Found::Place(place) => Ok(Some(place)),
            Found::Start(starting) => self.start(starting).await.map(Some),
            Found::Parked(_) | Found::Nothing | Found::Closed => Ok(None),
        }
    }

    /// A place in a program that has one; absent where it is full.
    pub(super) fn place_beside(self: &Arc<Self>, program: &Arc<Program>) -> Option<Place> {
        let mut state = self.lock();
        let most = self.sessions_of(program);
        let used = state.programs.iter_mut().find(|it| Arc::ptr_eq(&it.program, program))?;
        (used.sessions < most && program.is_alive()).then(|| self.take(used))
    }

    /// Keeps a place for who may need it, until somebody else does.
    pub(super) fn park(self: &Arc<Self>, place: Place) -> Parked {
        let parked = Arc::new(Mutex::new(Some(place)));
        let mut state = self.lock();
        if state.waiting > 0 {
            drop(state);
            drop(unpark(&parked));
        } else {
            state.parked.retain(|it| it.strong_count() > 0);
            state.parked.push_back(Arc::downgrade(&parked));
        }
        parked
    }

    /// Ends all programs and waits for it.
    pub(super) async fn close(&self) {
        let programs = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.programs)
        };
        self.freed.notify_waiters();
        futures::future::join_all(programs.iter().map(|used| used.program.end())).await;
        self.launcher.close().await;
    }

    /// How many sessions a program may have.
    fn sessions_of(&self, program: &Program) -> usize {
        program.hello.concurrent.min(self.spec.limits.sessions_per_program)
    }

    /// What there is for somebody who wants a place.
    fn look(self: &Arc<Self>) -> Found {
        let mut state = self.lock();
        if state.is_closed {
            return Found::Closed;
        }
        state.programs.retain(|used| used.program.is_alive());
        let free = state.programs.iter_mut();
        let free = free.filter(|used| used.sessions < self.sessions_of(&used.program));
        if let Some(used) = free.min_by_key(|used| used.sessions) {
            return Found::Place(self.take(used));
        }
        if state.programs.len() + state.starting < self.spec.limits.programs {
            state.starting += 1;
            return Found::Start(Starting { pool: Arc::clone(self) });
        }
        while let Some(parked) = state.parked.pop_front() {
            if let Some(place) = parked.upgrade().and_then(|parked| unpark(&parked)) {
                return Found::Parked(place);
            }
        }
        Found::Nothing
    }

    fn take(self: &Arc<Self>, used: &mut Used) -> Place {
        used.sessions += 1;
        let program = Arc::clone(&used.program);
        let env = program.new_session();
        Place { pool: Arc::clone(self), program, env, is_known: false, is_given_back: false }
    }

    /// Starts a program, with a place in it.
    async fn start(self: &Arc<Self>, starting: Starting) -> Result<Place, EnvironmentError> {
        let launched = self.launcher.launch().await?;
        let program = Program::meet(launched, &self.spec).await;
        let program =
            program.map_err(|source| EnvironmentError::Program { doing: "be started", source })?;
        let program = Arc::new(program);
        let mut state = self.lock();
        if state.is_closed {
            return Err(EnvironmentError::NoPlace { seconds: 0 });
        }
        let mut used = Used { program, sessions: 0 };
        let place = self.take(&mut used);
        state.programs.push(used);
        drop(state);
        // Whoever waits may have more places than one now.
        drop(starting);
        self.freed.notify_waiters();
        Ok(place)
    }

    /// A session of a program has ended.
    fn give_back(&self, program: &Arc<Program>) {
        let mut state = self.lock();
        if let Some(used) = state.programs.iter_mut().find(|it| Arc::ptr_eq(&it.program, program)) {
            used.sessions -= 1;
        }
        drop(state);
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a place back, where it has not been lost.
pub(super) fn unpark(parked: &Mutex<Option<Place>>) -> Option<Place> {
    parked.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What there is for somebody who wants a place.
enum Found {
    Place(Place),
    /// A program may be started.
    Start(Starting),
    /// A place that can be given up; when that is done, it is free.
    Parked(Place),
    Nothing,
    Closed,
}

/// A program that is being started counts as one.
struct Starting {
    pool: Arc<ProgramPool>,
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.pool.lock().starting -= 1;
        // Where it failed or was given up, somebody else may try.
        self.pool.freed.notify_one();
    }
}

/// Somebody who waits for a place.
struct Waiting<'a>(&'a ProgramPool);

impl<'a> Waiting<'a> {
    fn new(pool: &'a ProgramPool) -> Self {
        pool.lock().waiting += 1;
        Self(pool)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Place {
    /// Closes the session and waits for it, which makes room.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Program`] when the program broke over it.
    pub(super) async fn close(mut self) -> Result<(), EnvironmentError> {
        if !self.is_known || !self.program.is_alive() {
            return Ok(());
        }
        let closed = close(&self.program, self.env).await;
        self.is_known = false;
        closed
    }
}

async fn close(program: &Program, env: u64) -> Result<(), EnvironmentError> {
    let closed = program.ask::<Nothing>(&Call::Close { env }, program.step_limit()).await;
    closed
        .map_err(|source| EnvironmentError::Program { doing: "close a session", source })
        .map(drop)
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.is_given_back, true) {
            return;
        }
        let (pool, program, env) = (Arc::clone(&self.pool), Arc::clone(&self.program), self.env);
        let runtime = tokio::runtime::Handle::try_current().ok();
        match runtime.filter(|_| self.is_known && program.is_alive()) {
            // The place is free when the session is closed.
            Some(runtime) => drop(runtime.spawn(async move {
                if let Err(error) = close(&program, env).await {
                    tracing::warn!(%error, "could not close a session");
                }
                pool.give_back(&program);
            })),
            None => pool.give_back(&program),
        }
    }
}
