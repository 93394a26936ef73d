//! A task that is solved by calls of tools.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::{Action, Observation, Seed, Step, ToolCall, ToolResult, ToolSpec, Verdict};
use spar_tasks::graders::Exact;
use spar_tasks::{ReferenceAnswer, Task};

use super::generator::Generated;
use super::{
    ToolChoice, ToolLimits, ToolOutput, ToolPlace, Toolbox, read_arguments, spec_of, tool_registry,
};
use crate::mcp::stock_task;
use crate::{Environment, EnvironmentError, Resources, TimeRules, idle_tag};

const NAME: &str = "toolbox";
const SERVERS: &str = "mcp";

/// How long servers that show something first may take to be started and asked.
const MOST_START: std::time::Duration = std::time::Duration::from_secs(1800);

/// The tool by which an answer is given, where a task [ends](Ending) so.
pub const ANSWER_TOOL: &str = "answer";

/// The parameters of the environment `toolbox`: a question or an errand, and the tools for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUseTask {
    /// What is asked, or to be done.
    pub prompt: String,
    /// What is offered for it.
    pub tools: Vec<ToolChoice>,
    /// How an answer is given, which ends the task. Default either way.
    #[serde(default)]
    pub ends: Ending,
    /// What is right; absent where a grader has to tell without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ReferenceAnswer>,
    /// Calls that lead to the answer, one behind the other: what the oracle does. Default none: it answers at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// How much calls may take.
    #[serde(default)]
    pub limits: ToolLimits,
    /// What else is known of the task, for graders and whoever reads it; never shown to the policy. Default empty.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// How the answer to a task is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By a call of the tool [`answer`](ANSWER_TOOL), or by words without a call.
    #[default]
    Either,
    /// By a call of the tool `answer` alone; words without a call do nothing.
    Answer,
    /// By words without a call; there is no tool `answer`.
    Words,
}

impl ToolUseTask {
    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.limits.problems();
        if self.prompt.trim().is_empty() {
            problems.push("`prompt` is empty".to_owned());
        }
        problems.extend(self.tools.iter().flat_map(ToolChoice::problems));
        if self.answer.as_ref().is_some_and(|answer| answer.texts().is_empty()) {
            problems.push("`answer` is empty; leave it out where a grader tells".to_owned());
        }
        problems
    }
}

/// Gives the final answer, which ends the task.
#[derive(Debug, Deserialize, JsonSchema)]
struct Answer {
    /// The answer, and nothing else.
    answer: String,
}

/// A task that is solved by calls of tools, and ended by an answer.
///
/// Parameters: those of a [`ToolUseTask`], or the `seed` of one that is drawn, with the `goods` of its bill (0 to 4, default 0: an
/// expression is to be computed). An answer that says what the task calls right ([`Exact`]) gives the reward part
/// `success`, 1. Tasks without a right answer are for graders to judge; by themselves they are never solved.
pub struct ToolUse {
    setting: Arc<Setting>,
    episode: Option<Episode>,
}

/// What the episodes of a task have in common.
struct Setting {
    /// The registry's name of the environment.
    name: &'static str,
    id: String,
    task: ToolUseTask,
    resources: Resources,
}

/// An episode under way, or over.
struct Episode {
    seed: Seed,
    toolbox: Toolbox,
    offered: Arc<[ToolSpec]>,
    /// Whether the tools are ready to be called.
    is_prepared: bool,
    /// Whether an action has been carried out.
    has_moved: bool,
    /// The oracle's next call among the task's.
    next_call: usize,
    answer: Option<String>,
    /// What equal episodes have in common up to here.
    history: blake3::Hash,
}

