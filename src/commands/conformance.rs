//! `spar conformance`.

use std::process::ExitCode;

use serde_json::json;
use spar::envs::household::replay_traces;

use super::{print, print_json};
use crate::cli::{ConformanceArguments, Measured};

/// Compares an environment with recordings of its reference.
pub(crate) fn conformance(arguments: &ConformanceArguments) -> anyhow::Result<ExitCode> {
    let report = match arguments.environment {
        Measured::Household => replay_traces(&arguments.data, &arguments.traces)?,
    };
    if arguments.json {
        let described: Vec<_> = report.described.iter().map(ToString::to_string).collect();
        print_json(&json!({
            "files": report.files,
            "traces": report.traces,
            "records": report.records,
            "mismatches": report.mismatches,
            "described": described,
        }))?;
    } else {
        print(&format!("{report}\n"))?;
    }
    Ok(if report.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
