//! What a policy sees of its episode.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spar_core::{
    Action, Conversation, Encoded, Message, Observation, ParsedAction, Part, Policy, PolicyError,
    PromptTokens, Role, ToolSpec, Trajectory,
};
use spar_tasks::Task;

use crate::scaffolds::{ToolUse, elided};
use crate::{EpisodeConfig, ParserChoice, ScaffoldChoice};

/// What a policy sees of its episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// How many of the last turns are kept behind the first observation, which always stays; at
    /// least 1. Default absent: all turns are kept.
    pub window_turns: Option<usize>,
    /// Whether the environment's words for what is demanded stand behind every observation.
    /// Default false.
    pub reminder: bool,
    /// Whether the task's instruction opens the conversation as a system message. Default true.
    pub instruction: bool,
    /// Whether observations list the admissible actions. Default false.
    pub list_admissible: bool,
    /// Whether observations list those admissible actions alone that name what their text does not: for
    /// the first time in the episode, and with a numbered thing (`cabinet 7`) that the text leaves out. In
    /// household rooms several places can be within reach of one, which only the actions tell.
    /// Nothing where all are listed. Default false.
    pub list_unnamed: bool,
    /// When an action is answered with the admissible ones that begin with the same word (`go`) and were not
    /// taken yet in the episode: what is left to try. Of those that differ in numbers alone (`go to cabinet 3`,
    /// `go to cabinet 7`) one is listed, that whose thing was named first: so a short list leaves no kind of
    /// thing out, and the next of a kind comes when the one before is taken. Default never.
    pub list_untried: ListUntried,
    /// The most that are listed of those; at least 1. They stand in the order in which what they name was named
    /// first. Default absent: all.
    pub max_untried: Option<usize>,
    /// What becomes of what the policy thought, in `<think>` before its answer, in the turns after it. Default
    /// `inline`.
    pub reasoning: ReasoningRule,
    /// Tokens of prompt and answer together, beyond which an episode is truncated. Default
    /// absent: the policy's own limit.
    pub max_context_tokens: Option<usize>,
}

/// When actions that were not taken yet are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListUntried {
    /// Not at all.
    #[default]
    Never,
    /// Behind an action that was taken before in the episode: who searches in circles reads there how to leave
    /// them, and who does not repeat itself is shown nothing.
    Repeated,
    /// Behind every action.
    Always,
}

/// What becomes of thoughts in the turns after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningRule {
    /// They are not told apart: parsers read what was written with them, and they stay in the conversation.
    #[default]
    Inline,
    /// They are told apart and stay, unless the model's chat template leaves them out.
    Keep,
    /// They are told apart and left out: from the turn after on, the conversation goes on without them, as a sample of
    /// its own.
    Strip,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window_turns: None,
            reminder: false,
            instruction: true,
            list_admissible: false,
            list_unnamed: false,
            list_untried: ListUntried::Never,
            max_untried: None,
            reasoning: ReasoningRule::Inline,
            max_context_tokens: None,
        }
    }
}

