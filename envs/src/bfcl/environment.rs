//! The environment of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use spar_bfcl::{
    DecodedCall, EntryMessage, Instances, Language, LongContext, MORE_FUNCTIONS, MultiTurnEntry,
    Process, SingleTurnEntry, World, check_native, check_single_turn, decode_raw, decode_text,
    executable, functions_in_json, generated_entry, in_language, native_tool, results_in_words,
    system_prompt, written_native_call,
};
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec};
use spar_tasks::Task;

use crate::calls::MOST_CALLS_OF_BENCHMARKS;
use crate::{Environment, EnvironmentError, idle_tag};

const NAME: &str = "bfcl";
/// Steps of a turn that are carried out; with one more the episode is over.
const MAX_STEPS: usize = 20;
/// An answer whose calls have more bytes counts as one without any, as does one with more calls than are carried out.
const MAX_CALL_BYTES: usize = 1 << 20;

/// A task of the Berkeley Function-Calling Leaderboard.
///
/// In the multi-turn half every turn begins with the user's words; answers with calls are steps of the turn, and one
/// without any ends it. After the last turn the whole answer is checked: the parts `state` and `response` of the reward,
/// a half each, are given where both are right. More than 20 steps in a turn end the episode, with nothing earned. In the
/// single-turn categories the first answer is checked, and `success` is 1 where it is right.
#[derive(Debug, Clone)]
pub struct Bfcl {
    task: Arc<Opened>,
    uses_tools: bool,
    play: Option<Play>,
}

/// Parameters of tasks.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Parameters {
    /// An entry of the multi-turn half.
    MultiTurn(Box<MultiTurnEntry>),
    /// An entry of a single-turn category.
    SingleTurn(Box<SingleTurnEntry>),
    /// An entry of our own.
    Generated { seed: u64, turns: usize },
}

/// What does not change in a task.
#[derive(Debug)]
enum Opened {
    MultiTurn(Box<MultiTurn>),
    SingleTurn(Box<SingleTurn>),
}

#[derive(Debug)]
struct MultiTurn {
    world: World,
    question: Vec<Vec<EntryMessage>>,
    ground_truth: Vec<Vec<String>>,
    process: Process,
    instances: Instances,
    functions: Vec<Json>,
    /// Functions that come at a turn.
    later: BTreeMap<usize, Vec<Json>>,
    /// Tools by the turn from which on they are offered.
    tools: Vec<(usize, Arc<[ToolSpec]>)>,
}

#[derive(Debug)]
struct SingleTurn {
    entry: SingleTurnEntry,
    language: Language,
    functions: Vec<Json>,
    tools: Arc<[ToolSpec]>,
}

#[derive(Debug, Clone)]
struct Play {
    turn: usize,
    /// Steps of the turn that were carried out.
    steps: usize,
    is_over: bool,
    process: Option<Process>,
    instances: Option<Instances>,
    /// Calls by turn and step.
    answer: Vec<Vec<Vec<String>>>,
    /// A digest of all calls so far.
    history: u64,
}

