//! `spar replay`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use spar::agent::{Cancellation, EpisodeConfig, JsonlStore};
use spar::core::{EndReason, Observation, ParsedAction, Step, Trajectory};
use spar::envs::EnvironmentError;
use spar::recipe::Recipe;
use spar::sandboxes::OpenSandboxes;
use spar::tasks::Suite;
use spar::trainer::RunFolder;

use super::environments::{open_sandboxes, warn_of_leftovers};
use super::suites::open_suite;
use super::{cancel_on_ctrl_c, print, print_json, stopped};
use crate::bar::Bar;
use crate::cli::ReplayArguments;

/// Differences that are described; the others are only counted.
const MAX_DESCRIBED: usize = 10;
/// The part of a reward that does not come from the environment.
const PENALTY: &str = "invalid_action";

/// What came of playing trajectories again.
#[derive(Debug, Default, Serialize)]
struct Report {
    trajectories: usize,
    turns: usize,
    /// Trajectories that differ; each is left at its first difference.
    mismatches: usize,
    described: Vec<Difference>,
}

/// The first difference between a trajectory and its environment.
#[derive(Debug, Serialize)]
struct Difference {
    /// Number of the trajectory, from 1, as `spar show --episode` takes it.
    number: usize,
    task: String,
    /// The turn, from 1; 0 is the reset.
    turn: usize,
    what: &'static str,
    recorded: String,
    found: String,
}

