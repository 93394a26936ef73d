//! A group whose episodes are being played.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt;
use spar_core::{Boundary, EndReason, Group, Observation, Seed, Trajectory};
use spar_envs::{Environment, EnvironmentError};
use spar_tasks::Task;
use tokio::sync::Semaphore;

use super::{CollectConfig, CollectRequest, CollectionCounts, CollectionSink, FinishedGroup};
use crate::episode::stillborn;
use crate::{BranchPoint, Episode, error_chain, run_branch, run_started_episode};

/// Waits before an episode is played anew whose sandbox failed: doubled from the first to the
/// second.
const SANDBOX_BACK_OFF: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(30));

/// What the groups of a collection share.
pub(super) struct Shared<'a> {
    pub(super) request: &'a CollectRequest<'a>,
    pub(super) config: &'a CollectConfig,
    pub(super) sink: &'a dyn CollectionSink,
    /// One for each episode that may be in progress.
    pub(super) permits: Semaphore,
    pub(super) tallies: Mutex<(CollectionCounts, Option<String>)>,
}

/// A group whose episodes are being played: what a [strategy](crate::strategies::RolloutStrategy) grows
/// trajectories with.
///
/// All episodes of a group share one start. One that fails is played anew, up to a bound and after a while where
/// its sandbox failed.
pub struct GroupInProgress<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    origin: Origin,
    seed: Seed,
}

/// An environment that was reset, and what it showed.
struct Origin {
    /// Locked while it is forked: environments can be sent, but not shared, between threads.
    environment: tokio::sync::Mutex<Box<dyn Environment>>,
    /// What it was reset with.
    seed: Seed,
    first: Observation,
}

/// Where an episode begins.
#[derive(Clone, Copy)]
enum Start<'a> {
    /// At the start that the group shares.
    Shared,
    /// Where another one of the group was.
    Branch { origin: &'a Trajectory, at: BranchPoint },
}

/// What came of one try at an episode.
enum Try {
    /// It ended by its task or by a limit.
    Finished(Box<Trajectory>),
    /// It broke, for reasons at this boundary.
    Broke(Boundary),
    /// It did not begin: no sandbox was asked for, because the backend fails or has no room.
    Refused(String),
    /// It did not begin: the backend could not make a sandbox. It is recorded.
    Absent,
    /// It was told to stop.
    Stopped,
}

