//! Groups of episodes, many at a time.

mod attempt;
mod group_in_progress;
mod under_way;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use spar_core::{Boundary, EndReason, Group, Seed, Source, Trajectory};
use spar_envs::{Environment, EnvironmentError, needs_sandbox};
use spar_tasks::Task;
use tokio::sync::Semaphore;

use self::attempt::Common;
pub(crate) use self::attempt::panic_text;
use self::group_in_progress::Shared;
pub use self::group_in_progress::{GroupInProgress, Leg};
pub use self::under_way::{GroupUnderWay, Member, play_legs};
use crate::strategies::RolloutStrategy;
use crate::{
    Cancellation, Concurrency, ConfigError, EpisodeConfig, LimitCounts, Seating, SharedPlayer,
};

/// How groups are collected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CollectConfig {
    /// Episodes per task; at least 1. Default 8.
    pub group_size: usize,
    /// Environments and sandboxes in use at the same time.
    pub concurrency: Concurrency,
    /// How often a failed episode is played anew: first with its own seed, then with fresh ones.
    /// Default 3.
    pub refills: u32,
    /// Seconds that an episode waits for its sandbox in all, while the backend fails or too much is
    /// asked of it; this counts as no refill. Default 600.
    pub sandbox_patience_secs: u64,
    /// How episodes are played.
    pub episode: EpisodeConfig,
    /// What is played of each task of the request, where that is not a group of `group_size`; empty: of each that. Not a setting of recipes:
    /// whoever draws tasks says it.
    #[serde(skip)]
    pub plans: Vec<GroupPlan>,
}

/// What is played of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlan {
    /// Episodes; at least 1.
    pub size: usize,
    /// The number of the first of them in its group; above 0 where a group is played on that has others already.
    pub first_member: usize,
    /// How often the task came before with this seed; absent: as often as in this request.
    pub repetition: Option<u64>,
    /// Where its random choices start; absent: at the request's seed, by task and repetition.
    pub seed: Option<Seed>,
}

impl GroupPlan {
    /// A group of this size from its beginning.
    pub fn new(size: usize) -> Self {
        Self { size, first_member: 0, repetition: None, seed: None }
    }
}

impl Default for CollectConfig {
    fn default() -> Self {
        Self {
            group_size: 8,
            concurrency: Concurrency::default(),
            refills: 3,
            sandbox_patience_secs: 600,
            episode: EpisodeConfig::default(),
            plans: Vec::new(),
        }
    }
}

impl CollectConfig {
    /// What is played of the task of this number.
    pub fn plan(&self, index: usize) -> GroupPlan {
        self.plans.get(index).copied().unwrap_or_else(|| GroupPlan::new(self.group_size))
    }

    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems: Vec<_> =
            self.episode.problems().iter().map(|problem| format!("episode.{problem}")).collect();
        problems.extend(self.concurrency.problems());
        if self.group_size == 0 {
            problems.push("group_size is 0, must be at least 1".to_owned());
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
    /// Failures of graders, such as a judge out of reach, the refilled ones among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grader_failures: usize,
    /// Episodes that were told to stop.
    pub cancelled: usize,
    /// Turns that were played again, so that an episode could begin where another one was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replayed_turns: usize,
    /// Finished episodes that solved their task.
    #[serde(default)]
    pub successes: usize,
    /// Finished episodes that were forked off from others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub branches: usize,
    /// Turns of finished episodes in which the policy acted, those that they took over from others among them.
    #[serde(default)]
    pub turns: usize,
    /// Turns of finished episodes in which it summed up what came before, likewise.
    #[serde(default)]
    pub summaries: usize,
    /// Turns of finished episodes whose answer was cut off, each counted where it was sampled.
    #[serde(default)]
    pub cut_off_turns: usize,
    /// Tokens of finished episodes that had an alternative, each counted where it was sampled.
    #[serde(default)]
    pub drawn_tokens: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CollectionCounts {
    /// Episodes that were asked for and did not come about.
    pub fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.finished)
    }

    fn add(&mut self, trajectory: &Trajectory) {
        self.limits.count(&trajectory.end);
        match &trajectory.end {
            EndReason::Terminated => self.finish(trajectory),
            EndReason::Truncated { .. } => {
                self.truncated += 1;
                self.finish(trajectory);
            }
            EndReason::Failed { boundary, .. } => self.fail(*boundary),
        }
    }

