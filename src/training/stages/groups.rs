//! Groups of episodes, as stages play them to train on.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_agent::credit::GroupView;
use spar_agent::strategies::{RolloutStrategy, StrategyConfig, open_strategy};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, CollectionSink, CutGroup,
    EpisodeConfig, FinishedGroup, Keeper, SamplesError, stream_groups,
};
use spar_core::{EndReason, Seed, Trajectory};
use spar_tasks::samplers::{Outcome, SamplerConfig, TaskSampler, open_sampler};
use spar_tasks::{RewardShapers, ShaperConfig, Task};

use super::{Place, Step};
use crate::training::demonstrations::take_places;
use crate::training::run::Training;

/// What is played in every iteration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupOptions {
    /// Tasks per iteration.
    pub(super) tasks: usize,
    /// Episodes per task.
    pub(super) group_size: usize,
    /// Turns that an episode may have.
    pub(super) max_turns: u32,
    pub(super) sampler: SamplerConfig,
    pub(super) strategy: StrategyConfig,
    pub(super) shapers: Vec<ShaperConfig>,
}

/// Plays groups of episodes, and knows which tasks come next.
pub(super) struct GroupSource {
    options: GroupOptions,
    shapers: RewardShapers,
    sampler: Box<dyn TaskSampler>,
    strategy: Box<dyn RolloutStrategy>,
    /// Whether the sampler has drawn.
    is_begun: bool,
}

/// The groups of an iteration.
#[derive(Default)]
pub(super) struct Collected {
    /// Those that are trained, in the order of drawing, and the counts of all.
    pub(super) collection: Collection,
    /// The samples of these.
    pub(super) cut: Vec<CutGroup>,
    /// Groups that the task sampler left out.
    pub(super) num_dropped: usize,
}

/// The groups of one round, in the order of drawing.
struct Round {
    collection: Collection,
    cut: Vec<CutGroup>,
    outcomes: Vec<Outcome>,
}

/// What is kept between iterations.
#[derive(Serialize, Deserialize)]
struct SourceState {
    /// The task sampler's.
    sampler: Value,
}

impl GroupSource {
    /// A source behind `done` iterations of the stage at `place`, with the [state](Self::state) that it had.
    pub(super) fn open(
        options: GroupOptions,
        place: &Place,
        done: u64,
        state: Option<&Value>,
    ) -> anyhow::Result<Self> {
        let state: Option<SourceState> = state.cloned().map(serde_json::from_value).transpose()?;
        // Of runs older than the state, behind what it has played.
        let first = place.first_task + done * options.tasks as u64;
        let mut sampler = open_sampler(&options.sampler, first)?;
        if let Some(state) = &state {
            sampler.load(&state.sampler)?;
        }
        Ok(Self {
            shapers: RewardShapers::open(&options.shapers)?,
            strategy: open_strategy(&options.strategy)?,
            is_begun: state.is_some(),
            sampler,
            options,
        })
    }

    /// What it needs to go on; absent as long as nothing was played.
    pub(super) fn state(&self) -> Option<Value> {
        let state = SourceState { sampler: self.sampler.state() };
        let written = || serde_json::to_value(&state).expect("a state is plain data");
        self.is_begun.then(written)
    }

    /// The place behind all that was taken of the split.
    pub(super) fn next_place(&self) -> u64 {
        self.sampler.next_place()
    }

    /// What changes the rewards.
    pub(super) fn shapers(&self) -> &RewardShapers {
        &self.shapers
    }

