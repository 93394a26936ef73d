//! Calls, resets and forks per second of the multi-turn half, as JSON; `scripts/compare_bfcl.py` runs it beside the
//! reference.
//!
//! ```sh
//! cargo run --release -p spar-bfcl --example throughput -- DATA/BFCL_v4_multi_turn_base.json
//! cargo run --release -p spar-bfcl --example throughput            # entries of our own
//! cargo run --release -p spar-bfcl --example throughput -- --entries 6   # some of them, for `scripts/record_bfcl.py --own`
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spar_bfcl::{Class, MAX_TURNS, World, generated_entry};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, count] = &*arguments
        && flag == "--entries"
    {
        return print_entries(count.parse()?);
    }
    let entries = match arguments.first() {
        Some(path) => read(Path::new(path))?,
        None => generated()?,
    };
    let mut prepared = Vec::new();
    for (world, gold) in &entries {
        let process = world.process();
        prepared.push((world.instances("m", &process)?, process, gold));
    }
    let calls: usize = entries.iter().map(|(_, gold)| gold.len()).sum();
    let resets = per_second(|| {
        for (instances, process, _) in &prepared {
            std::hint::black_box((instances.clone(), process.clone()));
        }
        prepared.len()
    });
    let loads = per_second(|| {
        for (world, _) in &entries {
            let process = world.process();
            std::hint::black_box(world.instances("m", &process).is_ok());
        }
        entries.len()
    });
    let executed = per_second(|| {
        for (instances, process, gold) in &prepared {
            let (mut instances, mut process) = (instances.clone(), process.clone());
            for call in gold.iter() {
                std::hint::black_box(instances.execute(call, &mut process));
            }
        }
        calls
    });
    // In the middle of an episode, so that a fork has a history to share.
    for (instances, process, gold) in &mut prepared {
        for call in &gold[..gold.len() / 2] {
            instances.execute(call, process);
        }
    }
    let forks = per_second(|| {
        for (instances, process, _) in &prepared {
            std::hint::black_box((instances.clone(), process.clone()));
        }
        prepared.len()
    });
    let told = json!({
        "entries": entries.len(),
        "calls": calls,
        "calls_per_second": executed,
        "resets_per_second": resets,
        "loads_per_second": loads,
        "forks_per_second": forks,
    });
    println!("{told}");
    Ok(())
}

/// Seconds of this thread on a processor, so that other work on the machine does not count; on other systems than Linux,
/// seconds since the start.
fn seconds_of_work(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split(' ').next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// How often something is done in a second of work, over two seconds.
fn per_second(mut work: impl FnMut() -> usize) -> u64 {
    let start = Instant::now();
    let before = seconds_of_work(start);
    let mut done = 0;
    while start.elapsed() < Duration::from_secs(2) {
        done += work();
    }
    (done as f64 / (seconds_of_work(start) - before)) as u64
}

fn generated() -> Result<Vec<(World, Vec<String>)>, Failure> {
    (0..200)
        .map(|seed| {
            let entry = generated_entry(seed, MAX_TURNS);
            let gold = entry.ground_truth.concat();
            let classes = entry.classes()?;
            Ok((world(entry.id, classes, entry.initial_config), gold))
        })
        .collect()
}

/// Entries of a file of the release with their gold calls.
fn read(path: &Path) -> Result<Vec<(World, Vec<String>)>, Failure> {
    let name = path.file_name().ok_or("a file is expected")?;
    let answers = path.with_file_name("possible_answer").join(name);
    let (entries, answers) = (std::fs::read_to_string(path)?, std::fs::read_to_string(answers)?);
    entries
        .lines()
        .zip(answers.lines())
        .map(|(entry, answer)| {
            let (entry, answer): (Value, Value) =
                (serde_json::from_str(entry)?, serde_json::from_str(answer)?);
            let texts = |value: &Value| -> Vec<String> {
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            };
            let classes: Result<Vec<Class>, _> =
                texts(&entry["involved_classes"]).iter().map(|name| name.parse()).collect();
            let turns = answer["ground_truth"].as_array().cloned().unwrap_or_default();
            let id = entry["id"].as_str().unwrap_or_default().to_owned();
            let gold = turns.iter().flat_map(texts).collect();
            Ok((world(id, classes?, entry["initial_config"].clone()), gold))
        })
        .collect()
}

fn world(id: String, classes: Vec<Class>, scenario: Value) -> World {
    World { id, classes, scenario: Arc::new(scenario), long_context: None }
}

/// Entries of our own, one a line, over all classes.
fn print_entries(count: u64) -> Result<(), Failure> {
    for seed in 0..count {
        let entry = generated_entry(seed, 3);
        let line = json!({
            "id": entry.id,
            "involved_classes": entry.involved_classes,
            "initial_config": entry.initial_config,
            "ground_truth": entry.ground_truth,
        });
        println!("{line}");
    }
    Ok(())
}
