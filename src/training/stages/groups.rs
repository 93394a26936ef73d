//! Groups of episodes, as stages play them to train on.

mod under_way;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_agent::credit::GroupView;
use spar_agent::strategies::{RolloutStrategy, StrategyConfig, open_strategy};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, CollectionCounts, CollectionSink,
    CutGroup, EpisodeConfig, FinishedGroup, GroupPlan, Keeper, SamplesError, stream_groups,
};
use spar_core::{EndReason, Group, Seed, Trajectory};
use spar_tasks::samplers::{
    Draw, Learned, Outcome, SamplerConfig, TaskSampler, Wanted, open_sampler,
};
use spar_tasks::{RewardShapers, ShaperConfig, Task};

use self::under_way::GroupsUnderWay;
use super::{Place, Step};
use crate::recipe::HorizonConfig;
use crate::training::demonstrations::{TrainingOrder, take_places};
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
    /// How these, and the tokens of answers, grow.
    pub(super) horizon: Option<HorizonConfig>,
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
    /// The groups that were not complete in time, where the strategy has some of them wait.
    under_way: Option<GroupsUnderWay>,
}

/// The groups of an iteration.
#[derive(Default)]
pub(super) struct Collected {
    /// Those that are trained, in the order of drawing, and the counts of all.
    pub(super) collection: Collection,
    /// The samples of these.
    pub(super) cut: Vec<CutGroup>,
    /// The places of their tasks.
    pub(super) places: Vec<u64>,
    /// The names of their seats; of one in which one acts none.
    pub(super) seats: Vec<Vec<String>>,
    /// Groups that the task sampler left out.
    pub(super) num_dropped: usize,
    /// Of groups that go on in the next iteration: how many, and the tokens of their episodes that are paused.
    pub(super) waiting: Option<(usize, usize)>,
}

/// A group that the task sampler has not left out, as far as it was played.
struct Gathered {
    place: u64,
    group: Group,
    seats: Vec<String>,
    tags: Vec<String>,
    cut: CutGroup,
    played: Played,
}

/// How far a group was played.
#[derive(Debug, Clone, Copy)]
struct Played {
    /// The round in which it began, and how often its task came before in that.
    round: u64,
    repetition: u64,
    /// Its number among the groups of the iteration.
    number: usize,
    /// Episodes that were asked for.
    episodes: usize,
}

/// What is played in one go: tasks that begin in the same round.
#[derive(Default)]
struct Part {
    /// Numbers of draws.
    draws: Vec<usize>,
    plans: Vec<GroupPlan>,
    /// The numbers of their groups among those of the iteration.
    groups: Vec<usize>,
}

/// The groups of one part, in the order of drawing.
struct Round {
    arrived: Vec<Arrived>,
    counts: CollectionCounts,
    last_failure: Option<String>,
}