impl ContextConfig {
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.window_turns == Some(0) {
            problems.push("context.window_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried == Some(0) {
            problems.push("context.max_untried is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried.is_some() && self.list_untried == ListUntried::Never {
            problems.push(
                "context.max_untried has no effect: context.list_untried is `never`".to_owned(),
            );
        }
        if self.max_context_tokens == Some(0) {
            problems
                .push("context.max_context_tokens is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

impl EpisodeConfig {
    /// What is shown of each of an episode's observations, with what is listed behind it, reminders left out.
    pub fn observations(&self, trajectory: &Trajectory) -> Vec<Vec<Arc<Message>>> {
        let mut context = Context::empty(self, None);
        context.tools = trajectory.tools_at(0);
        let mut shown = Vec::with_capacity(trajectory.turns.len() + 1);
        context.push_observation(&trajectory.first_observation, None);
        shown.push(Arc::unwrap_or_clone(std::mem::take(&mut context.messages)));
        // What comes now is not the first.
        context.head = 1;
        for turn in &trajectory.turns {
            context.push_observation(&turn.step.observation, said_in(&turn.parsed));
            shown.push(Arc::unwrap_or_clone(std::mem::take(&mut context.messages)));
        }
        shown
    }
}

/// The prompt of one turn.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation as text.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The conversation as tokens.
    pub ids: Arc<[u32]>,
    /// The tokens as the difference to the previous turn.
    pub tokens: PromptTokens,
}

/// The conversation of one episode, as messages and as tokens.
///
/// Every message is encoded once, as long as the conversation goes on from what stands; what a policy sampled stays as it
/// was sampled.
pub struct Context<'a> {
    config: &'a ContextConfig,
    parser: &'a ParserChoice,
    scaffold: &'a ScaffoldChoice,
    /// How many of the last turns are kept in sight.
    window: Option<usize>,
    encoder: Option<&'a dyn Policy>,
    reminder: Option<Arc<str>>,
    /// Actions that were admissible before; only kept where unnamed ones are listed.
    known: HashSet<Arc<str>>,
    /// Actions that were taken; only kept where untried ones are listed.
    taken: HashSet<String>,
    /// When numbered things were named first, as a place among all of them; only kept where untried actions are listed.
    named: HashMap<(String, String), usize>,
    /// Shared with the requests that are under way.
    messages: Arc<Vec<Arc<Message>>>,
    /// The instruction of the task, as far as it is told.
    instruction: &'a str,
    /// The tools that were offered last.
    tools: Arc<[ToolSpec]>,
    /// How many messages come before the first turn.
    head: usize,
    /// How many messages `previous` stands for.
    encoded: usize,
    /// Whether `previous` is not what the conversation goes on from, because of other tools, or since thoughts are left
    /// out.
    is_broken: bool,
    /// Tokens of every message; only kept where a window may show them again, and each stands alone.
    tokens: Vec<Vec<u32>>,
    /// Whether the policy has laid out all messages one by one so far.
    stand_alone: bool,
    /// The previous turn's prompt and sampled tokens.
    previous: Vec<u32>,
    /// Where in them those begin that were sampled.
    answer: usize,
    /// The previous turn's prompt and sampled tokens where the policy lays conversations out itself, and tells.
    laid_out: Vec<u32>,
}

impl<'a> Context<'a> {
    /// The conversation after a reset, with the tools that are offered first; without an encoder it has no tokens.
    pub fn new(
        episode: &'a EpisodeConfig,
        encoder: Option<&'a dyn Policy>,
        task: &'a Task,
        first: &Observation,
        tools: Arc<[ToolSpec]>,
    ) -> Self {
        let config = &episode.context;
        let mut context = Self::empty(episode, encoder);
        context.reminder = first.instruction.clone().filter(|_| config.reminder);
        context.instruction = if config.instruction { &task.instruction } else { "" };
        context.tools = tools;
        let system = context.system();
        if !system.is_empty() {
            context.push_message(Message::new(Role::System, system));
        }
        context.push_observation(first, None);
        context.head = context.messages.len();
        context
    }

    fn empty(episode: &'a EpisodeConfig, encoder: Option<&'a dyn Policy>) -> Self {
        let scaffold = &episode.scaffold;
        Self {
            config: &episode.context,
            parser: episode.parser(),
            scaffold,
            window: episode.context.window_turns.or(scaffold.scaffold().window_turns),
            encoder,
            reminder: None,
            known: HashSet::new(),
            taken: HashSet::new(),
            named: HashMap::new(),
            messages: Arc::default(),
            instruction: "",
            tools: Arc::default(),
            head: 0,
            encoded: 0,
            is_broken: false,
            tokens: Vec::new(),
            stand_alone: true,
            previous: Vec::new(),
            answer: 0,
            laid_out: Vec::new(),
        }
    }

    /// The system's message; empty where there is none.
    fn system(&self) -> String {
        let system = self.scaffold.system(self.instruction, &self.tools);
        system.unwrap_or_else(|| self.instruction.to_owned())
    }

    /// Offers tools from here on.
    fn offer(&mut self, tools: &Arc<[ToolSpec]>) {
        let is_same = Arc::ptr_eq(tools, &self.tools) || **tools == *self.tools;
        self.tools = Arc::clone(tools);
        if is_same {
            return;
        }
        self.is_broken = true;
        let system = self.system();
        let has_system = self.messages.first().is_some_and(|it| it.role == Role::System);
        if let Some(first) = Arc::make_mut(&mut self.messages).first_mut().filter(|_| has_system) {
            *first = Arc::new(Message::new(Role::System, system));
            // What stood alone under other words does so again.
            self.tokens.clear();
            self.encoded = 0;
        }
    }

    /// What the policy is to continue now, with the tools that are offered; asked for once per turn.
    ///
    /// The tokens go on from those before, as far as the policy's layout and the conversation do: what was sampled
    /// stays as it was. Where they do not, since tools have changed, or earlier messages are left out or laid out
    /// differently, the prompt keeps only what is equal at the beginning.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the policy has no layout for the conversation.
    pub fn prompt(&mut self, tools: &Arc<[ToolSpec]>) -> Result<Prompt, PolicyError> {
        self.offer(tools);
        let start = self.messages.len() - self.num_shown();
        if self.window.is_some() {
            self.encode_each()?;
        }
        let is_windowed = start > self.head;
        if !is_windowed && !self.is_broken {
            let encoded = match self.window.is_some() && self.stand_alone {
                true => Encoded::Alone(self.tokens[self.encoded..].concat()),
                false => self.encode(&self.messages, self.encoded)?,
            };
            let (appended, is_anew) = match encoded {
                Encoded::Alone(ids) | Encoded::Behind(ids) => (ids, false),
                Encoded::Anew(ids) => (ids, self.encoded > 0),
            };
            self.encoded = self.messages.len();
            if is_anew {
                return Ok(self.begin_anew(Arc::clone(&self.messages), appended));
            }
            let kept = self.previous.len();
            self.previous.extend_from_slice(&appended);
            return Ok(Prompt {
                messages: Arc::clone(&self.messages),
                ids: Arc::from(self.previous.as_slice()),
                tokens: PromptTokens { kept, appended },
            });
        }
        let shown = |index: &usize| *index < self.head || *index >= start;
        let indices = || (0..self.messages.len()).filter(shown);
        let messages: Vec<_> = indices().map(|index| Arc::clone(&self.messages[index])).collect();
        let ids = if self.window.is_some() && self.stand_alone {
            indices().flat_map(|index| &self.tokens[index]).copied().collect()
        } else {
            let (Encoded::Alone(ids) | Encoded::Behind(ids) | Encoded::Anew(ids)) =
                self.encode(&messages, 0)?;
            ids
        };
        self.encoded = self.messages.len();
        self.is_broken = false;
        Ok(self.begin_anew(Arc::new(messages), ids))
    }

    /// The prompt of a turn that another episode of the same policy and configuration was given behind the same past,
    /// taken over instead of being laid out again.
    pub(crate) fn take_over(&mut self, tools: &Arc<[ToolSpec]>, prompt: &PromptTokens) {
        self.offer(tools);
        self.previous.truncate(prompt.kept);
        self.previous.extend_from_slice(&prompt.appended);
        self.encoded = self.messages.len();
        self.is_broken = false;
    }

    /// Whether a prompt of tokens can be taken over: a window shows messages again, whose tokens are kept one by one.
    pub(crate) fn can_take_over(&self, prompt: &PromptTokens) -> bool {
        self.window.is_none() && prompt.kept <= self.previous.len()
    }

    /// A prompt that keeps of the tokens before what is equal at the beginning.
    fn begin_anew(&mut self, messages: Arc<Vec<Arc<Message>>>, ids: Vec<u32>) -> Prompt {
        let kept = ids.iter().zip(&self.previous).take_while(|(a, b)| a == b).count();
        let prompt = Prompt {
            messages,
            ids: Arc::from(ids.as_slice()),
            tokens: PromptTokens { kept, appended: ids[kept..].to_vec() },
        };
        self.previous = ids;
        prompt
    }

    fn encode(&self, messages: &[Arc<Message>], encoded: usize) -> Result<Encoded, PolicyError> {
        let Some(encoder) = self.encoder else { return Ok(Encoded::Alone(Vec::new())) };
        encoder.encode_conversation(&Conversation {
            messages,
            tools: self.native_tools(),
            encoded,
            answer: &self.previous[self.answer..],
        })
    }

    /// Encodes messages one by one, as long as each of them stands alone.
    fn encode_each(&mut self) -> Result<(), PolicyError> {
        while self.stand_alone && self.tokens.len() < self.messages.len() {
            let place = self.tokens.len();
            match self.encode(&self.messages[..=place], place)? {
                Encoded::Alone(ids) => self.tokens.push(ids),
                Encoded::Behind(_) | Encoded::Anew(_) => self.stand_alone = false,
            }
        }
        Ok(())
    }

    /// The tools that the policy's own layout offers.
    fn native_tools(&self) -> &[ToolSpec] {
        match self.scaffold.scaffold().tools {
            ToolUse::Native => &self.tools,
            ToolUse::None | ToolUse::InWords => &[],
        }
    }

    /// How many of the last messages are shown behind the first ones, which always are.
    fn num_shown(&self) -> usize {
        let turns = &self.messages[self.head..];
        let Some(window) = self.window else { return turns.len() };
        // A turn begins with an answer.
        let answers = (0..turns.len()).filter(|index| turns[*index].role == Role::Assistant);
        let first = answers.rev().nth(window.saturating_sub(1));
        first.map_or(turns.len(), |first| turns.len() - first)
    }

    /// Takes over the prompt of this turn as the policy has laid it out itself; absent where it does not tell. What is
    /// returned is the prompt as the difference to the previous turn.
    pub(crate) fn lay_out(&mut self, ids: Option<&[u32]>) -> Option<PromptTokens> {
        let Some(ids) = ids else {
            self.laid_out.clear();
            return None;
        };
        let kept = ids.iter().zip(&self.laid_out).take_while(|(a, b)| a == b).count();
        self.laid_out = ids.to_vec();
        Some(PromptTokens { kept, appended: ids[kept..].to_vec() })
    }

    /// The whole prompt of a turn whose policy has laid it out itself.
    pub(crate) fn laid_out(&self, prompt: &PromptTokens) -> Vec<u32> {
        let kept = &self.laid_out[..prompt.kept.min(self.laid_out.len())];
        [kept, &prompt.appended[..]].concat()
    }

    /// Appends what the policy answered and what that was read as, with the tokens as it sampled them.
    pub fn push_answer(&mut self, text: &str, parsed: &ParsedAction, sampled: &[u32]) {
        let mut message = self.answer(text, parsed);
        let strips =
            self.config.reasoning == ReasoningRule::Strip && !message.reasoning().is_empty();
        if strips {
            message.parts.retain(|part| !matches!(part, Part::Reasoning(_)));
            self.is_broken = true;
        }
        Arc::make_mut(&mut self.messages).push(Arc::new(message));
        self.encoded = self.messages.len();
        self.answer = self.previous.len();
        if !self.laid_out.is_empty() {
            self.laid_out.extend_from_slice(sampled);
            if self.window.is_some() && self.stand_alone {
                self.tokens.push(Vec::new());
            }
            return;
        }
        self.previous.extend_from_slice(sampled);
        // What is left of one without its thoughts is encoded with the messages behind it.
        if self.window.is_some() && self.stand_alone && !strips {
            self.tokens.push(sampled.to_vec());
        }
    }

    /// An answer as a message.
    fn answer(&self, text: &str, parsed: &ParsedAction) -> Message {
        let (thoughts, said) = match self.config.reasoning {
            ReasoningRule::Inline => (None, text),
            ReasoningRule::Keep | ReasoningRule::Strip => split_thoughts(text),
        };
        let is_native = self.scaffold.scaffold().tools == ToolUse::Native;
        let mut parts = Vec::with_capacity(1);
        let thoughts = match self.config.reasoning {
            ReasoningRule::Keep => thoughts.or_else(|| self.told_apart(said, parsed)),
            ReasoningRule::Inline | ReasoningRule::Strip => thoughts,
        };
        parts.extend(thoughts.map(|thoughts| Part::Reasoning(thoughts.to_owned())));
        let calls = match parsed.action() {
            Some(Action::Calls { text, calls }) if is_native => {
                if !text.is_empty() {
                    parts.push(Part::Text(text.clone()));
                }
                calls.clone()
            }
            _ => {
                parts.push(Part::Text(said.to_owned()));
                Vec::new()
            }
        };
        Message { tool_calls: calls, ..Message::of_parts(Role::Assistant, parts) }
    }

    /// What the policy itself has told apart as thoughts: what does not stand in its text, where the parser finds it.
    fn told_apart<'b>(&self, text: &str, parsed: &'b ParsedAction) -> Option<&'b str> {
        let ParsedAction::Action { reasoning: Some(thoughts), spans, .. } = parsed else {
            return None;
        };
        let is_in_text = !spans.is_empty()
            && matches!(
                self.parser.parse(text, &self.tools),
                ParsedAction::Action { reasoning: Some(found), .. } if found == *thoughts
            );
        (!is_in_text).then_some(thoughts)
    }

    /// Appends what the environment showed, behind `action` where one was understood.
    pub fn push_observation(&mut self, observation: &Observation, action: Option<&str>) {
        let most = self.scaffold.scaffold().max_observation_chars;
        let mut text = elided(&observation.text, most);
        let admissible = observation.admissible.as_deref().unwrap_or_default();
        if self.config.list_admissible {
            if observation.admissible.is_some() {
                list(&mut text, "Admissible actions:", admissible);
            }
        } else if self.config.list_unnamed {
            let unnamed = self.unnamed(&observation.text, admissible);
            if !unnamed.is_empty() {
                list(&mut text, "Also admissible:", &unnamed);
            }
        }
        if self.config.list_untried != ListUntried::Never {
            self.name_things(&text);
            let untried = action.map(|action| self.untried(action, admissible)).unwrap_or_default();
            if !untried.is_empty() {
                list(&mut text, "Not tried yet:", &untried);
            }
        }
        if let Some(reminder) = &self.reminder {
            text.push_str("\n> ");
            text.push_str(reminder);
        }
        self.push_shown(observation, text);
    }

    /// Appends the results of an observation and its text, as the scaffold has them.
    fn push_shown(&mut self, observation: &Observation, text: String) {
        let scaffold = self.scaffold;
        let most = scaffold.scaffold().max_observation_chars;
        let is_first = self.head == 0;
        let mut results = observation.results.clone();
        results.iter_mut().for_each(|result| result.text = elided(&result.text, most));
        if scaffold.scaffold().tools == ToolUse::Native {
            for result in results.drain(..) {
                let mut message = Message::tool_result(result.call, result.text);
                message.parts.extend(result.media.into_iter().map(Part::Media));
                self.push_message(message);
            }
            if text.is_empty() && observation.media.is_empty() && !observation.results.is_empty() {
                return;
            }
        }
        let media: Vec<Part> = observation
            .media
            .iter()
            .chain(results.iter().flat_map(|result| &result.media))
            .map(|media| Part::Media(media.clone()))
            .collect();
        let written = match is_first {
            true => scaffold.instance(&text, &self.tools),
            false => scaffold.observation(&text, &results),
        };
        let text = written.unwrap_or_else(|| match results.is_empty() {
            true => text,
            false => {
                let told = results.iter().map(|result| &*result.text);
                let told: Vec<&str> =
                    told.chain([&*text]).filter(|text| !text.is_empty()).collect();
                told.join("\n")
            }
        });
        let mut message = Message::new(Role::User, text);
        message.parts.extend(media);
        self.push_message(message);
    }

    /// The actions that are new in this episode and name a thing that `text` does not.
    fn unnamed(&mut self, text: &str, admissible: &[Arc<str>]) -> Vec<Arc<str>> {
        let named: HashSet<(&str, &str)> = numbered_things(text).collect();
        let mut unnamed = Vec::new();
        for action in admissible {
            let is_new = self.known.insert(Arc::clone(action));
            if is_new && numbered_things(action).any(|thing| !named.contains(&thing)) {
                unnamed.push(Arc::clone(action));
            }
        }
        unnamed
    }

    fn name_things(&mut self, text: &str) {
        for (word, number) in numbered_things(text) {
            let place = self.named.len();
            self.named.entry((word.to_owned(), number.to_owned())).or_insert(place);
        }
    }

    /// What could be done in place of an action, where that is to be told.
    fn untried(&mut self, action: &str, admissible: &[Arc<str>]) -> Vec<Arc<str>> {
        let is_new = self.taken.insert(action.to_owned());
        if is_new && self.config.list_untried == ListUntried::Repeated {
            return Vec::new();
        }
        let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
        let word = first_word(action);
        let is_left =
            |other: &&Arc<str>| first_word(other) == word && !self.taken.contains(&***other);
        let mut left: Vec<_> = admissible.iter().filter(is_left).cloned().collect();
        // What names nothing, or nothing that was named, comes last.
        left.sort_by_cached_key(|other| {
            let places = numbered_things(other)
                .map(|(word, number)| self.named.get(&(word.to_owned(), number.to_owned())));
            places.map(|place| place.copied().unwrap_or(usize::MAX)).max().unwrap_or(usize::MAX)
        });
        let mut kinds = HashSet::new();
        left.retain(|other| kinds.insert(without_numbers(other)));
        left.truncate(self.config.max_untried.unwrap_or(usize::MAX));
        left
    }

    /// Appends a message that is no answer of the policy.
    pub(crate) fn push_message(&mut self, message: Message) {
        Arc::make_mut(&mut self.messages).push(Arc::new(message));
    }
}

/// The thoughts at the beginning of an answer, and what was said behind them.
pub(crate) fn split_thoughts(text: &str) -> (Option<&str>, &str) {
    const OPEN: &str = "<think>";
    const CLOSE: &str = "</think>";
    // Some templates open the thoughts in the prompt.
    let begun = text.trim_start().strip_prefix(OPEN);
    match begun.unwrap_or(text).split_once(CLOSE) {
        Some((thoughts, said)) => (Some(thoughts.trim()), said.trim_start()),
        // Thoughts that never end say nothing.
        None => begun.map_or((None, text), |thoughts| (Some(thoughts.trim()), "")),
    }
}

/// What was said in the action that a turn was read as.
pub(crate) fn said_in(parsed: &ParsedAction) -> Option<&str> {
    parsed.action().map(Action::said)
}

fn list(text: &mut String, title: &str, actions: &[Arc<str>]) {
    text.push('\n');
    text.push_str(title);
    for action in actions {
        text.push_str("\n- ");
        text.push_str(action);
    }
}

/// Words with the number behind them, such as `cabinet 7`.
fn numbered_things(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words().zip(words().skip(1)).filter(move |(word, number)| !is_number(word) && is_number(number))
}

/// The words that are no numbers.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_whitespace().filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::ScriptedPolicy;

