//! `spar compare`: several recipes over several seeds each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use spar::comparison::Comparison;
use spar::picture::comparison_curve;
use spar::trainer::write_atomically;

use super::train::{RUNS, named_run};
use super::{print, print_json};
use crate::cli::CompareArguments;

/// Compares runs: tables of the test splits, and a picture of the dev split.
pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let series: Vec<(String, Vec<PathBuf>)> =
        arguments.series.iter().map(|text| read(text)).collect::<anyhow::Result<_>>()?;
    let comparison = compared(&series)?;
    if let Some(path) = &arguments.out {
        write_atomically(path, picture(&comparison).as_bytes())?;
    }
    if arguments.json {
        print_json(&comparison)?;
    } else {
        print(&comparison.to_string())?;
        if let Some(path) = &arguments.out {
            print(&format!("\npicture: {}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares series of runs, given by name and folders.
pub(super) fn compared(series: &[(String, Vec<PathBuf>)]) -> anyhow::Result<Comparison> {
    Comparison::of(series).context("compare runs")
}

/// The picture of a comparison, as SVG.
pub(super) fn picture(comparison: &Comparison) -> String {
    let methods: Vec<_> = comparison
        .series
        .iter()
        .map(|series| {
            let curves = series.runs.iter().map(|run| run.curve.clone()).collect();
            (series.name.clone(), curves)
        })
        .collect();
    comparison_curve(&methods).to_svg()
}

/// Reads `NAME=RUN,RUN,...`.
fn read(text: &str) -> anyhow::Result<(String, Vec<PathBuf>)> {
    let Some((name, paths)) = text.split_once('=') else {
        bail!("understand `{text}`: write NAME=RUN,RUN,...");
    };
    if paths.split(',').any(str::is_empty) {
        bail!("find a run between the commas of `{text}`: write NAME=RUN,RUN,...");
    }
    Ok((
        name.to_owned(),
        paths.split(',').map(|run| named_run(Path::new(run), Path::new(RUNS))).collect(),
    ))
}
