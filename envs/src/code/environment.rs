//! The environment of the registry.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spar_core::{Action, Observation, Seed, Step, ToolCall, ToolResult, ToolSpec, Verdict};
use spar_tasks::graders::{Exact, FreshSandbox, ProgramTests, UnitTestsOptions, has_program};
use spar_tasks::{CodeInterpreter, CodeTask, ReferenceAnswer, Task};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::boxed::{Boxed, boxed};
use super::generator::{Family, generate};
use super::machine::{Machine, Ran, fresh};
use crate::aside::aside;
use crate::calls::clipped;
use crate::graded::Place;
use crate::{Environment, EnvironmentError, Resources, Sandboxes, TimeRules, idle_tag};

/// Cells that one action may run.
const MAX_CELLS: usize = 4;

/// A question, and an interpreter of Python or JavaScript at hand.
///
/// Parameters: those of a [`CodeTask`], or `seed` and optionally `level` (1 to 3) and `family` of a generated one. The
/// interpreter is a tool, `python` or `javascript`, with the parameter `code`; its variables are kept until the episode
/// ends. Words are the final answer where they have one, in `\boxed{}`, or, where tests judge, a program in a fenced block;
/// they end the episode. Several answers that differ are none, and end it too. Words without an answer are told what is
/// missing.
///
/// An answer is held against what the task calls right ([`Exact`]), a program against its tests ([`ProgramTests`]): the
/// reward part `success` or `passed`, 1. A fork goes on with all variables where the sandbox's snapshots hold memory, as in
/// WebAssembly; elsewhere there is none, and the cells are run again.
pub struct Code {
    task: Arc<CodeTask>,
    family: Option<Family>,
    sandboxes: Sandboxes,
    uses_tools: bool,
    episode: Option<Episode>,
}

struct Episode {
    /// Absent until something runs in it, and behind its loss.
    machine: Option<Arc<Mutex<Machine>>>,
    state_key: String,
    /// Cells that were asked for.
    num_cells: usize,
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    seed: u64,
    #[serde(default)]
    level: Option<u8>,
    #[serde(default)]
    family: Option<Family>,
}

