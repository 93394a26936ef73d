//! The environment of the registry.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use spar_core::{
    Action, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec, Verdict,
};
use spar_tasks::Task;

use super::command::{Command, placed, tools};
use super::fix::Edit;
use super::generator::{Parameters, Problem, SHOWN, Test, generate};
use super::guest::{LIMIT, Outcome, outcomes};
use super::render;
use crate::aside::aside;
use crate::{Environment, EnvironmentError, Resources, Sandboxes, TimeRules};

/// Calls of one answer that are carried out.
const MOST_CALLS: usize = 4;
/// Lines of a program.
const MOST_LINES: usize = 40;
/// Bytes of a value of the program's that are shown.
const LONGEST_VALUE: usize = 60;

/// A tiny program with a bug, which is to be found and mended.
///
/// Parameters: `seed`, `level` (`easy`, `medium` or `hard`; default by the seed), `language` (`python`, `javascript` or `mixed`;
/// default `python`) and `programs` (`train`, `dev` or `test`; default `train`), of which no two have a program in common.
///
/// What is shown first is the issue, with a call that goes wrong, and the numbered lines of the program. The tools `view`,
/// `replace_line`, `insert_line` and `delete_line` work on the lines, `run_tests` runs three tests and tells of the first that
/// fails, `submit` ends the task. Solved is a program that passes these and nine hidden tests, whatever it looks like: the reward
/// part `success`, 1. Programs run in a fresh sandbox every time, into which no expected value enters; what they write is lost.
/// Nothing of an episode stays in a sandbox, so that a fork is a copy.
#[derive(Clone)]
pub(crate) struct MicroRepair {
    problem: Arc<Problem>,
    sandboxes: Sandboxes,
    episode: Option<Episode>,
}

#[derive(Clone)]
struct Episode {
    lines: Vec<String>,
    /// What the tests told of these lines, where they were run.
    told: Option<String>,
    is_over: bool,
}

impl MicroRepair {
    /// The name of the environment.
    pub(crate) const NAME: &str = "micro-repair";

    /// Makes the program of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, [`EnvironmentError::NoSandboxes`].
    pub(crate) fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let problem = generate(&parameters)
            .ok_or_else(|| refuse("no program follows from its `seed`".to_owned()))?;
        let sandboxes = resources.sandboxes(Self::NAME)?.clone();
        Ok(Self { problem: Arc::new(problem), sandboxes, episode: None })
    }

    /// The level of a task, by its parameters alone.
    pub(crate) fn level(task: &Task) -> Option<String> {
        let parameters = Parameters::deserialize(&task.parameters).ok()?;
        Some(parameters.kind().0.name().to_owned())
    }

    fn begun(&mut self, call: &'static str) -> Result<&mut Episode, EnvironmentError> {
        self.episode.as_mut().ok_or(EnvironmentError::Misused { call, when: "before reset" })
    }

    /// Tests of the task, with what came of each.
    async fn ran(
        &self,
        lines: &[String],
        tests: std::ops::Range<usize>,
    ) -> Result<Vec<Outcome>, EnvironmentError> {
        let (problem, sandboxes) = (Arc::clone(&self.problem), self.sandboxes.clone());
        let program = lines.join("\n") + "\n";
        aside(async move {
            let Problem { language, entry, .. } = &*problem;
            let tests = problem.tests[tests].iter();
            let arguments: Vec<&[Value]> = tests.map(|test| &*test.arguments).collect();
            outcomes(&sandboxes, *language, &program, entry, &arguments).await
        })
        .await
    }

    /// What the tests that are shown tell of lines.
    async fn tested(&self, lines: &[String]) -> Result<String, EnvironmentError> {
        let found = self.ran(lines, 0..SHOWN).await?;
        let tests = &self.problem.tests[..SHOWN];
        let passed = tests.iter().zip(&found).filter(|(test, got)| passes(test, got)).count();
        let first = tests.iter().zip(&found).find(|(test, got)| !passes(test, got));
        let told = first.map(|(test, got)| self.told(test, got)).unwrap_or_default();
        Ok(format!("{passed} of {SHOWN} tests pass.{told}"))
    }

    /// What went wrong with a test.
    fn told(&self, test: &Test, got: &Outcome) -> String {
        let Problem { language, entry, .. } = &*self.problem;
        let call = render::call(entry, &test.arguments, *language);
        let want = render::literal(&test.want, *language);
        let gives = match got {
            Outcome::Gave(value) => {
                format!("gives {}", cut(render::literal(value, *language)))
            }
            Outcome::Raised(name) => format!("raises {name}"),
            Outcome::Nothing(what) => (*what).to_owned(),
        };
        format!(" {call} {gives}, should give {want}.")
    }

    /// Carries out a command; an error is why it could not be, for the policy.
    async fn carry_out(
        &self,
        episode: &mut Episode,
        command: Command,
    ) -> Result<Result<String, String>, EnvironmentError> {
        if episode.is_over {
            return Ok(Err("The program was submitted already.".to_owned()));
        }
        Ok(match command {
            Command::View => Ok(numbered(&episode.lines)),
            Command::Test => {
                if episode.told.is_none() {
                    episode.told = Some(self.tested(&episode.lines).await?);
                }
                Ok(episode.told.clone().unwrap_or_default())
            }
            Command::Submit => {
                episode.is_over = true;
                Ok("The program was submitted.".to_owned())
            }
            Command::Edit(Edit::Insert(..)) if episode.lines.len() >= MOST_LINES => {
                Err(format!("A program has at most {MOST_LINES} lines."))
            }
            Command::Edit(edit) => {
                let edit = placed(edit, &episode.lines);
                let told = match &edit {
                    Edit::Replace(line, text) => format!("{line} {text}"),
                    Edit::Insert(line, text) => format!("{} {text}", line + 1),
                    Edit::Delete(line) => format!("Line {line} is gone."),
                };
                match edit.apply(&mut episode.lines) {
                    true => {
                        episode.told = None;
                        Ok(told)
                    }
                    false => Err(format!("There are {} lines.", episode.lines.len())),
                }
            }
        })
    }

    /// What the policy can know: the issue, the lines, and what the tests told of them.
    fn state_key(&self, episode: &Episode) -> String {
        let mut hasher = blake3::Hasher::new();
        let told = episode.told.iter();
        for part in [&self.problem.issue].into_iter().chain(&episode.lines).chain(told) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&[u8::from(episode.is_over), u8::from(episode.told.is_some())]);
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

