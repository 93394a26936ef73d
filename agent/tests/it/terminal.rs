//! Episodes in sandboxes: what fails is refilled, what is slow runs side by side.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use spar_agent::policies::{RandomPolicy, ScriptedPolicy};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, Concurrency, EvaluateConfig,
    EvaluateRequest, OpenEnvironment, Seating, SharedPlayer, collect_groups, evaluate,
};
use spar_core::{Boundary, EndReason, Limit, Seed, Trajectory};
use spar_envs::{Resources, Sandboxes, open_environment};
use spar_sandbox::backends::fake::{FakeBackend, FakeFaults};
use spar_sandbox::pool::{BreakerConfig, PoolConfig, SandboxPool};
use spar_tasks::{SuiteOptions, Task, TerminalTask, open_suite};

const ORACLE: SharedPlayer = SharedPlayer::Oracle { encoder: None };

struct Bench {
    backend: FakeBackend,
    pool: Arc<SandboxPool>,
    resources: Resources,
    /// Every episode that was heard of.
    heard: Mutex<Vec<Trajectory>>,
}

impl Bench {
    fn new(faults: FakeFaults, config: PoolConfig) -> Self {
        let backend = FakeBackend::new().with_faults(faults);
        let config = PoolConfig { starts_per_second: None, ..config };
        let pool = Arc::new(SandboxPool::new(Arc::new(backend.clone()), config).unwrap());
        let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
        Self { backend, pool, resources, heard: Mutex::default() }
    }

    fn opener(&self) -> OpenEnvironment {
        let resources = self.resources.clone();
        Arc::new(move |task| open_environment(task, &resources))
    }

    async fn collect(
        &self,
        tasks: &[Task],
        player: SharedPlayer,
        config: &CollectConfig,
    ) -> Collection {
        let request = CollectRequest {
            tasks,
            player,
            seating: Seating::default(),
            strategy: &spar_agent::strategies::Independent,
            open: self.opener(),
            seed: Seed::from_u64(1),
            cancellation: &Cancellation::new(),
            on_episode: &|played| self.heard.lock().unwrap().push(played.record.clone()),
        };
        let collection = collect_groups(&request, config).await;
        self.pool.shutdown().await;
        assert_eq!(self.backend.num_live(), 0, "all sandboxes are gone");
        collection
    }

    /// Failures that were heard of.
    fn failures(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let failure = |trajectory: &Trajectory| match &trajectory.end {
            EndReason::Failed { boundary: Boundary::Sandbox, detail } => Some(detail.clone()),
            _ => None,
        };
        heard.iter().filter_map(failure).collect()
    }
}

fn chores(count: usize) -> Vec<Task> {
    let suite = open_suite("terminal", &SuiteOptions::default()).unwrap();
    (0..count).map(|index| suite.task("train", index).unwrap()).collect()
}

