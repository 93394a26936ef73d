//! Writes plans of the oracle, to be played in the package by `scripts/record_minigrid.py --plans`.
//!
//! ```sh
//! cargo run --release -p spar-grids --example plans -- FIRST COUNT [LEVEL...] > plans.jsonl
//! ```

use spar_grids::minigrid::{Episode, Level, plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, count, names @ ..] = &arguments[..] else {
        return Err("give the first seed, how many seeds, and levels if not all".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let is_named = |level: &&Level| names.is_empty() || names.iter().any(|it| it == level.name);
    for level in Level::all().iter().filter(is_named) {
        let mut unsolved = 0;
        for seed in first..first + count {
            let (episode, _) = Episode::new(level, seed)?;
            match plan(&episode) {
                Some(actions) => {
                    let actions: Vec<u8> = actions.into_iter().map(|action| action as u8).collect();
                    let (level, plan) = (level.name, serde_json::to_string(&actions)?);
                    println!("{{\"level\":\"{level}\",\"seed\":{seed},\"plan\":{plan}}}");
                }
                None => unsolved += 1,
            }
        }
        if unsolved > 0 {
            eprintln!("{}: no plan for {unsolved} of {count}", level.name);
        }
    }
    Ok(())
}
