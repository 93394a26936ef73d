//! The conversation of one episode.

use std::borrow::Cow;
use std::sync::Arc;

use spar_core::{
    Action, Conversation, Encoded, Message, Observation, ParsedAction, Part, Policy, PolicyError,
    PromptTokens, Role, ToolSpec, Trajectory, Turn,
};
use spar_tasks::Task;

use super::thoughts::split_thoughts;
use super::{ContextConfig, ContextPolicy, Listing, Prompt, ReasoningRule};
use crate::scaffolds::{ToolUse, elided};
use crate::{EpisodeConfig, ParserChoice, ScaffoldChoice};

/// What a message of a conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Part of the task: its instruction, and what was shown first.
    Task,
    /// The answer that led to the observation of this number.
    Answer(usize),
    /// Part of the observation of this number, counted from 0 behind the first one.
    Shown(usize),
    /// What is left of an observation, or could not be left out.
    Elided,
    /// What was said to the policy, and no environment showed.
    Said,
}

/// The conversation of one episode, as messages and as tokens.
///
/// Every message is encoded once, as long as the conversation goes on from what stands; what a policy sampled stays as it
/// was sampled.
pub struct Context<'a> {
    pub(super) config: &'a ContextConfig,
    parser: &'a ParserChoice,
    scaffold: &'a ScaffoldChoice,
    /// How many of the last turns are kept in sight.
    window: Option<usize>,
    /// What becomes of the conversation as it grows; absent where all is kept.
    pub(super) policy: Option<&'a dyn ContextPolicy>,
    encoder: Option<&'a dyn Policy>,
    reminder: Option<Arc<str>>,
    listing: Listing,
    /// Shared with the requests that are under way.
    pub(super) messages: Arc<Vec<Arc<Message>>>,
    /// What each of them is.
    pub(super) marks: Vec<Mark>,
    /// Observations that were shown behind the first one.
    pub(super) num_observations: usize,
    /// Turns that were dropped without having been summed up.
    pub(super) dropped: usize,
    /// Answers that acted since the conversation was last summed up.
    pub(super) since_summary: usize,
    /// The last message of the task as it was before anything stood behind it.
    pub(super) task: Option<Arc<Message>>,
    /// The instruction of the task, as far as it is told.
    instruction: Cow<'a, str>,
    /// The tools that were offered last.
    tools: Arc<[ToolSpec]>,
    /// How many messages come before the first turn.
    pub(super) head: usize,
    /// How many messages `previous` stands for.
    pub(super) encoded: usize,
    /// Whether `previous` is not what the conversation goes on from, because of other tools, or since thoughts are left
    /// out.
    pub(super) is_broken: bool,
    /// Tokens of every message; only kept where a window may show them again, and each stands alone.
    tokens: Vec<Vec<u32>>,
    /// Whether the policy has laid out all messages one by one so far.
    stand_alone: bool,
    /// The previous turn's prompt and sampled tokens.
    pub(super) previous: Vec<u32>,
    /// Where in them those begin that were sampled.
    pub(super) answer: usize,
    /// Whether what answers show is written into the answer itself, which then goes on.
    in_turn: bool,
    /// Whether the last message is an answer that goes on.
    is_open: bool,
    /// Tokens of what was written into an answer since it was sampled.
    written: Vec<u32>,
    /// The previous turn's prompt and sampled tokens where the policy lays conversations out itself, and tells.
    pub(super) laid_out: Vec<u32>,
}