/// What is kept between iterations.
#[derive(Serialize, Deserialize)]
struct SourceState {
    /// The task sampler's.
    sampler: Value,
    /// That of the strategy, where it learns something.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    strategy: Value,
    /// Those of the shapers, where any of them learns something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shapers: Vec<Value>,
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
        let mut shapers = RewardShapers::open(&options.shapers)?;
        if let Some(state) = &state {
            sampler.load(&state.sampler)?;
            shapers.load(&state.shapers)?;
        }
        let mut strategy = open_strategy(&options.strategy)?;
        // What has learned nothing yet has written nothing.
        if let Some(state) = state.as_ref().filter(|state| !state.strategy.is_null()) {
            strategy.load(&state.strategy)?;
        }
        Ok(Self {
            shapers,
            under_way: strategy.partial().map(GroupsUnderWay::new),
            strategy,
            is_begun: state.is_some(),
            sampler,
            options,
        })
    }

    /// What it needs to go on; absent as long as nothing was played.
    pub(super) fn state(&self) -> Option<Value> {
        let state = SourceState {
            sampler: self.sampler.state(),
            strategy: self.strategy.state(),
            shapers: self.shapers.state(),
        };
        let written = || serde_json::to_value(&state).expect("a state is plain data");
        self.is_begun.then(written)
    }

    /// Writes what a checkpoint needs beside the [state](Self::state) into its folder.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        self.under_way.as_ref().map_or(Ok(()), |groups| groups.save(folder))
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        self.under_way.as_mut().map_or(Ok(()), |groups| groups.load(folder))
    }

    /// The place behind all that was taken of the split.
    pub(super) fn next_place(&self) -> u64 {
        self.sampler.next_place()
    }

    /// What changes the rewards.
    pub(super) fn shapers(&self) -> &RewardShapers {
        &self.shapers
    }

    /// Whether groups have demonstrations among them that are trained.
    pub(super) fn adds_demonstrations(&self) -> bool {
        self.strategy.adds_demonstrations()
    }

    /// Has the strategy learn from what it has grown, and gives its numbers for the metrics.
    pub(super) fn strategy_learned(&mut self) -> Vec<(String, f64)> {
        self.strategy.learn()
    }

    /// What came of the groups that were trained: the places of their tasks, and the mean absolute advantage of each, in the order of drawing.
    pub(super) fn learned(&mut self, groups: &[Group], places: &[u64], advantages: &[f64]) {
        let same = |a: &Trajectory, b: &Trajectory| a.seat == b.seat;
        let runs = groups.iter().flat_map(|group| group.trajectories.chunk_by(same));
        let runs: Vec<Vec<&Trajectory>> = runs.map(|run| run.iter().collect()).collect();
        self.shapers.adapt(&runs);
        let learned = places.iter().zip(advantages);
        let learned: Vec<Learned> = learned
            .map(|(place, advantage)| Learned { place: *place, advantage: *advantage })
            .collect();
        self.sampler.learned(&learned);
    }

    /// Plays what the task sampler draws for so many groups, round by round; `None` when it was told to stop, the sampler then
    /// standing where it stood. What was kept of such an iteration is cut off when the run goes on.
    pub(super) async fn collect(
        &mut self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
        groups: usize,
    ) -> anyhow::Result<Option<Collected>> {
        if self.under_way.is_some() {
            return self.collect_complete(run, place, step, groups).await;
        }
        let before = self.sampler.state();
        let group_size = self.options.group_size;
        let mut collected = Collected::default();
        let mut gathered: Vec<Gathered> = Vec::new();
        let mut num_groups = 0;
        self.sampler.begin(&Wanted::new(groups, group_size, step.seed.derive("sampler", 0)));
        for round in 0_u64.. {
            let draws = {
                let suite = run.domains.of(&place.data).suite.as_ref();
                let order = TrainingOrder::new(suite, &place.data.train, run.seed)?;
                self.sampler.draw(&order)
            };
            if draws.is_empty() {
                break;
            }
            // 1. Episodes, those of groups that are played on from where these stand.
            let suite = run.domains.of(&place.data).suite.as_ref();
            let places: Vec<u64> = draws.iter().map(|draw| draw.place).collect();
            let tasks = take_places(suite, &place.data.train, run.seed, &places)?;
            let mut arrived: Vec<Option<Arrived>> = draws.iter().map(|_| None).collect();
            let parts = self.parts(&draws, &tasks, &gathered, (round, num_groups));
            num_groups += parts.get(&round).map_or(0, |part| part.draws.len());
            for (begun, part) in &parts {
                let seed = if *begun == 0 { step.seed } else { step.seed.derive("round", *begun) };
                let tasks: Vec<Task> = part.draws.iter().map(|it| tasks[*it].clone()).collect();
                let Some(played) = self.play(run, place, step, &tasks, seed, part).await? else {
                    self.sampler.load(&before)?;
                    return Ok(None);
                };
                collected.collection.counts += played.counts;
                let failure = played.last_failure;
                collected.collection.last_failure =
                    failure.or(collected.collection.last_failure.take());
                for of_draw in played.arrived {
                    let draw = part.draws[of_draw.finished.index];
                    arrived[draw] = Some(of_draw);
                }
            }

            // 2. What is trained of it.
            let empty = Outcome::default();
            let outcome = |of_draw: &Option<Arrived>| {
                of_draw.as_ref().map_or(&empty, |it| &it.outcome).clone()
            };
            let outcomes: Vec<Outcome> = arrived.iter().map(outcome).collect();
            let kept = self.sampler.observe(&outcomes);
            let (found, expected) = (kept.len(), outcomes.len());
            let name = self.sampler.name();
            ensure!(found == expected, "task sampler `{name}` judged {found} of {expected} groups");
            for (begun, part) in parts {
                for (within, draw) in part.draws.iter().enumerate() {
                    let Some(of_draw) = arrived[*draw].take() else { continue };
                    let plan = part.plans[within];
                    let played = Played {
                        round: begun,
                        repetition: plan.repetition.unwrap_or(0),
                        number: part.groups[within],
                        episodes: plan.size,
                    };
                    let place = draws[*draw].place;
                    gather(&mut gathered, (place, played), of_draw)?;
                    if !kept[*draw] {
                        let dropped =
                            gathered.iter().position(|it| it.played.number == played.number);
                        let dropped = gathered.remove(dropped.expect("it was gathered"));
                        collected.num_dropped += 1;
                        collected.collection.leave_out(&dropped.group);
                    }
                }
            }
            // A task that nobody can play, drawn in a later round, costs nothing but its group.
            let Collection { counts, last_failure, .. } = &collected.collection;
            let failure = last_failure.as_deref().unwrap_or_default();
            ensure!(counts.finished > 0, "play a single episode: {failure}");
        }
        gathered.sort_by_key(|gathered| gathered.played.number);
        for Gathered { place, group, seats, tags, cut, .. } in gathered {
            collected.seats.push(seats);
            collected.collection.groups.push(group);
            collected.collection.tags.push(tags);
            collected.cut.push(cut);
            collected.places.push(place);
        }
        self.is_begun = true;
        Ok(Some(collected))
    }

    /// What is drawn in a round, by the round in which its groups began; so many groups of the iteration stand before it.
    fn parts(
        &self,
        draws: &[Draw],
        tasks: &[Task],
        gathered: &[Gathered],
        (round, mut num_groups): (u64, usize),
    ) -> BTreeMap<u64, Part> {
        let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
        let mut met: HashMap<&str, u64> = HashMap::new();
        for (number, (draw, task)) in draws.iter().zip(tasks).enumerate() {
            let size = draw.rollouts.unwrap_or(self.options.group_size).max(1);
            let earlier = gathered.iter().find(|gathered| gathered.place == draw.place);
            let (begun, group, plan) = match earlier {
                Some(Gathered { played, .. }) => {
                    let repetition = Some(played.repetition);
                    let plan = GroupPlan {
                        first_member: played.episodes,
                        repetition,
                        ..GroupPlan::new(size)
                    };
                    (played.round, played.number, plan)
                }
                None => {
                    let repetition = met.entry(&task.id).or_default();
                    let plan = GroupPlan { repetition: Some(*repetition), ..GroupPlan::new(size) };
                    *repetition += 1;
                    num_groups += 1;
                    (round, num_groups - 1, plan)
                }
            };
            let part = parts.entry(begun).or_default();
            part.draws.push(number);
            part.plans.push(plan);
            part.groups.push(group);
        }
        parts
    }

    /// Plays what a part says of each of its tasks; `None` when it was told to stop.
    async fn play(
        &self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
        tasks: &[Task],
        seed: Seed,
        part: &Part,
    ) -> anyhow::Result<Option<Round>> {
        run.check_environments(place, tasks.iter().map(|task| task.environment.as_str()))?;
        let player = run.player(place)?;
        let episodes = part.plans.iter().map(|plan| plan.size).sum();
        step.watch.observer.playing("rollouts", episodes);
        let domain = run.domains.of(&place.data);
        let config = CollectConfig {
            group_size: self.options.group_size,
            concurrency: domain.sandboxes.concurrency(),
            episode: self.episode(&run.recipe.episode, step.done),
            plans: part.plans.clone(),
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
        let keeper = store
            .map(|store| Keeper::new(store, step.number, &stop).with_groups(part.groups.clone()));
        let arrivals = Arrivals::new(keeper, &self.shapers);
        let collecting = stream_groups(&request, &config, &arrivals);
        let (counts, last_failure) =
            stopping_with(step.watch.cancellation, &stop, collecting).await;
        let round = Round { arrived: arrivals.finish()?, counts, last_failure };
        Ok((!step.watch.cancellation.is_cancelled()).then_some(round))
    }

    /// How episodes are played behind so many iterations of the stage.
    fn episode(&self, episode: &EpisodeConfig, done: u64) -> EpisodeConfig {
        let mut episode =
            EpisodeConfig { max_turns: Some(self.options.max_turns), ..episode.clone() };
        if let Some(horizon) = &self.options.horizon {
            episode.max_turns = Some(horizon.max_turns(done, self.options.max_turns));
            let most = episode.sampling.max_tokens;
            episode.sampling.max_tokens = horizon.max_tokens(done, most);
        }
        episode
    }
}

