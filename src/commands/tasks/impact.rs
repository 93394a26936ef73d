//! `spar tasks impact`: which tasks have taught what all did.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde::Serialize;
use spar::tasks::curricula::learning_impact;

use super::super::readable::Readable;
use super::super::replay::store_of;
use super::super::train::named_run;
use super::super::{print, print_json};
use crate::cli::TasksImpactArguments;

/// The tasks of a run by their learning impact.
#[derive(Debug, Serialize)]
struct Report {
    /// Tasks that were played.
    tasks: usize,
    /// Those that have a score, best first.
    scored: Vec<Scored>,
    /// How many of these were chosen, from the first.
    chosen: usize,
}

#[derive(Debug, Serialize)]
struct Scored {
    task: String,
    /// At most 1.
    score: f64,
    /// How often it was played.
    epochs: usize,
}

/// Scores the tasks of a run's stored trajectories, and writes the best share of them to a file.
pub(super) fn impact(arguments: &TasksImpactArguments) -> anyhow::Result<ExitCode> {
    let path = named_run(&arguments.path, &arguments.runs);
    let (folder, _) = store_of(&path)?;
    // Of each task, by iteration, successes and episodes.
    let mut played: BTreeMap<String, BTreeMap<u64, (f64, f64)>> = BTreeMap::new();
    for stored in Readable::open(&folder)? {
        let stored = stored?;
        let of_task = played.entry(stored.trajectory.task.clone()).or_default();
        let (successes, episodes) = of_task.entry(stored.iteration).or_default();
        *successes += f64::from(u8::from(stored.trajectory.success));
        *episodes += 1.0;
    }
    ensure!(!played.is_empty(), "find trajectories in `{}`: there are none", path.display());
    let names: Vec<&String> = played.keys().collect();
    let rates = |of_task: &BTreeMap<u64, (f64, f64)>| -> Vec<f64> {
        of_task.values().map(|(successes, episodes)| successes / episodes).collect()
    };
    let histories: Vec<Vec<f64>> = played.values().map(rates).collect();
    let scored: Vec<Scored> = learning_impact(&histories)
        .into_iter()
        .map(|found| Scored {
            task: names[found.task].clone(),
            score: found.score,
            epochs: histories[found.task].len(),
        })
        .collect();
    let chosen = (scored.len() as f64 * arguments.keep).ceil() as usize;
    let report = Report { tasks: played.len(), chosen: chosen.min(scored.len()), scored };
    if let Some(out) = &arguments.out {
        let lines: String =
            report.scored[..report.chosen].iter().map(|it| format!("{}\n", it.task)).collect();
        std::fs::write(out, lines).with_context(|| format!("write `{}`", out.display()))?;
    }
    match arguments.json {
        true => print_json(&report)?,
        false => print(&text(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &Report) -> String {
    let lines = report.scored.iter().enumerate().map(|(number, it)| {
        let mark = if number < report.chosen { "*" } else { " " };
        format!("{mark} {:>7.3}  {:>3}  {}\n", it.score, it.epochs, it.task)
    });
    let head = format!("{} of {} tasks chosen\n", report.chosen, report.tasks);
    std::iter::once(head).chain(lines).collect()
}
