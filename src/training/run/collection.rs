//! The groups of an iteration of reinforcement learning.

use anyhow::ensure;
use spar_agent::credit::GroupView;
use spar_agent::{Cancellation, CollectConfig, CollectRequest, Collection, Player, collect_groups};
use spar_core::{Group, Seed};
use spar_tasks::samplers::Outcome;

use super::Training;
use crate::training::Observer;
use crate::training::demonstrations::take_places;

/// The groups of an iteration.
pub(super) struct Collected {
    /// Those that are trained, and the counts of all.
    pub(super) collection: Collection,
    /// Groups that the task sampler left out.
    pub(super) num_dropped: usize,
}

impl Training {
    /// Plays what the task sampler draws, round by round; `None` when it was told to stop, the sampler then
    /// standing where it stood.
    pub(super) async fn collect(
        &mut self,
        seed: Seed,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<Collected>> {
        let config = &self.recipe.reinforce;
        let mut episode = self.recipe.episode.clone();
        episode.max_turns = Some(config.max_turns);
        let default = CollectConfig::default();
        let collect = CollectConfig {
            group_size: config.group_size,
            concurrency: self.sandboxes.concurrency().unwrap_or(default.concurrency),
            episode,
            ..default
        };
        let before = self.sampler.state();
        let mut collected = Collected { collection: Collection::default(), num_dropped: 0 };
        self.sampler.begin(config.tasks);
        for round in 0_u64.. {
            let places = self.sampler.draw();
            if places.is_empty() {
                break;
            }
            let train = &self.recipe.data.train;
            let tasks = take_places(self.suite.as_ref(), train, self.seed, &places)?;
            observer.playing("rollouts", tasks.len() * config.group_size);
            let request = CollectRequest {
                tasks: &tasks,
                player: Player::Policy(&self.policy),
                strategy: self.strategy.as_ref(),
                open: &self.sandboxes.opener(),
                seed: if round == 0 { seed } else { seed.derive("round", round) },
                cancellation,
                on_episode: &|trajectory| observer.episode(trajectory),
            };
            let found = collect_groups(&request, &collect).await;
            if cancellation.is_cancelled() {
                self.sampler.load(&before)?;
                return Ok(None);
            }
            let failure = || found.last_failure.clone().unwrap_or_default();
            ensure!(found.counts.finished > 0, "play a single episode: {}", failure());
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
        self.state.sampler = Some(self.sampler.state());
        Ok(Some(collected))
    }
}