impl<'a> Context<'a> {
    /// The conversation after a reset, with the tools that are offered first; without an encoder it has no tokens. What
    /// `first` has for an instruction stands behind the task's where `has_own_instruction`.
    pub fn new(
        episode: &'a EpisodeConfig,
        encoder: Option<&'a dyn Policy>,
        task: &'a Task,
        first: &Observation,
        tools: Arc<[ToolSpec]>,
        has_own_instruction: bool,
    ) -> Self {
        let config = &episode.context;
        let mut context = Self::empty(episode, encoder);
        context.reminder = first.instruction.clone().filter(|_| config.reminder);
        let own = first.instruction.as_deref().filter(|_| has_own_instruction);
        context.instruction = match (config.instruction, own) {
            (false, _) => Cow::Borrowed(""),
            (true, None) => Cow::Borrowed(&*task.instruction),
            (true, Some(own)) if task.instruction.is_empty() => Cow::Owned(own.to_owned()),
            (true, Some(own)) => Cow::Owned(format!("{}\n\n{own}", task.instruction)),
        };
        context.tools = tools;
        let system = context.system();
        if !system.is_empty() {
            context.push(Mark::Task, Message::new(Role::System, system));
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
            policy: Some(episode.context_policy()).filter(|policy| !policy.keeps_all()),
            encoder,
            reminder: None,
            listing: Listing::default(),
            messages: Arc::default(),
            marks: Vec::new(),
            num_observations: 0,
            dropped: 0,
            since_summary: 0,
            task: None,
            instruction: Cow::Borrowed(""),
            tools: Arc::default(),
            head: 0,
            encoded: 0,
            is_broken: false,
            tokens: Vec::new(),
            stand_alone: true,
            previous: Vec::new(),
            answer: 0,
            // A policy that works on text is shown messages alone.
            in_turn: episode.in_turn().is_some()
                && encoder.is_none_or(|encoder| !encoder.encode_text("a").is_empty()),
            is_open: false,
            written: Vec::new(),
            laid_out: Vec::new(),
        }
    }

    /// The system's message; empty where there is none.
    fn system(&self) -> String {
        let system = self.scaffold.system(&self.instruction, &self.tools);
        system.unwrap_or_else(|| self.instruction.clone().into_owned())
    }

