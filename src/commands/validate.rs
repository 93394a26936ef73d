//! `spar validate`.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use spar::agent::EpisodeConfig;
use spar::envs::process::{ProgramReport, check_program};
use spar::envs::{Resources, ValidationReport, validate_side_by_side};
use spar::tasks::ProcessSuite;

use super::environments::{open_sandboxes, within};
use super::suites::open_wrapped_suite;
use super::{cancel_on_ctrl_c, print, print_json, stopped};
use crate::bar::Bar;
use crate::cli::ValidateArguments;

/// Tasks per split when no number is given.
const DEFAULT_LIMIT: usize = 200;
/// Failures that are named; the others are only counted.
const MAX_NAMED: usize = 50;

/// What validation found, and what that took.
#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    report: ValidationReport,
    /// Absent unless it was asked for, and where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<Took>,
}

/// What playing the tasks took, sandboxes opened and closed included.
#[derive(Debug, Clone, Copy, Serialize)]
struct Took {
    /// Seconds by the clock.
    wall_secs: f64,
    /// Seconds that this process has computed, on all its threads.
    own_cpu_secs: f64,
    /// Seconds that processes have computed which it has started and waited for: with the backend `local` the agents' commands, the
    /// tests and the sandboxes themselves; with others what runs elsewhere is not told.
    children_cpu_secs: f64,
    /// `own_cpu_secs` for each second by the clock.
    overhead: f64,
    /// Tasks that were under way at one time.
    concurrency: usize,
}

/// Seconds that this process has computed, and those of its children that were waited for.
fn computed() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    computed_in(&stat)
}

/// As [`computed`], of the text of a `stat` file (proc(5), fields 14 to 17).
fn computed_in(stat: &str) -> Option<(f64, f64)> {
    /// Linux tells all programs times in hundredths of a second, whatever it counts in itself.
    const TICKS_PER_SECOND: f64 = 100.0;
    // The name before it may have any character in it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    let (user, system, of_children) = (seconds()?, seconds()?, seconds()? + seconds()?);
    Some((user + system, of_children))
}

/// What is told of the folder of a program as JSON.
#[derive(Serialize)]
struct FolderReport {
    program: ProgramReport,
    /// Absent where the program fails its checks, or has no oracle that could solve tasks.
    tasks: Option<Measured>,
}

/// Checks the program of a folder that has one; plays a suite with an oracle, an idle and a random player, and tells what
/// is wrong with it.
pub(crate) async fn validate(arguments: &ValidateArguments) -> anyhow::Result<ExitCode> {
    if !ProcessSuite::is_at(Path::new(&arguments.suite)) {
        let Some((report, splits)) = play(arguments).await? else { return Ok(stopped()) };
        match arguments.json {
            true => print_json(&report)?,
            false => print(&text(&report, &splits))?,
        }
        return Ok(code(report.report.is_valid() && report.report.num_tasks > 0));
    }
    let suite = ProcessSuite::open(Path::new(&arguments.suite))?;
    let resources = Resources::default().without_graders();
    let cancellation = cancel_on_ctrl_c();
    let checked = tokio::select! {
        () = cancellation.cancelled() => None,
        checked = check_program(&suite, &resources) => Some(checked),
    };
    resources.close_programs().await;
    let Some(program) = checked.transpose()? else { return Ok(stopped()) };
    if !arguments.json {
        print(&program_text(&program))?;
    }
    let mut is_valid = program.is_valid();
    let mut tasks = None;
    if is_valid && program.has_oracle {
        let Some((report, splits)) = play(arguments).await? else { return Ok(stopped()) };
        is_valid = report.report.is_valid();
        if !arguments.json {
            print(&text(&report, &splits))?;
        }
        tasks = Some(report);
    }
    if arguments.json {
        print_json(&FolderReport { program, tasks })?;
    }
    Ok(code(is_valid))
}