impl Code {
    /// The name of the environment.
    pub(crate) const NAME: &str = "code";

    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or need another backend,
    /// [`EnvironmentError::NoSandboxes`].
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let told = |error: serde_json::Error| refuse(error.to_string());
        let parameters = &task.parameters;
        let (family, found) = if parameters.get("seed").is_some() {
            let drawn = Generated::deserialize(parameters).map_err(told)?;
            if drawn.level.is_some_and(|level| !(1..=3).contains(&level)) {
                return Err(refuse("`level` must be 1 to 3".to_owned()));
            }
            let (family, found) = generate(drawn.seed, drawn.level, drawn.family);
            (Some(family), found)
        } else {
            (None, CodeTask::deserialize(parameters).map_err(told)?)
        };
        let problems = found.problems();
        if !problems.is_empty() {
            return Err(refuse(problems.join("; ")));
        }
        let sandboxes = resources.sandboxes(Self::NAME)?.clone();
        let backend = sandboxes.pool.backend().name();
        if let Some(wanted) = found.interpreter.backend.as_deref().filter(|it| *it != backend) {
            return Err(refuse(format!(
                "it needs backend `{wanted}`, not `{backend}`: --backend {wanted}"
            )));
        }
        if backend == "wasm" && !found.interpreter.packages.is_empty() {
            return Err(refuse(
                "its `packages` cannot be installed in backend `wasm`: --backend docker".to_owned(),
            ));
        }
        Ok(Self { task: Arc::new(found), family, sandboxes, uses_tools: false, episode: None })
    }

    /// The family of a generated task, by its parameters alone.
    pub(crate) fn drawn_family(task: &Task) -> Option<String> {
        let Generated { seed, level, family } = Generated::deserialize(&task.parameters).ok()?;
        Some(family.unwrap_or_else(|| Family::of_seed(seed, level)).name().to_owned())
    }

    fn begun(&mut self, call: &'static str) -> Result<&mut Episode, EnvironmentError> {
        self.episode.as_mut().ok_or(EnvironmentError::Misused { call, when: "before reset" })
    }

    /// The machine, which is brought up where it is not there.
    async fn machine(
        &mut self,
        call: &'static str,
    ) -> Result<Arc<Mutex<Machine>>, EnvironmentError> {
        if let Some(machine) = &self.begun(call)?.machine {
            return Ok(Arc::clone(machine));
        }
        let (sandboxes, task) = (self.sandboxes.clone(), Arc::clone(&self.task));
        let machine =
            aside(async move { Machine::begin(&sandboxes, &task.interpreter).await }).await?;
        let machine = Arc::new(Mutex::new(machine));
        self.begun(call)?.machine = Some(Arc::clone(&machine));
        Ok(machine)
    }

    /// Carries out a call.
    async fn call(&mut self, call: &ToolCall) -> Result<ToolResult, EnvironmentError> {
        let code = match self.code_of(call) {
            Ok(code) => code,
            Err(error) => return Ok(ToolResult::error(call, error)),
        };
        let machine = self.machine("step").await?;
        let ran = aside(async move { machine.lock().await.run(&code).await }).await?;
        self.begun("step")?.num_cells += 1;
        if matches!(ran, Ran::Lost(_)) {
            self.begun("step")?.machine = None;
        }
        Ok(ToolResult::new(call, ran.told()))
    }

    /// The code that a call asks to run, or why it asks for none.
    fn code_of(&self, call: &ToolCall) -> Result<String, String> {
        let name = self.task.interpreter.language.name();
        if call.name != name {
            return Err(format!("There is no tool `{}`, only `{name}`.", clipped(&call.name)));
        }
        match (call.arguments.get("code"), call.arguments.len()) {
            (Some(Value::String(code)), 1) => Ok(code.clone()),
            _ => Err(format!("Nothing was run: `{name}` takes `code`, a text, and nothing else.")),
        }
    }

    /// The answer in words: absent where they have none.
    fn answer_in(&self, said: &str) -> Option<(String, &'static str)> {
        if self.task.tests.is_some() {
            let answer = || (said.to_owned(), "The program was handed in.");
            return has_program(said).then(answer);
        }
        match boxed(said) {
            Boxed::None => None,
            Boxed::One(answer) => Some((answer, "The question was answered.")),
            Boxed::Several => {
                let text = "The question was answered in several ways that differ, so not at all.";
                Some((String::new(), text))
            }
        }
    }

    fn step_of(&mut self, told: Told, started: Instant) -> Result<Step, EnvironmentError> {
        let Told { said, text, results, terminated, valid } = told;
        let episode = self.begun("step")?;
        let shown = results.iter().map(|result| &*result.text).chain([&*text]);
        episode.state_key = next_key(&episode.state_key, &said, shown);
        let state_key = episode.state_key.clone();
        Ok(Step {
            observation: Observation { text, results, state_key, ..Observation::default() },
            rewards: Vec::new(),
            terminated,
            success: false,
            valid,
            wall_time: started.elapsed(),
        })
    }
}

/// What came of an action.
struct Told {
    said: String,
    text: String,
    results: Vec<ToolResult>,
    terminated: bool,
    valid: bool,
}

