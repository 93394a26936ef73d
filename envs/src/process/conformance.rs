//! Whether a program keeps to the protocol.

use std::sync::Arc;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use spar_core::{Action, Observation, Seed, Step, ToolCall};
use spar_tasks::{ProcessSuite, Suite, Task};

use super::environment::Process;
use super::messages::{Call, SentAction};
use super::pool::ProgramPool;
use super::program_error::ProgramFault;
use crate::validate::chain;
use crate::{Environment, EnvironmentError, Resources};

/// Turns of the episodes that are played.
const MOST_TURNS: u32 = 12;
/// Bytes of the longest action that is tried.
const LONG: usize = 100_000;
/// First actions that are tried until one does not end the episode.
const OPENINGS: usize = 16;
/// A tool that no environment has.
const NO_TOOL: &str = "no_such_tool";

/// What came of checking a program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The environment's name.
    pub name: String,
    /// Whether it tells an `oracle`, by whose moves its tasks can be solved.
    pub has_oracle: bool,
    /// What was checked, in order. Behind the first check that the program did not survive, nothing is.
    pub checks: Vec<ProgramCheck>,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCheck {
    /// What.
    pub name: String,
    /// Whether the program does it; absent where that does not apply.
    pub passed: Option<bool>,
    /// What to mend where it does not, or why that does not apply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl ProgramReport {
    /// Whether nothing failed.
    pub fn is_valid(&self) -> bool {
        self.checks.iter().all(|check| check.passed != Some(false))
    }
}

/// Checks that the program of a suite keeps to the protocol: that it starts and says who it is, that sessions are
/// repeatable and do not influence each other, that forks and restored sessions go on as their origins, that it survives what it cannot do, and
/// that it ends.
///
/// # Errors
///
/// What kept it from being checked; what is wrong with the program is in the report.
pub async fn check_program(
    suite: &ProcessSuite,
    resources: &Resources,
) -> Result<ProgramReport, spar_tasks::SuiteError> {
    let mut report =
        ProgramReport { name: suite.manifest().name.clone(), ..ProgramReport::default() };
    let split = suite.manifest().splits.iter().find(|(_, len)| *len > 0);
    let Some((split, len)) = split else {
        report.tell("has tasks", Some(false), "all splits are empty".to_owned());
        return Ok(report);
    };
    let tasks = [suite.task(split, 0)?, suite.task(split, 1.min(len - 1))?];
    let pool = resources.programs.pool(suite.program());
    let checking = Checking { tasks, resources, pool };
    // An error is told of the check that it ended.
    let mut doing = "starts and answers `hello`";
    if let Err(error) = checking.run(&mut report, &mut doing).await {
        report.tell(doing, Some(false), chain(&error));
    }
    Ok(report)
}

impl ProgramReport {
    fn tell(&mut self, name: &str, passed: Option<bool>, detail: String) {
        self.checks.push(ProgramCheck { name: name.to_owned(), passed, detail });
    }

    /// Tells a check with what to mend where it failed.
    fn check(&mut self, name: &str, passed: bool, mend: impl Into<String>) {
        let detail = if passed { String::new() } else { mend.into() };
        self.tell(name, Some(passed), detail);
    }
}

struct Checking<'a> {
    tasks: [Task; 2],
    resources: &'a Resources,
    pool: Arc<ProgramPool>,
}

/// What an episode showed: the first observation, and the steps with the actions before them.
type Episode = (Observation, Vec<(Action, Step)>);

