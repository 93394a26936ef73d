//! Checks a suite by playing it: is every task solvable, fair and repeatable?

mod seats;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::pin::pin;

use futures::stream::{self, StreamExt};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use spar_core::{Action, Observation, Seed, Step, Verdict};
use spar_tasks::graders::{Graders, GradingModel};
use spar_tasks::{Suite, SuiteError, Task, WrapperConfig};

use crate::environment::{CHANCE_TAG, NO_ORACLE_TAG, SCORED_TAG};
use crate::{Environment, EnvironmentError, Resources, open_environment, shuffled_tasks};

/// An action that no environment knows.
const UNKNOWN_ACTION: &str = "do nothing at all";
/// Actions that leave the state alone, where they can be executed.
const IDLE_ACTIONS: [&str; 1] = ["look"];
/// Turns of the idle and the random player; enough to show what they would show.
const MAX_IDLE_TURNS: u32 = 8;
const MAX_RANDOM_TURNS: u32 = 24;

/// What validation found in a suite.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ValidationReport {
    /// The suite's name.
    pub suite: String,
    /// Tasks that were played.
    pub num_tasks: usize,
    /// Tasks whose outcome depends on luck even for a perfect player.
    pub num_with_chance: usize,
    /// Of these, how many the oracle solved.
    pub num_solved_with_chance: usize,
    /// Tasks the oracle solved; where several act, those that oracles at all seats played to their end, and solved
    /// unless one's gain is another's loss.
    pub num_solved: usize,
    /// Tasks that nobody is known to solve, as their environment says.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_without_oracle: usize,
    /// Turns the oracle needed in all tasks it solved.
    pub num_oracle_turns: u64,
    /// Tasks the random player solved; a few are no fault.
    pub num_solved_by_random: usize,
    /// Tasks that are judged in part, since graders that ask a model are left out: how many, by what would take to judge the rest.
    #[serde(default)]
    pub num_judged_in_part: BTreeMap<String, usize>,
    /// What is wrong, task by task.
    pub failures: Vec<ValidationFailure>,
}

/// Something that is wrong with a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationFailure {
    /// The task's id.
    pub task: String,
    /// What is wrong.
    pub kind: FailureKind,
    /// Details for a person.
    pub detail: String,
}

/// What can be wrong with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The task or its environment cannot be opened, or broke.
    Broken,
    /// The environment has no oracle for it.
    NoOracle,
    /// The oracle did not solve it within the task's turns, though luck plays no part.
    NotSolved,
    /// Solving it does not give reward 1, or not solving it gives some.
    WrongReward,
    /// Doing nothing earns reward.
    RewardForNothing,
    /// Breaking what works earns reward.
    RewardForBreaking,
    /// Equal seeds and actions gave different episodes.
    NotRepeatable,
    /// A fork went on differently from its origin.
    ForkDiffers,
    /// An action listed as admissible could not be executed, or one not listed could.
    WrongAdmissible,
    /// What is offered as a tool is none, or calls were not answered by one result each.
    WrongTools,
    /// The seats of those who act are not as they have to be: who is to move, what they are told, or what they earn.
    WrongSeats,
}

impl ValidationReport {
    /// Whether nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    /// Takes over what was found in other tasks of the suite.
    fn add(&mut self, other: Self) {
        let Self {
            suite: _,
            num_tasks,
            num_with_chance,
            num_solved_with_chance,
            num_solved,
            num_without_oracle,
            num_oracle_turns,
            num_solved_by_random,
            num_judged_in_part,
            failures,
        } = other;
        self.num_tasks += num_tasks;
        self.num_with_chance += num_with_chance;
        self.num_solved_with_chance += num_solved_with_chance;
        self.num_solved += num_solved;
        self.num_without_oracle += num_without_oracle;
        self.num_oracle_turns += num_oracle_turns;
        self.num_solved_by_random += num_solved_by_random;
        for (what, count) in num_judged_in_part {
            *self.num_judged_in_part.entry(what).or_default() += count;
        }
        self.failures.extend(failures);
    }

    /// Mean turns of the oracle where it solved the task; `None` where it solved none.
    pub fn mean_oracle_turns(&self) -> Option<f64> {
        (self.num_solved > 0).then(|| self.num_oracle_turns as f64 / self.num_solved as f64)
    }
}

