//! One try at an episode, as a task of its own.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use spar_core::{
    Action, Boundary, EndReason, Message, Observation, Sampling, Seat, Seed, Source, Trajectory,
    Turn,
};
use spar_envs::{Environment, EnvironmentError};
use spar_tasks::Task;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{GroupSeat, OpenEnvironment};
use crate::episode::{broken, cancelled, panicked, play_behind, stillborn};
use crate::seating::TakenSeat;
use crate::spend::EpisodeTally;
use crate::{
    BranchPoint, Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Guide, Player,
    SeatedEpisode, Seating, SharedPlayer, TableInProgress, error_chain,
};

/// What the tasks of a collection share; all of it is their own, since they outlive who no longer waits for them
/// until they have closed their environments.
pub(super) struct Common {
    pub(super) player: SharedPlayer,
    pub(super) seating: Seating,
    pub(super) open: OpenEnvironment,
    pub(super) episode: EpisodeConfig,
    /// Tells them to stop: because that was asked for, or because nobody waits any more.
    pub(super) stop: Cancellation,
}

/// The start that the episodes of a group share: an environment that was reset, and what it showed.
pub(super) struct Origin {
    pub(super) task: Arc<Task>,
    /// What it was reset with.
    pub(super) seed: Seed,
    first: Observation,
    /// Who takes the seats; empty where there is one.
    seats: Vec<TakenSeat>,
    /// Whose move it is at the start: who has seen `first`, and nobody else.
    mover: Seat,
    /// Locked while it is forked: environments can be sent, but not shared, between threads. Absent once somebody plays in it, since it cannot
    /// be forked.
    environment: Mutex<Option<Box<dyn Environment>>>,
    /// Labels of the task that only its environment knows.
    pub(super) tags: Vec<String>,
}

/// Where an episode begins.
#[derive(Clone)]
pub(super) enum Start {
    /// At the start that the group shares.
    Shared,
    /// Where another one of the group was.
    Branch { origin: Arc<Trajectory>, at: BranchPoint },
}

/// What sets an episode apart from those that a group has of itself; by default nothing.
#[derive(Clone, Default)]
pub(super) struct Extra {
    /// What is said to the policy before its first own turn that no environment shows.
    pub(super) said: Arc<[Message]>,
    /// Who plays it in place of the policy.
    pub(super) guide: Option<Guide>,
    /// Tokens behind which it is paused; absent: it is played to its end.
    pub(super) leg: Option<usize>,
    /// Whether every token is the most probable one.
    pub(super) is_greedy: bool,
}

/// One try at an episode.
pub(super) struct Attempt {
    pub(super) common: Arc<Common>,
    pub(super) origin: Arc<Origin>,
    pub(super) start: Start,
    pub(super) extra: Extra,
    pub(super) id: u64,
    pub(super) seed: Seed,
}

/// What came of one try at an episode.
pub(super) enum Attempted {
    /// It has a record, of a failure maybe, and be that before its first turn.
    Recorded {
        /// One for each seat, in their order.
        trajectories: Vec<Trajectory>,
        /// Turns that were played again, to begin where another one was.
        replayed_turns: usize,
        /// Whether the backend could not make its sandbox.
        is_absent: bool,
        /// Whether it was paused.
        is_paused: bool,
    },
    /// It did not begin: no sandbox was asked for, because the backend fails or has no room.
    Refused(String),
}

/// Why there is no start that a group could share.
pub(super) enum Unopened {
    /// It broke, for reasons at this boundary.
    Failed(Boundary, String),
    /// No place was to be had, and later there may be one.
    Refused(String),
}

impl Unopened {
    fn of(error: EnvironmentError) -> Self {
        match error.is_refusal() {
            true => Self::Refused(error_chain(&error)),
            false => Self::Failed(error.boundary(), error_chain(&error)),
        }
    }
}

/// Runs a future as a task of its own, so that all cores take part; an error is what it panicked with.
pub(super) async fn spawned<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let joined = tokio::spawn(future).await;
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic),
        Err(error) => error.to_string(),
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

impl Attempt {
    /// Plays it as a task of its own; a panic makes it a failed one.
    pub(super) async fn spawn(self) -> Attempted {
        let (common, origin) = (Arc::clone(&self.common), Arc::clone(&self.origin));
        let (id, seed) = (self.id, self.seed);
        spawned(self.run()).await.unwrap_or_else(|panic| {
            Attempted::whole(common.never(&origin, (id, seed), &panicked(&panic)))
        })
    }