impl Checking<'_> {
    async fn run(
        &self,
        report: &mut ProgramReport,
        doing: &mut &'static str,
    ) -> Result<(), EnvironmentError> {
        let place = self.pool.place().await?;
        let hello = place.program.hello.clone();
        drop(place);
        let detail = match &*hello.name {
            "" => format!("{} sessions at one time", hello.concurrent),
            name => format!("`{name}`, {} sessions at one time", hello.concurrent),
        };
        report.tell(doing, Some(true), detail);

        *doing = "plays an episode";
        let (mut env, _) = self.open(0).await?;
        report.has_oracle = env.oracle_action().is_some();
        env.close().await?;
        let first = self.play(0, 1).await?;
        report.tell(doing, Some(true), String::new());
        report.check(
            "is deterministic",
            same(&first, &self.play(0, 1).await?),
            "the same task, seed and actions showed something else the second time: draw all chance from the `seed` and \
             the `task` of `reset`, and begin every session anew",
        );

        *doing = "refuses what cannot be done as an observation";
        self.refuses(report, doing).await?;

        *doing = "keeps sessions apart";
        if hello.concurrent > 1 {
            self.keeps_apart(report, doing, &first).await?;
        } else {
            report.tell(doing, None, "`hello` says `concurrent` 1".to_owned());
        }

        *doing = "forks go on as their origin";
        if hello.fork {
            self.forks(report, doing, async |env| env.fork().await).await?;
        } else {
            let detail = "`hello` has no `fork`: states are restored or episodes replayed";
            report.tell(doing, None, detail.to_owned());
        }

        *doing = "restored sessions go on as their origin";
        if hello.snapshot {
            self.forks(report, doing, async |env| env.restore().await).await?;
        } else {
            let detail = "`hello` has no `snapshot`: states are copied or episodes replayed";
            report.tell(doing, None, detail.to_owned());
        }

        *doing = "survives requests that it cannot carry out";
        self.survives(report, doing).await?;

        *doing = "ends when its input ends";
        let place = self.pool.place().await?;
        let fault = place.program.end().await;
        let mend = format!("end the loop when there is no further line on standard input: {fault}");
        report.check(doing, fault.fault == ProgramFault::ToldToEnd, mend);
        Ok(())
    }

    async fn open(&self, task: usize) -> Result<(Process, Observation), EnvironmentError> {
        let mut env = Process::open(&self.tasks[task], self.resources)?;
        env.use_tools();
        let first = env.reset(Seed::from_u64(7)).await?;
        Ok((env, first))
    }

    /// Plays an episode by the oracle's actions, or by such as are listed, or else by words that mean nothing.
    async fn play(&self, task: usize, choice: u64) -> Result<Episode, EnvironmentError> {
        let (mut env, first) = self.open(task).await?;
        let mut turns = Vec::new();
        let mut observation = first.clone();
        let mut rng = Seed::from_u64(choice).derive("check", 0).rng();
        while turns.len() < MOST_TURNS as usize {
            let action = choose(&env, &observation, &mut rng);
            let step = env.step(&action).await?;
            observation = step.observation.clone();
            let is_over = step.terminated;
            turns.push((action, step));
            if is_over {
                break;
            }
        }
        env.close().await?;
        Ok((first, turns))
    }

    async fn refuses(
        &self,
        report: &mut ProgramReport,
        doing: &str,
    ) -> Result<(), EnvironmentError> {
        let (mut env, _) = self.open(0).await?;
        let words = "\u{0}nothing \"that\" \\ any \u{1f600} environment knows\n".repeat(3);
        let long = "x".repeat(LONG);
        for (what, action) in [("words", words), ("a long line", long)] {
            let step = env.step(&Action::text(action)).await?;
            if step.reward() > 0.0 || step.success {
                let mend = format!("{what} that mean nothing were paid: give no reward for them");
                report.check(doing, false, mend);
                return env.close().await;
            }
            if step.terminated {
                (env, _) = self.open(0).await?;
            }
        }
        if !env.tools().is_empty() {
            let call = ToolCall { id: "c1".to_owned(), ..ToolCall::new(NO_TOOL, Map::new()) };
            let step = env.step(&Action::calls(vec![call])).await?;
            let is_refused = step.observation.results.iter().all(|result| result.is_error);
            let mend =
                format!("a call of `{NO_TOOL}` is to be answered by a result with `is_error`");
            report.check(doing, is_refused && !step.success, mend);
            return env.close().await;
        }
        report.check(doing, true, "");
        env.close().await
    }

    /// Plays two sessions by turns, of which one plays what was played alone before.
    async fn keeps_apart(
        &self,
        report: &mut ProgramReport,
        doing: &str,
        alone: &Episode,
    ) -> Result<(), EnvironmentError> {
        let (mut one, first) = self.open(0).await?;
        let (mut other, _) = self.open(1).await?;
        let mut turns = Vec::new();
        let mut is_other_over = false;
        for (action, _) in &alone.1 {
            let step = one.step(action).await?;
            turns.push((action.clone(), step));
            if !is_other_over {
                is_other_over = other.step(&Action::text("up")).await?.terminated;
            }
        }
        one.close().await?;
        other.close().await?;
        let mend = "a session showed something else while another was played: keep all state by the `env` of the request, \
                    or say `concurrent` 1";
        report.check(doing, same(alone, &(first, turns)), mend);
        Ok(())
    }

    /// Plays a session and its twin.
    async fn forks(
        &self,
        report: &mut ProgramReport,
        doing: &str,
        twin_of: impl AsyncFn(&mut Process) -> Result<Option<Box<dyn Environment>>, EnvironmentError>,
    ) -> Result<(), EnvironmentError> {
        let mut rng = Seed::from_u64(3).derive("check", 0).rng();
        let mut begun = None;
        for _ in 0..OPENINGS {
            let (mut env, first) = self.open(0).await?;
            let step = env.step(&opening(&env, &first, &mut rng)).await?;
            if !step.terminated {
                begun = Some((env, step));
                break;
            }
        }
        let Some((mut env, step)) = begun else {
            report.tell(doing, None, "every first action ended the episode".to_owned());
            return Ok(());
        };
        let Some(mut fork) = twin_of(&mut env).await? else {
            report.tell(doing, None, "there was no place for a second session".to_owned());
            return env.close().await;
        };
        let mut observation = step.observation;
        let mut is_same = true;
        for _ in 0..MOST_TURNS {
            let action = choose(&env, &observation, &mut rng);
            // The fork moves first, so that what it does to its origin shows.
            let twin = fork.step(&action).await?;
            let step = env.step(&action).await?;
            is_same &= shown(&twin) == shown(&step);
            observation = step.observation;
            if step.terminated || twin.terminated {
                break;
            }
        }
        let mend = "a session and what was made of it showed different things for the same actions: copy all of the \
                    session's state, its random numbers as well";
        report.check(doing, is_same, mend);
        fork.close().await?;
        env.close().await
    }

    async fn survives(
        &self,
        report: &mut ProgramReport,
        doing: &str,
    ) -> Result<(), EnvironmentError> {
        let broke = |source| EnvironmentError::Program { doing: "refuse a request", source };
        let place = self.pool.place().await?;
        let program = &place.program;
        let unknown = u64::from(u32::MAX);
        let action = Action::text("up");
        let calls =
            [Call::Nonsense {}, Call::Step { env: unknown, action: SentAction::from(&action) }];
        for call in calls {
            let name = call.name();
            match program.ask::<serde_json::Value>(&call, program.step_limit()).await {
                Err(error) if matches!(error.fault, ProgramFault::Refused { .. }) => {}
                Err(error) => return Err(broke(error)),
                Ok(_) => {
                    let mend = format!("answer `{name}` that cannot be carried out with `error`");
                    report.check(doing, false, mend);
                    return Ok(());
                }
            }
        }
        for line in [&b"this is no request\n"[..], b"\n", b"[1, 2]\n", b"\xff\xfe{\n"] {
            program.write_nonsense(line).await;
        }
        drop(place);
        // It goes on as if nothing had been.
        let (mut env, _) = self.open(0).await?;
        report.check(doing, true, "");
        env.close().await
    }
}

