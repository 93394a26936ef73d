//! Replays recordings of `scripts/record_reasoning_gym.py`: `cargo run -p spar-puzzles --example replay -- traces.jsonl`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name a file or folder of recordings");
        return ExitCode::FAILURE;
    };
    match spar_puzzles::replay_traces(Path::new(&path)) {
        Ok(report) => {
            println!("{report}");
            if report.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