    fn task() -> Task {
        Task {
            id: "t".to_owned(),
            environment: "e".to_owned(),
            parameters: serde_json::Value::Null,
            instruction: "be good".to_owned(),
            max_turns: 3,
            tags: Vec::new(),
            graders: Vec::new(),
        }
    }

    fn observation(text: &str) -> Observation {
        Observation {
            text: text.to_owned(),
            instruction: Some("heat it".into()),
            admissible: Some([Arc::from("go"), Arc::from("wait")].into()),
            ..Observation::default()
        }
    }

    fn episode(context: &ContextConfig) -> EpisodeConfig {
        EpisodeConfig { context: context.clone(), ..EpisodeConfig::default() }
    }

    fn play(config: &ContextConfig, turns: usize) -> Vec<Prompt> {
        let policy = ScriptedPolicy::new(Vec::<String>::new());
        let (config, task) = (episode(config), task());
        let no_tools = Arc::default();
        let mut context =
            Context::new(&config, Some(&policy), &task, &observation("o0"), Arc::default());
        let mut tokens: Vec<u32> = Vec::new();
        (0..turns)
            .map(|turn| {
                let prompt = context.prompt(&no_tools).unwrap();
                tokens.truncate(prompt.tokens.kept);
                tokens.extend(&prompt.tokens.appended);
                assert_eq!(tokens, *prompt.ids);
                let encode = |message: &Arc<Message>| policy.encode(None, message);
                let encoded: Vec<u32> = prompt.messages.iter().flat_map(encode).collect();
                assert_eq!(encoded, *prompt.ids, "tokens and messages tell the same");
                let answer = Message::new(Role::Assistant, format!("a{turn}"));
                let sampled = policy.encode(None, &answer);
                tokens.extend(&sampled);
                context.push_answer(&answer.text(), &ParsedAction::of("go"), &sampled);
                context.push_observation(&observation(&format!("o{}", turn + 1)), Some("go"));
                prompt
            })
            .collect()
    }