impl Bfcl {
    /// Opens a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let opened = match parameters {
            Parameters::MultiTurn(entry) => {
                Opened::MultiTurn(Box::new(MultiTurn::open(*entry).map_err(refuse)?))
            }
            Parameters::Generated { seed, turns } => {
                if !(1..=spar_bfcl::MAX_TURNS).contains(&turns) {
                    let most = spar_bfcl::MAX_TURNS;
                    return Err(refuse(format!("`turns` is {turns}, allowed are 1 to {most}")));
                }
                let entry = generated_entry(seed, turns);
                Opened::MultiTurn(Box::new(MultiTurn::open(entry).map_err(refuse)?))
            }
            Parameters::SingleTurn(entry) => {
                Opened::SingleTurn(Box::new(SingleTurn::open(*entry).map_err(refuse)?))
            }
        };
        Ok(Self { task: Arc::new(opened), uses_tools: false, play: None })
    }

    /// What the user says at a turn, with the functions for policies that call in words.
    fn words(&self, turn: usize) -> String {
        let (question, functions, later) = match &*self.task {
            Opened::MultiTurn(task) => (&task.question, &task.functions, task.later.get(&turn)),
            Opened::SingleTurn(task) => (&task.entry.question, &task.functions, None),
        };
        let said = question.get(turn).map_or(&[][..], Vec::as_slice);
        let mut text = said.iter().map(|it| &*it.content).collect::<Vec<_>>().join("\n");
        if let Some(later) = later {
            text = match self.uses_tools {
                true => MORE_FUNCTIONS.to_owned(),
                false => format!("{}\n{MORE_FUNCTIONS}", functions_in_json(later)),
            };
        }
        if turn == 0 && !self.uses_tools {
            text = format!("{}\n{text}", system_prompt(functions));
        }
        text
    }

    /// The calls of an action as they are carried out; none where it has none that can be read.
    fn calls(&self, action: &Action) -> Vec<String> {
        let read = match action {
            Action::Calls { calls, .. } => {
                calls.iter().map(|call| written_native_call(&call.name, &call.arguments)).collect()
            }
            Action::Text { .. } if self.uses_tools => return Vec::new(),
            Action::Text { text } => decode_text(text).and_then(|calls| executable(&calls)),
        };
        let calls: Vec<String> = read.unwrap_or_default();
        let bytes: usize = calls.iter().map(String::len).sum();
        if calls.len() > MOST_CALLS_OF_BENCHMARKS || bytes > MAX_CALL_BYTES {
            Vec::new()
        } else {
            calls
        }
    }

    fn multi_turn_step(
        &self,
        task: &MultiTurn,
        play: &mut Play,
        action: &Action,
    ) -> Result<Step, EnvironmentError> {
        let calls = self.calls(action);
        if calls.is_empty() {
            return self.end_turn(task, play, action);
        }
        let (Some(instances), Some(process)) = (&mut play.instances, &mut play.process) else {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        };
        let results: Vec<String> =
            calls.iter().map(|call| instances.execute(call, process)).collect();
        for call in &calls {
            play.history = digest(play.history, call);
        }
        let is_error = |text: &str| text.starts_with("Error during execution: ");
        let valid = !results.iter().any(|text| is_error(text));
        let mut observation = Observation::default();
        match action {
            Action::Calls { calls, .. } => {
                let told = calls.iter().zip(&results).map(|(call, text)| match is_error(text) {
                    true => ToolResult::error(call, text.as_str()),
                    false => ToolResult::new(call, text.as_str()),
                });
                observation.results = told.collect();
            }
            Action::Text { .. } => observation.text = results_in_words(&calls, &results),
        }
        match play.answer.last_mut() {
            Some(steps) => steps.push(calls),
            None => play.answer.push(vec![calls]),
        }
        play.steps += 1;
        play.is_over = play.steps > MAX_STEPS;
        observation.state_key = play.key();
        Ok(step(observation, Vec::new(), play.is_over, false, valid))
    }

    fn end_turn(
        &self,
        task: &MultiTurn,
        play: &mut Play,
        action: &Action,
    ) -> Result<Step, EnvironmentError> {
        let told: Vec<ToolResult> = action
            .tool_calls()
            .iter()
            .map(|call| ToolResult::error(call, "These calls are too many or too long."))
            .collect();
        play.turn += 1;
        play.steps = 0;
        if play.turn < task.question.len() {
            play.answer.push(Vec::new());
            let observation = Observation {
                text: self.words(play.turn),
                results: told,
                state_key: play.key(),
                ..Observation::default()
            };
            return Ok(step(observation, Vec::new(), false, false, true));
        }
        play.is_over = true;
        let verdict = task.world.check(&play.answer, &task.ground_truth);
        let verdict = verdict.map_err(|error| EnvironmentError::Parameters {
            task: task.world.id.clone(),
            environment: NAME,
            detail: error.to_string(),
        })?;
        let success = verdict.is_valid();
        let half = |name: &str| RewardPart { name: name.to_owned(), value: 0.5 };
        let rewards = if success { vec![half("state"), half("response")] } else { Vec::new() };
        let observation =
            Observation { results: told, state_key: play.key(), ..Observation::default() };
        Ok(step(observation, rewards, true, success, true))
    }

    fn single_turn_step(&self, task: &SingleTurn, play: &mut Play, action: &Action) -> Step {
        play.is_over = true;
        play.turn = 1;
        let success = match action {
            Action::Calls { calls, .. } => {
                let calls: Json = calls
                    .iter()
                    .map(|call| {
                        let arguments = Json::Object(call.arguments.clone());
                        Json::Object(Map::from_iter([(call.name.clone(), arguments)]))
                    })
                    .collect();
                let functions = Json::Array(task.entry.function.clone());
                let (category, answer) = (&task.entry.category, &task.entry.possible_answer);
                // What the program raises on is no right answer.
                check_native(category, task.language, &functions, answer, &calls)
                    .is_ok_and(|verdict| verdict.is_valid)
            }
            Action::Text { text } => {
                let calls: Option<Vec<DecodedCall>> = match task.language {
                    _ if self.uses_tools => None,
                    Language::Python => decode_text(text).ok(),
                    Language::Java | Language::JavaScript => decode_raw(text),
                };
                let calls = calls.map_or(Json::Null, |calls| spar_bfcl::calls_as_json(&calls));
                task.is_right(&calls)
            }
        };
        let told = action.tool_calls().iter().map(|call| ToolResult::new(call, ""));
        let observation = Observation {
            results: told.collect(),
            state_key: play.key(),
            ..Observation::default()
        };
        let reward = RewardPart { name: "success".to_owned(), value: 1.0 };
        let rewards = if success { vec![reward] } else { Vec::new() };
        step(observation, rewards, true, success, true)
    }
}