    /// Plays it to its end, and counts what it takes.
    async fn run(self) -> Attempted {
        let tally = EpisodeTally::default();
        let mut attempted = tally.counting(self.play()).await;
        if let Attempted::Recorded { trajectories, .. } = &mut attempted
            && let Some(first) = trajectories.first_mut()
        {
            first.spend = tally.spend();
        }
        attempted
    }

    /// Plays it to its end, and closes its environment.
    async fn play(self) -> Attempted {
        let Self { common, origin, start, .. } = &self;
        let mut episode = common.episode(origin, self.id, self.seed);
        if let (Some(guide), Player::Policy(policy)) = (self.extra.guide, episode.player) {
            episode.player = guide.player(Some(policy));
        }
        let never = |end: EndReason| common.never(origin, (self.id, self.seed), &end);
        // 1. An environment at the start of the group, with all that it needs.
        let mut environment = match origin.fork(common).await {
            Ok(environment) => environment,
            Err(error) => return Attempted::whole(never(broken(&error))),
        };
        let prepare = AssertUnwindSafe(environment.prepare()).catch_unwind();
        let prepared = tokio::select! {
            biased;
            () = common.stop.cancelled() => Err(cancelled()),
            prepared = prepare => prepared.map_err(|panic| panicked(&panic_text(&*panic))),
        };
        let is_absent = matches!(&prepared, Ok(Err(error)) if error.is_backend_failure());
        let failure = match prepared {
            Ok(Ok(())) => None,
            Ok(Err(error)) if error.is_refusal() => {
                common.close(&mut *environment).await;
                return Attempted::Refused(error_chain(&error));
            }
            Ok(Err(error)) => Some(broken(&error)),
            Err(end) => Some(end),
        };
        if let Some(end) = failure {
            common.close(&mut *environment).await;
            let trajectories = never(end);
            let (replayed_turns, is_paused) = (0, false);
            return Attempted::Recorded { trajectories, replayed_turns, is_absent, is_paused };
        }
        // 2. Its turns, behind those of another one where it goes on from there.
        if !origin.seats.is_empty() {
            return self.run_table(environment).await;
        }
        let greedy = || {
            let max_tokens = common.episode.sampling.max_tokens;
            let sampling = Sampling { temperature: 0.0, max_tokens, ..Sampling::default() };
            EpisodeConfig { sampling, ..common.episode.clone() }
        };
        let greedy = self.extra.is_greedy.then(greedy);
        let config = greedy.as_ref().unwrap_or(&common.episode);
        let (said, leg) = (&self.extra.said, self.extra.leg);
        let (mut trajectory, mut environment, is_paused) = match start {
            Start::Shared => {
                let first = origin.first.clone();
                let playing =
                    EpisodeInProgress::start_from(environment, first, &episode, config).await;
                play_behind(playing, said, leg).await
            }
            Start::Branch { origin, at } => {
                let playing =
                    EpisodeInProgress::branch(environment, origin, *at, &episode, config).await;
                play_behind(playing, said, leg).await
            }
        };
        common.close(&mut *environment).await;
        trajectory.lineage.greedy = self.extra.is_greedy;
        let inherited = |turn: &&Turn| turn.source == Source::Inherited;
        let replayed_turns = trajectory.turns.iter().filter(inherited).count();
        let trajectories = vec![trajectory];
        Attempted::Recorded { trajectories, replayed_turns, is_absent: false, is_paused }
    }

    /// Plays an episode in which several act.
    async fn run_table(&self, environment: Box<dyn Environment>) -> Attempted {
        let Self { common, origin, start, .. } = self;
        if let Start::Branch { .. } = start {
            let mut environment = environment;
            common.close(&mut *environment).await;
            let error = EnvironmentError::Misused { call: "branch", when: "where several act" };
            let never = common.never(origin, (self.id, self.seed), &broken(&error));
            return Attempted::whole(never);
        }
        let seated = origin.seats.iter().enumerate().map(|(index, taken)| {
            let episode = common.seat_episode(origin, (self.id, self.seed), (index, taken));
            SeatedEpisode { episode, config: &taken.config }
        });
        let first = origin.first.clone();
        let mut table = TableInProgress::start_from(environment, first, seated.collect()).await;
        while table.turn().await.is_some() {}
        let (trajectories, mut environment) = table.finish().await;
        common.close(&mut *environment).await;
        Attempted::whole(trajectories)
    }
}