    fn texts(prompt: &Prompt) -> Vec<String> {
        prompt.messages.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn everything_is_appended() {
        let prompts = play(&ContextConfig::default(), 3);
        assert_eq!(texts(&prompts[2]), ["be good", "o0", "a0", "o1", "a1", "o2"]);
        assert_eq!(prompts[0].tokens.kept, 0);
        assert!(prompts[2].tokens.kept > prompts[1].ids.len());
    }

    #[test]
    fn a_window_keeps_the_first_observation_and_the_last_turns() {
        let config =
            ContextConfig { window_turns: Some(1), instruction: false, ..ContextConfig::default() };
        let prompts = play(&config, 4);
        assert_eq!(texts(&prompts[0]), ["o0"]);
        assert_eq!(texts(&prompts[1]), ["o0", "a0", "o1"]);
        assert_eq!(texts(&prompts[3]), ["o0", "a2", "o3"]);
        assert_eq!(prompts[1].tokens.kept, prompts[0].ids.len() + 3);
    }

    #[test]
    fn observations_carry_what_was_asked_for() {
        let config =
            ContextConfig { reminder: true, list_admissible: true, ..ContextConfig::default() };
        let prompts = play(&config, 2);
        assert_eq!(texts(&prompts[1])[3], "o1\nAdmissible actions:\n- go\n- wait\n> heat it");
    }

    #[test]
    fn what_the_text_does_not_name_is_listed_once() {
        let config =
            ContextConfig { instruction: false, list_unnamed: true, ..ContextConfig::default() };
        let seen = |text: &str, actions: &[&str]| Observation {
            admissible: Some(actions.iter().map(|action| Arc::from(*action)).collect()),
            ..observation(text)
        };
        let first = seen(
            "You see a cabinet 10, and a bed 2.",
            &["go to bed 2", "go to cabinet 10", "look"],
        );
        let (config, task) = (episode(&config), task());
        let mut context = Context::new(&config, None, &task, &first, Arc::default());
        let near =
            ["go to bed 2", "open cabinet 1", "open cabinet 10", "take pen 3 from cabinet 10"];
        context.push_observation(&seen("The cabinet 10 is closed.", &near), None);
        context.push_observation(&seen("Nothing happens.", &near), None);
        let shown = context.prompt(&Arc::default()).unwrap();
        let listed = "The cabinet 10 is closed.\nAlso admissible:\n- open cabinet 1\n- take pen 3 from cabinet 10";
        assert_eq!(texts(&shown), [&*first.text, listed, "Nothing happens."]);
    }

    #[test]
    fn what_is_left_stands_in_the_order_in_which_it_was_named() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Always,
            max_untried: Some(2),
            ..ContextConfig::default()
        };
        let seen = |text: &str| Observation {
            admissible: Some(
                ["go away", "go to bed 1", "go to bed 2", "go to desk 1", "look"]
                    .map(Arc::from)
                    .into(),
            ),
            ..observation(text)
        };
        let first = seen("You see a desk 1, and a bed 2.");
        let (config, task) = (episode(&config), task());
        let mut context = Context::new(&config, None, &task, &first, Arc::default());
        let mut next = |action: Option<&str>| {
            context.push_observation(&seen("o"), action);
            context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next(None), "o");
        assert_eq!(next(Some("look")), "o");
        assert_eq!(next(Some("go off")), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
        assert_eq!(next(Some("go to desk 1")), "o\nNot tried yet:\n- go to bed 2\n- go away");
        assert_eq!(next(Some("go to bed 2")), "o\nNot tried yet:\n- go away\n- go to bed 1");
    }