fn code(is_valid: bool) -> ExitCode {
    if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn program_text(report: &ProgramReport) -> String {
    let mut text = format!("{}: the program\n", report.name);
    for check in &report.checks {
        let mark = match check.passed {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "  - ",
        };
        text += &format!("  {mark}  {}", check.name);
        text += &if check.detail.is_empty() {
            "\n".to_owned()
        } else {
            format!(": {}\n", check.detail)
        };
    }
    match (report.is_valid(), report.has_oracle) {
        (false, _) => {
            text + "mend that, and check again; docs/process-environments.md has the protocol\n"
        }
        (true, false) => text + "it has no `oracle`, so that no task was solved\n",
        (true, true) => text,
    }
}

/// Plays the tasks, and tells of them and their splits; absent where Ctrl-C came.
async fn play(arguments: &ValidateArguments) -> anyhow::Result<Option<(Measured, Vec<String>)>> {
    let (name, data) = (&arguments.suite, arguments.data.as_deref());
    let suite = open_wrapped_suite(name, data, &arguments.wrapping.wrap)?;
    let all = suite.manifest().splits.iter().map(|(split, _)| split.as_str());
    let splits: Vec<&str> = match &*arguments.split {
        [] => all.collect(),
        named => named.iter().map(String::as_str).collect(),
    };
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    let lens = splits.iter().map(|split| Ok(suite.len(split)?.min(limit)));
    let bar = Bar::new("validate", lens.sum::<anyhow::Result<usize>>()?);
    let (began, before) = (Instant::now(), computed());
    let sandboxes = open_sandboxes(
        &arguments.environment,
        None,
        Some(arguments.concurrency),
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
        let sample = (&*splits, Some(limit));
        let at_once = arguments.concurrency;
        let validating = validate_side_by_side(suite.as_ref(), sample, resources, at_once, tell);
        tokio::select! {
            () = cancellation.cancelled() => Ok(None),
            report = validating => Ok(Some(report?)),
        }
    })
    .await?;
    drop(bar);
    let report = report.filter(|_| !cancellation.is_cancelled());
    let splits = splits.into_iter().map(str::to_owned).collect();
    let wall_secs = began.elapsed().as_secs_f64();
    let took = before.zip(computed()).filter(|_| arguments.report).map(|(before, after)| {
        let own_cpu_secs = after.0 - before.0;
        Took {
            wall_secs,
            own_cpu_secs,
            children_cpu_secs: after.1 - before.1,
            overhead: own_cpu_secs / wall_secs,
            concurrency: arguments.concurrency,
        }
    });
    Ok(report.map(|report| (Measured { report, took }, splits)))
}

fn text(measured: &Measured, splits: &[String]) -> String {
    let report = &measured.report;
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
    if report.num_without_oracle > 0 {
        text += &format!("  {} have no oracle\n", report.num_without_oracle);
    }
    for (needs, count) in &report.num_judged_in_part {
        text += &format!("  {count} judged in part: {needs}, and what it judges was left out\n");
    }
    if let Some(took) = measured.took {
        text += &format!(
            "  in {:.1} s, {} tasks at one time: {:.2} s computed by this program itself, which is {:.1} % of the time, and \
             {:.1} s by what it has started\n",
            took.wall_secs,
            took.concurrency,
            took.own_cpu_secs,
            100.0 * took.overhead,
            took.children_cpu_secs
        );
    }
    for failure in report.failures.iter().take(MAX_NAMED) {
        let kind = serde_json::to_value(failure.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default().replace('_', " ");
        text += &format!("  {}: {kind}: {}\n", failure.task, failure.detail);
    }
    match report.failures.len() {
        0 if report.num_tasks == 0 => text + "there are no tasks\n",
        0 => text + "nothing is wrong\n",
        count if count > MAX_NAMED => text + &format!("  and {} more\n", count - MAX_NAMED),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 100 25 20 0 9 0 77 0 0";
        assert_eq!(computed_in(stat), Some((3.0, 1.25)));
        assert_eq!(computed_in("7 (a) S 1"), None);
    }
}