impl Attempted {
    /// Of an episode of which nothing was played again, and that was not paused.
    fn whole(trajectories: Vec<Trajectory>) -> Self {
        Self::Recorded { trajectories, replayed_turns: 0, is_absent: false, is_paused: false }
    }
}

impl Common {
    /// The episode of this id and seed from the start of a group.
    fn episode<'a>(&'a self, origin: &'a Origin, id: u64, seed: Seed) -> Episode<'a> {
        Episode {
            id,
            task: &origin.task,
            player: self.player.in_environment(&origin.task.environment),
            seat: Seat::FIRST,
            seed,
            environment_seed: origin.seed,
            cancellation: &self.stop,
        }
    }

    /// The same as a seat plays it.
    fn seat_episode<'a>(
        &'a self,
        origin: &'a Origin,
        (id, seed): (u64, Seed),
        (index, taken): (usize, &'a TakenSeat),
    ) -> Episode<'a> {
        let seat = Seat::at(index);
        // Not the same draws for two that share a policy.
        let seed = if seat.is_first() { seed } else { seed.derive("seat", seat) };
        let player = taken.player.in_seat(&origin.task.environment, &taken.name);
        Episode { seat, seed, player, ..self.episode(origin, id, seed) }
    }

    /// The records of an episode that broke before its first turn: one for each seat, of which only who was to move has
    /// seen anything.
    fn never(&self, origin: &Origin, (id, seed): (u64, Seed), end: &EndReason) -> Vec<Trajectory> {
        if origin.seats.is_empty() {
            let episode = self.episode(origin, id, seed);
            return vec![stillborn(origin.first.clone(), &episode, end.clone())];
        }
        let seats = origin.seats.iter().enumerate();
        let record = |(index, taken): (usize, &TakenSeat)| {
            let episode = self.seat_episode(origin, (id, seed), (index, taken));
            let has_seen = episode.seat == origin.mover;
            let first = if has_seen { origin.first.clone() } else { Observation::default() };
            stillborn(first, &episode, end.clone())
        };
        seats.map(record).collect()
    }

    /// Opens and resets the environment of a group.
    pub(super) async fn origin(
        self: Arc<Self>,
        task: Arc<Task>,
        seed: Seed,
    ) -> Result<Origin, Unopened> {
        let mut environment = (self.open)(&task).map_err(Unopened::of)?;
        match self.first(&task, &mut *environment, seed).await {
            Ok((first, seats)) => {
                let mover = environment.to_move().unwrap_or_default();
                let tags = environment.tags();
                let environment = Some(environment).into();
                Ok(Origin { task, seed, first, seats, mover, environment, tags })
            }
            Err(failure) => {
                self.close(&mut *environment).await;
                Err(failure)
            }
        }
    }

    /// What an environment shows first, with who takes its seats.
    async fn first(
        &self,
        task: &Task,
        environment: &mut dyn Environment,
        seed: Seed,
    ) -> Result<(Observation, Vec<TakenSeat>), Unopened> {
        let seats = environment.seats();
        let taken = match seats.len() {
            1 => Vec::new(),
            _ => {
                let taken = self.seating.taken(task, seats, &self.player, &self.episode);
                taken.map_err(|problem| Unopened::Failed(Boundary::Environment, problem))?
            }
        };
        let first = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                return Err(Unopened::Failed(Boundary::Cancelled, "told to stop".to_owned()));
            }
            first = self.reset(environment, &taken, seed) => first.map_err(Unopened::of)?,
        };
        Ok((first, taken))
    }

    /// Resets an environment whose seats are taken so; it is told before whether its tools are called.
    async fn reset(
        &self,
        environment: &mut dyn Environment,
        seats: &[TakenSeat],
        seed: Seed,
    ) -> Result<Observation, EnvironmentError> {
        if seats.is_empty() {
            let told = self.episode.tell(environment);
            told.map_err(|error| EnvironmentError::Toolset { reason: error_chain(&error) })?;
        } else if seats.iter().any(|taken| taken.config.offers_tools()) {
            environment.use_tools();
        }
        let limit = self.episode.reset_timeout(environment.time_rules());
        let late = |_| EnvironmentError::Late { doing: "reset", seconds: limit.as_secs() };
        timeout(limit, environment.reset(seed)).await.map_err(late)?
    }

    async fn close(&self, environment: &mut (dyn Environment + '_)) {
        // What has panicked once may do so again.
        let close = AssertUnwindSafe(environment.close()).catch_unwind();
        let failure = match timeout(self.episode.turn_timeout(), close).await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(error))) => error_chain(&error),
            Ok(Err(panic)) => format!("it panicked: {}", panic_text(&*panic)),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(%failure, "could not close an environment");
    }
}

