//! Groups of episodes, many at a time.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, FuturesUnordered, StreamExt};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use spar_core::{Boundary, EndReason, Group, Observation, Seed, Trajectory};
use spar_envs::{Environment, EnvironmentError};
use spar_tasks::Task;
use tokio::sync::Semaphore;

use crate::episode::stillborn;
use crate::{
    Cancellation, ConfigError, Episode, EpisodeConfig, LimitCounts, Player, error_chain,
    run_started_episode,
};

/// Waits before an episode is played anew whose sandbox failed: doubled from the first to the
/// second.
const SANDBOX_BACK_OFF: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(30));

/// How groups are collected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CollectConfig {
    /// Episodes per task; at least 1. Default 8.
    pub group_size: usize,
    /// Episodes in progress at the same time; at least 1. Default 256.
    pub concurrency: usize,
    /// How often a failed episode is played anew: first with its own seed, then with fresh ones.
    /// Default 3.
    pub refills: u32,
    /// Seconds that an episode waits for its sandbox in all, while the backend fails or too much is
    /// asked of it; this counts as no refill. Default 600.
    pub sandbox_patience_secs: u64,
    /// How episodes are played.
    pub episode: EpisodeConfig,
}

impl Default for CollectConfig {
    fn default() -> Self {
        Self {
            group_size: 8,
            concurrency: 256,
            refills: 3,
            sandbox_patience_secs: 600,
            episode: EpisodeConfig::default(),
        }
    }
}

impl CollectConfig {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems: Vec<_> =
            self.episode.problems().iter().map(|problem| format!("episode.{problem}")).collect();
        for (name, value) in [("group_size", self.group_size), ("concurrency", self.concurrency)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        ConfigError::refuse(problems)
    }
}

/// What came of a collection; failures are counted, never scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CollectionCounts {
    /// Episodes that were asked for.
    pub wanted: usize,
    /// Episodes that ended by their task or by a limit; these make the groups.
    pub finished: usize,
    /// Of these, the ones that a limit ended.
    pub truncated: usize,
    /// The same by limit.
    #[serde(default)]
    pub limits: LimitCounts,
    /// Tries that broke and were played anew: further tries that a player was given.
    #[serde(default)]
    pub refills: usize,
    /// Failures at the policy, the refilled ones among them.
    pub policy_failures: usize,
    /// Failures at the environment, the refilled ones among them.
    pub environment_failures: usize,
    /// Sandboxes that could not be had, broke or died, the refilled ones among them.
    #[serde(default)]
    pub sandbox_failures: usize,
    /// Episodes that were told to stop.
    pub cancelled: usize,
}

impl CollectionCounts {
    /// Episodes that were asked for and did not come about.
    pub fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.finished)
    }

    fn add(&mut self, trajectory: &Trajectory) {
        self.limits.count(&trajectory.end);
        match &trajectory.end {
            EndReason::Terminated => self.finished += 1,
            EndReason::Truncated { .. } => {
                self.finished += 1;
                self.truncated += 1;
            }
            EndReason::Failed { boundary, .. } => self.fail(*boundary),
        }
    }

    fn fail(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Policy => self.policy_failures += 1,
            Boundary::Environment => self.environment_failures += 1,
            Boundary::Sandbox => self.sandbox_failures += 1,
            Boundary::Cancelled => self.cancelled += 1,
        }
    }
}

impl AddAssign for CollectionCounts {
    fn add_assign(&mut self, other: Self) {
        self.wanted += other.wanted;
        self.finished += other.finished;
        self.truncated += other.truncated;
        self.limits += other.limits;
        self.refills += other.refills;
        self.policy_failures += other.policy_failures;
        self.environment_failures += other.environment_failures;
        self.sandbox_failures += other.sandbox_failures;
        self.cancelled += other.cancelled;
    }
}

