//! Puzzles per second of every dataset with its defaults: `cargo bench -p spar-puzzles --bench items -- [SECONDS] [NAMES]`.
//!
//! Prints a line of JSON for each; `benches/compare_reasoning_gym.py` holds them against the package's.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use spar_puzzles::{dataset_registry, open_dataset};

fn main() {
    // Cargo hands `--bench` on.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let seconds: f64 = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.3);
    let names: Vec<String> = arguments.collect();
    for row in dataset_registry().iter() {
        if !names.is_empty() && !names.iter().any(|name| name == row.name) {
            continue;
        }
        let dataset = open_dataset(row.name, &Map::new(), 1).expect("defaults are good");
        // Tables that are made once.
        let _ = black_box(dataset.item(0));
        let start = Instant::now();
        let mut made = 0_u64;
        while start.elapsed() < Duration::from_secs_f64(seconds) {
            let _ = black_box(dataset.item(made));
            made += 1;
        }
        let per_second = made as f64 / start.elapsed().as_secs_f64();
        println!("{}", json!({ "dataset": row.name, "per_second": per_second }));
    }
}