fn task_of(found: &TerminalTask) -> Task {
    let parameters = serde_json::to_value(found).unwrap();
    Task { parameters, ..chores(1).remove(0) }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_dies_anywhere_is_refilled_and_its_siblings_go_on() {
    // Clearing, going and judging come behind the agent's own commands.
    for dies_at_exec in 1..=4 {
        let faults = FakeFaults {
            dies_at_exec: Some(dies_at_exec),
            most_deaths: Some(3),
            ..FakeFaults::default()
        };
        let bench = Bench::new(faults, PoolConfig::default());
        let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
        let collection = bench.collect(&chores(4), ORACLE, &config).await;
        let counts = collection.counts;
        assert_eq!((counts.finished, counts.sandbox_failures), (16, 3), "{dies_at_exec}");
        assert_eq!((counts.environment_failures, counts.missing()), (0, 0));
        assert!(collection.groups.iter().all(|group| group.trajectories.len() == 4));
        assert!(collection.groups.iter().flat_map(|group| &group.trajectories).all(|t| t.success));
        // Each was recorded, and none is among those that are learned from.
        assert_eq!(bench.failures().len(), 3);
        assert!(bench.failures()[0].contains("it was killed"), "{:?}", bench.failures());
        assert_eq!(bench.backend.num_created(), 16 + 3);
    }
}

#[tokio::test(start_paused = true)]
async fn creations_that_fail_are_refilled_and_an_open_breaker_is_waited_for() {
    let faults = FakeFaults { failing_creates: 12, ..FakeFaults::default() };
    let breaker = BreakerConfig { failures: 5, first_wait_ms: 5_000, longest_wait_ms: 60_000 };
    let bench = Bench::new(faults, PoolConfig { breaker, ..PoolConfig::default() });
    let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
    let collection = bench.collect(&chores(2), ORACLE, &config).await;
    assert_eq!((collection.counts.finished, collection.counts.missing()), (8, 0));
    assert_eq!(collection.counts.sandbox_failures, 12);
    // Most were sent away by the breaker without a try, more often than they could be refilled.
    assert!(bench.pool.metrics().refusals > 8, "{:?}", bench.pool.metrics());
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_never_comes_back_is_given_up() {
    let faults = FakeFaults { failing_creates: u64::MAX, ..FakeFaults::default() };
    let bench = Bench::new(faults, PoolConfig::default());
    let began = tokio::time::Instant::now();
    let config =
        CollectConfig { group_size: 4, sandbox_patience_secs: 100, ..CollectConfig::default() };
    let collection = bench.collect(&chores(2), ORACLE, &config).await;
    assert_eq!((collection.counts.finished, collection.counts.missing()), (0, 8));
    assert!(collection.groups.iter().all(|group| group.trajectories.is_empty()));
    assert!(collection.last_failure.unwrap().contains("the test wants it to fail"));
    assert!((10..400).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_sandboxes_run_side_by_side() {
    let second = Duration::from_secs(1);
    let faults = FakeFaults { create_takes: second, close_takes: second, ..FakeFaults::default() };
    let bench = Bench::new(faults, PoolConfig { max_starts: 64, ..PoolConfig::default() });
    let mut task = TerminalTask::new("Wait.", "sleep 1");
    task.solution = vec!["sleep 1".to_owned()];
    let began = tokio::time::Instant::now();
    let config =
        CollectConfig { group_size: 32, concurrency: 32.into(), ..CollectConfig::default() };
    let collection = bench.collect(&[task_of(&task)], ORACLE, &config).await;
    assert_eq!(collection.counts.finished, 32);
    // One second each for creating, acting, judging and closing; in turn it would be 128.
    assert_eq!(began.elapsed().as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn more_episodes_than_sandboxes_wait_without_losing_time_of_their_own() {
    let bench =
        Bench::new(FakeFaults::default(), PoolConfig { max_live: 2, ..PoolConfig::default() });
    let mut task = TerminalTask::new("Wait.", "true");
    task.command_secs = 100;
    task.solution = vec!["sleep 90".to_owned()];
    let mut config = CollectConfig { group_size: 12, ..CollectConfig::default() };
    config.episode.command_time_secs = 100;
    let collection = bench.collect(&[task_of(&task)], ORACLE, &config).await;
    assert_eq!((collection.counts.finished, collection.counts.truncated), (12, 0));
    assert_eq!((bench.backend.most_live(), collection.counts.sandbox_failures), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn sandboxes_are_limited_apart_from_environments() {
    let bench = Bench::new(FakeFaults::default(), PoolConfig::default());
    let mut task = TerminalTask::new("Wait.", "true");
    task.solution = vec!["sleep 1".to_owned()];
    let lake = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
    let mut tasks = vec![task_of(&task); 3];
    tasks.extend((0..3).map(|index| lake.task("train", index).unwrap()));
    let concurrency = Concurrency { environments: 64, sandboxes: 3 };
    let config = CollectConfig { group_size: 4, concurrency, ..CollectConfig::default() };
    let collection = bench.collect(&tasks, ORACLE, &config).await;
    assert_eq!((collection.counts.finished, bench.backend.most_live()), (24, 3));
    // Environments without a sandbox do not wait for one.
    let heard = bench.heard.lock().unwrap();
    let needs_one: Vec<bool> = heard.iter().map(|t| t.environment == "terminal").collect();
    assert_eq!(needs_one, [vec![false; 12], vec![true; 12]].concat());
}

#[tokio::test]
async fn an_episode_that_a_limit_ends_is_judged_by_what_it_left() {
    let bench = Bench::new(FakeFaults::default(), PoolConfig::default());
    let mut task = TerminalTask::new("Make a.", "[ -e a ]");
    task.command_secs = 1;
    let policy = ScriptedPolicy::new(["echo x > a", "false"]);
    let mut config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    config.episode.max_turns = Some(3);
    let player = SharedPlayer::of(policy);
    let collection = bench.collect(&[task_of(&task)], player, &config).await;
    let trajectory = &collection.groups[0].trajectories[0];
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Turns });
    assert_eq!((trajectory.success, trajectory.total_reward()), (true, 1.0));
    let last = &trajectory.turns[2].step;
    assert_eq!(last.observation.text, "[exit code 1]", "the policy never sees the verdict");
    assert_eq!(last.rewards[0].name, "verified");
    let verdict = trajectory.verdict.as_ref().unwrap();
    assert_eq!((&*verdict.details, verdict.success), ("verified: 1", true));
    assert!(!last.terminated);
}

#[tokio::test]
async fn a_verifier_that_takes_long_costs_the_agent_nothing() {
    let bench = Bench::new(FakeFaults::default(), PoolConfig::default());
    let mut task = TerminalTask::new("Make a.", "sleep 2; [ -e a ]");
    task.solution = vec!["echo x > a".to_owned()];
    let mut config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    (config.episode.turn_timeout_secs, config.episode.command_time_secs) = (1, 1);
    let collection = bench.collect(&[task_of(&task)], ORACLE, &config).await;
    let trajectory = &collection.groups[0].trajectories[0];
    assert_eq!((&trajectory.end, trajectory.success), (&EndReason::Terminated, true));
}

#[tokio::test]
async fn the_oracle_solves_all_and_chance_nothing() {
    let suite = open_suite("terminal", &SuiteOptions::default()).unwrap();
    for (player, least, most) in [(ORACLE, 1.0, 1.0), (SharedPlayer::of(RandomPolicy), 0.0, 0.05)] {
        let bench = Bench::new(FakeFaults::default(), PoolConfig::default());
        let request = EvaluateRequest {
            suite: suite.as_ref(),
            player,
            seating: Seating::default(),
            open: bench.opener(),
            seed: Seed::from_u64(1),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
            keep: None,
        };
        let config = EvaluateConfig { limit: Some(60), ..EvaluateConfig::default() };
        let (evaluation, _) = evaluate(&request, &config).await.unwrap();
        assert_eq!(evaluation.missing, 0);
        let rate = evaluation.overall.success_rate.unwrap();
        assert!((least..=most).contains(&rate), "{}: {rate}", evaluation.player);
        bench.pool.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_while_a_sandbox_is_waited_for_ends_at_once() {
    let faults = FakeFaults { create_takes: Duration::from_secs(100), ..FakeFaults::default() };
    let bench = Bench::new(faults, PoolConfig { max_live: 2, ..PoolConfig::default() });
    let (tasks, cancellation) = (chores(2), Cancellation::new());
    let request = CollectRequest {
        tasks: &tasks,
        player: ORACLE,
        seating: Seating::default(),
        strategy: &spar_agent::strategies::Independent,
        open: bench.opener(),
        seed: Seed::from_u64(1),
        cancellation: &cancellation,
        on_episode: &|_| {},
    };
    let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
    let began = tokio::time::Instant::now();
    let (collection, ()) = tokio::join!(collect_groups(&request, &config), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancellation.cancel();
    });
    assert_eq!((collection.counts.finished, collection.counts.missing()), (0, 8));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    bench.pool.shutdown().await;
    assert_eq!(bench.backend.num_live(), 0);
}