/// What was collected.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Collection {
    /// One group per task, in the order of the tasks; its trajectories in the order of the
    /// members, without those that failed for good.
    pub groups: Vec<Group>,
    /// The tags of every task, those that only its environment knows included.
    pub tags: Vec<Vec<String>>,
    /// What came of it.
    pub counts: CollectionCounts,
    /// Details of the last failure, to tell the user.
    pub last_failure: Option<String>,
}

/// Makes a task interactive, such as `spar_envs::open_environment` with what it needs.
pub type OpenEnvironment<'a> =
    dyn Fn(&Task) -> Result<Box<dyn Environment>, EnvironmentError> + Sync + 'a;

/// Who plays what, for [`collect_groups`].
pub struct CollectRequest<'a> {
    /// The tasks; each makes a group, also one that comes several times.
    pub tasks: &'a [Task],
    /// Who chooses the actions.
    pub player: Player<'a>,
    /// Makes a task interactive.
    pub open: &'a OpenEnvironment<'a>,
    /// Where the random choices of this collection start; a run derives one per iteration.
    pub seed: Seed,
    /// Tells it to stop.
    pub cancellation: &'a Cancellation,
    /// Told of every episode that ended, failed ones included.
    pub on_episode: &'a (dyn Fn(&Trajectory) + Sync),
}

/// A group that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedGroup {
    /// The number of its task among those of the request.
    pub index: usize,
    /// The episodes in the order of the members, without those that failed for good.
    pub group: Group,
    /// The tags of its task, those that only its environment knows included.
    pub tags: Vec<String>,
}

/// Takes what a collection yields as soon as it is there, so that nothing has to be held.
pub trait CollectionSink: Sync {
    /// An episode of the task of this number ended by its task or by a limit. The others of its group
    /// may still be under way.
    fn trajectory(&self, index: usize, trajectory: &Trajectory);

    /// The last episode of a group ended; all of them were handed over before.
    fn group(&self, group: FinishedGroup);
}

/// Holds all groups.
#[derive(Default)]
struct Held(Mutex<Vec<FinishedGroup>>);

impl CollectionSink for Held {
    fn trajectory(&self, _index: usize, _trajectory: &Trajectory) {}

    fn group(&self, group: FinishedGroup) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(group);
    }
}

/// Plays a group of episodes for every task, many at a time.
///
/// The environment of a group is opened and reset once and forked for its members, so that they
/// share their start. Every episode's random choices derive from the request's seed by task and
/// member, and by how often the task came before in this request, so that no two groups are the same
/// episodes: what is collected does not depend on `concurrency`, but the order in which
/// `on_episode` hears of it does. A failed episode is played anew up to a bound, after a while where
/// its sandbox failed, while its siblings go on; failures that remain leave their group smaller.
/// Cancelling returns what was finished.
pub async fn collect_groups(request: &CollectRequest<'_>, config: &CollectConfig) -> Collection {
    let held = Held::default();
    let (counts, last_failure) = stream_groups(request, config, &held).await;
    let mut groups = held.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    groups.sort_by_key(|group| group.index);
    let mut collection = Collection { counts, last_failure, ..Collection::default() };
    for FinishedGroup { group, tags, .. } in groups {
        collection.groups.push(group);
        collection.tags.push(tags);
    }
    collection
}