impl MultiTurn {
    fn open(entry: MultiTurnEntry) -> Result<Self, String> {
        let told = |error: spar_bfcl::BfclError| error.to_string();
        if entry.question.len() != entry.ground_truth.len() || entry.question.is_empty() {
            return Err("`question` and `ground_truth` need as many turns, at least one".to_owned());
        }
        let (functions, later) = entry.functions().map_err(told)?;
        let long_context = match &entry.long_context {
            Some(path) => Some(LongContext::shared(path).map_err(told)?),
            None => None,
        };
        let world = World {
            classes: entry.classes().map_err(told)?,
            id: entry.id,
            scenario: Arc::new(entry.initial_config),
            long_context,
        };
        let process = world.process();
        let instances = world.instances("m", &process).map_err(told)?;
        let mut offered: Vec<ToolSpec> = functions.iter().map(tool).collect();
        let mut tools: Vec<(usize, Arc<[ToolSpec]>)> = vec![(0, offered.clone().into())];
        for (turn, functions) in &later {
            offered.extend(functions.iter().map(tool));
            tools.push((*turn, offered.clone().into()));
        }
        let (question, ground_truth) = (entry.question, entry.ground_truth);
        Ok(Self { world, question, ground_truth, process, instances, functions, later, tools })
    }
}

impl SingleTurn {
    /// Whether calls that were read in words are the right answer; what the program raises on is none.
    fn is_right(&self, calls: &Json) -> bool {
        let functions = Json::Array(self.entry.function.clone());
        let (category, answer) = (&self.entry.category, &self.entry.possible_answer);
        check_single_turn(category, self.language, &functions, answer, calls)
            .is_ok_and(|verdict| verdict.is_valid)
    }

    fn open(entry: SingleTurnEntry) -> Result<Self, String> {
        if entry.question.is_empty() {
            return Err("`question` needs a turn".to_owned());
        }
        let language = Language::of_category(&entry.category);
        let functions: Vec<Json> =
            entry.function.iter().map(|function| in_language(function, language)).collect();
        let tools = functions.iter().map(tool).collect();
        Ok(Self { entry, language, functions, tools })
    }
}

impl Play {
    /// Turn and step with a digest of all that was called: what a policy can know.
    fn key(&self) -> String {
        format!("turn {} step {} after {:016x}", self.turn, self.steps, self.history)
    }
}