fn passes(test: &Test, got: &Outcome) -> bool {
    matches!(got, Outcome::Gave(value) if *value == test.want)
}

fn numbered(lines: &[String]) -> String {
    let lines = lines.iter().enumerate().map(|(place, line)| format!("{} {line}", place + 1));
    lines.collect::<Vec<_>>().join("\n")
}

fn cut(text: String) -> String {
    if text.len() <= LONGEST_VALUE {
        return text;
    }
    let start: String = text.chars().take(LONGEST_VALUE).collect();
    format!("{start}...")
}

#[async_trait]
impl Environment for MicroRepair {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        let Problem { level, family, bug, language, .. } = &*self.problem;
        [level.name(), family.name(), bug.name(), language.name()].map(str::to_owned).into()
    }

    fn time_rules(&self) -> TimeRules {
        TimeRules { command: Some(LIMIT * MOST_CALLS as u32), ..TimeRules::default() }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let episode = Episode { lines: self.problem.lines.clone(), told: None, is_over: false };
        let first = Observation {
            text: format!("{}\n{}", self.problem.issue, numbered(&episode.lines)),
            instruction: Some(self.problem.issue.as_str().into()),
            state_key: self.state_key(&episode),
            ..Observation::default()
        };
        self.episode = Some(episode);
        Ok(first)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match &self.episode {
            Some(episode) if !episode.is_over => tools(),
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let started = Instant::now();
        let mut episode = self.begun("step")?.clone();
        if episode.is_over {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        let (mut results, mut valid) = (Vec::new(), true);
        let calls = action.tool_calls();
        for (place, call) in calls.iter().enumerate() {
            let told = match Command::of_call(call) {
                _ if place >= MOST_CALLS => {
                    Err(format!("At most {MOST_CALLS} calls of an answer are carried out."))
                }
                Ok(command) => self.carry_out(&mut episode, command).await?,
                Err(told) => Err(told),
            };
            valid &= told.is_ok();
            results.push(result(call, told));
        }
        let text = if calls.is_empty() { "Nothing happens: call a tool." } else { "" };
        let (terminated, state_key) = (episode.is_over, self.state_key(&episode));
        self.episode = Some(episode);
        Ok(Step {
            observation: Observation {
                text: text.to_owned(),
                results,
                state_key,
                ..Observation::default()
            },
            rewards: Vec::new(),
            terminated,
            success: false,
            valid: valid && !calls.is_empty(),
            wall_time: started.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let lines = self.begun("verify")?.lines.clone();
        let tests = &self.problem.tests;
        let found = self.ran(&lines, 0..tests.len()).await?;
        let passed = tests.iter().zip(&found).filter(|(test, got)| passes(test, got)).count();
        let (total, success) = (tests.len(), passed == tests.len());
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Some(Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("{passed} of {total} tests passed"),
            artifacts: [("passed", json!(passed)), ("total", json!(total))]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Verdict::default()
        }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    /// Mends the program line by line, runs the tests, and submits it.
    fn oracle_action(&self) -> Option<Action> {
        let episode = self.episode.as_ref().filter(|episode| !episode.is_over)?;
        let command = match Edit::towards(&episode.lines, &self.problem.right) {
            Some(edit) => Command::Edit(edit),
            None if episode.told.is_none() => Command::Test,
            None => Command::Submit,
        };
        Some(Action::calls(vec![command.to_call(&episode.lines)]))
    }
}

fn result(call: &ToolCall, told: Result<String, String>) -> ToolResult {
    match told {
        Ok(text) => ToolResult::new(call, text),
        Err(text) => ToolResult::error(call, text),
    }
}