#[async_trait]
impl Environment for Code {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        let family = self.family.iter().map(|family| family.name().to_owned());
        family.chain([idle_tag(0.0)]).collect()
    }

    fn time_rules(&self) -> TimeRules {
        let cell = Duration::from_secs(self.task.interpreter.cell_secs);
        TimeRules { command: Some(cell * MAX_CELLS as u32), ..TimeRules::default() }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let text = self.task.prompt.clone();
        let state_key = next_key("", "", [&*text]);
        let episode =
            Episode { machine: None, state_key: state_key.clone(), num_cells: 0, answer: None };
        self.episode = Some(episode);
        let instruction = Some(text.as_str().into());
        Ok(Observation { text, instruction, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.machine("prepare").await.map(drop)
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        let is_on = self.episode.as_ref().is_some_and(|episode| episode.answer.is_none());
        if !(is_on && self.uses_tools) {
            return Arc::default();
        }
        let language = self.task.interpreter.language;
        let about = format!(
            "Runs {} code in an interpreter that keeps its variables, and tells what it writes and the value of a last \
             expression.",
            language.title()
        );
        let schema = json!({
            "type": "object",
            "properties": { "code": { "type": "string" } },
            "required": ["code"],
            "additionalProperties": false,
        });
        [ToolSpec::new(language.name(), about, schema)].into()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let started = Instant::now();
        if self.begun("step")?.answer.is_some() {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        let said = action.key().into_owned();
        let mut told =
            Told { said, text: String::new(), results: Vec::new(), terminated: false, valid: true };
        let calls = action.tool_calls();
        for (number, call) in calls.iter().enumerate() {
            let result = match number < MAX_CELLS {
                true => self.call(call).await?,
                false => {
                    let text = format!("Nothing was run: at most {MAX_CELLS} calls at a time.");
                    ToolResult::error(call, text)
                }
            };
            told.valid &= !result.is_error;
            told.results.push(result);
        }
        if calls.is_empty() {
            match self.answer_in(action.said()) {
                Some((answer, text)) => {
                    self.begun("step")?.answer = Some(answer);
                    (told.text, told.terminated) = (text.to_owned(), true);
                }
                None => {
                    let wanted = match self.task.tests {
                        Some(_) => "write the program in a block that is fenced by ```",
                        None => r"write the answer in \boxed{}",
                    };
                    told.text = format!("There is no answer yet: {wanted}.");
                    told.valid = false;
                }
            }
        }
        self.step_of(told, started)
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let task = Arc::clone(&self.task);
        let answer = self.begun("verify")?.answer.clone();
        if let Some(tests) = &task.tests {
            let answer = answer.unwrap_or_default();
            let tester =
                ProgramTests::new(UnitTestsOptions::default()).map_err(EnvironmentError::Grader)?;
            let mut place = Place(self);
            let judged = tester.judge(&answer, tests, &task.interpreter, &mut place).await;
            return judged.map(Some).map_err(EnvironmentError::Grader);
        }
        let (Some(answer), Some(right)) = (answer, &task.answer) else { return Ok(None) };
        Ok(Some(Exact::default().verdict(&answer, right)))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.task.answer.clone()
    }

    fn has_fresh_sandboxes(&self) -> bool {
        true
    }

    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, EnvironmentError> {
        // Its room is needed, and nothing comes behind the judging.
        if let Some(machine) = self.episode.as_mut().and_then(|episode| episode.machine.take()) {
            machine.lock().await.close().await?;
        }
        let (sandboxes, asked) = (self.sandboxes.clone(), interpreter.clone());
        aside(async move { fresh(&sandboxes, &asked).await }).await
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let mut fork = Self {
            task: Arc::clone(&self.task),
            family: self.family,
            sandboxes: self.sandboxes.clone(),
            uses_tools: self.uses_tools,
            episode: None,
        };
        if let Some(episode) = &self.episode {
            let machine = match &episode.machine {
                // Nothing was done that a new one would not have.
                _ if episode.num_cells == 0 => None,
                // What was lost is begun anew in both.
                None => None,
                Some(machine) => {
                    let (machine, task) = (Arc::clone(machine), Arc::clone(&self.task));
                    let forked =
                        aside(async move { machine.lock().await.fork(&task.interpreter).await });
                    let Some(forked) = forked.await? else { return Ok(None) };
                    Some(Arc::new(Mutex::new(forked)))
                }
            };
            fork.episode = Some(Episode {
                machine,
                state_key: episode.state_key.clone(),
                num_cells: episode.num_cells,
                answer: episode.answer.clone(),
            });
        }
        Ok(Some(Box::new(fork)))
    }

    fn oracle_action(&self) -> Option<Action> {
        let episode = self.episode.as_ref().filter(|episode| episode.answer.is_none())?;
        let CodeTask { answer, tests, solution, interpreter, .. } = &*self.task;
        let name = interpreter.language.name();
        if tests.is_some() {
            let solution = solution.as_ref()?;
            return Some(Action::text(format!("```{name}\n{}\n```", solution.trim_end())));
        }
        let right = answer.as_ref()?.texts().into_iter().next()?;
        match solution {
            Some(solution) if episode.num_cells == 0 && self.uses_tools => {
                let code = solution.trim().into();
                let arguments = Map::from_iter([("code".to_owned(), code)]);
                Some(Action::calls(vec![ToolCall::new(name, arguments)]))
            }
            _ => Some(Action::text(format!(r"\boxed{{{right}}}"))),
        }
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(machine) = self.episode.take().and_then(|episode| episode.machine) else {
            return Ok(());
        };
        aside(async move { machine.lock().await.close().await }).await
    }
}

/// The name of the situation after `said` has shown `texts` in the situation `before`.
fn next_key<'a>(
    before: &'a str,
    said: &'a str,
    texts: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [before, said].into_iter().chain(texts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