impl ToolUse {
    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] with all that is wrong with the task's parameters.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail| refused(NAME, &task.id, detail);
        let parameters = if task.parameters.get("seed").is_some() {
            let drawn = Generated::deserialize(&task.parameters);
            drawn.map_err(|error| refuse(error.to_string()))?.task().map_err(refuse)?
        } else {
            let read = ToolUseTask::deserialize(&task.parameters);
            read.map_err(|error| refuse(error.to_string()))?
        };
        Self::of(NAME, task, parameters, resources)
    }

    /// The same for the environment `mcp`, one of whose tools is a server at least; from a `seed` alone, a stock that a server
    /// keeps is drawn.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] with all that is wrong with the task's parameters.
    pub fn open_with_servers(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail| refused(SERVERS, &task.id, detail);
        let parameters = if task.parameters.get("seed").is_some() {
            stock_task(
                Deserialize::deserialize(&task.parameters)
                    .map_err(|error: serde_json::Error| refuse(error.to_string()))?,
            )
        } else {
            let read = ToolUseTask::deserialize(&task.parameters);
            read.map_err(|error| refuse(error.to_string()))?
        };
        if !parameters.tools.iter().any(|choice| choice.tool == SERVERS) {
            return Err(refuse("none of its `tools` is a server (`tool = \"mcp\"`)".to_owned()));
        }
        Self::of(SERVERS, task, parameters, resources)
    }

    /// The tools of a task that work in sandboxes; none where it is of another environment.
    pub(crate) fn sandboxed(task: &Task) -> impl Iterator<Item = ToolChoice> {
        let is_own = [NAME, SERVERS].contains(&task.environment.as_str());
        let tools = task.parameters.get("tools").filter(|_| is_own).and_then(Value::as_array);
        let choices = tools.into_iter().flatten();
        choices.filter_map(|tool| ToolChoice::deserialize(tool).ok()).filter(|choice| {
            let mut rows = tool_registry().iter();
            rows.any(|row| row.name == choice.tool && row.open.needs_sandbox)
        })
    }

    /// The environment of parameters that were read.
    fn of(
        name: &'static str,
        task: &Task,
        parameters: ToolUseTask,
        resources: &Resources,
    ) -> Result<Self, EnvironmentError> {
        let problems = parameters.problems();
        if !problems.is_empty() {
            return Err(refused(name, &task.id, problems.join("; ")));
        }
        let (id, resources) = (task.id.clone(), resources.clone());
        let setting = Arc::new(Setting { name, id, task: parameters, resources });
        // What a tool lacks is told at once, and not with the first reset.
        setting.begin(Seed::from_u64(0))?;
        Ok(Self { setting, episode: None })
    }
}

fn refused(environment: &'static str, task: &str, detail: String) -> EnvironmentError {
    EnvironmentError::Parameters { task: task.to_owned(), environment, detail }
}

impl Setting {
    fn begin(&self, seed: Seed) -> Result<Episode, EnvironmentError> {
        let place = ToolPlace { task: &self.id, seed, resources: &self.resources };
        let toolbox = Toolbox::open(&self.task.tools, self.task.limits.clone(), &place)?;
        let mut episode = Episode {
            seed,
            offered: Arc::default(),
            toolbox,
            is_prepared: false,
            has_moved: false,
            next_call: 0,
            answer: None,
            history: blake3::hash(self.task.prompt.as_bytes()),
        };
        self.offer(&mut episode)?;
        Ok(episode)
    }

    /// What the tools show before anything is called.
    async fn shown_first(&self, seed: Seed) -> Result<ToolOutput, EnvironmentError> {
        let mut showing = self.begin(seed)?.toolbox;
        let prepared = showing.prepare().await;
        let shown = match prepared {
            Ok(()) => showing.first().await,
            Err(error) => Err(error),
        };
        showing.close().await?;
        shown
    }