    fn finish(&mut self, trajectory: &Trajectory) {
        self.finished += 1;
        self.successes += usize::from(trajectory.success);
        self.branches += usize::from(trajectory.lineage.parent.is_some());
        self.add_turns(trajectory);
    }

    /// Counts what a further seat of a finished episode did.
    fn add_turns(&mut self, trajectory: &Trajectory) {
        let acting = trajectory.acting().count();
        self.turns += acting;
        self.summaries += trajectory.turns.len() - acting;
        // What a fork took over was counted where it was sampled, within its first own turn too.
        let mut begun = trajectory.lineage.fork_token.unwrap_or(0) as usize;
        for turn in trajectory.turns.iter().filter(|turn| turn.source != Source::Inherited) {
            self.cut_off_turns += usize::from(turn.is_cut_off());
            let own = std::mem::take(&mut begun)..turn.sampled.ids.len();
            let had_choice =
                |t: &usize| turn.sampled.allowed.get(*t).is_none_or(|it| it.len() != 1);
            self.drawn_tokens += own.filter(had_choice).count();
        }
    }

    fn fail(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Policy => self.policy_failures += 1,
            Boundary::Environment => self.environment_failures += 1,
            Boundary::Sandbox => self.sandbox_failures += 1,
            Boundary::Grader => self.grader_failures += 1,
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
        self.grader_failures += other.grader_failures;
        self.cancelled += other.cancelled;
        self.replayed_turns += other.replayed_turns;
        self.successes += other.successes;
        self.branches += other.branches;
        self.turns += other.turns;
        self.summaries += other.summaries;
        self.cut_off_turns += other.cut_off_turns;
        self.drawn_tokens += other.drawn_tokens;
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
    /// What came of groups that are not among these, because nothing is learned from them.
    pub left_out: Vec<LeftOut>,
    /// What came of it, groups that were left out included.
    pub counts: CollectionCounts,
    /// Details of the last failure, to tell the user.
    pub last_failure: Option<String>,
}

/// What came of a group that was left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeftOut {
    /// The task's id.
    pub task: String,
    /// Its episodes.
    pub episodes: usize,
    /// Those that solved it.
    pub successes: usize,
    /// The sum of their rewards.
    pub reward: f64,
}

impl LeftOut {
    fn of(group: &Group) -> Self {
        Self {
            task: group.task.clone(),
            episodes: group.trajectories.len(),
            successes: group.trajectories.iter().filter(|trajectory| trajectory.success).count(),
            reward: group.trajectories.iter().map(Trajectory::total_reward).sum(),
        }
    }
}

impl Collection {
    /// Counts a group that nothing is learned from.
    pub fn leave_out(&mut self, group: &Group) {
        self.left_out.push(LeftOut::of(group));
    }

    /// Takes over another collection: its counts, and those of its groups that `kept` tells, one entry for each; of the
    /// others what came of them.
    pub fn keep(&mut self, other: Self, kept: &[bool]) {
        let groups = other.groups.into_iter().zip(other.tags).zip(kept);
        for ((group, tags), kept) in groups {
            if *kept {
                self.groups.push(group);
                self.tags.push(tags);
            } else {
                self.left_out.push(LeftOut::of(&group));
            }
        }
        self.left_out.extend(other.left_out);
        self.counts += other.counts;
        self.last_failure = other.last_failure.or(self.last_failure.take());
    }
}

/// Makes a task interactive, such as `spar_envs::open_environment` with what it needs.
pub type OpenEnvironment =
    Arc<dyn Fn(&Task) -> Result<Box<dyn Environment>, EnvironmentError> + Send + Sync>;

/// Who plays what, for [`collect_groups`].
pub struct CollectRequest<'a> {
    /// The tasks; each makes a group, also one that comes several times.
    pub tasks: &'a [Task],
    /// Who chooses the actions.
    pub player: SharedPlayer,
    /// Who takes the seats where several act, `player` being `self` there.
    pub seating: Seating,
    /// How the trajectories of a group come about.
    pub strategy: &'a dyn RolloutStrategy,
    /// Makes a task interactive.
    pub open: OpenEnvironment,
    /// Where the random choices of this collection start; a run derives one per iteration.
    pub seed: Seed,
    /// Tells it to stop.
    pub cancellation: &'a Cancellation,
    /// Told of every episode that ended, failed ones included. Where several act, of one that failed once for every
    /// seat, and of others once.
    pub on_episode: &'a (dyn Fn(&PlayedEpisode<'_>) + Sync),
}

