//! What a turn costs: with an instant policy and environment, and in the household.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spar_agent::policies::{RandomPolicy, ScriptedPolicy};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
};
use spar_core::{Action, Observation, Seed, Step};
use spar_envs::{Environment, EnvironmentError, Resources, open_environment};
use spar_tasks::{SuiteOptions, Task, open_suite};

const TURNS: u32 = 20;

#[derive(Clone)]
struct Instant {
    admissible: Arc<[Arc<str>]>,
}

impl Instant {
    fn observation(&self) -> Observation {
        Observation {
            text: "You are in a room. There is a fridge 1, and a table 1.".to_owned(),
            admissible: Some(Arc::clone(&self.admissible)),
            state_key: "room 1".to_owned(),
            ..Observation::default()
        }
    }
}

#[async_trait]
impl Environment for Instant {
    fn name(&self) -> &'static str {
        "instant"
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        Ok(self.observation())
    }

    async fn step(&mut self, _action: &Action) -> Result<Step, EnvironmentError> {
        Ok(Step {
            observation: self.observation(),
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: true,
            wall_time: Duration::ZERO,
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }
}

fn runner(c: &mut Criterion) {
    let policy = ScriptedPolicy::new(["go to fridge 1"]);
    let origin = Instant { admissible: (0..30).map(|n| Arc::from(format!("go to {n}"))).collect() };
    let tasks: Vec<_> = (0..16)
        .map(|index| Task {
            id: format!("instant/train/{index}"),
            environment: "instant".to_owned(),
            parameters: serde_json::Value::Null,
            instruction: "Act.".to_owned(),
            max_turns: TURNS,
            tags: Vec::new(),
            graders: Vec::new(),
        })
        .collect();
    let request = CollectRequest {
        tasks: &tasks,
        player: SharedPlayer::of(policy),
        seating: Seating::default(),
        strategy: &spar_agent::strategies::Independent,
        open: Arc::new(move |_| Ok(Box::new(origin.clone()))),
        seed: Seed::from_u64(0),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let config = CollectConfig::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without I/O needs nothing");
    let mut benches = c.benchmark_group("collect 16 x 8 episodes of 20 turns");
    benches.sample_size(10).throughput(Throughput::Elements(16 * 8 * u64::from(TURNS)));
    benches.bench_function("turns", |b| {
        b.iter(|| runtime.block_on(collect_groups(&request, &config)));
    });
    let suite = open_suite("household", &SuiteOptions::default()).expect("it is shipped");
    let tasks: Vec<_> =
        (0..16).map(|index| suite.task("train", index).expect("it has so many")).collect();
    let mut config = config;
    config.episode.max_turns = Some(TURNS);
    let player = SharedPlayer::of(RandomPolicy);
    let request = CollectRequest {
        tasks: &tasks,
        player,
        seating: Seating::default(),
        strategy: &spar_agent::strategies::Independent,
        open: Arc::new(|task| open_environment(task, &Resources::default())),
        ..request
    };
    benches.bench_function("turns in the household", |b| {
        b.iter(|| runtime.block_on(collect_groups(&request, &config)));
    });
    benches.finish();
}

criterion_group!(benches, runner);
criterion_main!(benches);