/// Plays stored trajectories again and compares all that the environments answer.
pub(crate) async fn replay(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    let (folder, recipe) = store_of(&arguments.path)?;
    let mut suites = Suites { arguments, recipe, open: HashMap::new() };
    let cancellation = cancel_on_ctrl_c();
    let total = JsonlStore::read(&folder)?.try_fold(0, |sum, next| next.map(|_| sum + 1))?;
    let total = arguments.limit.map_or(total, |limit| limit.min(total));
    let bar = Bar::new("replay", total);
    let mut report = Report::default();
    let played = play_all(&mut suites, &folder, total, &cancellation, &bar, &mut report).await;
    suites.close().await;
    played?;
    drop(bar);
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(if cancellation.is_cancelled() {
        stopped()
    } else if report.mismatches > 0 || report.trajectories == 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn play_all(
    suites: &mut Suites<'_>,
    folder: &Path,
    total: usize,
    cancellation: &Cancellation,
    bar: &Bar,
    report: &mut Report,
) -> anyhow::Result<()> {
    for stored in JsonlStore::read(folder)?.take(total) {
        if cancellation.is_cancelled() {
            break;
        }
        let trajectory = stored?.trajectory;
        report.trajectories += 1;
        report.turns += trajectory.turns.len();
        let (suite, sandboxes) = suites.of(&trajectory.task).await?;
        let found = play_again(&trajectory, suite, sandboxes).await?;
        if let Some((turn, what, recorded, found)) = found {
            report.mismatches += 1;
            if report.described.len() < MAX_DESCRIBED {
                let (number, task) = (report.trajectories, trajectory.task.clone());
                report.described.push(Difference { number, task, turn, what, recorded, found });
            }
        }
        bar.advance();
    }
    Ok(())
}

/// The trajectories that a path means, and the recipe of the run they belong to.
pub(crate) fn store_of(path: &Path) -> anyhow::Result<(PathBuf, Option<Recipe>)> {
    let recipe = |run: &RunFolder| {
        Recipe::of_run(&run.path().display().to_string(), &run.config().ok()?).ok()
    };
    if let Ok(run) = RunFolder::open(path) {
        let folder = run.trajectories_path();
        anyhow::ensure!(folder.is_dir(), "find trajectories in run `{}`", path.display());
        return Ok((folder, recipe(&run)));
    }
    // `<run>/trajectories`, or a file in it.
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = if full.is_file() { full.parent() } else { Some(full.as_path()) };
    let run = folder.and_then(Path::parent).and_then(|run| RunFolder::open(run).ok());
    let reader = JsonlStore::read(path);
    let mut reader =
        reader.with_context(|| format!("find trajectories at `{}`", path.display()))?;
    anyhow::ensure!(
        reader.next().is_some(),
        "find trajectories in `{}`: there are none",
        path.display()
    );
    Ok((path.to_owned(), run.as_ref().and_then(recipe)))
}

/// The suites of the tasks, opened once, and where their sandboxes come from.
struct Suites<'a> {
    arguments: &'a ReplayArguments,
    recipe: Option<Recipe>,
    open: HashMap<String, (Box<dyn Suite>, OpenSandboxes)>,
}

impl Suites<'_> {
    async fn of(&mut self, task: &str) -> anyhow::Result<(&dyn Suite, &OpenSandboxes)> {
        let own = task.split('/').next().unwrap_or_default();
        let run = self.recipe.as_ref().map(|recipe| &recipe.data);
        if !self.open.contains_key(own) {
            let folder = self.arguments.data.as_deref();
            let folder = folder.or(run.and_then(|data| data.folder.as_deref()));
            let name = self.arguments.suite.as_deref().unwrap_or(own);
            // The suite of a run may be a folder, which the ids of its tasks do not name.
            let suite = match (open_suite(name, folder), run) {
                (Err(error), Some(data)) if self.arguments.suite.is_none() => {
                    open_suite(&data.suite, folder).map_err(|_| error)
                }
                (suite, _) => suite,
            };
            let suite = suite.with_context(|| format!("play task `{task}` again"))?;
            let split = self.split_of(suite.as_ref(), task);
            let episode = EpisodeConfig::default();
            let sandboxes = open_sandboxes(
                &self.arguments.environment,
                self.recipe.as_ref(),
                Some(1),
                suite.as_ref(),
                &split,
                &episode,
            )
            .await?;
            self.open.insert(own.to_owned(), (suite, sandboxes));
        }
        let (suite, sandboxes) = &self.open[own];
        Ok((suite.as_ref(), sandboxes))
    }

    /// The split that a task of this suite is in.
    fn split_of(&self, suite: &dyn Suite, task: &str) -> String {
        let splits = &suite.manifest().splits;
        let named = task.split('/').nth(1).unwrap_or_default();
        let found = splits.iter().find(|(split, _)| split == named).or(splits.first());
        found.map(|(split, _)| split.clone()).unwrap_or_default()
    }

    async fn close(self) {
        for (_, sandboxes) in self.open.into_values() {
            warn_of_leftovers(sandboxes.close().await);
        }
    }
}

