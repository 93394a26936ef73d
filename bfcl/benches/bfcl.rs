//! Calls, resets and forks of entries that ship.

use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use spar_bfcl::{MAX_TURNS, World, decode_text, generated_entry};

fn bfcl(criterion: &mut Criterion) {
    let entry = generated_entry(7, MAX_TURNS);
    let world = World {
        classes: entry.classes().expect("they are known"),
        id: entry.id,
        scenario: Arc::new(entry.initial_config),
        long_context: None,
    };
    let process = world.process();
    let instances = world.instances("m", &process).expect("the scenario loads");
    let gold = entry.ground_truth;
    let calls: Vec<String> = gold.concat();
    criterion.bench_function("bfcl/reset", |bencher| {
        bencher.iter(|| (instances.clone(), process.clone()));
    });
    criterion.bench_function("bfcl/calls of an episode", |bencher| {
        bencher.iter_batched_ref(
            || (instances.clone(), process.clone()),
            |(instances, process)| {
                calls.iter().map(|call| instances.execute(call, process).len()).sum::<usize>()
            },
            BatchSize::SmallInput,
        );
    });
    let answer: Vec<Vec<Vec<String>>> = gold.iter().map(|calls| vec![calls.clone()]).collect();
    criterion.bench_function("bfcl/check", |bencher| {
        bencher.iter(|| world.check(&answer, &gold));
    });
    let text = format!("[{}]", calls.join(", "));
    criterion.bench_function("bfcl/decode", |bencher| bencher.iter(|| decode_text(&text)));
}

criterion_group!(benches, bfcl);
criterion_main!(benches);