/// An episode that has ended, by its record.
#[derive(Debug)]
pub struct PlayedEpisode<'a> {
    /// Where several act, that of the first seat that is grouped.
    pub record: &'a Trajectory,
    /// Those of the other seats, whoever took them; none of an episode that failed, of which every seat is told of alone.
    pub others: &'a [Trajectory],
}

impl PlayedEpisode<'_> {
    /// The records of all seats that are told of here.
    pub fn records(&self) -> impl Iterator<Item = &Trajectory> {
        std::iter::once(self.record).chain(self.others)
    }
}

impl std::ops::Deref for PlayedEpisode<'_> {
    type Target = Trajectory;

    fn deref(&self) -> &Trajectory {
        self.record
    }
}

/// A seat of a group, where several act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSeat {
    /// What its environment calls it.
    pub name: String,
    /// Who took it.
    pub player: String,
    /// Whether its trajectories are in the group.
    pub is_grouped: bool,
}

/// A group that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedGroup {
    /// The number of its task among those of the request.
    pub index: usize,
    /// The episodes in the order of the members, without those that failed for good. Where several act, those of the
    /// seats that are grouped: first all of the first such seat, then all of the next.
    pub group: Group,
    /// The records of the other seats, in the same order.
    pub others: Vec<Trajectory>,
    /// The seats, in their order; empty where one acts.
    pub seats: Vec<GroupSeat>,
    /// The tags of its task, those that only its environment knows included.
    pub tags: Vec<String>,
}

