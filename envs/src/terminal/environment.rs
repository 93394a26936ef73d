//! The environment of the registry.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spar_core::{Action, Observation, Seed, Step, ToolCall, ToolSpec, Verdict};
use spar_tasks::graders::{Graders, Script, ScriptFinding};
use spar_tasks::{Task, TerminalTask, TerminalVerifier};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Deadlines;
use super::course::{Asked, Course, as_results};
use super::generator::{TaskKind, generate};
use super::machine::{Machine, SharedMachine};
use super::transcript::opening;
use crate::aside::aside;
use crate::graded::Place;
use crate::toolsets::{Briefing, Hands, ToolsetChoice};
use crate::{Environment, EnvironmentError, Resources, Sandboxes, TimeRules};

/// The action that ends the task.
pub const SUBMIT: &str = "submit";
/// The tool that runs commands.
const SHELL: &str = "shell";

/// A shell in a sandbox, and a task in it.
///
/// Parameters: those of a [`TerminalTask`], or `seed` and optionally `kind` of a generated one. Every
/// action is a command, `submit` ends the task; where tools are used, these are the tools `shell` (`command`) and
/// `submit`, one call per action, and words are no action. The working directory and variables last from one
/// command to the next. Solving it gives the reward part `verified`, 1 or the fraction that the
/// verifier wrote; it comes with [`Environment::verify`], once everything the agent started has
/// ended, and whether the agent submitted or ran into a limit.
///
/// Two situations have the same state key where the same commands have shown the same.
///
/// A fork has the same files, working directory and exported variables. What else a shell holds,
/// other variables and processes in the background, is only in forks of sandboxes whose snapshots
/// hold memory. Where those are what is judged (`verifier.service_ports`) and snapshots hold no memory, there is no
/// fork, and the actions are played again.
pub struct Terminal {
    task: Arc<TerminalTask>,
    kind: Option<TaskKind>,
    sandboxes: Sandboxes,
    deadlines: Deadlines,
    /// Whether it offers its shell as a tool.
    uses_tools: bool,
    /// What is worked with in the place of its shell.
    toolset: Option<ToolsetChoice>,
    episode: Option<Episode>,
}

struct Episode {
    /// Absent until something has to be done in it.
    machine: Option<SharedMachine>,
    course: Course,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    seed: u64,
    #[serde(default)]
    kind: Option<TaskKind>,
}