impl Origin {
    /// Its seats; none where one acts.
    pub(super) fn seats(&self) -> Vec<GroupSeat> {
        let seat = |taken: &TakenSeat| GroupSeat {
            name: taken.name.clone(),
            player: taken.player.as_player().name().to_owned(),
            is_grouped: taken.is_grouped,
        };
        self.seats.iter().map(seat).collect()
    }

    /// Whether the trajectories of a seat are in the group.
    pub(super) fn is_grouped(&self, seat: Seat) -> bool {
        self.seats.get(seat.index()).is_none_or(|taken| taken.is_grouped)
    }

    /// What the task asks for in words: its instruction, or else what is shown first.
    pub(super) fn asked(&self) -> String {
        match &self.first.instruction {
            Some(instruction) => instruction.to_string(),
            None => self.first.text.clone(),
        }
    }

    /// The actions of the environment's player who sees all, from the start on, up to so many; none where there is no such player, or the environment
    /// does not fork.
    pub(super) async fn solution(&self, common: &Common, most: u32) -> Vec<Action> {
        let Ok(mut environment) = self.fork(common).await else { return Vec::new() };
        let mut actions = Vec::new();
        if matches!(environment.prepare().await, Ok(())) {
            while actions.len() < most as usize
                && let Some(action) = environment.oracle_action()
            {
                let stepped =
                    timeout(common.episode.turn_timeout(), environment.step(&action)).await;
                actions.push(action);
                match stepped {
                    Ok(Ok(step)) if !step.terminated => {}
                    _ => break,
                }
            }
        }
        common.close(&mut *environment).await;
        actions
    }

    /// Closes it, once nothing forks it any more.
    pub(super) async fn close(&self, common: &Common) {
        if let Some(mut environment) = self.environment.lock().await.take() {
            common.close(&mut *environment).await;
        }
    }

    /// A fork of the environment, which is brought up anew where it cannot be forked any more.
    async fn fork(&self, common: &Common) -> Result<Box<dyn Environment>, EnvironmentError> {
        let mut place = self.environment.lock().await;
        let Some(mut environment) = place.take() else {
            drop(place);
            return self.anew(common).await;
        };
        match environment.fork().await {
            Ok(Some(fork)) => {
                *place = Some(environment);
                return Ok(fork);
            }
            Ok(None) => {
                // Every member has an environment of its own then, and brings it up beside the others; the first has this one. Where there are only so
                // many, as of windows of a browser, one that nobody plays in would have the members wait for it, and it for them.
                return Ok(environment);
            }
            Err(error) => tracing::warn!(
                task = self.task.id,
                error = error_chain(&error),
                "could not fork a group's start"
            ),
        }
        common.close(&mut *environment).await;
        let mut anew = self.anew(common).await?;
        let fork = anew.fork().await?;
        *place = Some(anew);
        fork.ok_or(EnvironmentError::Misused { call: "fork", when: "where it could before" })
    }

    /// An environment at the start that the members of a group share.
    async fn anew(&self, common: &Common) -> Result<Box<dyn Environment>, EnvironmentError> {
        let mut anew = (common.open)(&self.task)?;
        let error = match common.reset(&mut *anew, &self.seats, self.seed).await {
            // A group is compared, so its members have to share their start.
            Ok(first) if first == self.first => return Ok(anew),
            Ok(_) => EnvironmentError::NotRepeatable { doing: "reset with the same seed" },
            Err(error) => error,
        };
        common.close(&mut *anew).await;
        Err(error)
    }
}
