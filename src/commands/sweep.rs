//! `spar sweep`: recipes over settings and seeds, and one comparison of all of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use spar::agent::Cancellation;
use spar::recipe::Recipe;
use spar::trainer::{RunFolder, write_atomically};
use spar::training::{Summary, check_data};
use tokio::process::Child;
use tokio::task::JoinSet;

use super::compare::{compared, picture};
use super::train::resolve;
use super::{cancel_on_ctrl_c, json, print, print_json, stopped};
use crate::bar::Bar;
use crate::cli::{SweepArguments, TrainArguments};

/// Runs that a sweep may have: more are taken for a slip in what varies.
const MAX_RUNS: usize = 10_000;
/// Lines of a log that are shown of a run that failed.
const LAST_LINES: usize = 5;

/// A recipe with the settings that tell it from the others.
#[derive(Debug, Clone, PartialEq)]
struct Series {
    name: String,
    recipe: String,
    set: Vec<String>,
}

/// One run of a series.
struct Job {
    name: String,
    arguments: TrainArguments,
    recipe: Recipe,
}

/// How a run stands before the sweep begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    New,
    Interrupted,
    Finished,
}

/// Trains every recipe under every setting with every seed, and compares them.
pub(crate) async fn sweep(arguments: &SweepArguments) -> anyhow::Result<ExitCode> {
    let series = series(arguments)?;
    let seeds = seeds(&arguments.seeds)?;
    let count = series.len() * seeds.len();
    ensure!(count <= MAX_RUNS, "make {count} runs: at most {MAX_RUNS} at a time");
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("sweeps").join(slug(&arguments.recipes.join("-"))),
    };
    let jobs = jobs(arguments, &series, &seeds, &out)?;
    let standings: Vec<Standing> =
        jobs.iter().map(|job| standing(job, &out)).collect::<anyhow::Result<_>>()?;
    if arguments.dry_run {
        print(&plan(&jobs, &standings, &out))?;
        return Ok(ExitCode::SUCCESS);
    }
    jobs.iter().try_for_each(|job| check_data(&job.recipe))?;
    std::fs::create_dir_all(&out)
        .with_context(|| format!("make the folder `{}`", out.display()))?;

    let cancellation = cancel_on_ctrl_c();
    let failed = run_all(&jobs, &standings, &out, arguments.jobs, &cancellation).await?;
    for (name, why) in &failed {
        eprintln!("{name} failed: {why}");
    }
    if cancellation.is_cancelled() {
        eprintln!("stopped; the same command goes on where it stopped");
        return Ok(stopped());
    }
    let finished = finished(&series, &seeds, &failed, &out);
    ensure!(!finished.is_empty(), "compare runs: none has finished");
    let comparison = compared(&finished)?;
    let text = comparison.to_string();
    let picture_path = out.join("comparison.svg");
    write_atomically(&picture_path, picture(&comparison).as_bytes())?;
    write_atomically(&out.join("comparison.json"), json(&comparison)?.as_bytes())?;
    write_atomically(&out.join("comparison.txt"), text.as_bytes())?;
    if arguments.json {
        print_json(&comparison)?;
    } else {
        print(&format!("{text}\nruns, tables and picture: {}\n", out.display()))?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every recipe under every combination of what varies.
fn series(arguments: &SweepArguments) -> anyhow::Result<Vec<Series>> {
    let mut all: Vec<Series> = Vec::new();
    for recipe in &arguments.recipes {
        let name = Path::new(recipe)
            .file_stem()
            .map_or(recipe.clone(), |stem| stem.to_string_lossy().into_owned());
        all.push(Series { name, recipe: recipe.clone(), set: Vec::new() });
    }
    for varied in &arguments.vary {
        let Some((setting, values)) = varied.split_once('=') else {
            bail!("understand `{varied}`: write NAME=VALUE|VALUE|...");
        };
        let values: Vec<&str> = values.split('|').map(str::trim).collect();
        ensure!(
            values.iter().all(|value| !value.is_empty()),
            "find a value between the bars of `{varied}`: write NAME=VALUE|VALUE|..."
        );
        let with = |series: &Series, value: &&str| Series {
            name: format!("{} {}={value}", series.name, last_part(setting)),
            recipe: series.recipe.clone(),
            set: [&series.set[..], &[format!("{setting}={value}")]].concat(),
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| with(one, value))).collect();
        ensure!(all.len() <= MAX_RUNS, "vary so much: at most {MAX_RUNS} runs at a time");
    }
    let mut seen = BTreeSet::new();
    for one in &all {
        ensure!(seen.insert(slug(&one.name)), "tell two series named `{}` apart", one.name);
    }
    Ok(all)
}

/// The last part of a setting's name, which is what people call it.
fn last_part(setting: &str) -> &str {
    setting.rsplit('.').next().unwrap_or(setting).trim()
}