    /// Looks at what the tools offer now.
    fn offer(&self, episode: &mut Episode) -> Result<(), EnvironmentError> {
        static ANSWER: OnceLock<ToolSpec> = OnceLock::new();
        let specs = episode.toolbox.specs();
        if self.task.ends == Ending::Words {
            episode.offered = specs;
            return Ok(());
        }
        if specs.iter().any(|spec| spec.name == ANSWER_TOOL) {
            return Err(refused(
                self.name,
                &self.id,
                "one of its tools is called `answer`, as is what ends the task: give it a `prefix`, or set `ends` to \"words\""
                    .to_owned(),
            ));
        }
        let answer = ANSWER.get_or_init(|| spec_of::<Answer>(ANSWER_TOOL)).clone();
        episode.offered = specs.iter().cloned().chain([answer]).collect();
        Ok(())
    }
}

impl Episode {
    /// Carries out the calls of a turn.
    async fn call_all(
        &mut self,
        calls: &[ToolCall],
        ends: Ending,
    ) -> Result<Vec<ToolResult>, EnvironmentError> {
        let mut results = Vec::with_capacity(calls.len());
        for (number, call) in calls.iter().enumerate() {
            let refusal = match &self.answer {
                Some(_) => Some("The task is over: an answer was given.".to_owned()),
                None => self.toolbox.is_beyond(number),
            };
            results.push(if let Some(refusal) = refusal {
                ToolResult::error(call, refusal)
            } else if ends != Ending::Words && call.name == ANSWER_TOOL {
                self.take_answer(call)
            } else {
                self.toolbox.call(call).await?
            });
        }
        Ok(results)
    }

    fn take_answer(&mut self, call: &ToolCall) -> ToolResult {
        let spec = self.offered.last().expect("it is offered last");
        match read_arguments::<Answer>(spec, call) {
            Ok(Answer { answer }) => {
                self.answer = Some(answer);
                ToolResult::new(call, ANSWERED)
            }
            Err(told) => ToolResult::error(call, told),
        }
    }
}

const ANSWERED: &str = "The answer was given.";