/// The first difference: its turn, what differs, what was recorded and what is found.
type Found = Option<(usize, &'static str, String, String)>;

async fn play_again(
    trajectory: &Trajectory,
    suite: &dyn Suite,
    sandboxes: &OpenSandboxes,
) -> anyhow::Result<Found> {
    let task = suite.task_by_id(&trajectory.task)?;
    let broken = |turn: usize, error: EnvironmentError| {
        let error = format!("{:#}", anyhow::Error::from(error));
        Some((turn, "the environment breaks", String::new(), error))
    };
    let mut env = match sandboxes.opener()(&task) {
        Ok(env) => env,
        Err(error) => return Ok(broken(0, error)),
    };
    let first = match env.reset(trajectory.environment_seed.unwrap_or(trajectory.seed)).await {
        Ok(first) => first,
        Err(error) => return Ok(broken(0, error)),
    };
    let recorded = &trajectory.first_observation;
    // An episode that broke before its reset has shown nothing.
    let has_begun = !(trajectory.is_failed() && recorded.text.is_empty());
    if has_begun && let Some((what, recorded, found)) = observations(recorded, &first) {
        return Ok(Some((0, what, recorded, found)));
    }
    for (index, turn) in trajectory.turns.iter().enumerate() {
        // Where no action could be read the environment was not asked.
        let mut step = match &turn.parsed {
            ParsedAction::Invalid { .. } => None,
            ParsedAction::Action { text } => match env.step(text).await {
                Ok(step) => Some(step),
                Err(error) => return Ok(broken(index + 1, error)),
            },
        };
        // An episode that broke was not judged.
        if index + 1 == trajectory.turns.len() && !trajectory.is_failed() {
            let verdict = match env.verify().await {
                Ok(verdict) => verdict,
                Err(error) => return Ok(broken(index + 1, error)),
            };
            let won = verdict.as_ref().is_some_and(|verdict| verdict.won);
            match (&mut step, verdict) {
                (Some(step), Some(verdict)) => verdict.apply(step),
                (None, _) if won != turn.step.won => {
                    return Ok(Some((
                        index + 1,
                        "won",
                        turn.step.won.to_string(),
                        won.to_string(),
                    )));
                }
                _ => {}
            }
        }
        let Some(step) = step else { continue };
        if let Some((what, recorded, found)) = steps(&turn.step, &step) {
            return Ok(Some((index + 1, what, recorded, found)));
        }
    }
    let last = trajectory.turns.last().map(|turn| &turn.step);
    let (terminated, won) = last.map_or((false, false), |step| (step.terminated, step.won));
    let number = trajectory.turns.len();
    if (trajectory.end == EndReason::Terminated) != terminated {
        return Ok(Some((number, "end", format!("{:?}", trajectory.end), terminated.to_string())));
    }
    if trajectory.won != won {
        return Ok(Some((number, "won", trajectory.won.to_string(), won.to_string())));
    }
    env.close().await?;
    Ok(None)
}

fn steps(recorded: &Step, found: &Step) -> Option<(&'static str, String, String)> {
    if let Some(difference) = observations(&recorded.observation, &found.observation) {
        return Some(difference);
    }
    let rewards = |step: &Step| -> Vec<(String, u64)> {
        let own = step.rewards.iter().filter(|part| part.name != PENALTY);
        own.map(|part| (part.name.clone(), part.value.to_bits())).collect()
    };
    if rewards(recorded) != rewards(found) {
        let text = |step: &Step| format!("{:?}", step.rewards);
        return Some(("reward", text(recorded), text(found)));
    }
    [
        ("executable", recorded.executable, found.executable),
        ("terminated", recorded.terminated, found.terminated),
        ("won", recorded.won, found.won),
    ]
    .into_iter()
    .find(|(_, recorded, found)| recorded != found)
    .map(|(what, recorded, found)| (what, recorded.to_string(), found.to_string()))
}

fn observations(
    recorded: &Observation,
    found: &Observation,
) -> Option<(&'static str, String, String)> {
    if recorded.text != found.text {
        return Some(("observation", recorded.text.clone(), found.text.clone()));
    }
    if recorded.instruction != found.instruction {
        let text = |observation: &Observation| format!("{:?}", observation.instruction);
        return Some(("instruction", text(recorded), text(found)));
    }
    // Stores may leave the lists out.
    if recorded.admissible.is_some() && recorded.admissible != found.admissible {
        let text = |observation: &Observation| {
            let actions = observation.admissible.as_deref().unwrap_or_default();
            actions.iter().map(|action| &**action).collect::<Vec<_>>().join(" | ")
        };
        return Some(("admissible actions", text(recorded), text(found)));
    }
    if recorded.state_key != found.state_key {
        return Some(("state", recorded.state_key.clone(), found.state_key.clone()));
    }
    None
}

fn text(report: &Report) -> String {
    let Report { trajectories, turns, mismatches, described } = report;
    let mut text = format!(
        "{trajectories} trajectories with {turns} turns played again: {mismatches} mismatches\n"
    );
    for Difference { number, task, turn, what, recorded, found } in described {
        text += &format!(
            "episode {number} of task `{task}`, turn {turn}: {what} differs\n  recorded \
             {recorded:?}\n  found    {found:?}\n"
        );
    }
    text
}
