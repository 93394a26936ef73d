//! What tasks, forks and calls cost.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use spar_apps::{AppTask, Families, Session};
use spar_core::Seed;

fn task(seed: u64) -> AppTask {
    AppTask::draw(Seed::from_u64(seed), Families::Seen, &[1, 2, 3, 4])
        .expect("there are such families")
}

fn apps(criterion: &mut Criterion) {
    let mut seed = 0;
    criterion.bench_function("make a task", |bencher| {
        bencher.iter(|| {
            seed += 1;
            black_box(task(seed))
        });
    });
    let tasks: Vec<Arc<AppTask>> = (0..256).map(|seed| Arc::new(task(seed))).collect();
    criterion.bench_function("reset", |bencher| {
        let mut place = 0;
        bencher.iter(|| {
            place = (place + 1) % tasks.len();
            black_box(Session::new(Arc::clone(&tasks[place])))
        });
    });
    criterion.bench_function("fork in mid-episode", |bencher| {
        let mut session = Session::new(Arc::clone(&tasks[0]));
        if let Some(gold) = session.next_gold().cloned() {
            session.call(gold.tool, &gold.arguments).expect("it can be carried out");
        }
        bencher.iter(|| black_box(session.clone()));
    });
    // The calls of all demonstrations one after the other; the figure is of one call.
    criterion.bench_function("call", |bencher| {
        let mut place = 0;
        let mut session = Session::new(Arc::clone(&tasks[0]));
        bencher.iter(|| {
            let Some(gold) = session.next_gold().cloned() else {
                place = (place + 1) % tasks.len();
                session = Session::new(Arc::clone(&tasks[place]));
                return;
            };
            let _ = black_box(session.call(gold.tool, &gold.arguments));
        });
    });
}

criterion_group!(benches, apps);
criterion_main!(benches);
