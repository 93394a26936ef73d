//! Every environment that has a name is played, kept and made into rows.

use std::sync::Arc;

use spar_agent::credit::{BatchView, CreditConfig, GroupView, credit_registry, open_estimator};
use spar_agent::policies::{RandomPolicy, ScriptedPolicy};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, CutBatch, DemonstrationConfig,
    JsonlStore, ScaffoldChoice, Seating, SharedPlayer, StoreConfig, collect_groups,
    demonstration_samples,
};
use spar_core::{Seed, Signals, Trajectory, TrajectoryStore};
use spar_envs::{
    Actions, EnvironmentRow, Resources, Sandboxes, actions_of_task, environment_registry,
    needs_browser, open_environment,
};
use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::{RewardShapers, ShaperConfig, SuiteOptions, Task, open_suite};

pub(crate) fn tasks(suite: &str, count: usize) -> Vec<Task> {
    let suite = open_suite(suite, &SuiteOptions::default()).unwrap();
    (0..count).map(|index| suite.task("train", index).unwrap()).collect()
}

/// The environments whose suites are played here. Those that need a browser have tests of their own.
pub(crate) fn played() -> impl Iterator<Item = (&'static EnvironmentRow, &'static str)> {
    let is_played = |entry: &&EnvironmentRow| {
        if needs_browser(entry.name) {
            println!("{}: not played, since it needs a browser", entry.name);
        }
        !needs_browser(entry.name)
    };
    environment_registry().iter().filter(is_played).filter_map(|entry| Some((entry, entry.suite?)))
}

/// With sandboxes in memory.
pub(crate) fn resources() -> Resources {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(Arc::new(FakeBackend::new()), config).unwrap();
    Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)))
}

/// Whether the task is played by calls of tools alone.
fn is_called(task: &Task) -> bool {
    actions_of_task(task) == Some(Actions::Calls)
}