impl Terminal {
    pub(crate) const NAME: &str = "terminal";

    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood,
    /// [`EnvironmentError::NoSandboxes`].
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let parameters = &task.parameters;
        let (kind, found) = if parameters.get("seed").is_some() {
            let drawn = Generated::deserialize(parameters).map_err(|e| refuse(e.to_string()))?;
            let (kind, found) = generate(drawn.seed, drawn.kind);
            (Some(kind), found)
        } else {
            (None, TerminalTask::deserialize(parameters).map_err(|e| refuse(e.to_string()))?)
        };
        let problems = found.problems();
        if !problems.is_empty() {
            return Err(refuse(problems.join("; ")));
        }
        let sandboxes = resources.sandboxes(Self::NAME)?.clone();
        let turns = sandboxes.max_turns.unwrap_or(0).max(task.max_turns);
        let waiting = sandboxes.answer.saturating_mul(turns);
        let agent = match found.agent_secs {
            Some(seconds) => Duration::from_secs(seconds),
            None => sandboxes.commands.saturating_add(waiting),
        };
        // Problems of graders themselves are told by who opens them.
        let graders = Graders::open(&task.graders).ok();
        let scripts = || graders.iter().flat_map(Graders::scripts);
        let carried: Vec<String> =
            scripts().flat_map(|script| found.carry_problems(script)).collect();
        if !carried.is_empty() {
            return Err(refuse(carried.join("; ")));
        }
        if !found.verifier.service_ports.is_empty() {
            if scripts().next().is_some() {
                let why =
                    "services are judged by `verifier` alone: scripts of graders would end them";
                return Err(refuse(why.to_owned()));
            }
            let can = sandboxes.pool.backend().capabilities();
            if !can.connect || !can.network_allow_list {
                let name = sandboxes.pool.backend().name();
                return Err(refuse(format!(
                    "the backend `{name}` cannot reach services: use docker or local"
                )));
            }
        }
        let acquire = Duration::from_secs(sandboxes.pool.config().acquire_secs);
        let deadlines = Deadlines::of(&found, agent, acquire).with_scripts(scripts());
        let task = Arc::new(found);
        Ok(Self {
            task,
            kind,
            sandboxes,
            deadlines,
            uses_tools: false,
            toolset: None,
            episode: None,
        })
    }

    /// The kind of a generated task, by its parameters alone.
    pub(crate) fn drawn_kind(task: &Task) -> Option<String> {
        let Generated { seed, kind } = Generated::deserialize(&task.parameters).ok()?;
        Some(kind.unwrap_or_else(|| TaskKind::of_seed(seed)).name().to_owned())
    }

    /// The id of its sandbox, where it has one.
    pub async fn sandbox_id(&self) -> Option<String> {
        let machine = self.episode.as_ref()?.machine.as_ref()?;
        Some(machine.lock().await.id().to_owned())
    }

    fn begun(&mut self, call: &'static str) -> Result<&mut Episode, EnvironmentError> {
        self.episode.as_mut().ok_or(EnvironmentError::Misused { call, when: "before reset" })
    }

    /// The machine, which is brought up where it is not there yet.
    async fn machine(&mut self, call: &'static str) -> Result<SharedMachine, EnvironmentError> {
        if let Some(machine) = &self.begun(call)?.machine {
            return Ok(Arc::clone(machine));
        }
        let (sandboxes, task) = (self.sandboxes.clone(), Arc::clone(&self.task));
        let deadlines = self.deadlines;
        let hands = self
            .toolset
            .as_ref()
            .map(|toolset| Hands::new(toolset.toolset().begin(), self.task.workdir.as_str(), None));
        let machine = aside(async move { Machine::begin(&sandboxes, &task, &deadlines).await });
        let machine = machine.await?.with_hands(hands);
        let machine = Arc::new(Mutex::new(machine));
        self.begun(call)?.machine = Some(Arc::clone(&machine));
        Ok(machine)
    }

    /// Carries out a command.
    async fn carry_out(&mut self, action: &str) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let action = action.trim();
        let is_expected = self.next_of_solution() == Some(action);
        let shown = if action == SUBMIT {
            self.begun("step")?.course.submit()
        } else {
            let machine = self.machine("step").await?;
            let (command, deadlines) = (action.to_owned(), self.deadlines);
            let ran = aside(async move { machine.lock().await.run(&command, &deadlines).await });
            let ran = ran.await?;
            self.begun("step")?.course.shown(ran, deadlines.command)
        };
        let course = &mut self.begun("step")?.course;
        Ok(course.carried_out(action, shown, is_expected, start.elapsed()))
    }

    /// Carries out an action with the toolset.
    async fn work(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let is_expected = self.oracle_action().is_some_and(|next| next.key() == action.key());
        let machine = self.machine("step").await?;
        let (asked, deadlines) = (action.clone(), self.deadlines);
        let worked = aside(async move { machine.lock().await.work(&asked, &deadlines).await });
        let worked = worked.await?;
        let course = &mut self.begun("step")?.course;
        Ok(course.worked(action, worked, is_expected, start.elapsed()))
    }

    /// What remains of the solution, while nothing else was done.
    fn next_of_solution(&self) -> Option<&str> {
        let episode = self.episode.as_ref().filter(|episode| !episode.course.is_over)?;
        match (&*self.task.solution, episode.course.solved?) {
            ([], _) => None,
            (solution, done) => Some(solution.get(done).map_or(SUBMIT, |command| command.trim())),
        }
    }
}

