//! Prints problems about graphs as lines of JSON, with an answer that is right.
//!
//! ```sh
//! cargo run -p spar-puzzles --example graph_problems -- [FIRST [COUNT]] > problems.jsonl
//! python3 scripts/check_graph_problems.py problems.jsonl
//! ```
//!
//! Of each family and level COUNT problems (default 20) from seed FIRST (default 0) on.

use std::io::{BufWriter, Write as _, stdout};

use serde_json::json;
use spar_puzzles::graph_problems::{Level, graph_families, graph_problem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|it| it.parse()).collect::<Result<_, _>>()?;
    let first = arguments.first().copied().unwrap_or(0);
    let count = arguments.get(1).copied().unwrap_or(20);
    let mut out = BufWriter::new(stdout().lock());
    for family in graph_families() {
        for level in [Level::Easy, Level::Medium, Level::Hard] {
            for seed in first..first.saturating_add(count) {
                let problem = graph_problem(family.name, level, seed)?;
                let line = json!({
                    "family": family.name,
                    "level": level,
                    "seed": seed,
                    "question": problem.question(),
                    "solution": problem.solution(),
                });
                writeln!(out, "{line}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
