//! Demonstrations: the text a tokenizer learns from, and the rows of the warm start.

use anyhow::{Context, ensure};
use spar_agent::{CollectConfig, CollectRequest, Collection, Player, collect_groups};
use spar_core::{Policy, Seed, Trajectory};
use spar_tasks::Task;

use super::Observer;
use crate::recipe::{DataConfig, Demonstrator, Recipe};
use crate::sandboxes::OpenSandboxes;

/// Plays every task once as the demonstrator does.
pub(super) async fn demonstrate(
    recipe: &Recipe,
    tasks: &[Task],
    encoder: Option<&dyn Policy>,
    seed: Seed,
    sandboxes: &OpenSandboxes,
    cancellation: &spar_agent::Cancellation,
    observer: &dyn Observer,
) -> anyhow::Result<Collection> {
    let player = match recipe.warm_start.demonstrator {
        Demonstrator::Oracle => Player::Oracle { encoder },
        Demonstrator::Expert => Player::Expert { encoder },
    };
    let request = CollectRequest {
        tasks,
        player,
        open: &sandboxes.opener(),
        seed,
        cancellation,
        on_episode: &|trajectory| observer.episode(trajectory),
    };
    let default = CollectConfig::default();
    let config = CollectConfig {
        group_size: 1,
        concurrency: sandboxes.concurrency().unwrap_or(default.concurrency),
        episode: recipe.episode.clone(),
        ..default
    };
    let collection = collect_groups(&request, &config).await;
    if !cancellation.is_cancelled() {
        let failure = || collection.last_failure.clone().unwrap_or_default();
        ensure!(collection.counts.finished > 0, "no demonstration came about: {}", failure());
    }
    Ok(collection)
}

/// The demonstrations that are imitated: those that solved their task, and the others where
/// `unsolved` says so.
pub(super) fn imitated(collection: &Collection, unsolved: bool) -> Vec<&Trajectory> {
    let played = collection.groups.iter().flat_map(|group| &group.trajectories);
    played.filter(|trajectory| trajectory.won || unsolved).collect()
}

/// All that is said in an episode, message by message, and all that could have been said.
pub(super) fn messages_of(trajectory: &Trajectory) -> Vec<&str> {
    let mut messages = Vec::new();
    let steps = trajectory.turns.iter().map(|turn| &turn.step.observation);
    for observation in std::iter::once(&trajectory.first_observation).chain(steps) {
        messages.push(observation.text.as_str());
        messages.extend(observation.instruction.as_deref());
        let actions = observation.admissible.iter().flat_map(|actions| actions.iter());
        messages.extend(actions.map(|action| &**action));
    }
    messages.extend(trajectory.turns.iter().map(|turn| turn.text.as_str()));
    messages
}

/// Demonstrated tasks `first..first + count`, taken from the recipe's splits in turn.
pub(super) fn take_demonstrated(
    suite: &dyn spar_tasks::Suite,
    data: &DataConfig,
    first: u64,
    count: usize,
) -> anyhow::Result<Vec<Task>> {
    let splits = &data.demonstrations;
    if splits.is_empty() {
        return take_tasks(suite, &data.train, first, count);
    }
    let mut tasks = Vec::with_capacity(count);
    for index in first..first + count as u64 {
        let split = &splits[(index % splits.len() as u64) as usize];
        tasks.extend(take_tasks(suite, split, index / splits.len() as u64, 1)?);
    }
    Ok(tasks)
}

/// Tasks `first..first + count` of a split, beginning again behind its end.
pub(super) fn take_tasks(
    suite: &dyn spar_tasks::Suite,
    split: &str,
    first: u64,
    count: usize,
) -> anyhow::Result<Vec<Task>> {
    let len = suite.len(split)? as u64;
    ensure!(len > 0, "split `{split}` has no tasks");
    (first..first + count as u64)
        .map(|index| suite.task(split, (index % len) as usize))
        .collect::<Result<_, _>>()
        .context("take tasks")
}

#[cfg(test)]
mod tests {
    use spar_core::{Group, Seed};

    use super::*;

    #[test]
    fn what_did_not_solve_its_task_is_imitated_only_where_that_is_asked_for() {
        let played = |episode: u64, won: bool| {
            let record = serde_json::json!({
                "version": 2, "episode": episode, "task": "t", "environment": "e",
                "seed": Seed::from_u64(0), "policy": "expert",
                "first_observation": { "text": "", "state_key": "" }, "turns": [],
                "end": { "kind": "truncated", "limit": "turns" }, "won": won,
                "wall_time": { "secs": 0, "nanos": 0 },
            });
            Trajectory::from_json(record.to_string().as_bytes()).unwrap()
        };
        let group = |trajectories| Group { task: "t".to_owned(), trajectories };
        let groups =
            vec![group(vec![played(1, false), played(2, true)]), group(vec![played(3, true)])];
        let collection = Collection { groups, ..Collection::default() };
        let chosen = |unsolved| -> Vec<u64> {
            imitated(&collection, unsolved).iter().map(|trajectory| trajectory.episode).collect()
        };
        assert_eq!(chosen(false), [2, 3]);
        assert_eq!(chosen(true), [1, 2, 3]);
        assert!(!crate::recipe::WarmStartConfig::default().imitate_unsolved);
    }
}
