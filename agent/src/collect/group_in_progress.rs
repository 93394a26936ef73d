//! A group whose episodes are being played.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use spar_core::{Boundary, EndReason, Group, Message, Seed, Source, Spend, Trajectory, redaction};
use spar_envs::needs_sandbox;
use spar_tasks::Task;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::attempt::{Attempt, Attempted, Common, Extra, Origin, Start, Unopened, spawned};
use super::{
    CollectConfig, CollectRequest, CollectionCounts, CollectionSink, FinishedGroup, PlayedEpisode,
};
use crate::back_off::BackOff;
use crate::spend::add;
use crate::{BranchPoint, Guide};

/// The first and the longest wait before an episode is played anew whose sandbox failed.
const SANDBOX_BACK_OFF: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(30));

/// What the groups of a collection share.
pub(super) struct Shared<'a> {
    pub(super) request: &'a CollectRequest<'a>,
    pub(super) config: &'a CollectConfig,
    pub(super) sink: &'a dyn CollectionSink,
    /// What their episodes share, which are tasks of their own.
    pub(super) common: Arc<Common>,
    /// One for each environment that may be in use.
    pub(super) environments: Semaphore,
    /// One for each sandbox that may be in use.
    pub(super) sandboxes: Semaphore,
    pub(super) tallies: Mutex<(CollectionCounts, Option<String>)>,
}

/// A group whose episodes are being played: what a [strategy](crate::strategies::RolloutStrategy) grows
/// trajectories with.
///
/// All episodes of a group share one start. One that fails is played anew, up to a bound and after a while where
/// its sandbox failed. Each is a task of its own, so that environments compute on all cores.
pub struct GroupInProgress<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    origin: Arc<Origin>,
    is_closed: bool,
    seed: Seed,
    /// The records of further seats, with the number of the member.
    further: Mutex<Vec<(usize, Trajectory)>>,
}

/// How far an episode came that may be paused.
#[derive(Debug, Clone, PartialEq)]
pub enum Leg {
    /// To its end.
    Finished(Trajectory),
    /// It was paused: the record of what was played, which ends as a cancelled one does, maybe in the middle of an answer. [`GroupInProgress::resume`] goes on from
    /// there; nothing else is done with it.
    Paused(Trajectory),
}

/// What came of one try at an episode.
enum Try {
    /// It ended by its task or by a limit.
    Finished {
        /// The record of the first seat that is grouped.
        trajectory: Box<Trajectory>,
        /// Those of the others.
        further: Vec<Trajectory>,
    },
    /// It was paused.
    Paused(Box<Trajectory>),
    /// It broke, for reasons at this boundary, so long after its last finished turn.
    Broke(Boundary, Duration),
    /// It did not begin: no sandbox was asked for, because the backend fails or has no room.
    Refused(String),
    /// It did not begin: the backend could not make a sandbox. It is recorded.
    Absent,
    /// It was told to stop.
    Stopped,
}

/// The time that the tries of one episode, or of one start, have lost to what broke after a wait.
struct Stalls {
    lost: Duration,
    /// How many of them broke so.
    num: u32,
    patience: Duration,
}

impl Stalls {
    fn new(config: &CollectConfig) -> Self {
        let patience = Duration::from_secs(config.episode.stall_patience_secs);
        Self { lost: Duration::ZERO, num: 0, patience }
    }

    /// Counts a try that broke at this boundary, so long after it last got anywhere; whether there is to be no other. There is always a second one: what it lost is
    /// not the failed call's time alone, but that of the sandbox's start, of a past that was played again and of the policy's last answer as well.
    fn are_spent(&mut self, boundary: Boundary, stalled: Duration) -> bool {
        match boundary {
            Boundary::Environment | Boundary::Grader => {
                self.lost += stalled;
                self.num += 1;
                self.num > 1 && self.lost >= self.patience
            }
            // Policies and sandboxes are waited for by settings of their own.
            Boundary::Policy | Boundary::Sandbox | Boundary::Cancelled => false,
        }
    }
}

/// The time that the turns of a trajectory took which were played in its own episode.
fn time_of_turns(trajectory: &Trajectory) -> Duration {
    let own = trajectory.turns.iter().filter(|turn| turn.source != Source::Inherited);
    own.map(|turn| turn.policy_time + turn.environment_time).sum()
}