/// Plays every task of `splits` (of each a sample of `limit`, always the same one) with an oracle, an
/// idle and a random player, and checks that episodes repeat and that forks agree with their origin.
///
/// What [breaks](Environment::breaking_actions) a task earns nothing, and the oracle's episode is judged twice, the same both
/// times, where its environment judges when it is over.
///
/// Where several act, each of the three takes all seats, and what every seat is told and earns is looked at; nobody has to
/// win what another loses.
///
/// Environments that can be played in words and by calls are played by calls. Where an environment lists no admissible
/// actions, the random player makes the oracle's moves.
/// With resources [without graders](Resources::without_graders) tasks are judged by their environments alone; of those that
/// name graders which ask a model, the report says that they were judged in part.
///
/// Tasks tagged [`CHANCE_TAG`] need not be solved by the oracle; how many are is reported apart. Solving tasks tagged
/// [`SCORED_TAG`] has to earn something, which need not be 1. Of tasks tagged [`NO_ORACLE_TAG`] no oracle is expected.
/// `progress` is called after each task with the number of tasks done and of all, and may end it there;
/// the report then tells of these.
///
/// # Errors
///
/// [`SuiteError`] when a split is unknown. What is wrong with single tasks is in the report.
pub async fn validate_suite(
    suite: &dyn Suite,
    splits: &[&str],
    limit: Option<usize>,
    resources: &Resources,
    progress: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ValidationReport, SuiteError> {
    validate_side_by_side(suite, (splits, limit), resources, 1, progress).await
}

/// As [`validate_suite`], with so many tasks under way at one time, at least one: `sample` has the splits, and how many tasks of
/// each. What is found does not depend on their number.
///
/// # Errors
///
/// As [`validate_suite`].
pub async fn validate_side_by_side(
    suite: &dyn Suite,
    sample: (&[&str], Option<usize>),
    resources: &Resources,
    at_once: usize,
    mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ValidationReport, SuiteError> {
    let (splits, limit) = sample;
    let mut samples = Vec::new();
    for split in splits {
        let shuffled = shuffled_tasks(suite, split, Seed::from_u64(0))?;
        samples.extend(shuffled.sample_indices(limit).into_iter().map(|index| (*split, index)));
    }
    let num_all = samples.len();
    // In the order of the sample, whichever is done first.
    let validated =
        samples.into_iter().map(|(split, index)| validate_at(suite, split, index, resources));
    let mut found = pin!(stream::iter(validated).buffered(at_once.max(1)));
    let mut report =
        ValidationReport { suite: suite.manifest().name.clone(), ..ValidationReport::default() };
    while let Some(of_task) = found.next().await {
        report.add(of_task);
        if progress(report.num_tasks, num_all).is_break() {
            break;
        }
    }
    Ok(report)
}

/// What is found in the task of a place.
async fn validate_at(
    suite: &dyn Suite,
    split: &str,
    index: usize,
    resources: &Resources,
) -> ValidationReport {
    let mut report = ValidationReport { num_tasks: 1, ..ValidationReport::default() };
    match suite.task(split, index) {
        Ok(task) => validate_task(&task, resources, &mut report).await,
        Err(error) => report.failures.push(ValidationFailure {
            task: format!("{split}/{index}"),
            kind: FailureKind::Broken,
            detail: error.to_string(),
        }),
    }
    report
}

async fn validate_task(task: &Task, resources: &Resources, report: &mut ValidationReport) {
    let mut trial = Trial { task, resources, report };
    if resources.is_ungraded {
        trial.look_at_graders();
    }
    if let Err(error) = trial.run().await {
        trial.fail(FailureKind::Broken, chain(&error));
    }
}

struct Trial<'a> {
    task: &'a Task,
    resources: &'a Resources,
    report: &'a mut ValidationReport,
}

/// What an episode showed, for comparison.
#[derive(PartialEq)]
struct Shown {
    observation: Observation,
    reward_bits: u64,
    terminated: bool,
    success: bool,
    valid: bool,
}

impl Trial<'_> {
    /// Notes what is left out of the judging.
    fn look_at_graders(&mut self) {
        let graders = match Graders::open(&self.task.graders) {
            Ok(graders) => graders,
            Err(error) => return self.fail(FailureKind::Broken, chain(&error)),
        };
        let asking = graders.models().map(|(grader, model)| match model {
            GradingModel::Judge => format!("`{grader}` needs a judge endpoint"),
            model => format!("`{grader}` needs the {}", model.name()),
        });
        // Two graders of one name are refused, so that a task counts once for each.
        for needs in asking {
            *self.report.num_judged_in_part.entry(needs).or_default() += 1;
        }
    }

    async fn run(&mut self) -> Result<(), EnvironmentError> {
        let mut env = open_environment(self.task, self.resources)?;
        env.use_tools();
        if env.seats().len() > 1 {
            return self.run_seats(env).await;
        }
        let with_chance = env.tags().iter().any(|tag| tag == CHANCE_TAG);
        let is_unsolved = env.tags().iter().any(|tag| tag == NO_ORACLE_TAG);
        let verdict = match is_unsolved {
            true => None,
            false => self.play_oracle(env.as_mut(), with_chance).await?,
        };
        self.report.num_without_oracle += usize::from(is_unsolved);
        self.play_idle(env.as_mut()).await?;
        self.play_breaking(env.as_mut()).await?;
        let (actions, is_oracles) = self.play_random(env.as_mut()).await?;
        env.close().await?;
        self.repeat(&actions, verdict.filter(|_| is_oracles)).await
    }

    /// The oracle solves it and gets 1, or luck was against it.
    async fn play_oracle(
        &mut self,
        env: &mut dyn Environment,
        with_chance: bool,
    ) -> Result<Option<Verdict>, EnvironmentError> {
        env.reset(seed_of(self.task)).await?;
        let (mut reward, mut success, mut num_turns) = (0.0, false, 0);
        while num_turns < self.task.max_turns {
            let Some(action) = env.oracle_action() else {
                let detail = format!("after {num_turns} turns");
                self.fail(FailureKind::NoOracle, detail);
                return Ok(None);
            };
            for tool in env.tools().iter() {
                if let Err(error) = tool.validate() {
                    self.fail(FailureKind::WrongTools, error.to_string());
                }
            }
            let step = env.step(&action).await?;
            let (calls, results) = (action.tool_calls(), &step.observation.results);
            if !results.iter().map(|it| &it.call).eq(calls.iter().map(|it| &it.id)) {
                let detail = format!("{} results for `{action}`", results.len());
                self.fail(FailureKind::WrongTools, detail);
            }
            num_turns += 1;
            reward += step.reward();
            success |= step.success;
            if !step.valid {
                self.fail(FailureKind::WrongAdmissible, format!("the oracle's `{action}`"));
            }
            if step.terminated {
                break;
            }
        }
        let verdict = if num_turns > 0 { env.verify().await? } else { None };
        let mut said = String::new();
        if let Some(verdict) = &verdict {
            reward += verdict.reward();
            success = verdict.success;
            if !verdict.details.is_empty() {
                said = format!(": {}", verdict.details);
            }
        }
        if with_chance {
            self.report.num_with_chance += 1;
            self.report.num_solved_with_chance += usize::from(success);
        } else if !success {
            self.fail(FailureKind::NotSolved, format!("within {num_turns} turns{said}"));
        }
        let expected = if success { 1.0 } else { 0.0 };
        if env.tags().iter().any(|tag| tag == SCORED_TAG) {
            if success && !(reward > 0.0 && reward.is_finite()) {
                self.fail(FailureKind::WrongReward, format!("{reward} for solving it"));
            }
        } else if (reward - expected).abs() > 1e-9 {
            self.fail(FailureKind::WrongReward, format!("{reward} where {expected} is due"));
        }
        if success {
            self.report.num_solved += 1;
            self.report.num_oracle_turns += u64::from(num_turns);
        }
        Ok(verdict)
    }

    /// Doing nothing earns nothing.
    async fn play_idle(&mut self, env: &mut dyn Environment) -> Result<(), EnvironmentError> {
        let mut observation = env.reset(seed_of(self.task)).await?;
        for turn in 0..self.task.max_turns.min(MAX_IDLE_TURNS) {
            let idle = IDLE_ACTIONS.into_iter().find(|action| is_listed(&observation, action));
            // By turns, so that both kinds of nothing are tried.
            let action = idle.filter(|_| turn % 2 == 0).unwrap_or(UNKNOWN_ACTION);
            let step = env.step(&action.into()).await?;
            if step.reward() != 0.0 || step.success {
                let detail = format!("{} for `{action}`", step.reward());
                self.fail(FailureKind::RewardForNothing, detail);
                return Ok(());
            }
            // What ends a task was taken for its answer, whatever it says.
            let is_taken = step.valid && !step.terminated && !env.takes_any_words();
            if action == UNKNOWN_ACTION && is_taken && !self.answers_any_words().await? {
                self.fail(FailureKind::WrongAdmissible, format!("`{action}` was executed"));
            }
            if step.terminated {
                break;
            }
            observation = step.observation;
        }
        if let Some(verdict) = env.verify().await?
            && (verdict.success || !verdict.parts.is_empty())
        {
            self.fail(FailureKind::RewardForNothing, format!("{:?}", verdict.parts));
        }
        Ok(())
    }

    /// Whether any words are an answer to the task, which ends it where no wrapper has it go on.
    async fn answers_any_words(&self) -> Result<bool, EnvironmentError> {
        let Ok(Some((_, bare))) = WrapperConfig::take(self.task) else { return Ok(false) };
        let mut env = open_environment(&bare, self.resources)?;
        env.use_tools();
        env.reset(seed_of(&bare)).await?;
        let step = env.step(&UNKNOWN_ACTION.into()).await?;
        let takes_all = env.takes_any_words() || step.terminated;
        env.close().await?;
        Ok(takes_all)
    }

    /// Breaking what works earns nothing.
    async fn play_breaking(&mut self, env: &mut dyn Environment) -> Result<(), EnvironmentError> {
        let actions = env.breaking_actions();
        if actions.is_empty() {
            return Ok(());
        }
        env.reset(seed_of(self.task)).await?;
        for action in &actions {
            let step = env.step(action).await?;
            if !step.valid {
                self.fail(
                    FailureKind::WrongAdmissible,
                    format!("the breaking player's `{action}`"),
                );
            }
            if step.terminated {
                break;
            }
        }
        if let Some(verdict) = env.verify().await?
            && (verdict.success || !verdict.parts.is_empty())
        {
            self.fail(FailureKind::RewardForBreaking, verdict.details);
        }
        Ok(())
    }

    /// A random player, and whether its moves were all the oracle's; forks made on its way do as their origin does.
    async fn play_random(
        &mut self,
        env: &mut dyn Environment,
    ) -> Result<(Vec<(Action, Shown)>, bool), EnvironmentError> {
        let mut rng = seed_of(self.task).derive("random player", 0).rng();
        let mut observation = env.reset(seed_of(self.task)).await?;
        let num_turns = self.task.max_turns.min(MAX_RANDOM_TURNS);
        let mut fork: Option<Box<dyn Environment>> = None;
        let (mut episode, mut is_oracles) = (Vec::new(), true);
        for turn in 0..num_turns {
            if turn == num_turns / 3 {
                // Of one that cannot be forked, its repetition stands for it.
                fork = env.fork().await?;
            }
            let action = match &observation.admissible {
                Some(listed) if listed.is_empty() => break,
                Some(listed) => Action::from(&*listed[rng.random_range(0..listed.len())]),
                None => match env.oracle_action() {
                    Some(action) => action,
                    None => break,
                },
            };
            let step = env.step(&action).await?;
            if let Some(fork) = &mut fork {
                let twin = fork.step(&action).await?;
                if shown(&twin) != shown(&step) {
                    self.fail(FailureKind::ForkDiffers, format!("turn {turn}, `{action}`"));
                }
            }
            if !step.valid {
                self.fail(FailureKind::WrongAdmissible, format!("`{action}` is listed"));
            }
            episode.push((action, shown(&step)));
            // What the oracle does is no chance.
            let is_random = observation.admissible.is_some();
            is_oracles &= !is_random;
            self.report.num_solved_by_random += usize::from(is_random && step.success);
            if step.terminated {
                break;
            }
            observation = step.observation;
        }
        if let Some(mut fork) = fork {
            fork.close().await?;
        }
        Ok((episode, is_oracles))
    }

    /// The same actions under the same seed show the same again, in an environment of its own, and come to the same
    /// verdict, where they came to one.
    async fn repeat(
        &mut self,
        episode: &[(Action, Shown)],
        verdict: Option<Verdict>,
    ) -> Result<(), EnvironmentError> {
        let mut env = open_environment(self.task, self.resources)?;
        env.use_tools();
        env.reset(seed_of(self.task)).await?;
        for (turn, (action, first)) in episode.iter().enumerate() {
            let step = env.step(action).await?;
            if shown(&step) != *first {
                self.fail(FailureKind::NotRepeatable, format!("turn {turn}, `{action}`"));
                break;
            }
        }
        let is_over = episode.last().is_some_and(|(_, last)| last.terminated);
        if let Some(first) = verdict.filter(|_| is_over)
            && let Some(again) = env.verify().await?
            && (first.success, &first.parts) != (again.success, &again.parts)
        {
            let detail = format!("judged once `{}`, and once `{}`", first.details, again.details);
            self.fail(FailureKind::NotRepeatable, detail);
        }
        env.close().await
    }

    fn fail(&mut self, kind: FailureKind, detail: String) {
        let task = self.task.id.clone();
        self.report.failures.push(ValidationFailure { task, kind, detail });
    }
}

