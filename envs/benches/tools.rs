//! What tools cost: a reset, a turn, a fork, and turns beside episodes whose tools are slow.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use spar_core::{Action, Seed, ToolCall};
use spar_envs::tools::{FunctionTool, OpenedTool, ToolLimits, Toolbox};
use spar_envs::{Environment, Resources, open_environment};
use spar_tasks::{SuiteOptions, open_suite};

/// Computes for as long as it is told to.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Compute {}

fn opened() -> Box<dyn Environment> {
    let suite = open_suite("toolbox", &SuiteOptions::default()).unwrap();
    open_environment(&suite.task("bills", 0).unwrap(), &Resources::default()).unwrap()
}

fn call() -> Action {
    let arguments = json!({ "expression": "17 * 23 + 4" }).as_object().unwrap().clone();
    Action::calls(vec![ToolCall::new("calculator", arguments)])
}

fn episodes(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut env = opened();
    criterion.bench_function("toolbox/reset", |bencher| {
        bencher.iter(|| runtime.block_on(env.reset(black_box(Seed::from_u64(1)))).unwrap());
    });
    runtime.block_on(env.reset(Seed::from_u64(1))).unwrap();
    let action = call();
    criterion.bench_function("toolbox/step", |bencher| {
        bencher.iter(|| runtime.block_on(env.step(black_box(&action))).unwrap());
    });
    criterion.bench_function("toolbox/fork", |bencher| {
        bencher.iter(|| runtime.block_on(env.fork()).unwrap());
    });
}

/// A turn of an episode, alone and beside a hundred episodes whose tool keeps a thread for a tenth of a second each.
fn beside_slow_ones(criterion: &mut Criterion) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_time().build().unwrap();
    for slow in [0, 100] {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for _ in 0..slow {
            let stop = std::sync::Arc::clone(&stop);
            runtime.spawn(async move {
                let tool = FunctionTool::<Compute, ()>::blocking("slow", (), |(), Compute {}| {
                    std::thread::sleep(Duration::from_millis(100));
                    Ok("done".into())
                });
                let tool = Box::new(tool);
                let opened = OpenedTool { label: "slow".to_owned(), has_prefix: false, tool };
                let mut toolbox = Toolbox::new(vec![opened], ToolLimits::default());
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let call = ToolCall::new("slow", Default::default());
                    toolbox.call(&call).await.unwrap();
                }
            });
        }
        let action = call();
        criterion.bench_function(&format!("toolbox/step beside {slow} slow"), |bencher| {
            bencher.iter_batched(
                || {
                    let mut env = opened();
                    runtime.block_on(env.reset(Seed::from_u64(1))).unwrap();
                    env
                },
                |mut env| {
                    let action = action.clone();
                    // On a worker, as episodes are played.
                    let turn = runtime.spawn(async move { env.step(&action).await.unwrap() });
                    runtime.block_on(turn).unwrap()
                },
                BatchSize::SmallInput,
            );
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

criterion_group!(benches, episodes, beside_slow_ones);
criterion_main!(benches);
