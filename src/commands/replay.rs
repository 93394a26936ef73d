//! `spar replay`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use spar::agent::{Cancellation, EpisodeConfig, JsonlStore, ScaffoldChoice};
use spar::core::{
    Action, EndReason, Limit, Observation, ParsedAction, Step, Trajectory, Turn, Verdict,
};
use spar::envs::{Environment, EnvironmentError, seats_of};
use spar::recipe::{DataConfig, Recipe};
use spar::sandboxes::OpenSandboxes;
use spar::tasks::{Suite, Task, WrapperConfig, suite_registry};
use spar::trainer::RunFolder;

use super::environments::{open_sandboxes, warn_of_leftovers};
use super::readable::Readable;
use super::suites::open_wrapped_suite;
use super::train::{RUNS, named_run};
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
    /// Records and damaged places that could not be read, and so were not played.
    unreadable: usize,
    described: Vec<Difference>,
    /// Records of episodes in which several act: one seat's moves alone cannot be made again.
    several: usize,
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
    let (folder, recipe) = store_of(&named_run(&arguments.path, Path::new(RUNS)))?;
    let mut suites = Suites { arguments, recipe, open: HashMap::new() };
    let cancellation = cancel_on_ctrl_c();
    let total = Readable::silent(&folder)?.try_fold(0, |sum, next| next.map(|_| sum + 1))?;
    let total = arguments.limit.map_or(total, |limit| limit.min(total));
    let bar = Bar::new("replay", total);
    let mut report = Report::default();
    let played =
        play_all(&mut suites, &folder, arguments.limit, &cancellation, &bar, &mut report).await;
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
    } else if report.mismatches > 0 || report.unreadable > 0 || report.trajectories == 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn play_all(
    suites: &mut Suites<'_>,
    folder: &Path,
    limit: Option<usize>,
    cancellation: &Cancellation,
    bar: &Bar,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut readable = Readable::open(folder)?;
    let mut is_shared: HashMap<String, bool> = HashMap::new();
    // Up to the end where all are wanted, so that what was cut off there is told.
    while limit.is_none_or(|limit| report.trajectories < limit) && !cancellation.is_cancelled() {
        let Some(stored) = readable.next() else { break };
        let trajectory = stored?.trajectory;
        let several = |name: &str| seats_of(name).is_some_and(|seats| seats.len() > 1);
        let environment = &trajectory.environment;
        if !is_shared.contains_key(environment) {
            is_shared.insert(environment.clone(), several(environment));
        }
        if is_shared[environment] {
            report.several += 1;
            bar.advance();
            continue;
        }
        let (suite, sandboxes) = suites.of(&trajectory.task).await?;
        let task = suite.task_by_id(&trajectory.task)?;
        let open = sandboxes.ungraded_opener();
        let found = tokio::select! {
            found = play_again(&trajectory, &task, &*open) => found,
            // What it holds is closed with the pool.
            () = cancellation.cancelled() => break,
        };
        report.trajectories += 1;
        report.turns += trajectory.turns.len();
        if let Some((turn, what, recorded, found)) = found {
            report.mismatches += 1;
            if report.described.len() < MAX_DESCRIBED {
                let number = report.trajectories + report.several;
                let task = trajectory.task.clone();
                report.described.push(Difference { number, task, turn, what, recorded, found });
            }
        }
        bar.advance();
    }
    report.unreadable = readable.num_unreadable();
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
    // `<run>/trajectories`, the failed ones in it, or a file in one of these.
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = if full.is_file() { full.parent() } else { Some(full.as_path()) };
    let mut above = folder.into_iter().flat_map(|folder| folder.ancestors().skip(1).take(2));
    let run = above.find_map(|run| RunFolder::open(run).ok());
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
        if !self.open.contains_key(own) {
            let of_run: Vec<DataConfig> =
                self.recipe.as_ref().map(Recipe::all_suites).unwrap_or_default();
            let (given, suite) = (self.arguments.data.as_deref(), self.arguments.suite.as_deref());
            let wrappers = &self.arguments.wrapping.wrap[..];
            let suite = open_suite_of(task, own, suite, given, wrappers, &of_run);
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

/// Opens the suite that a task is in, whose id begins with `own`: the one that is `named`, else that of the run which has
/// it. The suites of a run may be files and folders, which the ids of their tasks do not name.
fn open_suite_of(
    task: &str,
    own: &str,
    named: Option<&str>,
    folder: Option<&Path>,
    typed: &[WrapperConfig],
    of_run: &[DataConfig],
) -> anyhow::Result<Box<dyn Suite>> {
    let folder_of = |data: &'_ DataConfig| folder.map(Path::to_owned).or(data.folder.clone());
    let wrappers_of = |data: Option<&DataConfig>| match typed {
        [] => data.map(|data| data.wrappers.clone()).unwrap_or_default(),
        typed => typed.to_vec(),
    };
    let by_name = || {
        let name = named.unwrap_or(own);
        let data = of_run.iter().find(|data| data.suite == name).or(of_run.first());
        let folder = data.and_then(folder_of).or(folder.map(Path::to_owned));
        open_wrapped_suite(name, folder.as_deref(), &wrappers_of(data))
    };
    if named.is_some() {
        return by_name();
    }
    // What has a name is opened by that alone, as reading large data takes a while.
    let may_have_it =
        |data: &&DataConfig| data.suite == own || suite_registry().find(&data.suite).is_err();
    let mut places: Vec<(&str, Option<PathBuf>, Vec<WrapperConfig>)> = Vec::new();
    for data in of_run.iter().filter(may_have_it) {
        let place = (data.suite.as_str(), folder_of(data), wrappers_of(Some(data)));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut found: Option<Box<dyn Suite>> = None;
    for (name, folder, wrappers) in places {
        let Ok(suite) = open_wrapped_suite(name, folder.as_deref(), &wrappers) else { continue };
        if suite.manifest().name != own && suite.task_by_id(task).is_err() {
            continue;
        }
        let Some(first) = &found else {
            found = Some(suite);
            continue;
        };
        let (one, other) = (first.manifest(), suite.manifest());
        // A suite may be there by itself and in a mixture.
        let is_same = one.content_hash == other.content_hash
            || one.name != other.name && first.task_by_id(task).ok() == suite.task_by_id(task).ok();
        anyhow::ensure!(
            is_same,
            "find task `{task}`: several suites of the run are called `{own}`, and which of them it is of is not told by its \
             id; name one with --suite, and its folder with --data"
        );
    }
    found.map_or_else(by_name, Ok)
}

/// The first difference: its turn, what differs, what was recorded and what is found.
type Found = Option<(usize, &'static str, String, String)>;

/// Plays a trajectory again; its environment is closed however that ends.
async fn play_again(
    trajectory: &Trajectory,
    task: &Task,
    open: impl Fn(&Task) -> Result<Box<dyn Environment>, EnvironmentError>,
) -> Found {
    let mut env = match open(task) {
        Ok(env) => env,
        Err(error) => return broken(0, error),
    };
    let found = compare(trajectory, &mut *env).await;
    if let Err(error) = env.close().await {
        let error = anyhow::Error::from(error);
        eprintln!("warning: could not {error:#}");
    }
    found
}

fn broken(turn: usize, error: EnvironmentError) -> Found {
    let error = format!("{:#}", anyhow::Error::from(error));
    Some((turn, "the environment breaks", String::new(), error))
}

/// The first difference between a trajectory and what an environment answers now.
async fn compare(trajectory: &Trajectory, env: &mut dyn Environment) -> Found {
    if !trajectory.tools.is_empty() {
        env.use_tools();
    }
    if let Some(toolset) = scaffold_of(trajectory).as_ref().and_then(ScaffoldChoice::toolset) {
        // What it shows otherwise is what differs.
        env.use_toolset(toolset);
    }
    let first = match env.reset(trajectory.environment_seed.unwrap_or(trajectory.seed)).await {
        Ok(first) => first,
        Err(error) => return broken(0, error),
    };
    let recorded = &trajectory.first_observation;
    // An episode that broke before its reset has shown nothing.
    let has_begun = !(trajectory.is_failed() && recorded.text.is_empty());
    if has_begun && let Some((what, recorded, found)) = observations(recorded, &first) {
        return Some((0, what, recorded, found));
    }
    // What was summed up behind it, nothing came of.
    let last_acting = trajectory.turns.iter().rposition(|turn| !turn.is_summary());
    for (index, turn) in trajectory.turns.iter().enumerate() {
        // Where no action could be read, or none was asked for, the environment was not asked.
        let mut step = match &turn.parsed {
            ParsedAction::Invalid { .. } => None,
            // By its scaffold's word for that, the policy ended the episode itself.
            ParsedAction::Action { .. } if was_stopped(trajectory, turn) => None,
            ParsedAction::Action { action, .. } => match env.step(action).await {
                Ok(step) => Some(step),
                Err(error) => return broken(index + 1, error),
            },
        };
        let is_last = Some(index) == last_acting;
        // An episode that broke was not judged.
        // What graders said is not asked for again, nor compared: judges cost, and need not repeat themselves.
        let is_graded = trajectory.verdict.as_ref().is_some_and(|it| !it.graders.is_empty());
        if is_last && is_graded {
            if let Some(step) = &mut step {
                step.rewards.clone_from(&turn.step.rewards);
                step.success = turn.step.success;
            }
        } else if is_last && !trajectory.is_failed() {
            let verdict = match env.verify().await {
                Ok(verdict) => verdict,
                Err(error) => return broken(index + 1, error),
            };
            let success = verdict.as_ref().is_some_and(|verdict| verdict.success);
            match (&mut step, verdict) {
                (Some(step), Some(verdict)) => {
                    verdict.apply(step);
                    // Older files show it in the last observation.
                    if trajectory.verdict.is_none() {
                        show_verdict(&mut step.observation.text, &verdict);
                    }
                }
                (None, _) if success != turn.step.success => {
                    return Some((
                        index + 1,
                        "success",
                        turn.step.success.to_string(),
                        success.to_string(),
                    ));
                }
                _ => {}
            }
        }
        // The clock may have ended the last step before it had an answer of its own.
        let step = step.filter(|_| !(is_last && is_ended_by_clock(&trajectory.end)));
        let Some(step) = step else { continue };
        if let Some((what, recorded, found)) = steps(&turn.step, &step) {
            return Some((index + 1, what, recorded, found));
        }
    }
    let last = trajectory.last_acting().map(|turn| &turn.step);
    let (terminated, success) = last.map_or((false, false), |step| (step.terminated, step.success));
    let number = trajectory.turns.len();
    if (trajectory.end == EndReason::Terminated) != terminated {
        return Some((number, "end", format!("{:?}", trajectory.end), terminated.to_string()));
    }
    if trajectory.success != success {
        return Some((number, "success", trajectory.success.to_string(), success.to_string()));
    }
    None
}

/// The scaffold that a trajectory was played with, where there is one of its name.
fn scaffold_of(trajectory: &Trajectory) -> Option<ScaffoldChoice> {
    let name = trajectory.versions.scaffold.as_deref()?.split(' ').next()?;
    ScaffoldChoice::named(name).ok()
}

/// Whether the policy ended the episode in this turn, so that the environment was not asked.
fn was_stopped(trajectory: &Trajectory, turn: &Turn) -> bool {
    let stop = scaffold_of(trajectory).and_then(|scaffold| scaffold.scaffold().stop_action);
    match (turn.parsed.action(), stop) {
        (Some(Action::Text { text }), Some(stop)) => turn.step.terminated && text.trim() == stop,
        _ => false,
    }
}

/// Adds a verdict to an observation as older versions recorded it.
fn show_verdict(text: &mut String, verdict: &Verdict) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{}]", verdict.details));
}

fn is_ended_by_clock(end: &EndReason) -> bool {
    matches!(end, EndReason::Truncated { limit: Limit::TaskTime | Limit::CommandTime })
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
        ("valid", recorded.valid, found.valid),
        ("terminated", recorded.terminated, found.terminated),
        ("success", recorded.success, found.success),
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
    if recorded.results != found.results || recorded.media != found.media {
        let text = |observation: &Observation| {
            format!("{:?}, {:?}", observation.results, observation.media)
        };
        return Some(("results", text(recorded), text(found)));
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
    let Report { trajectories, turns, mismatches, unreadable, described, several } = report;
    let mut text = format!(
        "{trajectories} trajectories with {turns} turns played again: {mismatches} mismatches\n"
    );
    if *unreadable > 0 {
        text += &format!("{unreadable} places could not be read and were not played\n");
    }
    if *several > 0 {
        text +=
            &format!("{several} are of episodes in which several act, and were not played again\n");
    }
    for Difference { number, task, turn, what, recorded, found } in described {
        text += &format!(
            "episode {number} of task `{task}`, turn {turn}: {what} differs\n  recorded \
             {recorded:?}\n  found    {found:?}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use spar::agent::policies::ScriptedPolicy;
    use spar::agent::{Episode, Player, run_episode};
    use spar::core::{Seat, Seed};

    use super::*;

    #[test]
    fn a_task_that_several_suites_of_a_run_may_have_is_not_played_in_any_of_them() {
        let root = tempfile::tempdir().unwrap();
        let data = |place: &str, question: &str| {
            let folder = root.path().join(place);
            std::fs::create_dir(&folder).unwrap();
            let file = folder.join("sums.jsonl");
            std::fs::write(&file, format!("{{\"prompt\": \"{question}\"}}\n")).unwrap();
            DataConfig { suite: file.to_str().unwrap().to_owned(), ..DataConfig::default() }
        };
        let (tea, milk, again) = (data("a", "Tea?"), data("b", "Milk?"), data("c", "Tea?"));
        let open = |named, of_run: &[&DataConfig]| {
            let of_run: Vec<DataConfig> = of_run.iter().map(|data| (*data).clone()).collect();
            let suite = open_suite_of("sums/test/0", "sums", named, None, &[], &of_run);
            suite.map(|suite| format!("{:?}", suite.task("test", 0).unwrap()))
        };
        // The run's own, not the one that ships under this name.
        assert!(open(None, &[&tea, &again]).unwrap().contains("Tea?"));
        let told = open(None, &[&tea, &milk]).err().unwrap().to_string();
        assert!(told.contains("are called `sums`") && told.contains("--suite"), "{told}");
        assert!(open(Some(&milk.suite), &[&tea, &milk]).unwrap().contains("Milk?"));
        // Where the run has none it is looked for by its name, also beside others.
        for of_run in [&[][..], &[&DataConfig::default()]] {
            assert!(!open(None, of_run).unwrap().contains("Tea?"));
        }
        // A suite by itself and in a mixture is one.
        let text = "name = 'both'\nversion = '1'\nabout = 'Two.'\n\
                    suites = [{ suite = 'a/sums.jsonl' }, { suite = 'frozen-lake' }]";
        std::fs::write(root.path().join("suite.toml"), text).unwrap();
        let suite = root.path().to_str().unwrap().to_owned();
        let mixture = DataConfig { suite, ..DataConfig::default() };
        assert!(open(None, &[&mixture, &tea]).is_ok() && open(None, &[&mixture, &milk]).is_err());
    }

    /// Says the same to everything, and counts how often it is open.
    struct Echo {
        says: &'static str,
        breaks: bool,
        open: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Environment for Echo {
        fn name(&self) -> &'static str {
            "echo"
        }

        async fn reset(&mut self, _: Seed) -> Result<Observation, EnvironmentError> {
            self.open.fetch_add(1, Ordering::SeqCst);
            if self.breaks {
                return Err(EnvironmentError::Misused { call: "reset", when: "in a test" });
            }
            Ok(Observation { text: "begin".to_owned(), ..Observation::default() })
        }

        async fn step(&mut self, _: &Action) -> Result<Step, EnvironmentError> {
            Ok(Step {
                observation: Observation { text: self.says.to_owned(), ..Observation::default() },
                rewards: Vec::new(),
                terminated: false,
                success: false,
                valid: true,
                wall_time: Duration::ZERO,
            })
        }

        async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
            Err(EnvironmentError::Misused { call: "fork", when: "in a test" })
        }

        async fn close(&mut self) -> Result<(), EnvironmentError> {
            self.open.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_opened_is_closed_however_the_comparison_ends() {
        let task = Task {
            id: "echo/test/0".to_owned(),
            environment: "echo".to_owned(),
            parameters: serde_json::Value::Null,
            instruction: String::new(),
            max_turns: 2,
            tags: Vec::new(),
            graders: Vec::new(),
        };
        let open = Arc::new(AtomicUsize::new(0));
        let env = |says, breaks| Echo { says, breaks, open: Arc::clone(&open) };
        let (policy, seed) = (ScriptedPolicy::new(["go"]), Seed::from_u64(0));
        let episode = Episode {
            id: 1,
            task: &task,
            player: Player::Policy(&policy),
            seat: Seat::FIRST,
            seed,
            environment_seed: seed,
            cancellation: &Cancellation::new(),
        };
        let trajectory =
            run_episode(&mut env("a", false), &episode, &EpisodeConfig::default()).await;
        open.store(0, Ordering::SeqCst);
        for (says, breaks, expected) in [
            ("a", false, None),
            ("b", false, Some((1, "observation"))),
            ("a", true, Some((0, "the environment breaks"))),
        ] {
            let found = play_again(&trajectory, &task, |_| Ok(Box::new(env(says, breaks)))).await;
            assert_eq!(found.map(|(turn, what, ..)| (turn, what)), expected);
            assert_eq!(open.load(Ordering::SeqCst), 0, "{says} {breaks}");
        }
    }
}