/// Reads `0,3,7` and `0..5`, the end left out, and any list of these.
fn seeds(text: &str) -> anyhow::Result<Vec<u64>> {
    let wrong = || format!("understand the seeds `{text}`: write 0,1,2 or 0..5");
    let mut seeds = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            None => seeds.push(part.parse().with_context(wrong)?),
            Some((first, end)) => {
                let first: u64 = first.trim().parse().with_context(wrong)?;
                let end: u64 = end.trim().parse().with_context(wrong)?;
                ensure!(first < end, "find a seed in `{part}`: there is none");
                ensure!(
                    end - first <= MAX_RUNS as u64,
                    "use the seeds `{part}`: they are too many"
                );
                seeds.extend(first..end);
            }
        }
    }
    let unique: BTreeSet<u64> = seeds.iter().copied().collect();
    ensure!(unique.len() == seeds.len(), "use the seeds `{text}`: one stands there twice");
    Ok(seeds)
}

/// A name for files and runs: letters, digits, dots, `_` (for `=` too) and dashes.
fn slug(name: &str) -> String {
    let keep = |c: char| match c {
        '=' => '_',
        c if c.is_ascii_alphanumeric() || "._".contains(c) => c,
        _ => '-',
    };
    let text: String = name.chars().map(keep).collect();
    let parts: Vec<&str> = text.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

fn run_name(series: &Series, seed: u64) -> String {
    format!("{}-{seed}", slug(&series.name))
}

/// All runs, their recipes read and checked: what is wrong is told before hours of training, not within them.
fn jobs(
    arguments: &SweepArguments,
    series: &[Series],
    seeds: &[u64],
    out: &Path,
) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    // Seeds first, so that all series have as many runs where a sweep is stopped.
    for &seed in seeds {
        for one in series {
            let name = run_name(one, seed);
            let arguments = TrainArguments {
                recipe: one.recipe.clone(),
                suite: None,
                data: arguments.data.clone(),
                start_from: arguments.start_from.clone(),
                seed: Some(seed),
                set: [&arguments.set[..], &one.set].concat(),
                name: Some(name.clone()),
                runs: out.to_owned(),
                dry_run: false,
                json: false,
                threads: Some(arguments.threads),
            };
            let of_series = || format!("read the recipe of series `{}`", one.name);
            let recipe = resolve(&arguments).with_context(of_series)?;
            recipe.validate().with_context(of_series)?;
            jobs.push(Job { name, arguments, recipe });
        }
    }
    Ok(jobs)
}

/// How a run stands; one that was begun with other settings is refused, since it would be pooled with those that were not.
fn standing(job: &Job, out: &Path) -> anyhow::Result<Standing> {
    let path = out.join(&job.name);
    if !path.exists() {
        return Ok(Standing::New);
    }
    let run = RunFolder::open(&path)?;
    let begun = Recipe::of_run(&path.display().to_string(), &run.config()?)?.settings();
    let wanted = job.recipe.settings();
    let names: BTreeSet<&String> = begun.keys().chain(wanted.keys()).collect();
    let is_other = |name: &&&String| begun.get(**name) != wanted.get(**name);
    let others: Vec<String> =
        names.iter().filter(is_other).take(5).map(|name| format!("`{name}`")).collect();
    ensure!(
        others.is_empty(),
        "go on with `{}`: it was begun with other settings ({}); remove it, or choose another --out",
        path.display(),
        others.join(", ")
    );
    Ok(if Summary::open(&run)?.is_finished { Standing::Finished } else { Standing::Interrupted })
}

/// What would be done.
fn plan(jobs: &[Job], standings: &[Standing], out: &Path) -> String {
    let width = jobs.iter().map(|job| job.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (job, standing) in jobs.iter().zip(standings) {
        let what = match standing {
            Standing::New => "to be trained",
            Standing::Interrupted => "to be gone on with",
            Standing::Finished => "finished",
        };
        let set: Vec<String> =
            job.arguments.set.iter().map(|set| format!(" --set '{set}'")).collect();
        text += &format!("{:width$}  {what}: {}{}\n", job.name, job.arguments.recipe, set.concat());
    }
    text + &format!("{} runs in {}\n", jobs.len(), out.display())
}

/// Runs what is not finished, so many at a time; the names of those that failed, with why.
async fn run_all(
    jobs: &[Job],
    standings: &[Standing],
    out: &Path,
    at_a_time: usize,
    cancellation: &Cancellation,
) -> anyhow::Result<Vec<(String, String)>> {
    let is_left = |(_, standing): &(&Job, &Standing)| **standing != Standing::Finished;
    let mut left: VecDeque<(&Job, &Standing)> =
        jobs.iter().zip(standings).filter(is_left).collect();
    let bar = Bar::new("sweep", jobs.len());
    bar.set(jobs.len() - left.len());
    let mut running = JoinSet::new();
    let mut names: HashMap<tokio::task::Id, String> = HashMap::new();
    let mut failed = Vec::new();
    loop {
        while running.len() < at_a_time && !cancellation.is_cancelled() {
            let Some((job, standing)) = left.pop_front() else { break };
            let child = begin(job, *standing, out)?;
            let task = running.spawn(wait(child, cancellation.clone()));
            names.insert(task.id(), job.name.clone());
        }
        bar.say(
            names
                .values()
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(", "),
        );
        let Some(ended) = running.join_next_with_id().await else { break };
        let (id, status) = ended.context("wait for a run")?;
        let name = names.remove(&id).unwrap_or_default();
        let status = status.with_context(|| format!("wait for run `{name}`"))?;
        if !status.success() && !cancellation.is_cancelled() {
            failed.push((name.clone(), why(status, &log_path(out, &name))));
        }
        bar.advance();
    }
    Ok(failed)
}

fn log_path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.log"))
}