async fn collect(tasks: &[Task], player: SharedPlayer, group_size: usize) -> Collection {
    let resources = resources();
    let request = CollectRequest {
        tasks,
        player,
        seating: Seating::default(),
        strategy: &spar_agent::strategies::Independent,
        open: Arc::new(move |task| open_environment(task, &resources)),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let mut config = CollectConfig { group_size, ..CollectConfig::default() };
    if tasks.iter().all(is_called) {
        config.episode.scaffold = ScaffoldChoice::named("tools").unwrap();
    }
    let collection = collect_groups(&request, &config).await;
    assert_eq!(collection.counts.missing(), 0, "{:?}", collection.last_failure);
    collection
}

#[tokio::test]
async fn guides_leave_demonstrations_that_become_rows() {
    let encoder = Arc::new(ScriptedPolicy::new(["unused"]));
    for (_, suite) in played() {
        let tasks = tasks(suite, 3);
        let player = SharedPlayer::Oracle { encoder: Some(encoder.clone()) };
        let collection = collect(&tasks, player, 1).await;
        for trajectory in collection.groups.iter().flat_map(|group| &group.trajectories) {
            assert!(!trajectory.turns.is_empty());
            let rows = demonstration_samples(trajectory, &DemonstrationConfig::default()).unwrap();
            // Tools that change are told anew, which begins another sample.
            let is_appended = !tasks.iter().all(is_called);
            assert!(rows.len() == 1 || !is_appended, "everything is appended, so all turns join");
            let weights = rows.iter().flat_map(|row| &row.cross_entropy_weights);
            let actions = weights.filter(|weight| **weight == 1.0).count();
            let sampled: usize = trajectory.turns.iter().map(|turn| turn.sampled.ids.len()).sum();
            assert_eq!(actions, sampled);
        }
    }
}

#[tokio::test]
async fn what_any_environment_pays_for_success_can_be_discounted() {
    let discount = RewardShapers::open(&[ShaperConfig::new("length_discount")]).unwrap();
    for (entry, suite) in played() {
        let player = SharedPlayer::Oracle { encoder: None };
        let collection = collect(&tasks(suite, 2), player, 1).await;
        for group in &collection.groups {
            let plain = GroupView::from_group(group);
            assert_eq!(GroupView::shaped(group, &RewardShapers::default()), plain);
            let shaped = GroupView::shaped(group, &discount).returns();
            let records = group.trajectories.iter().zip(plain.returns()).zip(shaped);
            for ((trajectory, plain), shaped) in records {
                let turns = trajectory.turns.len();
                // A loss is no success, and stays what it is.
                let factor = if plain > 0.0 { 0.95_f64.powf(turns as f64) } else { 1.0 };
                let wanted = plain * factor;
                assert_eq!(shaped, wanted, "{}: {turns} turns", entry.name);
                // Of players at all seats of a game, what one wins another loses, and luck is for nobody.
                let is_open = entry.needs_sandbox || has_losers(entry.name, suite);
                assert!(is_open || wanted > 0.0, "{}", entry.name);
            }
        }
    }
}

/// Whether even the best players lose: to each other, or by luck.
fn has_losers(environment: &str, suite: &str) -> bool {
    let env = open_environment(&tasks(suite, 1)[0], &resources()).unwrap();
    assert_eq!(env.name(), environment);
    env.is_zero_sum() || env.tags().iter().any(|tag| tag == spar_envs::CHANCE_TAG)
}

#[tokio::test]
async fn members_share_their_start_and_groups_survive_the_store() {
    for (entry, suite) in played() {
        let tasks = tasks(suite, 2);
        // Chance calls no tools.
        let is_called = tasks.iter().all(is_called);
        let player = match is_called {
            true => SharedPlayer::Oracle { encoder: None },
            false => SharedPlayer::of(RandomPolicy),
        };
        let collection = collect(&tasks, player, 4).await;
        for group in &collection.groups {
            // Who moves behind another sees what that one did; whoever begins, at one seat at least nobody did anything before.
            let of_seat = |seat| group.trajectories.iter().filter(move |it| it.seat == seat);
            let share_their_start = |first: &Trajectory| {
                of_seat(first.seat).all(|it| it.first_observation == first.first_observation)
            };
            assert!(group.trajectories.iter().any(share_their_start), "{}", entry.name);
            let actions = |index: usize| -> Vec<&str> {
                group.trajectories[index].turns.iter().map(|turn| turn.text.as_str()).collect()
            };
            assert_eq!(actions(0) == actions(1), is_called, "members choose for themselves");
            let groups = std::slice::from_ref(group);
            let batch = BatchView::shaped(groups, &RewardShapers::default());
            for entry in credit_registry() {
                let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
                let mut signals = Signals::default();
                for signal in estimator.needs() {
                    signals.insert(*signal, vec![Vec::new(); group.trajectories.len()]);
                }
                let credit = estimator.estimate(&batch, &signals).unwrap();
                let kept = vec![true; group.trajectories.len()];
                let samples = CutBatch::new(groups).unwrap().weigh(&credit, &kept);
                assert!(samples.unwrap().is_empty(), "text has no tokens");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::open(folder.path(), StoreConfig::default()).unwrap();
        store.append(0, &collection.groups).unwrap();
        let read: Vec<_> =
            JsonlStore::read(folder.path()).unwrap().groups().map(|g| g.unwrap().1).collect();
        assert_eq!(read, collection.groups);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_pages_are_played_in_groups_that_share_their_start_and_are_kept() {
    for (name, split) in [("site", "train"), ("miniwob", "train-oracle")] {
        let suite = open_suite(name, &SuiteOptions::default()).unwrap();
        let tasks: Vec<Task> = (0..3).map(|index| suite.task(split, index).unwrap()).collect();
        if let Err(error) = open_environment(&tasks[0], &Resources::default()) {
            println!("{name}: not played: {error}");
            continue;
        }
        let player = SharedPlayer::Oracle { encoder: None };
        let collection = collect(&tasks, player, 2).await;
        for group in &collection.groups {
            let first = &group.trajectories[0];
            let starts = group.trajectories.iter().map(|it| &it.first_observation);
            assert!(starts.clone().all(|it| *it == first.first_observation), "{name}");
            let solved = group.trajectories.iter().all(|it| it.total_reward() == 1.0);
            assert!(solved, "{name}: {:?}", first.task);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::open(folder.path(), StoreConfig::default()).unwrap();
        store.append(0, &collection.groups).unwrap();
        let read: Vec<_> =
            JsonlStore::read(folder.path()).unwrap().groups().map(|g| g.unwrap().1).collect();
        assert_eq!(read, collection.groups);
    }
}
