//! Advantage estimators on 100,000 steps, 100 groups' worth in one; and GiGPO with situations that are nearly the same on 25,600 steps of
//! 400 characters, in one group and in 64.

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

/// Situations of 400 characters, of which those of one room differ in a few.
fn situations(rng: &mut impl rand::Rng) -> Vec<String> {
    let things = ["apple", "knife", "mug", "plate", "candle", "book", "pillow", "towel"];
    let rooms: Vec<String> = (0..200)
        .map(|room| {
            let mut text = format!("You are in room {room}. Looking quickly around you, you see");
            while text.len() < 380 {
                let thing = things[rng.random_range(0..things.len())];
                text += &format!(" a {thing} {},", rng.random_range(1..40_u32));
            }
            text.truncate(380);
            text
        })
        .collect();
    let of_step = |_| {
        let room = &rooms[rng.random_range(0..rooms.len())];
        format!("{room} step {:>13}.", rng.random_range(0..1_000_000_u32))
    };
    (0..25_600).map(of_step).collect()
}

/// Trajectories of 20 steps through these situations.
fn group_of(texts: &[String]) -> GroupView<'_> {
    let mut group = GroupView::default();
    for steps in texts.chunks(20) {
        group.push(steps.iter().map(|text| StepView {
            reward: 0.5,
            state: text,
            action: "look".into(),
            next_state: None,
            executed: true,
            num_tokens: TOKENS,
        }));
    }
    group
}

fn likeness(c: &mut Criterion) {
    let mut rng = Seed::from_u64(1).rng();
    let texts = situations(&mut rng);
    let mut config = CreditConfig::new("gigpo");
    config.options.insert("similarity".to_owned(), 0.95.into());
    let gigpo = open_estimator(&config).expect("the option is in range");
    let mut benches = c.benchmark_group("gigpo by likeness, 25,600 steps of 400 characters");
    benches.sample_size(10);
    for groups in [1, 64] {
        let batch: BatchView<'_> = texts.chunks(texts.len() / groups).map(group_of).collect();
        benches.bench_function(format!("{groups} groups"), |b| {
            b.iter(|| gigpo.estimate(black_box(&batch), &Signals::default()).expect("no signals"));
        });
    }
    benches.finish();
}

criterion_group!(benches, credit, likeness);
criterion_main!(benches);