/// Starts a run in a process of its own, so that no run can take the others down; what it prints goes to its log.
fn begin(job: &Job, standing: Standing, out: &Path) -> anyhow::Result<Child> {
    let path = log_path(out, &job.name);
    let log = std::fs::File::options().create(true).append(true).open(&path);
    let log = log.with_context(|| format!("write `{}`", path.display()))?;
    let own = std::env::current_exe().context("find the program that runs")?;
    let mut command = tokio::process::Command::new(own);
    match standing {
        Standing::Interrupted => {
            command.arg("resume").arg(out.join(&job.name));
        }
        _ => {
            let TrainArguments { recipe, data, start_from, seed, set, .. } = &job.arguments;
            command.arg("train").arg(recipe).arg("--runs").arg(out).args(["--name", &job.name]);
            command.args(seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
            command.args(set.iter().flat_map(|set| ["--set", set]));
            if let Some(data) = data {
                command.arg("--data").arg(data);
            }
            if let Some(model) = start_from {
                command.arg("--start-from").arg(model);
            }
        }
    }
    let threads = job.arguments.threads.unwrap_or(1).to_string();
    command.args(["--threads", &threads]);
    let output = log.try_clone().context("write a log")?;
    command.stdin(Stdio::null()).stdout(output).stderr(log).kill_on_drop(true);
    command.spawn().with_context(|| format!("start run `{}`", job.name))
}

/// Waits for a run. When the sweep is told to stop, so is the run, which then saves what it has.
async fn wait(mut child: Child, cancellation: Cancellation) -> std::io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => return status,
        () = cancellation.cancelled() => {}
    }
    stop(&child);
    child.wait().await
}

/// Asks a run to stop. A key at the terminal has told it already, other signals have not; twice would end it at once.
#[cfg(unix)]
fn stop(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::IsTerminal;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
    if let Some(pid) = pid.filter(|_| !super::was_interrupted() || !std::io::stdin().is_terminal())
    {
        // It may have ended just now.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Asks a run to stop: Ctrl-C has told it already.
#[cfg(not(unix))]
fn stop(_child: &Child) {}

/// Why a run failed: the last of what it printed.
fn why(status: ExitStatus, log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
    format!("{status}; the end of {}:\n  {last}", log.display())
}

/// The runs of each series that have finished.
fn finished(
    series: &[Series],
    seeds: &[u64],
    failed: &[(String, String)],
    out: &Path,
) -> Vec<(String, Vec<PathBuf>)> {
    let of_series = |one: &Series| {
        let names = seeds.iter().map(|seed| run_name(one, *seed));
        let names = names.filter(|name| failed.iter().all(|(other, _)| other != name));
        let runs: Vec<PathBuf> = names.map(|name| out.join(name)).collect();
        (!runs.is_empty()).then(|| (one.name.clone(), runs))
    };
    series.iter().filter_map(of_series).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(recipes: &[&str], vary: &[&str]) -> SweepArguments {
        SweepArguments {
            recipes: recipes.iter().map(|name| (*name).to_owned()).collect(),
            vary: vary.iter().map(|text| (*text).to_owned()).collect(),
            set: Vec::new(),
            seeds: "0..2".to_owned(),
            start_from: None,
            data: None,
            out: None,
            jobs: 1,
            threads: 1,
            dry_run: false,
            json: false,
        }
    }

    #[test]
    fn everything_that_varies_is_combined() {
        let given = arguments(&["quick", "own/lake.toml"], &["reinforce.credit.kind=grpo|gigpo"]);
        let names: Vec<String> = series(&given).unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(
            names,
            ["quick kind=grpo", "quick kind=gigpo", "lake kind=grpo", "lake kind=gigpo"]
        );
        let given = arguments(&["quick"], &["a.x=1|2", "b.y=3|4"]);
        let series = series(&given).unwrap();
        assert_eq!(series[3].set, ["a.x=2", "b.y=4"]);
        assert_eq!(run_name(&series[3], 7), "quick-x_2-y_4-7");
    }

    #[test]
    fn what_cannot_be_swept_is_refused() {
        let error = |recipes: &[&str], vary: &[&str]| {
            series(&arguments(recipes, vary)).unwrap_err().to_string()
        };
        assert!(error(&["quick", "a/quick.toml"], &[]).contains("two series named `quick`"));
        assert!(error(&["quick"], &["a.x"]).contains("write NAME=VALUE|VALUE"));
        assert!(error(&["quick"], &["a.x=1||2"]).contains("between the bars"));
    }

    #[test]
    fn seeds_are_lists_and_ranges() {
        assert_eq!(seeds("3, 0..3,9").unwrap(), [3, 0, 1, 2, 9]);
        for wrong in ["", "a", "3..3", "5..2", "1,1", "0..2,1", "0..99999999999"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