fn seed_of(task: &Task) -> Seed {
    Seed::from_u64(0).derive("validate", &task.id)
}

fn is_listed(observation: &Observation, action: &str) -> bool {
    observation.admissible.as_deref().unwrap_or_default().iter().any(|listed| **listed == *action)
}

fn shown(step: &Step) -> Shown {
    Shown {
        observation: step.observation.clone(),
        reward_bits: step.reward().to_bits(),
        terminated: step.terminated,
        success: step.success,
        valid: step.valid,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_sandbox::backends::fake::FakeBackend;
    use spar_sandbox::pool::{PoolConfig, SandboxPool};
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;
    use crate::{Sandboxes, environment_registry};

    fn go_on(_done: usize, _all: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[tokio::test]
    async fn it_ends_where_it_is_told_to() {
        let suite = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
        let stop = |done, all| {
            assert_eq!(all, 100);
            if done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let resources = Resources::default();
        let report = validate_suite(suite.as_ref(), &["train"], Some(100), &resources, stop);
        assert_eq!(report.await.unwrap().num_tasks, 3);
    }

    #[tokio::test]
    async fn every_environment_passes_on_its_suite() {
        let backend = FakeBackend::new();
        let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
        let pool = Arc::new(SandboxPool::new(Arc::new(backend.clone()), config).unwrap());
        let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&pool)));
        for entry in environment_registry() {
            // Its programs want an interpreter; its own tests validate its suite over guests.
            let wants_guests = entry.name == "micro-repair";
            if crate::needs_browser(entry.name) {
                println!(
                    "{}: not validated, since it needs a browser (chromium_ tests do that)",
                    entry.name
                );
                continue;
            }
            let Some(suite) = entry.suite.filter(|_| !wants_guests) else { continue };
            let suite = open_suite(suite, &SuiteOptions::default()).unwrap();
            let splits: Vec<&str> =
                suite.manifest().splits.iter().map(|(name, _)| name.as_str()).collect();
            let report = validate_suite(suite.as_ref(), &splits, Some(12), &resources, go_on);
            let report = report.await.unwrap();
            assert!(report.is_valid(), "{}: {:#?}", entry.name, report.failures);
            assert_eq!(report.num_tasks, 12 * splits.len());
        }
        // Whatever was opened was closed.
        assert!(backend.num_created() > 0);
        assert_eq!(pool.metrics().in_use, 0);
    }

    #[tokio::test]
    async fn wrong_answers_to_a_question_that_is_asked_again_are_no_commands() {
        let resources = Resources::default();
        let validated = async |name: &str, wrapper: serde_json::Value| {
            let suite = open_suite(name, &SuiteOptions::default()).unwrap();
            let mut report = ValidationReport::default();
            for index in 0..8 {
                let mut task = suite.task("dev", index).unwrap();
                task.parameters["wrappers"] = serde_json::json!([wrapper]);
                task.max_turns = 5;
                validate_task(&task, &resources, &mut report).await;
            }
            report
        };
        let again = serde_json::json!({ "kind": "unary_feedback", "attempts": 3, "decay": 1.0 });
        let report = validated("maths", again).await;
        assert!(report.is_valid(), "{:#?}", report.failures);
        assert_eq!(report.num_solved, 8);
    }

    #[tokio::test]
    async fn unknown_splits_are_errors_and_broken_tasks_are_failures() {
        let resources = Resources::default();
        let suite = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
        let all = ("train", Some(9));
        let alone = validate_suite(suite.as_ref(), &[all.0], all.1, &resources, go_on).await;
        let sample = (&[all.0][..], all.1);
        let together = validate_side_by_side(suite.as_ref(), sample, &resources, 4, go_on).await;
        assert_eq!(alone.unwrap(), together.unwrap());
        let report = validate_suite(suite.as_ref(), &["nowhere"], Some(1), &resources, go_on);
        assert!(report.await.is_err());

        let mut task = suite.task("train", 0).unwrap();
        task.parameters = serde_json::json!({ "size": 99, "seed": 1 });
        let mut report = ValidationReport::default();
        validate_task(&task, &resources, &mut report).await;
        assert_eq!(report.failures[0].kind, FailureKind::Broken);
        assert!(!report.is_valid());
    }
}