#[async_trait]
impl Environment for Bfcl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn takes_any_words(&self) -> bool {
        // They end the user's turn.
        true
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = match &*self.task {
            Opened::MultiTurn(task) => {
                task.world.classes.iter().map(|class| class.name().to_owned()).collect()
            }
            Opened::SingleTurn(task) => vec![task.entry.category.clone()],
        };
        let is_idle_right = match &*self.task {
            Opened::MultiTurn(task) => task.ground_truth.iter().all(Vec::is_empty),
            Opened::SingleTurn(task) => task.is_right(&Json::Null),
        };
        tags.push(idle_tag(if is_idle_right { 1.0 } else { 0.0 }));
        tags
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        let Some(play) = self.play.as_ref().filter(|play| self.uses_tools && !play.is_over) else {
            return Arc::default();
        };
        match &*self.task {
            Opened::MultiTurn(task) => task
                .tools
                .iter()
                .rev()
                .find(|(turn, _)| *turn <= play.turn)
                .map(|(_, tools)| Arc::clone(tools))
                .unwrap_or_default(),
            Opened::SingleTurn(task) => Arc::clone(&task.tools),
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let (process, instances) = match &*self.task {
            Opened::MultiTurn(task) => (Some(task.process.clone()), Some(task.instances.clone())),
            Opened::SingleTurn(_) => (None, None),
        };
        let play = Play {
            turn: 0,
            steps: 0,
            is_over: false,
            process,
            instances,
            answer: vec![Vec::new()],
            history: 0xcbf2_9ce4_8422_2325,
        };
        let text = self.words(0);
        let observation = Observation { state_key: play.key(), text, ..Observation::default() };
        self.play = Some(play);
        Ok(observation)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let mut play = self.play.take().ok_or(misused("before reset"))?;
        if play.is_over {
            self.play = Some(play);
            return Err(misused("after the end"));
        }
        let task = Arc::clone(&self.task);
        let mut done = match &*task {
            Opened::MultiTurn(task) => self.multi_turn_step(task, &mut play, action),
            Opened::SingleTurn(task) => Ok(self.single_turn_step(task, &mut play, action)),
        }?;
        self.play = Some(play);
        done.wall_time = start.elapsed();
        Ok(done)
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    /// The gold calls of a turn in one step, and words that end it. Single turns are answered by the first accepted values.
    fn oracle_action(&self) -> Option<Action> {
        let play = self.play.as_ref().filter(|play| !play.is_over)?;
        let end = || Some(Action::text("Done."));
        match &*self.task {
            Opened::MultiTurn(task) => {
                let gold = task.ground_truth.get(play.turn)?;
                if play.steps > 0 || gold.is_empty() {
                    return end();
                }
                let world = &task.world;
                let calls: Option<Vec<ToolCall>> =
                    gold.iter().map(|call| super::gold::tool_call(world, call)).collect();
                match (self.uses_tools, calls) {
                    (true, calls) => Some(Action::calls(calls?)),
                    (false, Some(calls)) => Some(Action::text(super::gold::in_words(&calls)?)),
                    (false, None) => Some(Action::text(format!("[{}]", gold.join(", ")))),
                }
            }
            Opened::SingleTurn(task) => {
                let entry = &task.entry;
                if entry.category.contains("irrelevance") {
                    return end();
                }
                super::gold::single_turn(entry, task.language, self.uses_tools)
            }
        }
    }
}

fn tool(function: &Json) -> ToolSpec {
    let tool = native_tool(function);
    ToolSpec::new(tool.name, tool.description, tool.parameters)
}

fn step(
    observation: Observation,
    rewards: Vec<RewardPart>,
    terminated: bool,
    success: bool,
    valid: bool,
) -> Step {
    let wall_time = std::time::Duration::ZERO;
    Step { observation, rewards, terminated, success, valid, wall_time }
}

/// FNV-1a over the bytes of a call and its end.
fn digest(start: u64, call: &str) -> u64 {
    let bytes = call.bytes().chain([0xff]);
    bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