/// An action to begin with: one of those that are listed, as likely as any other.
fn opening(env: &Process, first: &Observation, rng: &mut impl rand::Rng) -> Action {
    match first.admissible.as_deref() {
        Some(listed) if !listed.is_empty() => {
            Action::text(&*listed[rng.random_range(0..listed.len())])
        }
        _ => choose(env, first, rng),
    }
}

fn choose(env: &Process, observation: &Observation, rng: &mut impl rand::Rng) -> Action {
    if let Some(action) = env.oracle_action().filter(|_| rng.random_range(0..4) > 0) {
        return action;
    }
    match observation.admissible.as_deref() {
        Some(listed) if !listed.is_empty() => {
            Action::text(&*listed[rng.random_range(0..listed.len())])
        }
        _ => env.oracle_action().unwrap_or_else(|| Action::text("look")),
    }
}

/// All that counts of a step.
fn shown(step: &Step) -> Step {
    Step { wall_time: std::time::Duration::ZERO, ..step.clone() }
}

fn same(one: &Episode, other: &Episode) -> bool {
    let turns = |episode: &Episode| -> Vec<(Action, Step)> {
        episode.1.iter().map(|(action, step)| (action.clone(), shown(step))).collect()
    };
    one.0 == other.0 && turns(one) == turns(other)
}
