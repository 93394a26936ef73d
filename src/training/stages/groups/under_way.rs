//! Groups that were not complete in time, and go on in the next iteration.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_agent::strategies::PartialOptions;
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, CollectionSink, CutGroup, FinishedGroup,
    GroupUnderWay, Keeper, play_legs,
};
use spar_core::{Group, Trajectory};
use spar_tasks::samplers::{Outcome, Wanted};

use super::super::replay::{read_lines, write_lines};
use super::{Collected, GroupSource, Place, Step, stopping_with};
use crate::training::demonstrations::{TrainingOrder, take_places};
use crate::training::run::Training;

/// The file in a checkpoint that they are kept in.
const FILE: &str = "under_way.jsonl";

/// The groups that a stage has under way between its iterations, oldest first.
pub(super) struct GroupsUnderWay {
    options: PartialOptions,
    groups: Vec<PlacedGroup>,
}

/// A group of a task of the training order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlacedGroup {
    place: u64,
    group: GroupUnderWay,
}

impl GroupsUnderWay {
    /// None yet.
    pub(super) fn new(options: PartialOptions) -> Self {
        Self { options, groups: Vec::new() }
    }

    /// Writes them into the folder of a checkpoint.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        write_lines(&folder.join(FILE), &self.groups).context("keep the groups under way")
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        self.groups = read_lines(&folder.join(FILE)).context("read the groups under way")?;
        Ok(())
    }
}

/// Keeps episodes on disk as they end.
struct Kept<'a>(Option<Keeper<'a>>);

impl CollectionSink for Kept<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        if let Some(keeper) = &self.0 {
            keeper.trajectory(index, trajectory);
        }
    }

    fn group(&self, _group: FinishedGroup) {}
}

impl GroupSource {
    /// Plays as many groups as the strategy wants under way, those of the iterations before among them, until so many are complete; `None` when it was told to stop, all
    /// then standing where it stood.
    pub(super) async fn collect_complete(
        &mut self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
        wanted: usize,
    ) -> anyhow::Result<Option<Collected>> {
        let Some(GroupsUnderWay { options, groups }) = &self.under_way else {
            unreachable!("asked only where groups are under way")
        };
        let (options, mut groups) = (*options, groups.clone());
        let before = self.sampler.state();
        let group_size = self.options.group_size;
        // 1. New groups beside those that wait.
        let fresh = options.under_way(wanted).saturating_sub(groups.len());
        self.sampler.begin(&Wanted::new(fresh, group_size, step.seed.derive("sampler", 0)));
        let suite = run.domains.of(&place.data).suite.as_ref();
        let draws = {
            let order = TrainingOrder::new(suite, &place.data.train, run.seed)?;
            self.sampler.draw(&order)
        };
        self.sampler.observe(&vec![Outcome::default(); draws.len()]);
        for (number, draw) in draws.iter().enumerate() {
            let group = GroupUnderWay::new(step.seed.derive("group", number), group_size);
            groups.push(PlacedGroup { place: draw.place, group });
        }
        let places: Vec<u64> = groups.iter().map(|group| group.place).collect();
        let tasks = take_places(suite, &place.data.train, run.seed, &places)?;

        // 2. Episodes, leg by leg.
        run.check_environments(place, tasks.iter().map(|task| task.environment.as_str()))?;
        let player = run.player(place)?;
        step.watch.observer.playing("rollouts", wanted * group_size);
        let domain = run.domains.of(&place.data);
        let config = CollectConfig {
            group_size,
            concurrency: domain.sandboxes.concurrency(),
            episode: self.episode(&run.recipe.episode, step.done),
            ..CollectConfig::default()
        };
        let stop = Cancellation::new();
        let request = CollectRequest {
            tasks: &tasks,
            player: player.clone(),
            seating: domain.seating.clone(),
            strategy: self.strategy.as_ref(),
            open: domain.sandboxes.opener(player.shared_policy().cloned()),
            seed: step.seed,
            cancellation: &stop,
            on_episode: &|played| step.watch.observer.episode(played),
        };
        let every = run.recipe.keep.trajectories_every;
        let is_kept = every > 0 && step.number.is_multiple_of(every);
        let store = Some(&mut run.store).filter(|_| is_kept);
        let kept = Kept(store.map(|store| Keeper::new(store, step.number, &stop)));
        let mut played: Vec<GroupUnderWay> = groups.iter().map(|it| it.group.clone()).collect();
        let playing = play_legs(&request, &config, &mut played, (wanted, options.leg), &kept);
        let (counts, failure) = stopping_with(step.watch.cancellation, &stop, playing).await;
        kept.0.map_or(Ok(()), Keeper::finish)?;
        if step.watch.cancellation.is_cancelled() {
            self.sampler.load(&before)?;
            return Ok(None);
        }

        // 3. The oldest that are complete are trained, the others wait.
        let mut collected = Collected::default();
        collected.collection.counts = counts;
        collected.collection.last_failure = failure;
        let mut waiting = Vec::new();
        for ((PlacedGroup { place, .. }, group), task) in groups.iter().zip(played).zip(&tasks) {
            if !group.is_complete() || collected.places.len() == wanted {
                waiting.push(PlacedGroup { place: *place, group });
                continue;
            }
            let tags = group.tags.clone();
            let group = Group { task: task.id.clone(), trajectories: group.into_done() };
            collected.cut.push(CutGroup::new(&group)?);
            collected.collection.groups.push(group);
            collected.collection.tags.push(tags);
            collected.places.push(*place);
            collected.seats.push(Vec::new());
        }
        let is_empty = |group: &Group| group.trajectories.is_empty();
        let told = collected.collection.last_failure.as_deref().unwrap_or_default();
        ensure!(!collected.collection.groups.iter().all(is_empty), "play a single episode: {told}");
        let tokens = waiting.iter().map(|it| it.group.paused_tokens()).sum();
        collected.waiting = Some((waiting.len(), tokens));
        self.under_way = Some(GroupsUnderWay { options, groups: waiting });
        self.is_begun = true;
        Ok(Some(collected))
    }
}