/// Takes what a collection yields as soon as it is there, so that nothing has to be held.
pub trait CollectionSink: Sync {
    /// An episode of the task of this number ended by its task or by a limit, of which this is the record of one seat,
    /// grouped or not. The others of its group may still be under way.
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
    let wanted = (0..request.tasks.len()).map(|index| config.plan(index).size).sum();
    let Concurrency { environments, sandboxes } = config.concurrency;
    let stopping = StopOnDrop(Cancellation::new());
    let stop = &stopping.0;
    let shared = Shared {
        request,
        config,
        sink,
        common: Arc::new(Common {
            player: request.player.clone(),
            seating: request.seating.clone(),
            open: Arc::clone(&request.open),
            episode: config.episode.clone(),
            stop: stop.clone(),
        }),
        environments: Semaphore::new(environments.clamp(1, Semaphore::MAX_PERMITS)),
        sandboxes: Semaphore::new(sandboxes.clamp(1, Semaphore::MAX_PERMITS)),
        tallies: Mutex::new((CollectionCounts { wanted, ..Default::default() }, None)),
    };
    let seeds = group_seeds(request, config);
    let groups = (0..request.tasks.len()).map(|index| shared.group(index, seeds[index]));
    // A group in progress holds its environment, so no more of them than could be played.
    let playable = match request.tasks.iter().all(needs_sandbox) {
        true => environments.min(sandboxes),
        false => environments,
    };
    let mut groups = stream::iter(groups).buffer_unordered(playable.max(1));
    loop {
        tokio::select! {
            biased;
            () = request.cancellation.cancelled(), if !stop.is_cancelled() => stop.cancel(),
            group = groups.next() => match group {
                Some(group) => sink.group(group),
                None => break,
            }
        }
    }
    drop(groups);
    shared.tallies.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the episodes of a collection to stop when nobody waits for it any more; they close their environments then.
struct StopOnDrop(Cancellation);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Where the random choices of each group start.
fn group_seeds(request: &CollectRequest<'_>, config: &CollectConfig) -> Vec<Seed> {
    let mut met: HashMap<&str, u64> = HashMap::new();
    let mut seeds = Vec::with_capacity(request.tasks.len());
    for (index, task) in request.tasks.iter().enumerate() {
        let before = met.entry(&task.id).or_default();
        let repetition = config.plan(index).repetition.unwrap_or(*before);
        let seed = request.seed.derive("task", &task.id);
        let seed = if repetition == 0 { seed } else { seed.derive("repetition", repetition) };
        seeds.push(config.plan(index).seed.unwrap_or(seed));
        *before += 1;
    }
    seeds
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use spar_core::{Action, Limit, Observation, Step};

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::{RandomPolicy, ScriptedPolicy};
    use crate::strategies::{Branching, Independent};

    fn quiet(_: &PlayedEpisode<'_>) {}

    async fn collect(
        player: SharedPlayer,
        origin: &FakeEnvironment,
        tasks: usize,
        config: &CollectConfig,
    ) -> Collection {
        let tasks: Vec<_> = (0..tasks).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player,
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        collect_groups(&request, config).await
    }

    /// Without what clocks say.
    fn timeless(mut collection: Collection) -> Collection {
        for trajectory in collection.groups.iter_mut().flat_map(|g| &mut g.trajectories) {
            trajectory.wall_time = Duration::ZERO;
            for turn in &mut trajectory.turns {
                (turn.policy_time, turn.environment_time) = (Duration::ZERO, Duration::ZERO);
            }
        }
        collection
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn groups_that_end_in_another_order_are_the_same_groups() {
        /// The order in which groups ended.
        #[derive(Default)]
        struct Order(Held, Mutex<Vec<usize>>);
        impl CollectionSink for Order {
            fn trajectory(&self, _index: usize, _trajectory: &Trajectory) {}

            fn group(&self, group: FinishedGroup) {
                self.1.lock().unwrap().push(group.index);
                self.0.group(group);
            }
        }
        let mut origin = FakeEnvironment::new();
        let config =
            CollectConfig { group_size: 4, concurrency: 1.into(), ..CollectConfig::default() };
        let calm = collect(SharedPlayer::of(RandomPolicy), &origin, 12, &config).await;
        (origin.step_time, origin.is_erratic) = (Duration::from_millis(8), true);
        let tasks: Vec<_> = (0..12).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::of(RandomPolicy),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let config = CollectConfig { concurrency: 64.into(), ..config };
        let heard = Order::default();
        stream_groups(&request, &config, &heard).await;
        let order = heard.1.into_inner().unwrap();
        assert!(!order.is_sorted(), "48 episodes of random times do not end in order: {order:?}");
        let erratic = collect_groups(&request, &config).await;
        assert_eq!(timeless(calm), timeless(erratic));
        assert_eq!(origin.open.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn environments_compute_side_by_side() {
        /// Goes on as soon as another one computes as well.
        struct Pair(FakeEnvironment, Arc<AtomicUsize>);
        #[async_trait::async_trait]
        impl Environment for Pair {
            fn name(&self) -> &'static str {
                "pair"
            }

            async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
                self.0.reset(seed).await
            }

            async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
                self.1.fetch_add(1, Ordering::SeqCst);
                let began = std::time::Instant::now();
                // On the thread, as computation is.
                while self.1.load(Ordering::SeqCst) < 2 {
                    if began.elapsed() > Duration::from_secs(20) {
                        return Err(EnvironmentError::Misused { call: "step", when: "alone" });
                    }
                    std::thread::yield_now();
                }
                self.0.step(action).await
            }
        }
        let computing = Arc::new(AtomicUsize::new(0));
        let open = move |_: &Task| {
            let pair = Pair(FakeEnvironment::new(), Arc::clone(&computing));
            Ok(Box::new(pair) as Box<dyn Environment>)
        };
        let request = CollectRequest {
            tasks: &[fake_task(0)],
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &Independent,
            open: Arc::new(open),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let config = CollectConfig { group_size: 2, refills: 0, ..CollectConfig::default() };
        let collection = collect_groups(&request, &config).await;
        assert_eq!(collection.counts.finished, 2, "{:?}", collection.last_failure);
    }

    #[tokio::test]
    async fn an_environment_that_panics_fails_its_episode_alone() {
        let failures = Mutex::new(Vec::new());
        let mut origin = FakeEnvironment::new();
        origin.panics_after = Some(2);
        let request = CollectRequest {
            tasks: &[fake_task(0), fake_task(1)],
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|played| failures.lock().unwrap().push(played.record.clone()),
        };
        let config = CollectConfig { group_size: 2, refills: 1, ..CollectConfig::default() };
        let Collection { counts, last_failure, .. } = collect_groups(&request, &config).await;
        assert_eq!((counts.environment_failures, counts.missing(), counts.refills), (8, 4, 4));
        assert!(last_failure.unwrap().contains("the floor of the corridor gave way"));
        assert_eq!(failures.lock().unwrap().len(), 8);
        for failed in failures.lock().unwrap().iter() {
            assert_eq!(failed.turns.len(), 2, "what was played before is kept");
            let EndReason::Failed { boundary, detail } = &failed.end else { panic!("{failed:?}") };
            assert_eq!(*boundary, Boundary::Environment);
            assert_eq!(detail, "it panicked: the floor of the corridor gave way");
        }
        assert_eq!(origin.open.load(Ordering::SeqCst), 0, "they are closed all the same");
        // And one that cannot be opened without it.
        let open: OpenEnvironment = Arc::new(|_| panic!("no corridor here"));
        let request = CollectRequest { open, ..request };
        let collection = collect_groups(&request, &config).await;
        assert_eq!((collection.counts.environment_failures, collection.counts.missing()), (4, 4));
        assert!(collection.last_failure.unwrap().contains("no corridor here"));
    }

    #[tokio::test]
    async fn a_branch_that_panics_on_its_way_is_closed() {
        let origin = FakeEnvironment::new();
        let tasks = [fake_task(0)];
        let failed: Mutex<Vec<String>> = Mutex::default();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &Branching::default(),
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|trajectory| {
                // From the end of the first trunk on, which is played alone.
                origin.panics.store(true, Ordering::SeqCst);
                if let EndReason::Failed { detail, .. } = &trajectory.end {
                    failed.lock().unwrap().push(detail.clone());
                }
            },
        };
        let config = CollectConfig {
            group_size: 3,
            concurrency: 1.into(),
            refills: 0,
            ..CollectConfig::default()
        };
        let collection = collect_groups(&request, &config).await;
        assert_eq!((collection.counts.finished, collection.counts.missing()), (1, 2));
        let failed = failed.into_inner().unwrap();
        assert!(failed.len() == 2 && failed.iter().all(|why| why.contains("gave way")));
        assert_eq!(collection.counts.replayed_turns, 0);
        assert_eq!(origin.open.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_collection_that_nobody_waits_for_closes_what_it_opened() {
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(1);
        let config =
            CollectConfig { group_size: 4, concurrency: 6.into(), ..CollectConfig::default() };
        let player = SharedPlayer::of(ScriptedPolicy::new(["right"]));
        let collecting = collect(player, &origin, 4, &config);
        let waited = tokio::time::timeout(Duration::from_millis(1500), collecting).await;
        assert!(waited.is_err());
        assert!(origin.open.load(Ordering::SeqCst) >= 6);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(origin.open.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn what_was_handed_over_is_not_held() {
        /// The most that anybody held when a group was handed over, and what it held itself.
        struct Most<'a>(&'a Arc<str>, AtomicUsize);
        impl CollectionSink for Most<'_> {
            fn trajectory(&self, _index: usize, _trajectory: &Trajectory) {}

            fn group(&self, group: FinishedGroup) {
                drop(group);
                self.1.fetch_max(Arc::strong_count(self.0), Ordering::SeqCst);
            }
        }
        let origin = FakeEnvironment::new();
        let mut most = Vec::new();
        for count in [10, 200] {
            let tasks: Vec<_> = (0..count).map(fake_task).collect();
            let request = CollectRequest {
                tasks: &tasks,
                player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
                seating: Seating::default(),
                strategy: &Independent,
                open: origin.opener(),
                seed: Seed::from_u64(3),
                cancellation: &Cancellation::new(),
                on_episode: &quiet,
            };
            let config =
                CollectConfig { group_size: 2, concurrency: 3.into(), ..Default::default() };
            let sink = Most(&origin.right, AtomicUsize::new(0));
            let (counts, _) = stream_groups(&request, &config, &sink).await;
            assert_eq!(counts.finished, 2 * count);
            most.push(sink.1.into_inner());
        }
        assert!(most[1] <= most[0] + 10, "what is held does not grow with the run: {most:?}");
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
            let config = CollectConfig {
                concurrency: concurrency.into(),
                group_size: 4,
                ..CollectConfig::default()
            };
            let player = SharedPlayer::of(RandomPolicy);
            let collection = is_send(collect(player, &origin, 6, &config)).await;
            assert_eq!(collection.counts.finished, 24);
            collections.push(timeless(collection));
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
            player: SharedPlayer::of(RandomPolicy),
            seating: Seating::default(),
            strategy: &Independent,
            open: FakeEnvironment::new().opener(),
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
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        for (concurrency, seconds) in [(800, 3), (400, 6), (100, 24)] {
            let config =
                CollectConfig { concurrency: concurrency.into(), ..CollectConfig::default() };
            let started = tokio::time::Instant::now();
            let collection =
                collect(SharedPlayer::Policy(policy.clone()), &origin, 100, &config).await;
            assert_eq!(collection.counts.finished, 800);
            assert_eq!(started.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test]
    async fn failures_are_refilled_and_counted() {
        let origin = FakeEnvironment::new();
        origin.mishaps.store(5, Ordering::SeqCst);
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let config = CollectConfig { refills: 5, ..CollectConfig::default() };
        let collection = collect(SharedPlayer::Policy(policy.clone()), &origin, 3, &config).await;
        assert_eq!(collection.counts.finished, 24);
        assert_eq!((collection.counts.environment_failures, collection.counts.missing()), (5, 0));
        assert!(collection.last_failure.unwrap().contains("on a bad day"));
        assert!(collection.groups.iter().all(|group| group.trajectories.len() == 8));
        assert!(collection.groups.iter().flat_map(|g| &g.trajectories).all(|t| t.success));
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_not_waited_for_again_and_again() {
        // A step takes two minutes, which is all that it may take; a turn before it does not count.
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_secs(1000);
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        for (patience, tries) in [(0, 2), (100, 2), (180, 2), (250, 3), (100_000, 4)] {
            let episode =
                EpisodeConfig { stall_patience_secs: patience, ..EpisodeConfig::default() };
            let config = CollectConfig { group_size: 1, episode, ..CollectConfig::default() };
            let started = tokio::time::Instant::now();
            let collection =
                collect(SharedPlayer::Policy(policy.clone()), &origin, 1, &config).await;
            let counts = collection.counts;
            let found = (counts.environment_failures, counts.refills, counts.missing());
            assert_eq!(found, (tries, tries - 1, 1), "{patience}");
            assert_eq!(started.elapsed().as_secs(), 120 * tries as u64, "{patience}");
        }
        // What breaks at once is played anew as often as there are refills.
        let mut brittle = FakeEnvironment::new();
        brittle.step_time = Duration::from_secs(100);
        brittle.breaks_after = Some(2);
        let config = CollectConfig { group_size: 1, ..CollectConfig::default() };
        let collection = collect(SharedPlayer::Policy(policy), &brittle, 1, &config).await;
        assert_eq!(collection.counts.environment_failures, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_finds_no_place_is_waited_for() {
        for (patience, finished, failures) in [(60, 2, 0), (0, 0, 1)] {
            let refusals = AtomicUsize::new(3);
            let opener = FakeEnvironment::new().opener();
            let less = |count: usize| count.checked_sub(1);
            let open = move |task: &Task| match refusals.fetch_update(
                Ordering::SeqCst,
                Ordering::SeqCst,
                less,
            ) {
                Ok(_) => Err(EnvironmentError::NoPlace { seconds: 1 }),
                Err(_) => opener(task),
            };
            let request = CollectRequest {
                tasks: &[fake_task(0)],
                player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
                seating: Seating::default(),
                strategy: &Independent,
                open: Arc::new(open),
                seed: Seed::from_u64(3),
                cancellation: &Cancellation::new(),
                on_episode: &quiet,
            };
            let config = CollectConfig {
                group_size: 2,
                refills: 0,
                sandbox_patience_secs: patience,
                ..CollectConfig::default()
            };
            let counts = collect_groups(&request, &config).await.counts;
            assert_eq!((counts.finished, counts.sandbox_failures), (finished, failures));
        }
    }

    #[tokio::test]
    async fn further_tries_are_told_beside_what_came_of_them() {
        let origin = FakeEnvironment::new();
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let tasks = [fake_task(0)];
        // The second member breaks twice, once the first is done.
        let once = AtomicUsize::new(2);
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {
                let breaks = once.swap(0, Ordering::SeqCst);
                origin.mishaps.fetch_add(breaks, Ordering::SeqCst);
            },
        };
        let config =
            CollectConfig { group_size: 3, concurrency: 1.into(), ..CollectConfig::default() };
        let collection = collect_groups(&request, &config).await;
        let refills: Vec<_> =
            collection.groups[0].trajectories.iter().map(|trajectory| trajectory.refills).collect();
        assert_eq!(refills.iter().sum::<u32>(), 2);
        assert_eq!((collection.counts.refills, collection.counts.finished), (2, 3));
        let score = crate::Score::of(&[&collection.groups[0]], 3, None, Seed::from_u64(0));
        assert_eq!((score.refills, score.episodes), (2, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn of_what_there_are_only_so_many_no_group_holds_one_that_nobody_plays_in() {
        /// Holds one of a few places from its reset until it is closed, and does not fork.
        struct Seated(FakeEnvironment, Arc<Semaphore>, Option<tokio::sync::OwnedSemaphorePermit>);
        #[async_trait::async_trait]
        impl Environment for Seated {
            fn name(&self) -> &'static str {
                "seated"
            }

            fn tags(&self) -> Vec<String> {
                self.0.tags()
            }

            async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
                self.2 = Arc::clone(&self.1).acquire_owned().await.ok();
                self.0.reset(seed).await
            }

            async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
                self.0.step(action).await
            }

            async fn close(&mut self) -> Result<(), EnvironmentError> {
                self.2 = None;
                self.0.close().await
            }
        }
        let mut origin = FakeEnvironment::new();
        origin.step_time = Duration::from_millis(100);
        let places = Arc::new(Semaphore::new(2));
        let opened = Arc::new(AtomicUsize::new(0));
        let open: OpenEnvironment = {
            let (origin, opened) = (origin.clone(), Arc::clone(&opened));
            Arc::new(move |_| {
                opened.fetch_add(1, Ordering::SeqCst);
                Ok(Box::new(Seated(origin.clone(), Arc::clone(&places), None)))
            })
        };
        let tasks: Vec<_> = (0..6).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &Independent,
            open,
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        for (group_size, num_opened) in [(1, 6), (3, 18)] {
            let config = CollectConfig { group_size, refills: 0, ..CollectConfig::default() };
            let collection = collect_groups(&request, &config).await;
            assert_eq!(collection.counts.finished, 6 * group_size, "{:?}", collection.last_failure);
            // The first member of a group has the one that the group was begun with.
            assert_eq!(opened.swap(0, Ordering::SeqCst), num_opened);
            assert_eq!(collection.tags[0], ["fake", "short"]);
        }
    }

    #[tokio::test]
    async fn what_fails_for_good_is_missing_and_not_scored() {
        let mut origin = FakeEnvironment::new();
        origin.breaks_after = Some(1);
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let config = CollectConfig { refills: 2, group_size: 4, ..CollectConfig::default() };
        let collection = collect(SharedPlayer::Policy(policy.clone()), &origin, 2, &config).await;
        assert!(collection.groups.iter().all(|group| group.trajectories.is_empty()));
        assert_eq!((collection.counts.missing(), collection.counts.environment_failures), (8, 24));
        assert_eq!(collection.counts.refills, 16);
        // An environment that cannot even be opened.
        let tasks = [fake_task(0)];
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &Independent,
            open: Arc::new(|_| Err(EnvironmentError::Misused { call: "open", when: "never" })),
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
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let tasks: Vec<_> = (0..2).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &quiet,
        };
        let config =
            CollectConfig { group_size: 2, concurrency: 1.into(), ..CollectConfig::default() };
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
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let cancellation = Cancellation::new();
        let tasks: Vec<_> = (0..4).map(fake_task).collect();
        let heard = Arc::new(AtomicUsize::new(0));
        let hear = |_: &PlayedEpisode<'_>| {
            heard.fetch_add(1, Ordering::SeqCst);
        };
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &cancellation,
            on_episode: &hear,
        };
        let config = CollectConfig { concurrency: 8.into(), ..CollectConfig::default() };
        let (collection, ()) = tokio::join!(collect_groups(&request, &config), async {
            tokio::time::sleep(Duration::from_millis(4500)).await;
            cancellation.cancel();
        });
        assert_eq!((collection.counts.finished, collection.counts.cancelled), (8, 8));
        assert_eq!((heard.load(Ordering::SeqCst), collection.counts.missing()), (16, 24));
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_is_counted_by_itself() {
        let policy = Arc::new(ScriptedPolicy::new(["left"]));
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
            let counts =
                collect(SharedPlayer::Policy(policy.clone()), &origin, 2, &config).await.counts;
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
