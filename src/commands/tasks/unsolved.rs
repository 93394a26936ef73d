//! `spar tasks unsolved`: which tasks nobody solved in so many attempts, and which of them were solved later.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde::Serialize;

use super::super::readable::Readable;
use super::super::replay::store_of;
use super::super::train::named_run;
use super::super::{print, print_json};
use crate::cli::TasksUnsolvedArguments;

/// The tasks beyond who played them.
#[derive(Debug, Serialize)]
struct Report {
    /// Attempts that a task has at the least.
    attempts: usize,
    /// Tasks that have as many.
    tasks: usize,
    /// Those of them that no attempt solved, by their ids.
    unsolved: Vec<String>,
    /// What came of these elsewhere; absent where nowhere else was looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    later: Option<Later>,
}

/// What came of tasks elsewhere that nobody had solved.
#[derive(Debug, Serialize)]
struct Later {
    /// How many of them were played.
    played: usize,
    /// Those that an attempt solved, in the order of their ids.
    solved: Vec<String>,
}

/// Successes and attempts by the ids of tasks.
type Tallies = BTreeMap<String, (usize, usize)>;

/// Tells the tasks of stored trajectories that no attempt solved, and writes them to a file.
pub(super) fn unsolved(arguments: &TasksUnsolvedArguments) -> anyhow::Result<ExitCode> {
    let played = tallies(&arguments.path, &arguments.runs)?;
    let later = arguments.then.as_deref().map(|then| tallies(then, &arguments.runs)).transpose()?;
    let report = report(&played, arguments.attempts, later.as_ref());
    ensure!(
        report.tasks > 0,
        "find tasks of `{}` with {} attempts: the most that one has is {}",
        arguments.path.display(),
        arguments.attempts,
        played.values().map(|(_, attempts)| *attempts).max().unwrap_or(0)
    );
    if let Some(out) = &arguments.out {
        let lines: String = report.unsolved.iter().map(|it| format!("{it}\n")).collect();
        std::fs::write(out, lines).with_context(|| format!("write `{}`", out.display()))?;
    }
    match arguments.json {
        true => print_json(&report)?,
        false => print(&text(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn tallies(path: &Path, runs: &Path) -> anyhow::Result<Tallies> {
    let path = named_run(path, runs);
    let (folder, _) = store_of(&path)?;
    let mut played = Tallies::new();
    for stored in Readable::open(&folder)? {
        let trajectory = stored?.trajectory;
        // One attempt, whoever had a seat in it.
        if !trajectory.seat.is_first() || trajectory.lineage.guided {
            continue;
        }
        let (successes, attempts) = played.entry(trajectory.task).or_default();
        *successes += usize::from(trajectory.success);
        *attempts += 1;
    }
    ensure!(!played.is_empty(), "find trajectories in `{}`: there are none", path.display());
    Ok(played)
}

fn report(played: &Tallies, attempts: usize, later: Option<&Tallies>) -> Report {
    let enough = || played.iter().filter(|(_, tally)| tally.1 >= attempts);
    let unsolved: Vec<String> =
        enough().filter(|(_, tally)| tally.0 == 0).map(|(task, _)| task.clone()).collect();
    let later = later.map(|later| {
        let found = || unsolved.iter().filter_map(|task| Some((task, later.get(task)?)));
        let solved = found().filter(|(_, tally)| tally.0 > 0).map(|(task, _)| task.clone());
        Later { played: found().count(), solved: solved.collect() }
    });
    Report { attempts, tasks: enough().count(), unsolved, later }
}

fn text(report: &Report) -> String {
    let Report { attempts, tasks, unsolved, later } = report;
    let mut text = format!(
        "{} of {tasks} tasks with {attempts} attempts or more are unsolved\n",
        unsolved.len()
    );
    if let Some(Later { played, solved }) = later {
        let share = 100.0 * solved.len() as f64 / (*played).max(1) as f64;
        text += &format!(
            "{} of {played} that were played later are solved: {share:.1} %\n",
            solved.len()
        );
    }
    let is_solved =
        |task: &String| later.as_ref().is_some_and(|it| it.solved.binary_search(task).is_ok());
    for task in unsolved {
        text += &format!("{} {task}\n", if is_solved(task) { "+" } else { " " });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies_of(tallies: &[(&str, usize, usize)]) -> Tallies {
        tallies.iter().map(|(task, won, played)| ((*task).to_owned(), (*won, *played))).collect()
    }

    #[test]
    fn what_no_attempt_solved_is_told_and_what_of_it_was_solved_later() {
        let base = tallies_of(&[("a", 0, 8), ("b", 1, 8), ("c", 0, 7), ("d", 0, 9), ("e", 0, 8)]);
        let later = tallies_of(&[("a", 3, 8), ("c", 8, 8), ("d", 0, 8)]);
        let found = report(&base, 8, Some(&later));
        assert_eq!((found.tasks, &found.unsolved[..]), (4, &["a", "d", "e"].map(String::from)[..]));
        let told = text(&found);
        assert!(told.starts_with("3 of 4 tasks with 8 attempts or more are unsolved\n"), "{told}");
        assert!(told.contains("1 of 2 that were played later are solved: 50.0 %"), "{told}");
        assert!(told.contains("\n+ a\n") && told.contains("\n  d\n"), "{told}");
        assert_eq!(report(&base, 10, None).tasks, 0);
    }
}