/// Puts a group that has arrived behind the others, or its episodes into the one that they go on from.
fn gather(
    gathered: &mut Vec<Gathered>,
    (place, played): (u64, Played),
    arrived: Arrived,
) -> anyhow::Result<()> {
    let Arrived { finished, cut, .. } = arrived;
    match gathered.iter_mut().find(|it| it.played.number == played.number) {
        Some(earlier) => {
            earlier.group.trajectories.extend(finished.group.trajectories);
            // Seat by seat, as all groups are.
            earlier.group.trajectories.sort_by_key(|trajectory| trajectory.seat);
            earlier.cut = CutGroup::new(&earlier.group)?;
            earlier.played.episodes += played.episodes;
        }
        None => {
            let seats = finished.seats.into_iter().map(|seat| seat.name).collect();
            let (group, tags) = (finished.group, finished.tags);
            gathered.push(Gathered { place, group, seats, tags, cut: cut?, played });
        }
    }
    Ok(())
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

    /// All of them.
    fn finish(self) -> anyhow::Result<Vec<Arrived>> {
        self.keeper.map_or(Ok(()), Keeper::finish)?;
        Ok(self.arrived.into_inner().unwrap_or_else(PoisonError::into_inner))
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
        let of_first = |trajectory: &&Trajectory| {
            finished.group.trajectories.first().is_some_and(|first| first.seat == trajectory.seat)
        };
        let of_first = finished.group.trajectories.iter().filter(of_first);
        let successes = of_first.filter(|trajectory| trajectory.success).count();
        let (cut, outcome) = (CutGroup::new(&finished.group), Outcome { returns, successes });
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.push(Arrived { finished, cut, outcome });
    }
}