    /// Plays what the task sampler draws, round by round; `None` when it was told to stop, the sampler then
    /// standing where it stood. What was kept of such an iteration is cut off when the run goes on.
    pub(super) async fn collect(
        &mut self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<Collected>> {
        let before = self.sampler.state();
        let mut collected = Collected::default();
        self.sampler.begin(self.options.tasks);
        for round in 0_u64.. {
            let places = self.sampler.draw();
            if places.is_empty() {
                break;
            }
            let suite = run.domains.of(&place.data).suite.as_ref();
            let tasks = take_places(suite, &place.data.train, run.seed, &places)?;
            let seed = if round == 0 { step.seed } else { step.seed.derive("round", round) };
            let earlier = collected.collection.groups.len() + collected.num_dropped;
            let played = self.play(run, place, step, &tasks, seed, earlier).await?;
            let Some(Round { collection, cut, outcomes }) = played else {
                self.sampler.load(&before)?;
                return Ok(None);
            };
            let kept = self.sampler.observe(&outcomes);
            let (found, expected) = (kept.len(), outcomes.len());
            let name = self.sampler.name();
            ensure!(found == expected, "task sampler `{name}` judged {found} of {expected} groups");
            let of_kept = cut.into_iter().zip(&kept).filter(|(_, kept)| **kept);
            collected.cut.extend(of_kept.map(|(cut, _)| cut));
            collected.num_dropped += kept.iter().filter(|kept| !**kept).count();
            collected.collection.keep(collection, &kept);
            // A task that nobody can play, drawn in a later round, costs nothing but its group.
            let Collection { counts, last_failure, .. } = &collected.collection;
            let failure = last_failure.as_deref().unwrap_or_default();
            ensure!(counts.finished > 0, "play a single episode: {failure}");
        }
        self.is_begun = true;
        Ok(Some(collected))
    }

    /// Plays a group for each of these tasks, behind so many earlier ones of the iteration; `None` when it was told to stop.
    async fn play(
        &self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
        tasks: &[Task],
        seed: Seed,
        earlier: usize,
    ) -> anyhow::Result<Option<Round>> {
        let GroupOptions { group_size, max_turns, .. } = self.options;
        run.check_environments(place, tasks.iter().map(|task| task.environment.as_str()))?;
        let player = run.player(place)?;
        step.watch.observer.playing("rollouts", tasks.len() * group_size);
        let domain = run.domains.of(&place.data);
        let max_turns = Some(max_turns);
        let config = CollectConfig {
            group_size,
            concurrency: domain.sandboxes.concurrency(),
            episode: EpisodeConfig { max_turns, ..run.recipe.episode.clone() },
            ..CollectConfig::default()
        };
        // Who cannot keep an episode stops the others as well.
        let stop = Cancellation::new();
        let request = CollectRequest {
            tasks,
            player: player.clone(),
            seating: domain.seating.clone(),
            strategy: self.strategy.as_ref(),
            open: domain.sandboxes.opener(player.shared_policy().cloned()),
            seed,
            cancellation: &stop,
            on_episode: &|played| step.watch.observer.episode(played),
        };
        let every = run.recipe.keep.trajectories_every;
        let is_kept = every > 0 && step.number.is_multiple_of(every);
        let store = Some(&mut run.store).filter(|_| is_kept);
        let keeper = store.map(|store| Keeper::new(store, step.number, &stop).behind(earlier));
        let arrivals = Arrivals::new(keeper, &self.shapers);
        let collecting = stream_groups(&request, &config, &arrivals);
        let (counts, last_failure) =
            stopping_with(step.watch.cancellation, &stop, collecting).await;
        let mut round = arrivals.finish()?;
        (round.collection.counts, round.collection.last_failure) = (counts, last_failure);
        Ok((!step.watch.cancellation.is_cancelled()).then_some(round))
    }
}

/// Waits for what `stop` stops, and sets it when the run is told to stop.
async fn stopping_with<T>(
    run: &Cancellation,
    stop: &Cancellation,
    doing: impl Future<Output = T>,
) -> T {
    let mut doing = pin!(doing);
    tokio::select! {
        biased;
        () = run.cancelled() => {}
        done = &mut doing => return done,
    }
    stop.cancel();
    doing.await
}

/// Does with episodes and groups what can be done as they come, in the order of finishing: trajectories are kept on
/// disk, and groups cut into samples.
struct Arrivals<'a> {
    keeper: Option<Keeper<'a>>,
    shapers: &'a RewardShapers,
    arrived: Mutex<Vec<Arrived>>,
}

/// A group that is done.
struct Arrived {
    finished: FinishedGroup,
    cut: Result<CutGroup, SamplesError>,
    outcome: Outcome,
}

impl<'a> Arrivals<'a> {
    fn new(keeper: Option<Keeper<'a>>, shapers: &'a RewardShapers) -> Self {
        Self { keeper, shapers, arrived: Mutex::default() }
    }

    /// All of them, in the order of drawing.
    fn finish(self) -> anyhow::Result<Round> {
        self.keeper.map_or(Ok(()), Keeper::finish)?;
        let mut arrived = self.arrived.into_inner().unwrap_or_else(PoisonError::into_inner);
        arrived.sort_by_key(|arrived| arrived.finished.index);
        let collection = Collection::default();
        let mut round = Round { collection, cut: Vec::new(), outcomes: Vec::new() };
        for Arrived { finished, cut, outcome } in arrived {
            round.collection.groups.push(finished.group);
            round.collection.tags.push(finished.tags);
            round.cut.push(cut?);
            round.outcomes.push(outcome);
        }
        Ok(round)
    }
}

impl CollectionSink for Arrivals<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        if let Some(keeper) = &self.keeper {
            keeper.trajectory(index, trajectory);
        }
    }

    fn group(&self, mut finished: FinishedGroup) {
        // A seat that never moved has nothing to learn from, and is no measure for those that did.
        finished.group.trajectories.retain(|trajectory| {
            trajectory.end != EndReason::Terminated || !trajectory.turns.is_empty()
        });
        // What one seat earns says nothing of another's tries: a sampler sees those of the first.
        let views = GroupView::by_seat(&finished.group, self.shapers);
        let returns = views.first().map(GroupView::returns).unwrap_or_default();
        let (cut, outcome) = (CutGroup::new(&finished.group), Outcome { returns });
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.push(Arrived { finished, cut, outcome });
    }
}