/// As [`collect_groups`], and hands over trajectories and groups in the order in which they end. What is
/// held meanwhile are the groups in progress, at most as many as episodes at a time. Returns what came
/// of it, and details of the last failure.
pub async fn stream_groups(
    request: &CollectRequest<'_>,
    config: &CollectConfig,
    sink: &dyn CollectionSink,
) -> (CollectionCounts, Option<String>) {
    let wanted = request.tasks.len() * config.group_size;
    let shared = Shared {
        request,
        config,
        sink,
        permits: Semaphore::new(config.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
        tallies: Mutex::new((CollectionCounts { wanted, ..Default::default() }, None)),
    };
    let seeds = group_seeds(request);
    let groups = (0..request.tasks.len()).map(|index| shared.group(index, seeds[index]));
    // A group in progress holds its environment, so no more of them than could be played.
    let mut groups = stream::iter(groups).buffer_unordered(config.concurrency.max(1));
    while let Some(group) = groups.next().await {
        sink.group(group);
    }
    drop(groups);
    shared.tallies.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Where the random choices of each group start.
fn group_seeds(request: &CollectRequest<'_>) -> Vec<Seed> {
    let mut met: HashMap<&str, u64> = HashMap::new();
    let mut seeds = Vec::with_capacity(request.tasks.len());
    for task in request.tasks {
        let repetition = met.entry(&task.id).or_default();
        let seed = request.seed.derive("task", &task.id);
        seeds.push(if *repetition == 0 { seed } else { seed.derive("repetition", *repetition) });
        *repetition += 1;
    }
    seeds
}

struct Shared<'a> {
    request: &'a CollectRequest<'a>,
    config: &'a CollectConfig,
    sink: &'a dyn CollectionSink,
    permits: Semaphore,
    tallies: Mutex<(CollectionCounts, Option<String>)>,
}

/// An environment that was reset, and what it showed.
struct Origin {
    /// Locked while it is forked: environments can be sent, but not shared, between threads.
    environment: tokio::sync::Mutex<Box<dyn Environment>>,
    /// What it was reset with.
    seed: Seed,
    first: Observation,
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

impl Shared<'_> {
    async fn group(&self, index: usize, seed: Seed) -> FinishedGroup {
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
        let mut members: FuturesUnordered<_> = (0..self.config.group_size)
            .map(|member| {
                let origin = &origin;
                async move { (member, self.member(index, origin, seed, member).await) }
            })
            .collect();
        let mut trajectories = Vec::with_capacity(self.config.group_size);
        while let Some((member, trajectory)) = members.next().await {
            trajectories.extend(trajectory.map(|trajectory| (member, trajectory)));
        }
        drop(members);
        self.close(origin.environment.get_mut()).await;
        trajectories.sort_by_key(|(member, _)| *member);
        group.trajectories = trajectories.into_iter().map(|(_, trajectory)| trajectory).collect();
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

    /// Plays one member, anew when it failed; `None` when it failed for good.
    async fn member(
        &self,
        index: usize,
        origin: &Origin,
        seed: Seed,
        member: usize,
    ) -> Option<Trajectory> {
        let task = &self.request.tasks[index];
        let seed = seed.derive("member", member);
        let mut patience = Duration::from_secs(self.config.sandbox_patience_secs);
        let (mut attempt, mut absences, mut waits) = (0, 0, 0);
        while attempt <= self.config.refills {
            let number = attempt + absences;
            let boundary = match self.attempt(task, origin, seed, attempt, number).await? {
                Try::Finished(trajectory) => {
                    self.sink.trajectory(index, &trajectory);
                    return Some(*trajectory);
                }
                Try::Stopped => return None,
                Try::Broke(boundary) => {
                    attempt += 1;
                    if attempt <= self.config.refills {
                        self.tally(|counts| counts.refills += 1);
                    }
                    boundary
                }
                Try::Refused(detail) => {
                    if patience.is_zero() {
                        self.note(&task.id, Boundary::Sandbox, detail);
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
            if boundary == Boundary::Sandbox && attempt <= self.config.refills {
                // Not at once, and not all at the same moment.
                let spread = seed.derive("back-off", waits).rng().random_range(0.75..1.25);
                let wait = SANDBOX_BACK_OFF.0 * 2_u32.pow(waits.min(10));
                let wait = wait.min(SANDBOX_BACK_OFF.1).mul_f64(spread).min(patience);
                patience -= wait;
                waits += 1;
                tokio::select! {
                    () = self.request.cancellation.cancelled() => return None,
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
        task: &Task,
        origin: &Origin,
        seed: Seed,
        attempt: u32,
        number: u32,
    ) -> Option<Try> {
        let _permit = self.permits.acquire().await.ok()?;
        if self.request.cancellation.is_cancelled() {
            return None;
        }
        let seed = if attempt < 2 { seed } else { seed.derive("refill", attempt) };
        let mut environment = match self.fork(task, origin).await {
            Ok(environment) => environment,
            Err(error) => {
                self.note(&task.id, error.boundary(), error_chain(&error));
                return Some(Try::Broke(error.boundary()));
            }
        };
        let episode = Episode {
            // Exact also in readers that know numbers only as doubles.
            id: seed.derive("episode", number).as_u64() >> 11,
            task,
            player: self.request.player,
            seed,
            environment_seed: origin.seed,
            cancellation: self.request.cancellation,
        };
        let first = origin.first.clone();
        let prepared = tokio::select! {
            biased;
            () = self.request.cancellation.cancelled() => {
                self.tally(|counts| counts.fail(Boundary::Cancelled));
                self.close(&mut environment).await;
                return Some(Try::Stopped);
            }
            prepared = environment.prepare() => prepared,
        };
        let is_absent = prepared.as_ref().is_err_and(EnvironmentError::is_backend_failure);
        let mut trajectory = match prepared {
            Ok(()) => {
                let config = &self.config.episode;
                run_started_episode(&mut *environment, first, &episode, config).await
            }
            Err(error) if error.is_refusal() => {
                self.close(&mut environment).await;
                return Some(Try::Refused(error_chain(&error)));
            }
            Err(error) => stillborn(&*environment, first, &episode, &error),
        };
        trajectory.refills = attempt;
        self.close(&mut environment).await;
        self.tally(|counts| counts.add(&trajectory));
        (self.request.on_episode)(&trajectory);
        Some(match &trajectory.end {
            EndReason::Failed { boundary: Boundary::Cancelled, .. } => Try::Stopped,
            EndReason::Failed { boundary, detail } => {
                self.remember(&task.id, detail);
                if is_absent { Try::Absent } else { Try::Broke(*boundary) }
            }
            EndReason::Terminated | EndReason::Truncated { .. } => {
                Try::Finished(Box::new(trajectory))
            }
        })
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use spar_core::Limit;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::{RandomPolicy, ScriptedPolicy};

    fn quiet(_: &Trajectory) {}

    async fn collect(
        player: Player<'_>,
        origin: &FakeEnvironment,
        tasks: usize,
        config: &CollectConfig,
    ) -> Collection {
        let tasks: Vec<_> = (0..tasks).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player,
            open: &|_| Ok(Box::new(origin.clone())),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        collect_groups(&request, config).await
    }

    fn is_send<T: Send>(value: T) -> T {
        value
    }

    #[tokio::test]
    async fn what_is_collected_does_not_depend_on_concurrency() {
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_millis(1);
        let mut collections = Vec::new();
        for concurrency in [1, 7, 500] {
            let config = CollectConfig { concurrency, group_size: 4, ..CollectConfig::default() };
            let player = Player::Policy(&RandomPolicy);
            let mut collection = is_send(collect(player, &origin, 6, &config)).await;
            assert_eq!(collection.counts.finished, 24);
            for trajectory in collection.groups.iter_mut().flat_map(|g| &mut g.trajectories) {
                trajectory.wall_time = Duration::ZERO;
                trajectory.turns.iter_mut().for_each(|turn| turn.policy_time = Duration::ZERO);
            }
            collections.push(collection);
        }
        assert_eq!(collections[0], collections[1]);
        assert_eq!(collections[0], collections[2]);
        let first = &collections[0];
        assert_eq!(first.groups[5].task, "corridor/train/5");
        assert_eq!(first.tags[0], ["fake", "short"]);
        let mut ids: Vec<_> =
            first.groups.iter().flat_map(|g| &g.trajectories).map(|t| t.episode).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 24);
    }

    #[tokio::test]
    async fn a_task_that_comes_again_is_played_anew() {
        let tasks = [0, 1, 0, 0].map(fake_task);
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&RandomPolicy),
            open: &|_| Ok(Box::new(FakeEnvironment::new())),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let config = CollectConfig { group_size: 16, ..CollectConfig::default() };
        let groups = collect_groups(&request, &config).await.groups;
        let ids: HashSet<_> =
            groups.iter().flat_map(|group| &group.trajectories).map(|t| t.episode).collect();
        assert_eq!(ids.len(), 64);
        let answers = |group: &Group| -> Vec<Vec<String>> {
            let texts = |t: &Trajectory| t.turns.iter().map(|turn| turn.text.clone()).collect();
            group.trajectories.iter().map(texts).collect()
        };
        assert_eq!(groups[0].task, groups[2].task);
        assert_ne!(answers(&groups[0]), answers(&groups[2]));
        assert_ne!(answers(&groups[2]), answers(&groups[3]));
    }

    #[tokio::test(start_paused = true)]
    async fn hundreds_of_episodes_run_at_the_same_time_but_no_more_than_allowed() {
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(1);
        let policy = ScriptedPolicy::new(["right"]);
        for (concurrency, seconds) in [(800, 3), (400, 6), (100, 24)] {
            let config = CollectConfig { concurrency, ..CollectConfig::default() };
            let started = tokio::time::Instant::now();
            let collection = collect(Player::Policy(&policy), &origin, 100, &config).await;
            assert_eq!(collection.counts.finished, 800);
            assert_eq!(started.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test]
    async fn failures_are_refilled_and_counted() {
        let origin = FakeEnvironment::new();
        origin.mishaps.store(5, Ordering::SeqCst);
        let policy = ScriptedPolicy::new(["right"]);
        let config = CollectConfig { refills: 5, ..CollectConfig::default() };
        let collection = collect(Player::Policy(&policy), &origin, 3, &config).await;
        assert_eq!(collection.counts.finished, 24);
        assert_eq!((collection.counts.environment_failures, collection.counts.missing()), (5, 0));
        assert!(collection.last_failure.unwrap().contains("on a bad day"));
        assert!(collection.groups.iter().all(|group| group.trajectories.len() == 8));
        assert!(collection.groups.iter().flat_map(|g| &g.trajectories).all(|t| t.success));
    }

    #[tokio::test]
    async fn further_tries_are_told_beside_what_came_of_them() {
        let origin = FakeEnvironment::new();
        let policy = ScriptedPolicy::new(["right"]);
        let tasks = [fake_task(0)];
        // The second member breaks twice, once the first is done.
        let once = AtomicUsize::new(2);
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&policy),
            open: &|_| Ok(Box::new(origin.clone())),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {
                let breaks = once.swap(0, Ordering::SeqCst);
                origin.mishaps.fetch_add(breaks, Ordering::SeqCst);
            },
        };
        let config = CollectConfig { group_size: 3, concurrency: 1, ..CollectConfig::default() };
        let collection = collect_groups(&request, &config).await;
        let refills: Vec<_> =
            collection.groups[0].trajectories.iter().map(|trajectory| trajectory.refills).collect();
        assert_eq!(refills.iter().sum::<u32>(), 2);
        assert_eq!((collection.counts.refills, collection.counts.finished), (2, 3));
        let score = crate::Score::of(&[&collection.groups[0]], 3, None, Seed::from_u64(0));
        assert_eq!((score.refills, score.episodes), (2, 3));
    }

    #[tokio::test]
    async fn what_fails_for_good_is_missing_and_not_scored() {
        let mut origin = FakeEnvironment::new();
        origin.breaks_after = Some(1);
        let policy = ScriptedPolicy::new(["right"]);
        let config = CollectConfig { refills: 2, group_size: 4, ..CollectConfig::default() };
        let collection = collect(Player::Policy(&policy), &origin, 2, &config).await;
        assert!(collection.groups.iter().all(|group| group.trajectories.is_empty()));
        assert_eq!((collection.counts.missing(), collection.counts.environment_failures), (8, 24));
        assert_eq!(collection.counts.refills, 16);
        // An environment that cannot even be opened.
        let tasks = [fake_task(0)];
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&policy),
            open: &|_| Err(EnvironmentError::Misused { call: "open", when: "never" }),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let collection = collect_groups(&request, &config).await;
        assert_eq!((collection.groups.len(), collection.counts.missing()), (1, 4));
        assert_eq!(collection.counts.environment_failures, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_finished_is_handed_over_at_once() {
        /// What came, in order.
        #[derive(Default)]
        struct Heard(Mutex<Vec<String>>);
        impl Heard {
            fn note(&self, what: String) {
                self.0.lock().unwrap().push(what);
            }
        }
        impl CollectionSink for Heard {
            fn trajectory(&self, index: usize, trajectory: &Trajectory) {
                assert!(!trajectory.is_failed());
                self.note(format!("trajectory of {index}"));
            }

            fn group(&self, group: FinishedGroup) {
                assert_eq!(group.group.trajectories.len(), 2);
                assert_eq!(group.tags, ["fake", "short"]);
                self.note(format!("group {}", group.index));
            }
        }
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(1);
        let policy = ScriptedPolicy::new(["right"]);
        let tasks: Vec<_> = (0..2).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&policy),
            open: &|_| Ok(Box::new(origin.clone())),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let config = CollectConfig { group_size: 2, concurrency: 1, ..CollectConfig::default() };
        let heard = Heard::default();
        let (counts, failure) = stream_groups(&request, &config, &heard).await;
        assert_eq!((counts.finished, counts.missing(), failure), (4, 0, None));
        let heard = heard.0.into_inner().unwrap();
        let of = |index: usize| {
            [
                format!("trajectory of {index}"),
                format!("trajectory of {index}"),
                format!("group {index}"),
            ]
        };
        assert_eq!(heard, [of(0), of(1)].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_keeps_what_was_finished() {
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(1);
        let policy = ScriptedPolicy::new(["right"]);
        let cancellation = Cancellation::new();
        let tasks: Vec<_> = (0..4).map(fake_task).collect();
        let heard = Arc::new(AtomicUsize::new(0));
        let hear = |_: &Trajectory| {
            heard.fetch_add(1, Ordering::SeqCst);
        };
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&policy),
            open: &|_| Ok(Box::new(origin.clone())),
            seed: Seed::from_u64(3),
            cancellation: &cancellation,
            on_episode: &hear,
        };
        let config = CollectConfig { concurrency: 8, ..CollectConfig::default() };
        let (collection, ()) = tokio::join!(collect_groups(&request, &config), async {
            tokio::time::sleep(Duration::from_millis(4500)).await;
            cancellation.cancel();
        });
        assert_eq!((collection.counts.finished, collection.counts.cancelled), (8, 8));
        assert_eq!((heard.load(Ordering::SeqCst), collection.counts.missing()), (16, 24));
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_is_counted_by_itself() {
        let policy = ScriptedPolicy::new(["left"]);
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(4);
        for limit in [Limit::Turns, Limit::Tokens, Limit::CommandTime] {
            let mut config = CollectConfig { group_size: 2, ..CollectConfig::default() };
            if limit == Limit::Tokens {
                config.episode.max_sampled_tokens = Some(5);
            }
            if limit == Limit::CommandTime {
                origin.time_rules.command = Some(Duration::from_secs(30));
                config.episode.command_time_secs = 10;
            }
            let counts = collect(Player::Policy(&policy), &origin, 2, &config).await.counts;
            assert_eq!(
                (counts.truncated, counts.limits.total(), counts.limits.of(limit)),
                (4, 4, 4)
            );
            let mut twice = counts;
            twice += counts;
            assert_eq!((twice.wanted, twice.limits.of(limit), twice.refills), (8, 8, 0));
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let config: CollectConfig =
            serde_json::from_str(r#"{ "group_size": 0, "episode": { "max_turns": 0 } }"#).unwrap();
        let problems = config.validate().unwrap_err().problems;
        assert!(problems.contains("group_size") && problems.contains("episode.max_turns"));
    }
}
