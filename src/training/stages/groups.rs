//! Groups of episodes, as stages play them to train on.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_agent::credit::GroupView;
use spar_agent::strategies::{RolloutStrategy, StrategyConfig, open_strategy};
use spar_agent::{CollectConfig, CollectRequest, Collection, SharedPlayer, collect_groups};
use spar_core::Group;
use spar_tasks::samplers::{Outcome, SamplerConfig, TaskSampler, open_sampler};
use spar_tasks::{RewardShapers, ShaperConfig};

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
pub(super) struct Collected {
    /// Those that are trained, and the counts of all.
    pub(super) collection: Collection,
    /// Groups that the task sampler left out.
    pub(super) num_dropped: usize,
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

    /// What changes the rewards.
    pub(super) fn shapers(&self) -> &RewardShapers {
        &self.shapers
    }

    /// Plays what the task sampler draws, round by round; `None` when it was told to stop, the sampler then
    /// standing where it stood.
    pub(super) async fn collect(
        &mut self,
        run: &Training,
        place: &Place,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<Collected>> {
        let GroupOptions { tasks, group_size, max_turns, .. } = self.options;
        let domain = run.domains.of(&place.data);
        let mut episode = run.recipe.episode.clone();
        episode.max_turns = Some(max_turns);
        let default = CollectConfig::default();
        let collect = CollectConfig {
            group_size,
            concurrency: domain.sandboxes.concurrency(),
            episode,
            ..default
        };
        let before = self.sampler.state();
        let mut collected = Collected { collection: Collection::default(), num_dropped: 0 };
        self.sampler.begin(tasks);
        for round in 0_u64.. {
            let places = self.sampler.draw();
            if places.is_empty() {
                break;
            }
            let train = &place.data.train;
            let tasks = take_places(domain.suite.as_ref(), train, run.seed, &places)?;
            step.watch.observer.playing("rollouts", tasks.len() * group_size);
            let request = CollectRequest {
                tasks: &tasks,
                player: SharedPlayer::Policy(run.policy.clone()),
                strategy: self.strategy.as_ref(),
                open: domain.sandboxes.opener(Some(run.policy.clone())),
                seed: if round == 0 { step.seed } else { step.seed.derive("round", round) },
                cancellation: step.watch.cancellation,
                on_episode: &|trajectory| step.watch.observer.episode(trajectory),
            };
            let found = collect_groups(&request, &collect).await;
            if step.watch.cancellation.is_cancelled() {
                self.sampler.load(&before)?;
                return Ok(None);
            }
            let failure = || found.last_failure.clone().unwrap_or_default();
            // A task that nobody can play, drawn in a later round, costs nothing but its group.
            let finished = collected.collection.counts.finished + found.counts.finished;
            ensure!(finished > 0, "play a single episode: {}", failure());
            let outcome = |group: &Group| Outcome {
                returns: GroupView::shaped(group, &self.shapers).returns(),
            };
            let outcomes: Vec<Outcome> = found.groups.iter().map(outcome).collect();
            let kept = self.sampler.observe(&outcomes);
            ensure!(
                kept.len() == outcomes.len(),
                "task sampler `{}` judged {} of {} groups",
                self.sampler.name(),
                kept.len(),
                outcomes.len()
            );
            collected.num_dropped += kept.iter().filter(|kept| !**kept).count();
            collected.collection.keep(found, &kept);
        }
        self.is_begun = true;
        Ok(Some(collected))
    }
}