#[async_trait]
impl Environment for ToolUse {
    fn name(&self) -> &'static str {
        self.setting.name
    }

    fn tags(&self) -> Vec<String> {
        // Who answers nothing has not answered.
        vec![idle_tag(0.0)]
    }

    fn time_rules(&self) -> TimeRules {
        let ToolLimits { call_secs, calls_per_turn, .. } = self.setting.task.limits;
        let turn = std::time::Duration::from_secs_f64(call_secs * calls_per_turn as f64);
        // Servers that show something first are started for that, with times of their own.
        let shows = |tool: &ToolChoice| tool.options.keys().any(|name| name.starts_with("first_"));
        let shows_first = self.setting.task.tools.iter().any(shows);
        let reset = shows_first.then(|| turn + MOST_START);
        TimeRules { command: Some(turn), reset, ..TimeRules::default() }
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let mut episode = self.setting.begin(seed)?;
        let prompt = &self.setting.task.prompt;
        let (mut text, mut media) = (prompt.clone(), Vec::new());
        if episode.toolbox.shows_first() {
            // What shows it is given back at once: a start that nobody plays yet holds no server.
            let shown = self.setting.shown_first(seed).await?;
            text = format!("{text}\n\n{}", shown.text).trim_end().to_owned();
            media = shown.media;
            episode.history = blake3::hash(text.as_bytes());
        }
        let first = Observation {
            text,
            media,
            instruction: Some(prompt.as_str().into()),
            state_key: episode.history.to_hex().to_string(),
            ..Observation::default()
        };
        self.episode = Some(episode);
        Ok(first)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "prepare", when: "before reset" };
        let episode = self.episode.as_mut().ok_or(misused)?;
        if !episode.is_prepared {
            episode.toolbox.prepare().await?;
            self.setting.offer(episode)?;
            episode.is_prepared = true;
        }
        Ok(())
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.episode.as_ref().map(|episode| Arc::clone(&episode.offered)).unwrap_or_default()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        match &self.episode {
            None => return Err(misused("before reset")),
            Some(episode) if episode.answer.is_some() => return Err(misused("after the end")),
            Some(_) => {}
        }
        self.prepare().await?;
        let is_expected = self.oracle_action().is_some_and(|it| it.key() == action.key());
        let Setting { task, .. } = &*self.setting;
        let episode = self.episode.as_mut().expect("it was looked for");
        episode.has_moved = true;
        episode.next_call += usize::from(is_expected);
        let calls = action.tool_calls();
        let said = action.said();
        let mut observation = Observation::default();
        let valid = if !calls.is_empty() {
            let before = episode.toolbox.specs();
            observation.results = episode.call_all(calls, task.ends).await?;
            if !Arc::ptr_eq(&before, &episode.toolbox.specs()) {
                self.setting.offer(episode)?;
            }
            observation.results.iter().all(|result| !result.is_error)
        } else if task.ends == Ending::Answer {
            observation.text = "Nothing happens: call a tool; `answer` ends the task.".to_owned();
            false
        } else {
            episode.answer = Some(said.to_owned());
            observation.text = ANSWERED.to_owned();
            !said.trim().is_empty()
        };
        let mut history = blake3::Hasher::new();
        history.update(episode.history.as_bytes()).update(action.key().as_bytes());
        episode.history = history.finalize();
        observation.state_key = episode.history.to_hex().to_string();
        Ok(Step {
            observation,
            rewards: Vec::new(),
            terminated: episode.answer.is_some(),
            success: false,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let given = self.episode.as_ref().and_then(|episode| episode.answer.as_ref());
        let (Some(answer), Some(right)) = (given, &self.setting.task.answer) else {
            return Ok(None);
        };
        Ok(Some(Exact::default().verdict(answer, right)))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.setting.task.answer.clone()
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let setting = Arc::clone(&self.setting);
        let Some(episode) = &mut self.episode else {
            return Ok(Some(Box::new(Self { setting, episode: None })));
        };
        if !episode.has_moved {
            // Nothing has happened yet: another one that begins alike is in the same state.
            let begun = Episode { history: episode.history, ..setting.begin(episode.seed)? };
            return Ok(Some(Box::new(Self { setting, episode: Some(begun) })));
        }
        let Some(toolbox) = episode.toolbox.fork().await? else { return Ok(None) };
        let forked = Episode {
            toolbox,
            offered: Arc::clone(&episode.offered),
            answer: episode.answer.clone(),
            ..*episode
        };
        Ok(Some(Box::new(Self { setting, episode: Some(forked) })))
    }

    fn oracle_action(&self) -> Option<Action> {
        let episode = self.episode.as_ref().filter(|episode| episode.answer.is_none())?;
        let task = &self.setting.task;
        if let Some(call) = task.calls.get(episode.next_call) {
            return Some(Action::calls(vec![call.clone()]));
        }
        let right = task.answer.as_ref()?.texts().into_iter().next()?;
        Some(match task.ends {
            Ending::Words => Action::text(right),
            Ending::Either | Ending::Answer => {
                let arguments = [(ANSWER_TOOL.to_owned(), right.into())].into_iter().collect();
                Action::calls(vec![ToolCall::new(ANSWER_TOOL, arguments)])
            }
        })
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        match self.episode.take() {
            Some(mut episode) => episode.toolbox.close().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opened(parameters: Value) -> Result<ToolUse, EnvironmentError> {
        ToolUse::open(&crate::test_task(NAME, parameters), &Resources::default())
    }

    async fn begun(parameters: Value) -> ToolUse {
        let mut env = opened(parameters).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        env
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall::new(name, arguments.as_object().unwrap().clone())
    }

    #[tokio::test]
    async fn several_calls_of_a_turn_are_answered_in_their_order_and_an_answer_ends_the_task() {
        let mut env = begun(json!({
            "prompt": "What is 6 * 7?", "tools": ["calculator", "notes"], "answer": 42,
        }))
        .await;
        let names: Vec<_> = env.tools().iter().map(|spec| spec.name.clone()).collect();
        assert_eq!(names, ["calculator", "notes", "answer"]);
        let calls = vec![
            call("calculator", json!({ "expression": "6 * 7" })),
            call("calculater", json!({})),
            call("notes", json!({ "action": "write", "name": "a" })),
        ];
        let step = env.step(&Action::calls(calls)).await.unwrap();
        let texts: Vec<_> = step.observation.results.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "42",
                "There is no tool `calculater`, only `calculator`, `notes`.",
                "What is the note to say? Give its `text`.",
            ]
        );
        assert!(!step.valid && !step.terminated);
        let calls = vec![
            call("answer", json!({ "answer": 42 })),
            call("answer", json!({ "answer": "42" })),
            call("calculator", json!({ "expression": "1" })),
        ];
        let step = env.step(&Action::calls(calls)).await.unwrap();
        let texts: Vec<_> = step.observation.results.iter().map(|it| it.text.as_str()).collect();
        assert!(texts[0].contains("`answer`: expected a string, got 42"), "{texts:?}");
        assert_eq!(texts[1..], [ANSWERED, "The task is over: an answer was given."]);
        assert!(step.terminated && env.step(&"more".into()).await.is_err());
        let verdict = env.verify().await.unwrap().unwrap();
        assert!(verdict.success && verdict.reward() == 1.0);
    }

    #[tokio::test]
    async fn how_a_task_ends_is_for_the_task_to_say() {
        let ends = |ends: &str| json!({ "prompt": "?", "tools": [], "answer": "a", "ends": ends });
        let mut env = begun(ends("answer")).await;
        let step = env.step(&"a".into()).await.unwrap();
        assert!(!step.terminated && !step.valid && env.verify().await.unwrap().is_none());
        let mut env = begun(ends("words")).await;
        assert!(env.tools().is_empty());
        let told = env.step(&Action::calls(vec![call("answer", json!({ "answer": "a" }))])).await;
        assert!(!told.unwrap().terminated);
        assert!(env.step(&"a".into()).await.unwrap().terminated);
        assert!(env.verify().await.unwrap().unwrap().success);
        let mut env = begun(ends("either")).await;
        assert!(env.step(&"b".into()).await.unwrap().terminated);
        assert!(!env.verify().await.unwrap().unwrap().success);
    }

    #[tokio::test]
    async fn forks_have_tools_of_their_own() {
        let mut env = begun(json!({ "prompt": "?", "tools": ["notes"] })).await;
        let note = |action: &str, text: &str| {
            let arguments = json!({ "action": action, "name": "n", "text": text });
            Action::calls(vec![call("notes", arguments)])
        };
        let unmoved = env.fork().await.unwrap();
        env.step(&note("write", "one")).await.unwrap();
        let mut fork = env.fork().await.unwrap().unwrap();
        fork.step(&note("write", "two")).await.unwrap();
        for (env, expected) in [(&mut fork, "two"), (&mut unmoved.unwrap(), "There is no note")] {
            let step = env.step(&note("read", "")).await.unwrap();
            assert!(step.observation.results[0].text.starts_with(expected));
        }
        let step = env.step(&note("read", "")).await.unwrap();
        assert_eq!(step.observation.results[0].text, "one");
        // What was done tells states apart.
        let other = fork.step(&note("read", "")).await.unwrap();
        assert_ne!(step.observation.state_key, other.observation.state_key);
    }

    #[test]
    fn all_that_is_wrong_with_a_task_is_told() {
        let told = |parameters| opened(parameters).err().unwrap().to_string();
        let parameters = json!({
            "prompt": "", "tools": ["calculater", { "tool": "notes", "nots": {} }], "limits": { "call_secs": 0 },
        });
        let wrong = told(parameters);
        for part in ["`prompt`", "calculater", "nots", "call_secs"] {
            assert!(wrong.contains(part), "{wrong}");
        }
        assert!(told(json!({ "prompt": "a", "tools": [1] })).contains("a tool is a name"));
        assert!(told(json!({ "seed": 1, "goods": 9 })).contains("0 to 4"));
    }
}