    #[test]
    fn of_what_differs_in_numbers_alone_one_is_listed() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Always,
            ..ContextConfig::default()
        };
        let first = observation("You see a desk 1, a bed 2, a bed 1, and a desk 2.");
        let (config, task) = (episode(&config), task());
        let mut context = Context::new(&config, None, &task, &first, Arc::default());
        let mut next = |action: &str| {
            let admissible =
                ["go to bed 1", "go to bed 2", "go to desk 1", "go to desk 2"].map(Arc::from);
            let observation =
                Observation { admissible: Some(admissible.into()), ..observation("o") };
            context.push_observation(&observation, Some(action));
            context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next("go off"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
        assert_eq!(next("go to bed 2"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 1");
        assert_eq!(next("go to bed 1"), "o\nNot tried yet:\n- go to desk 1");
        assert_eq!(next("go to desk 1"), "o\nNot tried yet:\n- go to desk 2");
    }

    #[test]
    fn who_repeats_an_action_is_told_what_is_left() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Repeated,
            ..ContextConfig::default()
        };
        let (config, task) = (episode(&config), task());
        let mut context = Context::new(&config, None, &task, &observation("o0"), Arc::default());
        let mut next = |action: Option<&str>| {
            let admissible =
                ["go to bed 1", "go to bed 2", "go to desk 1", "goad", "look"].map(Arc::from);
            let observation =
                Observation { admissible: Some(admissible.into()), ..observation("o") };
            context.push_observation(&observation, action);
            context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next(Some("go to bed 1")), "o");
        assert_eq!(next(Some("go to desk 1")), "o");
        assert_eq!(next(None), "o");
        assert_eq!(next(Some("go to bed 1")), "o\nNot tried yet:\n- go to bed 2");
        assert_eq!(next(Some("go to bed 2")), "o");
        // Nothing is left.
        assert_eq!(next(Some("go to bed 2")), "o");
    }

    fn scaffolded(scaffold: &str, context: ContextConfig) -> EpisodeConfig {
        let scaffold = ScaffoldChoice::named(scaffold).unwrap();
        EpisodeConfig { scaffold, context, ..EpisodeConfig::default() }
    }

    fn tools(names: &[&str]) -> Arc<[ToolSpec]> {
        let tool = |name: &&str| ToolSpec::new(*name, "A tool.", serde_json::json!({}));
        names.iter().map(tool).collect()
    }

    fn called(id: &str) -> (ParsedAction, Observation) {
        let call = spar_core::ToolCall {
            id: id.to_owned(),
            ..spar_core::ToolCall::new("f", Default::default())
        };
        let results = vec![spar_core::ToolResult::new(&call, "done")];
        let observation = Observation { results, ..Observation::default() };
        (ParsedAction::of(Action::calls(vec![call])), observation)
    }

    #[test]
    fn calls_and_results_are_messages_of_their_own_where_the_model_knows_them() {
        let config = scaffolded("tools", ContextConfig::default());
        let (task, first) = (task(), Observation::new("o0"));
        let mut context = Context::new(&config, None, &task, &first, tools(&["f"]));
        let (parsed, observation) = called("c1");
        context.prompt(&tools(&["f"])).unwrap();
        context.push_answer("f()", &parsed, &[]);
        context.push_observation(&observation, None);
        let messages = context.prompt(&tools(&["f"])).unwrap().messages;
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
        assert_eq!(messages[2].tool_calls[0].name, "f");
        assert_eq!(messages[3].tool_call_id.as_deref(), Some("c1"));
        assert_eq!((&*messages[3].text(), &*messages[2].text()), ("done", ""));
        // In words they are words.
        let config = scaffolded("react", ContextConfig::default());
        let mut context = Context::new(&config, None, &task, &first, tools(&["f"]));
        context.prompt(&tools(&["f"])).unwrap();
        context.push_answer("Action: f\nAction Input: {}", &parsed, &[]);
        context.push_observation(&observation, None);
        let messages = context.prompt(&tools(&["f", "g"])).unwrap().messages;
        assert!(
            messages[0].text().contains("f: A tool.") && messages[0].text().contains("g: A tool.")
        );
        assert_eq!(messages[2].text(), "Action: f\nAction Input: {}");
        assert_eq!((messages[3].role, &*messages[3].text()), (Role::User, "Observation: done\n"));
    }

    #[test]
    fn other_tools_begin_a_prompt_that_keeps_what_is_equal() {
        let config = scaffolded("tools", ContextConfig::default());
        let policy = ScriptedPolicy::new(Vec::<String>::new());
        let (task, first) = (task(), Observation::new("o0"));
        let mut context = Context::new(&config, Some(&policy), &task, &first, tools(&["f"]));
        let begun = context.prompt(&tools(&["f"])).unwrap();
        let (parsed, observation) = called("c1");
        let sampled = policy.encode_answer("f()");
        context.push_answer("f()", &parsed, &sampled);
        context.push_observation(&observation, None);
        let same = context.prompt(&tools(&["f"])).unwrap();
        assert_eq!(same.tokens.kept, begun.ids.len() + sampled.len());
        context.push_answer("f()", &parsed, &sampled);
        context.push_observation(&observation, None);
        let other = context.prompt(&tools(&["g"])).unwrap();
        // A scripted policy's tokens tell nothing of tools: up to the answer, which is laid out anew, they are equal.
        assert_eq!(other.tokens.kept, begun.ids.len());
        assert_eq!(other.ids.len(), other.tokens.kept + other.tokens.appended.len());
    }

    #[test]
    fn thoughts_are_kept_or_left_out_of_later_turns() {
        let policy = ScriptedPolicy::new(Vec::<String>::new());
        let written = "<think>\nleft?\n</think>\n\ngo";
        let (task, first) = (task(), Observation::new("o0"));
        let second = |rule, window_turns| {
            let context = ContextConfig {
                reasoning: rule,
                window_turns,
                instruction: false,
                ..ContextConfig::default()
            };
            let config = scaffolded("plain", context);
            let mut context = Context::new(&config, Some(&policy), &task, &first, Arc::default());
            let begun = context.prompt(&Arc::default()).unwrap().ids.len();
            context.push_answer(written, &ParsedAction::of("go"), &policy.encode_answer(written));
            context.push_observation(&Observation::new("o1"), None);
            let prompt = context.prompt(&Arc::default()).unwrap();
            let text: String = prompt
                .ids
                .iter()
                .filter_map(|id| char::from_u32(*id))
                .filter(char::is_ascii)
                .collect();
            (prompt.tokens.kept - begun, text, prompt.messages[1].reasoning().into_owned())
        };
        let whole = policy.encode_answer(written).len();
        for window in [None, Some(4)] {
            let (kept, text, thoughts) = second(ReasoningRule::Inline, window);
            assert_eq!((kept, &*thoughts), (whole, ""));
            assert_eq!(text, format!("o0{written}o1"));
            let (kept, text, thoughts) = second(ReasoningRule::Keep, window);
            assert_eq!((kept, &*thoughts), (whole, "left?"));
            assert_eq!(text, format!("o0{written}o1"));
            let (kept, text, thoughts) = second(ReasoningRule::Strip, window);
            assert_eq!((kept, &*text, &*thoughts), (0, "o0goo1", ""));
        }
    }

    #[test]
    fn thoughts_that_an_endpoint_tells_apart_are_kept() {
        let (task, first) = (task(), Observation::new("o0"));
        let thoughts = |scaffold, rule, text: &str, parsed: &ParsedAction| {
            let context = ContextConfig { reasoning: rule, ..ContextConfig::default() };
            let config = scaffolded(scaffold, context);
            let mut context = Context::new(&config, None, &task, &first, tools(&["f"]));
            context.push_answer(text, parsed, &[]);
            let last = Arc::clone(context.messages.last().unwrap());
            (last.reasoning().into_owned(), last.text().into_owned(), last.to_openai())
        };
        let told = |action: Action, spans| ParsedAction::Action {
            action,
            spans,
            reasoning: Some("left?".to_owned()),
        };
        let in_words = told(Action::from("go"), std::iter::once(0..2).collect());
        let calls = called("c1").0.action().unwrap().clone();
        let by_call = told(calls, Vec::new());
        for (scaffold, text, parsed) in [("plain", "go", &in_words), ("tools", "", &by_call)] {
            let (kept, said, sent) = thoughts(scaffold, ReasoningRule::Keep, text, parsed);
            assert_eq!((&*kept, &*said), ("left?", text));
            assert_eq!(sent["reasoning_content"], "left?");
            for rule in [ReasoningRule::Strip, ReasoningRule::Inline] {
                let (kept, said, _) = thoughts(scaffold, rule, text, parsed);
                assert_eq!((&*kept, &*said), ("", text));
            }
        }
        // What a parser has found in the text stands there already.
        let text = "Thought: left?\nAction: f\nAction Input: {}";
        let config = scaffolded("react", ContextConfig::default());
        let read = config.parser().parse(text, &tools(&["f"]));
        assert!(matches!(&read, ParsedAction::Action { reasoning: Some(it), .. } if it == "left?"));
        let (kept, said, _) = thoughts("react", ReasoningRule::Keep, text, &read);
        assert_eq!((&*kept, &*said), ("", text));
    }

    #[test]
    fn thoughts_are_found_before_what_was_said() {
        assert_eq!(split_thoughts("go"), (None, "go"));
        assert_eq!(split_thoughts("<think>a</think>\n\ngo"), (Some("a"), "go"));
        assert_eq!(split_thoughts("a</think>go"), (Some("a"), "go"));
        assert_eq!(split_thoughts(" <think>a"), (Some("a"), ""));
    }
}