    /// Offers tools from here on.
    pub(super) fn offer(&mut self, tools: &Arc<[ToolSpec]>) {
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
        let written = std::mem::take(&mut self.written);
        if self.is_open {
            return self.go_on(written);
        }
        if !written.is_empty() {
            return self.end_open(&written);
        }
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

    /// The prompt behind what was written into the answer that goes on.
    fn go_on(&mut self, written: Vec<u32>) -> Result<Prompt, PolicyError> {
        if self.is_broken {
            let name = self.encoder.map_or("none", |encoder| encoder.name()).to_owned();
            let what = "tools that change while an answer goes on".to_owned();
            return Err(PolicyError::Unsupported { name, what });
        }
        let kept = self.previous.len();
        self.previous.extend_from_slice(&written);
        Ok(Prompt {
            messages: Arc::clone(&self.messages),
            ids: Arc::from(self.previous.as_slice()),
            tokens: PromptTokens { kept, appended: written },
        })
    }

    /// The prompt where something else was said behind an answer that would have gone on.
    fn end_open(&mut self, written: &[u32]) -> Result<Prompt, PolicyError> {
        let kept = self.previous.len();
        self.previous.extend_from_slice(written);
        let encoded = if self.is_broken { 0 } else { self.encoded };
        let behind = self.encode(&self.messages, encoded)?;
        self.encoded = self.messages.len();
        self.is_broken = false;
        match behind {
            Encoded::Alone(ids) | Encoded::Behind(ids) if encoded > 0 => {
                self.previous.extend_from_slice(&ids);
                Ok(Prompt {
                    messages: Arc::clone(&self.messages),
                    ids: Arc::from(self.previous.as_slice()),
                    tokens: PromptTokens { kept, appended: self.previous[kept..].to_vec() },
                })
            }
            Encoded::Alone(ids) | Encoded::Behind(ids) | Encoded::Anew(ids) => {
                // What was written stands in no turn's record yet.
                self.previous.truncate(kept);
                Ok(self.begin_anew(Arc::clone(&self.messages), ids))
            }
        }
    }

    /// The prompt of a turn that another episode of the same policy and configuration was given behind the same past,
    /// taken over instead of being laid out again.
    pub(crate) fn take_over(&mut self, tools: &Arc<[ToolSpec]>, prompt: &PromptTokens) {
        self.offer(tools);
        self.written.clear();
        self.previous.truncate(prompt.kept);
        self.previous.extend_from_slice(&prompt.appended);
        self.encoded = self.messages.len();
        self.is_broken = false;
    }

    /// Whether a prompt of tokens can be taken over: a window shows messages again, whose tokens are kept one by one, and
    /// a context policy has to see what it was asked of.
    pub(crate) fn can_take_over(&self, prompt: &PromptTokens) -> bool {
        self.window.is_none() && self.policy.is_none() && prompt.kept <= self.previous.len()
    }

    /// A prompt that keeps of the tokens before what is equal at the beginning.
    pub(super) fn begin_anew(&mut self, messages: Arc<Vec<Arc<Message>>>, ids: Vec<u32>) -> Prompt {
        let kept = ids.iter().zip(&self.previous).take_while(|(a, b)| a == b).count();
        let prompt = Prompt {
            messages,
            ids: Arc::from(ids.as_slice()),
            tokens: PromptTokens { kept, appended: ids[kept..].to_vec() },
        };
        self.previous = ids;
        prompt
    }

    pub(super) fn encode(
        &self,
        messages: &[Arc<Message>],
        encoded: usize,
    ) -> Result<Encoded, PolicyError> {
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
        let calls = parsed.action().is_some_and(|action| !action.tool_calls().is_empty());
        let was_open = std::mem::replace(&mut self.is_open, self.in_turn && calls);
        if was_open {
            self.append_to_answer(text);
            self.since_summary += 1;
            self.previous.extend_from_slice(sampled);
            return;
        }
        let mut message = self.answer(text, parsed);
        let strips =
            self.config.reasoning == ReasoningRule::Strip && !message.reasoning().is_empty();
        if strips {
            message.parts.retain(|part| !matches!(part, Part::Reasoning(_)));
            self.is_broken = true;
        }
        self.push(Mark::Answer(self.num_observations), message);
        self.since_summary += 1;
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

    /// Appends a turn in which the policy acted: its answer, with the tokens as it sampled them, or what was [carried
    /// out](Observation::carried_out) in its place, and what the environment showed.
    pub(crate) fn push_acted(&mut self, turn: &Turn, sampled: &[u32]) {
        let shown = &turn.step.observation;
        match &shown.carried_out {
            None => {
                self.push_answer(&turn.text, &turn.parsed, sampled);
                self.push_observation(shown, said_in(&turn.parsed));
            }
            Some(action) => {
                self.push_carried_out(action, sampled);
                self.push_observation(shown, Some(action.said()));
            }
        }
    }

    /// Appends an action in the place of the answer with these tokens: the conversation is laid out anew behind what stood before
    /// that.
    fn push_carried_out(&mut self, action: &Action, sampled: &[u32]) {
        // Who plays has refused what cannot be written.
        let written = self.parser.write(action, &self.tools);
        let written = written.unwrap_or_else(|_| action.key().into_owned());
        let message = self.answer(&written, &ParsedAction::of(action.clone()));
        self.is_open = false;
        self.is_broken = true;
        self.push(Mark::Answer(self.num_observations), message);
        self.since_summary += 1;
        self.encoded = self.messages.len();
        self.answer = self.previous.len();
        if self.laid_out.is_empty() {
            self.previous.extend_from_slice(sampled);
        } else {
            self.laid_out.extend_from_slice(sampled);
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
        self.listing.append(self.config, &mut text, observation, action);
        if let Some(reminder) = &self.reminder {
            text.push_str("\n> ");
            text.push_str(reminder);
        }
        let mark = match self.head {
            0 => Mark::Task,
            _ => Mark::Shown(self.num_observations),
        };
        self.push_shown(mark, observation, text);
        self.num_observations += usize::from(mark != Mark::Task);
    }

    /// Writes behind the last message, which is an answer.
    fn append_to_answer(&mut self, text: &str) {
        let messages = Arc::make_mut(&mut self.messages);
        let Some(last) = messages.last_mut().map(Arc::make_mut) else { return };
        match last.parts.last_mut() {
            Some(Part::Text(before)) => before.push_str(text),
            _ => last.parts.push(Part::Text(text.to_owned())),
        }
    }

    /// Appends the results of an observation and its text, as the scaffold has them.
    fn push_shown(&mut self, mark: Mark, observation: &Observation, text: String) {
        let scaffold = self.scaffold;
        let most = scaffold.scaffold().max_observation_chars;
        let is_first = mark == Mark::Task;
        let mut results = observation.results.clone();
        results.iter_mut().for_each(|result| result.text = elided(&result.text, most));
        if scaffold.scaffold().tools == ToolUse::Native {
            for result in results.drain(..) {
                let mut message = Message::tool_result(result.call, result.text);
                message.parts.extend(result.media.into_iter().map(Part::Media));
                self.push(mark, message);
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
        if self.is_open {
            let text = written.unwrap_or_default();
            self.append_to_answer(&text);
            if let Some(encoder) = self.encoder {
                self.written.extend(encoder.encode_text(&text));
            }
            return;
        }
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
        self.push(mark, message);
    }

    /// Appends a message that is no answer of the policy.
    pub(crate) fn push_message(&mut self, message: Message) {
        self.is_open = false;
        self.push(Mark::Said, message);
    }

    /// All messages, of which none are left.
    fn take_messages(&mut self) -> Vec<Arc<Message>> {
        self.marks.clear();
        Arc::unwrap_or_clone(std::mem::take(&mut self.messages))
    }

    pub(super) fn push(&mut self, mark: Mark, message: Message) {
        Arc::make_mut(&mut self.messages).push(Arc::new(message));
        self.marks.push(mark);
    }
}

impl EpisodeConfig {
    /// All messages of an episode of one seat as its policy was shown them and wrote them, oldest first; `task` is what it
    /// played. What windows and context policies left out of single prompts is here, and summaries are not.
    pub fn conversation(&self, task: &Task, trajectory: &Trajectory) -> Vec<Arc<Message>> {
        let first = &trajectory.first_observation;
        let mut context = Context::new(self, None, task, first, trajectory.tools_at(0), false);
        for (index, turn) in trajectory.turns.iter().enumerate() {
            context.offer(&trajectory.tools_at(index));
            turn.injected.iter().for_each(|message| context.push_message(message.clone()));
            if turn.is_summary() {
                continue;
            }
            context.push_acted(turn, &[]);
        }
        Arc::unwrap_or_clone(context.messages)
    }

    /// What is shown of each of an episode's observations, with what is listed behind it, reminders left out.
    pub fn observations(&self, trajectory: &Trajectory) -> Vec<Vec<Arc<Message>>> {
        let mut context = Context::empty(self, None);
        context.tools = trajectory.tools_at(0);
        let mut shown = Vec::with_capacity(trajectory.turns.len() + 1);
        context.push_observation(&trajectory.first_observation, None);
        shown.push(context.take_messages());
        // What comes now is not the first.
        context.head = 1;
        for turn in &trajectory.turns {
            if turn.is_summary() {
                shown.push(Vec::new());
                continue;
            }
            let observation = &turn.step.observation;
            let carried_out = observation.carried_out.as_ref().map(Action::said);
            context.push_observation(observation, carried_out.or(said_in(&turn.parsed)));
            shown.push(context.take_messages());
        }
        shown
    }
}

/// What was said in the action that a turn was read as.
pub(crate) fn said_in(parsed: &ParsedAction) -> Option<&str> {
    parsed.action().map(Action::said)
}
