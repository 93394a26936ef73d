//! `spar bench`.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use spar::envs::household;

use super::{print, print_json};
use crate::cli::{BenchArguments, Measured};

/// Measures how fast an environment is.
pub(crate) fn bench(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let report = match arguments.environment {
        Measured::Household => household::bench(&arguments.data)?,
    };
    if arguments.json {
        let micros = |time: Duration| time.as_nanos() as f64 / 1000.0;
        print_json(&json!({
            "games": report.games,
            "file_bytes": report.file_bytes,
            "load_us": micros(report.load),
            "reset_us": micros(report.reset),
            "step_us": micros(report.step),
            "fork_us": micros(report.fork),
            "bytes_per_game": report.bytes_per_game,
            "shared_bytes": report.shared_bytes,
            "steps_per_second": report.steps_per_second,
            "steps_per_second_two_threads": report.steps_per_second_two_threads,
        }))?;
    } else {
        print(&format!("{report}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
