//! Advantage estimators on 100,000 steps: 100 groups' worth in one.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::RngExt;
use spar_agent::credit::{
    BatchView, CreditConfig, GroupView, StepView, credit_registry, open_estimator,
};
use spar_core::{Seed, Signals};

const TRAJECTORIES: usize = 5_000;
const STEPS: usize = 20;
const TOKENS: usize = 4;

fn credit(c: &mut Criterion) {
    let mut rng = Seed::from_u64(0).rng();
    let states: Vec<String> = (0..20_000)
        .map(|number| format!("you are in the middle of room {number}; the fridge 1 is closed"))
        .collect();
    let actions: Vec<String> = (0..30).map(|number| format!("go to countertop {number}")).collect();
    let mut group = GroupView::default();
    for _ in 0..TRAJECTORIES {
        let path: Vec<usize> = (0..=STEPS).map(|_| rng.random_range(0..states.len())).collect();
        let success = f64::from(rng.random_range(0..2_u32));
        group.push((0..STEPS).map(|t| StepView {
            reward: if t + 1 == STEPS { success } else { 0.0 },
            state: &states[path[t]],
            action: actions[path[t] % actions.len()].as_str().into(),
            next_state: Some(&states[path[t + 1]]),
            executed: true,
            num_tokens: TOKENS,
        }));
    }
    let batch = BatchView::from(group);
    let mut benches = c.benchmark_group("credit of 100,000 steps");
    benches.sample_size(10);
    for entry in credit_registry() {
        let estimator = open_estimator(&CreditConfig::new(entry.name)).expect("it has defaults");
        let mut signals = Signals::default();
        for signal in estimator.needs() {
            signals.insert(*signal, vec![vec![0.5; STEPS * TOKENS]; TRAJECTORIES]);
        }
        benches.bench_function(entry.name, |b| {
            b.iter(|| estimator.estimate(black_box(&batch), &signals).expect("signals are there"));
        });
    }
    benches.finish();
}

criterion_group!(benches, credit);
criterion_main!(benches);