#[async_trait]
impl Environment for Terminal {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        self.kind.iter().map(|kind| kind.name().to_owned()).collect()
    }

    fn time_rules(&self) -> TimeRules {
        TimeRules {
            task: self.task.agent_secs.map(Duration::from_secs),
            command: Some(self.deadlines.command),
            // A toolset that looks at the machine first has it brought up by then.
            reset: self
                .toolset
                .as_ref()
                .filter(|toolset| toolset.toolset().looks_first())
                .map(|_| self.deadlines.create + self.deadlines.whole_set_up()),
            ..TimeRules::default()
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let text = match &self.toolset {
            Some(toolset) => toolset.toolset().opening(&Briefing {
                task: &self.task.instruction,
                workdir: &self.task.workdir,
                is_repository: false,
                command_secs: self.deadlines.command.as_secs(),
            }),
            None => opening(&self.task),
        };
        let mut text = text;
        let mut machine = None;
        if self.toolset.as_ref().is_some_and(|toolset| toolset.toolset().looks_first()) {
            self.episode = Some(Episode { machine: None, course: Course::begin("") });
            let place = self.machine("reset").await?;
            machine = Some(Arc::clone(&place));
            let (task, deadlines) = (Arc::clone(&self.task), self.deadlines);
            let opened = aside(async move {
                let briefing = Briefing {
                    task: &task.instruction,
                    workdir: &task.workdir,
                    is_repository: false,
                    command_secs: deadlines.command.as_secs(),
                };
                place.lock().await.open(&briefing, &deadlines).await
            });
            text = opened.await?.map_err(|reason| EnvironmentError::Toolset { reason })?;
        }
        let course = Course::begin(&text);
        let state_key = course.state_key.clone();
        self.episode = Some(Episode { machine, course });
        let instruction = Some(self.task.instruction.as_str().into());
        Ok(Observation { text, instruction, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.machine("prepare").await.map(drop)
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        if let Some(limit) = toolset.toolset().command_limit() {
            self.deadlines.command = limit;
        }
        self.toolset = Some(toolset.clone());
        true
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match &self.episode {
            Some(episode) if self.uses_tools && !episode.course.is_over => {
                self.toolset.as_ref().map_or_else(offered, |toolset| toolset.toolset().tools())
            }
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        if self.begun("step")?.course.is_over {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        if self.toolset.is_some() {
            return self.work(action).await;
        }
        let calls = action.tool_calls();
        match Asked::of(action, self.uses_tools) {
            Asked::Command(command) => Ok(as_results(self.carry_out(&command).await?, calls)),
            Asked::Nothing(why) => Ok(self.begun("step")?.course.nothing_done(&why, calls)),
        }
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        // The same grader that other tasks name `script` or `fresh_sandbox`.
        let script = Script::of_task(&self.task.verifier);
        Ok(Some(script.judge(&mut Place(self)).await?))
    }

    fn takes_scripts(&self) -> bool {
        true
    }

    async fn run_script(
        &mut self,
        script: &TerminalVerifier,
    ) -> Result<ScriptFinding, EnvironmentError> {
        let machine = self.machine("verify").await?;
        self.begun("verify")?.course.is_over = true;
        let (sandboxes, task) = (self.sandboxes.clone(), Arc::clone(&self.task));
        let (script, deadlines) = (script.clone(), self.deadlines);
        let found = aside(async move {
            machine.lock().await.verify(&sandboxes, &task, &script, &deadlines).await
        });
        found.await
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let mut fork = Self {
            task: Arc::clone(&self.task),
            kind: self.kind,
            sandboxes: self.sandboxes.clone(),
            deadlines: self.deadlines,
            uses_tools: self.uses_tools,
            toolset: self.toolset.clone(),
            episode: None,
        };
        if let Some(episode) = &self.episode {
            let can_run_on = self.sandboxes.pool.backend().capabilities().memory_in_snapshot;
            let machine = match &episode.machine {
                // What is to be judged runs, and a copy of the files would be without it.
                Some(_)
                    if episode.course.num_commands > 0
                        && !self.task.verifier.service_ports.is_empty()
                        && !can_run_on =>
                {
                    return Ok(None);
                }
                // Nothing was done and nothing was set up that a new one would not have.
                Some(_) if episode.course.num_commands == 0 && self.task.setup.is_empty() => None,
                None => None,
                Some(machine) => {
                    let (machine, task) = (Arc::clone(machine), Arc::clone(&self.task));
                    let forked = aside(async move { machine.lock().await.fork(&task).await });
                    let Some(forked) = forked.await? else { return Ok(None) };
                    Some(Arc::new(Mutex::new(forked)))
                }
            };
            let course = episode.course.clone();
            fork.episode = Some(Episode { machine, course });
        }
        Ok(Some(Box::new(fork)))
    }

    fn oracle_action(&self) -> Option<Action> {
        let next = self.next_of_solution()?;
        if let Some(toolset) = &self.toolset {
            let toolset = toolset.toolset();
            return Some(if next == SUBMIT { toolset.submit() } else { toolset.command(next) });
        }
        Some(if self.uses_tools { tool_action(next) } else { next.into() })
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(machine) = self.episode.take().and_then(|episode| episode.machine) else {
            return Ok(());
        };
        // A command that was given up lets go of it in a moment.
        machine.lock().await.close().await
    }
}

/// The tools that are offered.
pub(crate) fn offered() -> Arc<[ToolSpec]> {
    static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    let tools = || {
        let command = json!({ "type": "string", "description": "What the shell is to run." });
        let shell = json!({ "type": "object", "properties": { "command": command }, "required": ["command"] });
        let nothing = json!({ "type": "object", "properties": {} });
        let about = "Runs a command in a shell. The working directory and variables last from one to the next.";
        [
            ToolSpec::new(SHELL, about, shell),
            ToolSpec::new(SUBMIT, "Hands in the task, when it is done.", nothing),
        ]
        .into()
    };
    Arc::clone(TOOLS.get_or_init(tools))
}

/// The call that carries out a command.
pub(crate) fn tool_action(command: &str) -> Action {
    let call = match command {
        SUBMIT => ToolCall::new(SUBMIT, Map::new()),
        command => {
            let arguments = [("command".to_owned(), command.into())].into_iter().collect();
            ToolCall::new(SHELL, arguments)
        }
    };
    Action::calls(vec![call])
}

/// The command that a call asks for, or why it asks for none.
pub(crate) fn command_of(call: &ToolCall) -> Result<String, String> {
    match &*call.name {
        SUBMIT => Ok(SUBMIT.to_owned()),
        SHELL => match call.arguments.get("command") {
            Some(Value::String(command)) if command.trim() == SUBMIT => {
                Err(format!("Nothing was done: `{SUBMIT}` is a tool of its own."))
            }
            Some(Value::String(command)) => Ok(command.clone()),
            _ => Err(format!("Nothing was done: `{SHELL}` takes `command`, a text.")),
        },
        other => Err(format!("There is no tool `{other}`, only `{SHELL}` and `{SUBMIT}`.")),
    }
}

/// The name of the situation after `action` has shown `text` in the situation `before`.
pub(crate) fn next_key(before: &str, action: &str, text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [before, action, text] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
