//! `spar validate`.

use std::ops::ControlFlow;
use std::process::ExitCode;

use spar::agent::EpisodeConfig;
use spar::envs::{ValidationReport, validate_suite};

use super::environments::{open_sandboxes, within};
use super::suites::open_suite;
use super::{cancel_on_ctrl_c, print, print_json, stopped};
use crate::bar::Bar;
use crate::cli::ValidateArguments;

/// Tasks per split when no number is given.
const DEFAULT_LIMIT: usize = 200;
/// Failures that are named; the others are only counted.
const MAX_NAMED: usize = 50;

/// Plays a suite with an oracle, an idle and a random player, and tells what is wrong with it.
pub(crate) async fn validate(arguments: &ValidateArguments) -> anyhow::Result<ExitCode> {
    let suite = open_suite(&arguments.suite, arguments.data.as_deref())?;
    let all = suite.manifest().splits.iter().map(|(split, _)| split.as_str());
    let splits: Vec<&str> = match &*arguments.split {
        [] => all.collect(),
        named => named.iter().map(String::as_str).collect(),
    };
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    let lens = splits.iter().map(|split| Ok(suite.len(split)?.min(limit)));
    let bar = Bar::new("validate", lens.sum::<anyhow::Result<usize>>()?);
    let sandboxes = open_sandboxes(
        &arguments.environment,
        None,
        Some(1),
        suite.as_ref(),
        splits.first().copied().unwrap_or_default(),
        &EpisodeConfig::default(),
    )
    .await?;
    let cancellation = cancel_on_ctrl_c();
    let report = within(sandboxes, async |sandboxes| {
        let resources = &sandboxes.resources().clone().without_graders();
        let tell = |done, _| {
            bar.set(done);
            // Environments that wait for nothing leave no other time to look.
            match cancellation.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let validating = validate_suite(suite.as_ref(), &splits, Some(limit), resources, tell);
        tokio::select! {
            () = cancellation.cancelled() => Ok(None),
            report = validating => Ok(Some(report?)),
        }
    })
    .await?;
    drop(bar);
    let Some(report) = report.filter(|_| !cancellation.is_cancelled()) else {
        return Ok(stopped());
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&text(&report, &splits))?;
    }
    Ok(if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(report: &ValidationReport, splits: &[&str]) -> String {
    let mut text = format!(
        "{} ({}): {} tasks, {} solved by the oracle",
        report.suite,
        splits.join(", "),
        report.num_tasks,
        report.num_solved
    );
    if let Some(turns) = report.mean_oracle_turns() {
        text += &format!(" in {turns:.1} turns");
    }
    if report.num_with_chance > 0 {
        text += &format!(
            " (of {} that depend on luck, {})",
            report.num_with_chance, report.num_solved_with_chance
        );
    }
    text += &format!(", {} by chance\n", report.num_solved_by_random);
    for failure in report.failures.iter().take(MAX_NAMED) {
        let kind = serde_json::to_value(failure.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default().replace('_', " ");
        text += &format!("  {}: {kind}: {}\n", failure.task, failure.detail);
    }
    match report.failures.len() {
        0 => text + "nothing is wrong\n",
        count if count > MAX_NAMED => text + &format!("  and {} more\n", count - MAX_NAMED),
        _ => text,
    }
}