impl GroupInProgress<'_> {
    /// How many trajectories the group shall have.
    pub fn size(&self) -> usize {
        self.shared.config.group_size
    }

    /// Where the random choices of its strategy start.
    pub fn seed(&self) -> Seed {
        self.seed.derive("strategy", 0)
    }

    /// Tells that so many of its trajectories are not wanted after all, so that nobody misses them.
    pub fn leave_out(&self, trajectories: usize) {
        self.shared.tally(|counts| counts.wanted -= trajectories);
    }

    /// Plays the member of this number from the start that all share; `None` when it failed for good or
    /// nothing is played any more.
    pub async fn episode(&self, member: usize) -> Option<Trajectory> {
        self.member(member, Start::Shared).await
    }

    /// Plays the member of this number from where another member was, whose past it takes over.
    pub async fn branch(
        &self,
        member: usize,
        origin: &Trajectory,
        at: BranchPoint,
    ) -> Option<Trajectory> {
        self.member(member, Start::Branch { origin, at }).await
    }

    /// Plays one member, anew when it failed; `None` when it failed for good.
    async fn member(&self, member: usize, start: Start<'_>) -> Option<Trajectory> {
        let shared = self.shared;
        let CollectConfig { refills, sandbox_patience_secs, .. } = *shared.config;
        let task = &shared.request.tasks[self.index];
        let seed = self.seed.derive("member", member);
        let mut patience = Duration::from_secs(sandbox_patience_secs);
        let (mut attempt, mut absences, mut waits) = (0, 0, 0);
        while attempt <= refills {
            let number = attempt + absences;
            let boundary = match self.attempt(start, seed, attempt, number).await? {
                Try::Finished(trajectory) => {
                    shared.sink.trajectory(self.index, &trajectory);
                    return Some(*trajectory);
                }
                Try::Stopped => return None,
                Try::Broke(boundary) => {
                    attempt += 1;
                    if attempt <= refills {
                        shared.tally(|counts| counts.refills += 1);
                    }
                    boundary
                }
                Try::Refused(detail) => {
                    if patience.is_zero() {
                        shared.note(&task.id, Boundary::Sandbox, detail);
                        return None;
                    }
                    tracing::info!(task = task.id, detail, "waiting for a sandbox");
                    Boundary::Sandbox
                }
                // The one that tries a failing backend for all others has no refill less for it.
                Try::Absent if patience.is_zero() => return None,
                Try::Absent => {
                    absences += 1;
                    Boundary::Sandbox
                }
            };
            if boundary == Boundary::Sandbox && attempt <= refills {
                // Not at once, and not all at the same moment.
                let spread = seed.derive("back-off", waits).rng().random_range(0.75..1.25);
                let wait = SANDBOX_BACK_OFF.0 * 2_u32.pow(waits.min(10));
                let wait = wait.min(SANDBOX_BACK_OFF.1).mul_f64(spread).min(patience);
                patience -= wait;
                waits += 1;
                tokio::select! {
                    () = shared.request.cancellation.cancelled() => return None,
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
        None
    }

    /// One try at an episode; `None` where nothing is played any more.
    ///
    /// `attempt` counts those before it that took a refill, `number` all that were recorded.
    async fn attempt(
        &self,
        start: Start<'_>,
        seed: Seed,
        attempt: u32,
        number: u32,
    ) -> Option<Try> {
        let (shared, group) = (self.shared, &self.origin);
        let CollectRequest { player, cancellation, .. } = *shared.request;
        let task = &shared.request.tasks[self.index];
        let _permit = shared.permits.acquire().await.ok()?;
        if cancellation.is_cancelled() {
            return None;
        }
        let seed = if attempt < 2 { seed } else { seed.derive("refill", attempt) };
        let mut environment = match shared.fork(task, group).await {
            Ok(environment) => environment,
            Err(error) => {
                shared.note(&task.id, error.boundary(), error_chain(&error));
                return Some(Try::Broke(error.boundary()));
            }
        };
        let episode = Episode {
            // Exact also in readers that know numbers only as doubles.
            id: seed.derive("episode", number).as_u64() >> 11,
            task,
            player,
            seed,
            environment_seed: group.seed,
            cancellation,
        };
        let first = group.first.clone();
        let prepared = tokio::select! {
            biased;
            () = cancellation.cancelled() => {
                shared.tally(|counts| counts.fail(Boundary::Cancelled));
                shared.close(&mut environment).await;
                return Some(Try::Stopped);
            }
            prepared = environment.prepare() => prepared,
        };
        let is_absent = prepared.as_ref().is_err_and(EnvironmentError::is_backend_failure);
        let config = &shared.config.episode;
        let mut trajectory = match (prepared, start) {
            (Ok(()), Start::Shared) => {
                run_started_episode(&mut *environment, first, &episode, config).await
            }
            (Ok(()), Start::Branch { origin, at }) => {
                match run_branch(&mut *environment, origin, at, &episode, config).await {
                    Ok(trajectory) => {
                        shared.tally(|counts| counts.replayed_turns += at.turn);
                        trajectory
                    }
                    Err(error) => {
                        shared.close(&mut environment).await;
                        shared.note(&task.id, error.boundary(), error_chain(&error));
                        return Some(Try::Broke(error.boundary()));
                    }
                }
            }
            (Err(error), _) if error.is_refusal() => {
                shared.close(&mut environment).await;
                return Some(Try::Refused(error_chain(&error)));
            }
            (Err(error), _) => stillborn(&*environment, first, &episode, &error),
        };
        trajectory.refills = attempt;
        shared.close(&mut environment).await;
        shared.tally(|counts| counts.add(&trajectory));
        (shared.request.on_episode)(&trajectory);
        Some(match &trajectory.end {
            EndReason::Failed { boundary: Boundary::Cancelled, .. } => Try::Stopped,
            EndReason::Failed { boundary, detail } => {
                shared.remember(&task.id, detail);
                if is_absent { Try::Absent } else { Try::Broke(*boundary) }
            }
            EndReason::Terminated | EndReason::Truncated { .. } => {
                Try::Finished(Box::new(trajectory))
            }
        })
    }
}

impl Shared<'_> {
    /// Plays a group to its end.
    pub(super) async fn group(&self, index: usize, seed: Seed) -> FinishedGroup {
        let task = &self.request.tasks[index];
        let mut tags = task.tags.clone();
        let mut group = Group { task: task.id.clone(), trajectories: Vec::new() };
        let Some(mut origin) = self.origin(task, seed).await else {
            return FinishedGroup { index, group, tags };
        };
        for tag in origin.environment.get_mut().tags() {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let mut playing = GroupInProgress { shared: self, index, origin, seed };
        group.trajectories = self.request.strategy.grow(&playing).await;
        self.close(playing.origin.environment.get_mut()).await;
        FinishedGroup { index, group, tags }
    }

    /// Opens and resets the environment of a group.
    async fn origin(&self, task: &Task, seed: Seed) -> Option<Origin> {
        for _ in 0..=self.config.refills {
            if self.request.cancellation.is_cancelled() {
                return None;
            }
            let _permit = self.permits.acquire().await.ok()?;
            let mut environment = match (self.request.open)(task) {
                Ok(environment) => environment,
                Err(error) => {
                    self.note(&task.id, error.boundary(), error_chain(&error));
                    continue;
                }
            };
            let environment_seed = seed.derive("environment", 0);
            let reset = environment.reset(environment_seed);
            let (boundary, error) =
                match tokio::time::timeout(self.config.episode.turn_timeout(), reset).await {
                    Ok(Ok(first)) => {
                        let environment = environment.into();
                        return Some(Origin { environment, seed: environment_seed, first });
                    }
                    Ok(Err(error)) => (error.boundary(), error_chain(&error)),
                    Err(_) => (Boundary::Environment, "the reset took too long".to_owned()),
                };
            self.note(&task.id, boundary, error);
            self.close(&mut environment).await;
        }
        None
    }

    /// A fork of a group's environment, which is brought up anew where it cannot be forked any more.
    async fn fork(
        &self,
        task: &Task,
        origin: &Origin,
    ) -> Result<Box<dyn Environment>, EnvironmentError> {
        let mut environment = origin.environment.lock().await;
        match environment.fork().await {
            Ok(Some(fork)) => return Ok(fork),
            // Every member has an environment of its own then.
            Ok(None) => return self.anew(task, origin).await,
            Err(error) => tracing::warn!(
                task = task.id,
                error = error_chain(&error),
                "could not fork a group's start"
            ),
        }
        self.close(&mut environment).await;
        let mut anew = self.anew(task, origin).await?;
        let fork = anew.fork().await?;
        *environment = anew;
        fork.ok_or(EnvironmentError::Misused { call: "fork", when: "where it could before" })
    }

    /// An environment at the start that the members of a group share.
    async fn anew(
        &self,
        task: &Task,
        origin: &Origin,
    ) -> Result<Box<dyn Environment>, EnvironmentError> {
        let mut anew = (self.request.open)(task)?;
        let limit = self.config.episode.turn_timeout();
        let error = match tokio::time::timeout(limit, anew.reset(origin.seed)).await {
            // A group is compared, so its members have to share their start.
            Ok(Ok(first)) if first == origin.first => return Ok(anew),
            Ok(Ok(_)) => EnvironmentError::NotRepeatable { doing: "reset with the same seed" },
            Ok(Err(error)) => error,
            Err(_) => EnvironmentError::Late { doing: "reset", seconds: limit.as_secs() },
        };
        self.close(&mut anew).await;
        Err(error)
    }

    async fn close(&self, environment: &mut Box<dyn Environment>) {
        let close = environment.close();
        let failure = match tokio::time::timeout(self.config.episode.turn_timeout(), close).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error_chain(&error),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(%failure, "could not close an environment");
    }

    fn note(&self, task: &str, boundary: Boundary, detail: String) {
        self.tally(|counts| counts.fail(boundary));
        self.remember(task, &detail);
    }

    fn remember(&self, task: &str, detail: &str) {
        tracing::warn!(task, detail, "an episode failed");
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.1 = Some(format!("task `{task}`: {detail}"));
    }

    fn tally(&self, change: impl FnOnce(&mut CollectionCounts)) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut tallies.0);
    }
}