impl GroupInProgress<'_> {
    /// Its number among the groups of the collection.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many trajectories the group shall have.
    pub fn size(&self) -> usize {
        self.shared.config.plan(self.index).size
    }

    /// Where the random choices of its strategy start.
    pub fn seed(&self) -> Seed {
        self.seed.derive("strategy", self.shared.config.plan(self.index).first_member)
    }

    /// Tells that so many of its trajectories are not wanted after all, so that nobody misses them. These are some that are not played, or not to their end: one that was is counted among
    /// those that finished, whether it is kept or not, so that leaving it out would hide one that failed.
    pub fn leave_out(&self, trajectories: usize) {
        self.shared.tally(|counts| counts.wanted -= trajectories);
    }

    /// Plays the member of this number from the start that all share; `None` when it failed for good or
    /// nothing is played any more.
    pub async fn episode(&self, member: usize) -> Option<Trajectory> {
        self.member(member, Start::Shared, Extra::default()).await
    }

    /// The same with something said to the policy before its first turn that the environment does not show, such as a hint.
    pub async fn episode_behind(&self, member: usize, said: Vec<Message>) -> Option<Trajectory> {
        let extra = Extra { said: said.into(), ..Extra::default() };
        self.member(member, Start::Shared, extra).await
    }

    /// As [`episode`](Self::episode), and pauses it once so many tokens are sampled, at least one.
    pub async fn leg(&self, member: usize, tokens: usize) -> Option<Leg> {
        let extra = Extra { leg: Some(tokens), ..Extra::default() };
        self.member_leg(member, Start::Shared, extra, (None, None)).await
    }

    /// Goes on with a member that was paused `legs` times before, to its end or until so many more tokens are sampled: its turns are taken over with their tokens and probabilities, and an answer that was
    /// still being written goes on behind its last token. Its record names the paused one as its parent. Where several act it fails.
    pub async fn resume(
        &self,
        member: usize,
        paused: &Trajectory,
        legs: u32,
        tokens: Option<usize>,
    ) -> Option<Leg> {
        if !self.origin.seats().is_empty() {
            let detail = "episodes are not paused where several act";
            self.shared.note(&self.origin.task.id, Boundary::Environment, detail);
            return None;
        }
        let at = BranchPoint::of_pause(paused);
        let start = Start::Branch { origin: Arc::new(paused.clone()), at };
        let extra = Extra { leg: tokens, ..Extra::default() };
        self.member_leg(member, start, extra, (Some(legs), paused.spend)).await
    }

    /// Has one of the environment's own players play the member of this number, in the tokens of the policy. Where several act there is none: it fails.
    pub async fn demonstration(&self, member: usize, guide: Guide) -> Option<Trajectory> {
        if !self.origin.seats().is_empty() {
            let detail = "there are no demonstrations where several act";
            self.shared.note(&self.origin.task.id, Boundary::Environment, detail);
            return None;
        }
        self.member(member, Start::Shared, Extra { guide: Some(guide), ..Extra::default() }).await
    }

    /// Plays the member of this number with the most probable token everywhere, from the start that all share; it is [told](spar_core::Lineage::greedy) and never trained. Where several act there is
    /// none: it fails.
    pub async fn greedy(&self, member: usize) -> Option<Trajectory> {
        if !self.origin.seats().is_empty() {
            let detail = "no episode is greedy where several act";
            self.shared.note(&self.origin.task.id, Boundary::Environment, detail);
            return None;
        }
        let extra = Extra { is_greedy: true, ..Extra::default() };
        self.member(member, Start::Shared, extra).await
    }

    /// The task of the group.
    pub fn task(&self) -> &Task {
        &self.origin.task
    }

    /// What the task asks for, in the words in which it is shown.
    pub fn asked(&self) -> String {
        self.origin.asked()
    }

    /// How a solution of the task goes, in words, an action for each turn: what the task itself says, or the actions of the environment's player who sees all; none
    /// where neither knows.
    pub async fn solution(&self) -> Vec<String> {
        let told = &self.origin.task.parameters["metadata"]["solution"];
        match told {
            Value::String(text) => return vec![text.clone()],
            Value::Array(steps) if steps.iter().all(Value::is_string) => {
                return steps.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
            }
            _ => {}
        }
        let most = self.shared.config.episode.turns_of(&self.origin.task);
        let actions = self.origin.solution(&self.shared.common, most).await;
        actions.iter().map(|action| action.key().into_owned()).collect()
    }

    /// Tells that so many more episodes are played than the group has trajectories, so that nobody takes them for some that were wanted.
    pub fn play_more(&self, episodes: usize) {
        self.shared.tally(|counts| counts.wanted += episodes);
    }

    /// Plays the member of this number from where another member was, whose past it takes over. Where several act there
    /// are no branches yet: it fails.
    pub async fn branch(
        &self,
        member: usize,
        origin: &Trajectory,
        at: BranchPoint,
    ) -> Option<Trajectory> {
        self.branch_behind(member, origin, at, Vec::new()).await
    }

    /// The same with something said to the policy before it goes on that the environment does not show.
    pub async fn branch_behind(
        &self,
        member: usize,
        origin: &Trajectory,
        at: BranchPoint,
        said: Vec<Message>,
    ) -> Option<Trajectory> {
        if !self.origin.seats().is_empty() {
            let detail = "branches within episodes are not played where several act";
            self.shared.note(&self.origin.task.id, Boundary::Environment, detail);
            return None;
        }
        let start = Start::Branch { origin: Arc::new(origin.clone()), at };
        self.member(member, start, Extra { said: said.into(), ..Extra::default() }).await
    }

    /// Puts the records of further seats that are grouped behind those of the first one that a strategy has grown, seat by
    /// seat in the order of the members, and gives those of the others. What the strategy let go of is left out.
    fn further_seats(&self, grown: &mut Vec<Trajectory>) -> Vec<Trajectory> {
        let further =
            std::mem::take(&mut *self.further.lock().unwrap_or_else(PoisonError::into_inner));
        if further.is_empty() {
            return Vec::new();
        }
        let episodes: HashSet<u64> = grown.iter().map(|trajectory| trajectory.episode).collect();
        let mut further: Vec<_> =
            further.into_iter().filter(|(_, it)| episodes.contains(&it.episode)).collect();
        further.sort_by_key(|(member, trajectory)| (trajectory.seat, *member));
        let mut others = Vec::new();
        for (_, trajectory) in further {
            match self.origin.is_grouped(trajectory.seat) {
                true => grown.push(trajectory),
                false => others.push(trajectory),
            }
        }
        others
    }

    /// Plays one member to its end, anew when it failed; `None` when it failed for good.
    async fn member(&self, member: usize, start: Start, extra: Extra) -> Option<Trajectory> {
        match self.member_leg(member, start, extra, (None, None)).await? {
            Leg::Finished(trajectory) => Some(trajectory),
            Leg::Paused(_) => unreachable!("it has no leg, behind which it would be paused"),
        }
    }

    /// Plays one member to its end or until it is paused, anew when it failed; `None` when it failed for good. `legs` is how often it was paused, and `spent`
    /// what it took until then.
    async fn member_leg(
        &self,
        member: usize,
        start: Start,
        extra: Extra,
        (legs, mut spent): (Option<u32>, Option<Spend>),
    ) -> Option<Leg> {
        let shared = self.shared;
        let CollectConfig { refills, sandbox_patience_secs, .. } = *shared.config;
        let mut stalls = Stalls::new(shared.config);
        let task = &self.origin.task;
        let number = shared.config.plan(self.index).first_member + member;
        let seed = self.seed.derive("member", number);
        // What is drawn behind a pause is not what was drawn before.
        let seed = legs.map_or(seed, |legs| seed.derive("leg", legs));
        let mut patience = Duration::from_secs(sandbox_patience_secs);
        let mut back_off = BackOff::new(SANDBOX_BACK_OFF.0, SANDBOX_BACK_OFF.1, seed);
        let (mut attempt, mut absences) = (0, 0);
        while attempt <= refills {
            let number = attempt + absences;
            let played =
                self.attempt((&start, &extra), seed, (attempt, number), &mut spent).await?;
            let boundary = match played {
                Try::Finished { trajectory, further } => {
                    shared.sink.trajectory(self.index, &trajectory);
                    further.iter().for_each(|it| shared.sink.trajectory(self.index, it));
                    let mut all = self.further.lock().unwrap_or_else(PoisonError::into_inner);
                    all.extend(further.into_iter().map(|further| (member, further)));
                    return Some(Leg::Finished(*trajectory));
                }
                Try::Paused(trajectory) => return Some(Leg::Paused(*trajectory)),
                Try::Stopped => return None,
                Try::Broke(boundary, stalled) => {
                    attempt += 1;
                    if stalls.are_spent(boundary, stalled) {
                        return None;
                    }
                    if attempt <= refills {
                        shared.tally(|counts| counts.refills += 1);
                    }
                    boundary
                }
                Try::Refused(detail) => {
                    if patience.is_zero() {
                        shared.note(&task.id, Boundary::Sandbox, &detail);
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
                let wait = back_off.next().min(patience);
                patience -= wait;
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
    /// `attempt` counts those before it that took a refill, `number` all that were recorded; `spent` is what these took.
    async fn attempt(
        &self,
        (start, extra): (&Start, &Extra),
        seed: Seed,
        (attempt, number): (u32, u32),
        spent: &mut Option<Spend>,
    ) -> Option<Try> {
        let (shared, task) = (self.shared, &self.origin.task);
        // Who waits for a sandbox keeps no environment from those that need none.
        let _sandbox = match needs_sandbox(task) {
            true => Some(shared.sandboxes.acquire().await.ok()?),
            false => None,
        };
        let _environment = shared.environments.acquire().await.ok()?;
        if shared.request.cancellation.is_cancelled() {
            return None;
        }
        let seed = if attempt < 2 { seed } else { seed.derive("refill", attempt) };
        let attempted = Attempt {
            common: Arc::clone(&shared.common),
            origin: Arc::clone(&self.origin),
            start: start.clone(),
            extra: extra.clone(),
            // Exact also in readers that know numbers only as doubles.
            id: seed.derive("episode", number).as_u64() >> 11,
            seed,
        };
        let started = Instant::now();
        let attempted = attempted.spawn().await;
        let taken = started.elapsed();
        let (mut trajectories, replayed_turns, is_absent, is_paused) = match attempted {
            Attempted::Refused(detail) => return Some(Try::Refused(detail)),
            Attempted::Recorded { trajectories, replayed_turns, is_absent, is_paused } => {
                (trajectories, replayed_turns, is_absent, is_paused)
            }
        };
        trajectories.iter_mut().for_each(|trajectory| trajectory.refills = attempt);
        let is_grouped = |trajectory: &Trajectory| self.origin.is_grouped(trajectory.seat);
        // All seats are played by one task; the first of the group tells what it took.
        let own = trajectories.iter_mut().map(|it| it.spend.take()).fold(None, add);
        *spent = add(*spent, own);
        let first = trajectories.iter().position(is_grouped).unwrap_or(0);
        let mut trajectory = trajectories.remove(first);
        let further = trajectories;
        if is_paused {
            trajectory.spend = *spent;
            shared.tally(|counts| counts.replayed_turns += replayed_turns);
            return Some(Try::Paused(Box::new(trajectory)));
        }
        trajectory.spend = if trajectory.is_failed() { own } else { *spent };
        shared.tally(|counts| {
            counts.add(&trajectory);
            if !trajectory.is_failed() {
                further.iter().filter(|it| is_grouped(it)).for_each(|it| counts.add_turns(it));
            }
            counts.replayed_turns += replayed_turns;
        });
        let is_failed = trajectory.is_failed();
        let others = if is_failed { &[] } else { further.as_slice() };
        (shared.request.on_episode)(&PlayedEpisode { record: &trajectory, others });
        for record in further.iter().filter(|_| is_failed) {
            (shared.request.on_episode)(&PlayedEpisode { record, others: &[] });
        }
        Some(match &trajectory.end {
            EndReason::Failed { boundary: Boundary::Cancelled, .. } => Try::Stopped,
            EndReason::Failed { boundary, detail } => {
                shared.remember(&task.id, detail);
                let played = further.iter().chain([&trajectory]).map(time_of_turns).sum();
                match is_absent {
                    true => Try::Absent,
                    false => Try::Broke(*boundary, taken.saturating_sub(played)),
                }
            }
            EndReason::Terminated | EndReason::Truncated { .. } => {
                Try::Finished { trajectory: Box::new(trajectory), further }
            }
        })
    }
}

impl Drop for GroupInProgress<'_> {
    /// Closes the start of a group that nobody waits for any more.
    fn drop(&mut self) {
        if !self.is_closed
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (origin, common) = (Arc::clone(&self.origin), Arc::clone(&self.shared.common));
            runtime.spawn(async move { origin.close(&common).await });
        }
    }
}

impl Shared<'_> {
    /// Plays a group to its end.
    pub(super) async fn group(&self, index: usize, seed: Seed) -> FinishedGroup {
        let task = Arc::new(self.request.tasks[index].clone());
        let mut tags = task.tags.clone();
        let mut group = Group { task: task.id.clone(), trajectories: Vec::new() };
        let Some(origin) = self.origin(task, seed).await else {
            return FinishedGroup { index, group, others: Vec::new(), seats: Vec::new(), tags };
        };
        let origin = Arc::new(origin);
        let further = Mutex::default();
        let mut playing =
            GroupInProgress { shared: self, index, origin, is_closed: false, seed, further };
        for tag in &playing.origin.tags {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        group.trajectories = self.request.strategy.grow(&playing).await;
        playing.origin.close(&self.common).await;
        playing.is_closed = true;
        let others = playing.further_seats(&mut group.trajectories);
        FinishedGroup { index, group, others, seats: playing.origin.seats(), tags }
    }

    /// Opens and resets the environment of a group.
    async fn origin(&self, task: Arc<Task>, seed: Seed) -> Option<Origin> {
        let mut patience = Duration::from_secs(self.config.sandbox_patience_secs);
        let mut back_off = BackOff::new(SANDBOX_BACK_OFF.0, SANDBOX_BACK_OFF.1, seed);
        let (mut failures, mut stalls) = (0, Stalls::new(self.config));
        while failures <= self.config.refills {
            let (opened, stalled) = self.open(&task, seed).await?;
            match opened {
                Ok(origin) => return Some(origin),
                Err(Unopened::Failed(Boundary::Cancelled, _)) => return None,
                Err(Unopened::Failed(boundary, detail)) => {
                    self.note(&task.id, boundary, &detail);
                    failures += 1;
                    if stalls.are_spent(boundary, stalled) {
                        return None;
                    }
                }
                Err(Unopened::Refused(detail)) if patience.is_zero() => {
                    self.note(&task.id, Boundary::Sandbox, &detail);
                    return None;
                }
                Err(Unopened::Refused(detail)) => {
                    tracing::info!(task = task.id, detail, "waiting for a place");
                    let wait = back_off.next().min(patience);
                    patience -= wait;
                    tokio::select! {
                        () = self.request.cancellation.cancelled() => return None,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
        None
    }

    /// One try at it, and what it took; `None` where nothing is played any more.
    async fn open(
        &self,
        task: &Arc<Task>,
        seed: Seed,
    ) -> Option<(Result<Origin, Unopened>, Duration)> {
        // Who waits for a place keeps no environment from others.
        let _environment = self.environments.acquire().await.ok()?;
        if self.request.cancellation.is_cancelled() {
            return None;
        }
        let (common, seed) = (Arc::clone(&self.common), seed.derive("environment", 0));
        let started = Instant::now();
        let opened = spawned(common.origin(Arc::clone(task), seed)).await;
        let taken = started.elapsed();
        let panicked =
            |text| Err(Unopened::Failed(Boundary::Environment, format!("it panicked: {text}")));
        Some((opened.unwrap_or_else(panicked), taken))
    }

    fn note(&self, task: &str, boundary: Boundary, detail: &str) {
        self.tally(|counts| counts.fail(boundary));
        self.remember(task, detail);
    }

    fn remember(&self, task: &str, detail: &str) {
        let detail = redaction::told(detail);
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
    use super::*;

    #[test]
    fn what_broke_once_is_played_anew_however_long_it_took() {
        let after = |patience, tries: &[(Boundary, u64)]| {
            let mut stalls =
                Stalls { lost: Duration::ZERO, num: 0, patience: Duration::from_secs(patience) };
            let mut spent = |&(boundary, seconds): &(Boundary, u64)| {
                stalls.are_spent(boundary, Duration::from_secs(seconds))
            };
            tries.iter().map(&mut spent).collect::<Vec<_>>()
        };
        let (environment, grader) = (Boundary::Environment, Boundary::Grader);
        // A slow start or a slow policy is no reason to give up what broke for the first time.
        assert_eq!(after(180, &[(environment, 1000), (environment, 0)]), [false, true]);
        assert_eq!(after(0, &[(grader, 0), (grader, 0)]), [false, true]);
        let tries = [(environment, 100), (grader, 79), (environment, 1)];
        assert_eq!(after(180, &tries), [false, false, true]);
        // Others count neither as tries nor as time.
        let tries = [(Boundary::Sandbox, 1000), (environment, 200), (Boundary::Policy, 1000)];
        assert_eq!(after(180, &tries), [false, false, false]);
    }
}
