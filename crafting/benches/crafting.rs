//! Steps, quests and forks per second, on one thread. A step is an action carried out and told, with all actions listed.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spar_core::Seed;
use spar_crafting::{Bench, Quest};

const LASTING: Duration = Duration::from_secs(2);

fn rate(what: &str, mut run: impl FnMut() -> usize) {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < LASTING {
        count += run();
    }
    println!("{what}: {:.0} per second", count as f64 / start.elapsed().as_secs_f64());
}

fn main() {
    for depth in 1..=4 {
        println!("depth {depth}");
        let mut number = 0;
        rate("  quests", || {
            number += 1;
            black_box(Quest::generated(Seed::from_u64(number), depth, 4));
            1
        });
        let quests: Vec<Arc<Quest>> =
            (0..64).map(|seed| Quest::generated(Seed::from_u64(seed), depth, 4).into()).collect();
        rate("  steps of the oracle", || {
            number += 1;
            let mut bench = Bench::new(Arc::clone(&quests[number as usize % quests.len()]));
            let mut steps = 0;
            while let Some(action) = bench.next_of_solution() {
                black_box(bench.act(&action));
                black_box(bench.listed());
                steps += 1;
            }
            steps
        });
        let bench = Bench::new(Arc::clone(&quests[0]));
        rate("  forks", || {
            black_box(bench.clone());
            1
        });
    }
}
