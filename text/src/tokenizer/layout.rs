//! What stands around the content of messages that are encoded one by one.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use spar_core::{Message, Role};

use super::{Tokenizer, file};
use crate::chat_template::{ChatInput, ChatTemplate, ControlTokens};

/// The day that templates are told which ask for it: 26 July 2024, which Llama's take where they
/// are told none. A prompt must not depend on the day a run is resumed.
pub(super) const DAY: Duration = Duration::from_secs(1_721_952_000);

/// How messages are encoded one by one.
#[derive(Debug, Clone)]
pub(super) enum Layout {
    /// Marks of tokenizers made here, the same wherever a message stands.
    Own(Marks),
    /// What a chat template writes.
    Template(Box<TemplateLayout>),
}

/// The marks of tokenizers made here.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    system: u32,
    user: u32,
    /// Opens the policy's turn.
    assistant: u32,
    end: u32,
}

/// What a chat template writes around the contents of a conversation in which a question and an
/// answer take turns, instructions before them or not.
#[derive(Debug, Clone)]
pub(super) struct TemplateLayout {
    /// Before the first question and behind it, where there are no instructions.
    opening: [String; 2],
    /// Before instructions, between them and the first question, and behind that. Absent where the
    /// template has no place for them, or moves them as the conversation goes on.
    instructed: Option<[String; 3]>,
    /// Between the end of an answer and the next question, and behind that.
    next: [String; 2],
    /// Before an answer and behind it, up to the token that ends it.
    answer: [String; 2],
    /// Whether white space around contents of each role is left out.
    trims: Trims,
    end: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Trims {
    system: bool,
    user: bool,
    assistant: bool,
}

impl Layout {
    /// The token that ends the policy's turn.
    pub(super) fn end(&self) -> u32 {
        match self {
            Self::Own(marks) => marks.end,
            Self::Template(layout) => layout.end,
        }
    }

    /// What stands before the words of every answer.
    pub(super) fn before_answer(&self) -> &str {
        match self {
            Self::Own(_) => "",
            Self::Template(layout) => &layout.answer[0],
        }
    }

    /// Whether instructions stand where the model's own template puts them.
    pub(super) fn has_place_for_instructions(&self) -> bool {
        match self {
            Self::Own(_) => true,
            Self::Template(layout) => layout.instructed.is_some(),
        }
    }

    /// The tokens of a message behind the one before it.
    pub(super) fn encode(
        &self,
        tokenizer: &Tokenizer,
        before: Option<&Message>,
        message: &Message,
    ) -> Vec<u32> {
        match self {
            Self::Own(marks) => marks.encode(tokenizer, message),
            Self::Template(layout) => layout.encode(tokenizer, before, message),
        }
    }
}

impl Marks {
    pub(super) fn new(inner: &tokenizers::Tokenizer) -> Option<Self> {
        let special = inner.get_added_tokens_decoder();
        let mark = |mark: &str| inner.token_to_id(mark).filter(|id| special.contains_key(id));
        Some(Self {
            system: mark(file::SYSTEM)?,
            user: mark(file::USER)?,
            assistant: mark(file::ASSISTANT)?,
            end: mark(file::END)?,
        })
    }

    fn encode(&self, tokenizer: &Tokenizer, message: &Message) -> Vec<u32> {
        let (before, after) = match message.role {
            Role::System => (Some(self.system), None),
            Role::User | Role::Tool => (Some(self.user), Some(self.assistant)),
            Role::Assistant => (None, Some(self.end)),
        };
        let mut ids: Vec<u32> = before.into_iter().collect();
        // A space is thought before the contents, whatever stands there.
        tokenizer.encode_into(&message.text(), true, &mut ids);
        ids.extend(after);
        ids
    }
}

impl TemplateLayout {
    /// What `template` writes, as long as it lays a conversation out message by message: its text
    /// for a conversation up to a question is the beginning of its text for a longer one, the
    /// tokens are those that it has as a whole, and a control token ends an answer. `None` where
    /// that is not so.
    pub(super) fn new(tokenizer: &Tokenizer, template: &ChatTemplate) -> Option<Self> {
        let probe = Probe { template, control: &tokenizer.control.texts };
        // 1. What stands around contents that occur once.
        let [before_first, after_first] = probe.around(&[Role::User])?.try_into().ok()?;
        let long = [Role::User, Role::Assistant, Role::User];
        let [before, between, behind, after] = probe.around(&long)?.try_into().ok()?;
        let before_answer = between.strip_prefix(&*after_first)?.to_owned();
        let (token, range) = probe.control.find(&behind, 0..behind.len())?;
        let end = tokenizer.control.tokens.get(token)?.id;
        if before != before_first {
            return None;
        }
        let mut layout = Self {
            opening: [before_first, after_first],
            instructed: None,
            next: [behind[range.end..].to_owned(), after],
            answer: [before_answer, behind[..range.start].to_owned()],
            trims: Trims::default(),
            end,
        };
        layout.trims.user = probe.trims(&[Role::User], 0)?;
        layout.trims.assistant = probe.trims(&long, 1)?;
        // 2. Whether that is all there is to it.
        let plain = [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::User];
        for turns in [1, 3, 5] {
            probe.check(&layout, tokenizer, &plain[..turns])?;
        }

        // 3. Instructions, where they have a place of their own.
        let parts = probe.around(&[Role::System, Role::User]);
        let instructed: Option<[String; 3]> = parts.and_then(|parts| parts.try_into().ok());
        if let Some(instructed) = instructed
            && let Some(trims) = probe.trims(&[Role::System, Role::User], 0)
        {
            let mut with = layout.clone();
            with.instructed = Some(instructed);
            with.trims.system = trims;
            let roles = [&[Role::System], &plain[..]].concat();
            let fits = [2, 4, 6]
                .into_iter()
                .all(|turns| probe.check(&with, tokenizer, &roles[..turns]).is_some());
            if fits {
                return Some(with);
            }
        }
        Some(layout)
    }

    fn encode(
        &self,
        tokenizer: &Tokenizer,
        before: Option<&Message>,
        message: &Message,
    ) -> Vec<u32> {
        let trimmed = |message: &Message| {
            let trims = match message.role {
                Role::System => self.trims.system,
                Role::User | Role::Tool => self.trims.user,
                Role::Assistant => self.trims.assistant,
            };
            let text = message.text();
            if trims { text.trim().to_owned() } else { text.into_owned() }
        };
        let mut text = Text::default();
        let mut is_start = false;
        match (message.role, before) {
            // They come with the question, which may be part of the same text.
            (Role::System, _) => return Vec::new(),
            (Role::User | Role::Tool, None) => {
                is_start = true;
                text.push(&self.opening[0]).push_content(&trimmed(message)).push(&self.opening[1]);
            }
            (Role::User | Role::Tool, Some(system)) if system.role == Role::System => {
                is_start = true;
                let question = trimmed(message);
                match &self.instructed {
                    Some([first, between, last]) => text
                        .push(first)
                        .push_content(&trimmed(system))
                        .push(between)
                        .push_content(&question)
                        .push(last),
                    // As is usual with models that know no instructions.
                    None => text
                        .push(&self.opening[0])
                        .push_content(&format!("{}\n\n{question}", system.text()))
                        .push(&self.opening[1]),
                };
            }
            (Role::User | Role::Tool, Some(_)) => {
                text.push(&self.next[0]).push_content(&trimmed(message)).push(&self.next[1]);
            }
            (Role::Assistant, _) => {
                text.push(&self.answer[0]).push_content(&trimmed(message)).push(&self.answer[1]);
            }
        }
        let mut ids = tokenizer.encode_laid_out(&text.text, is_start, &text.contents);
        if message.role == Role::Assistant {
            ids.push(self.end);
        }
        ids
    }
}

/// A text with what of it is content.
#[derive(Debug, Default)]
struct Text {
    text: String,
    contents: Vec<Range<usize>>,
}

impl Text {
    fn push(&mut self, part: &str) -> &mut Self {
        self.text.push_str(part);
        self
    }

    fn push_content(&mut self, content: &str) -> &mut Self {
        let start = self.text.len();
        self.text.push_str(content);
        self.contents.push(start..self.text.len());
        self
    }
}

/// A template that is tried on made-up conversations.
struct Probe<'a> {
    template: &'a ChatTemplate,
    control: &'a ControlTokens,
}

impl Probe<'_> {
    /// A message whose content occurs nowhere else.
    fn message(index: usize, role: Role) -> Message {
        Message::new(role, format!("{index}message{index}"))
    }

    fn render(&self, messages: &[Message]) -> Option<String> {
        let values = messages.iter().map(Message::to_template).collect();
        let input = ChatInput { now: Some(SystemTime::UNIX_EPOCH + DAY), ..ChatInput::new(values) };
        Some(self.template.render(&input, self.control).ok()?.into_text())
    }

    /// What stands before, between and behind the contents of messages of these roles, each of
    /// which has to occur once, in order.
    fn around(&self, roles: &[Role]) -> Option<Vec<String>> {
        let messages: Vec<Message> =
            roles.iter().enumerate().map(|(index, role)| Self::message(index, *role)).collect();
        let text = self.render(&messages)?;
        let mut parts = Vec::with_capacity(messages.len() + 1);
        let mut rest = &*text;
        for message in &messages {
            let (before, after) = rest.split_once(&*message.text())?;
            parts.push(before.to_owned());
            rest = after;
        }
        parts.push(rest.to_owned());
        Some(parts)
    }

    /// Whether white space around the content of message `place` is left out.
    fn trims(&self, roles: &[Role], place: usize) -> Option<bool> {
        let mut messages: Vec<Message> =
            roles.iter().enumerate().map(|(index, role)| Self::message(index, *role)).collect();
        let plain = self.render(&messages)?;
        let content = messages[place].text().into_owned();
        let spaced = format!(" \n{content}\n ");
        messages[place] = Message::new(roles[place], spaced.as_str());
        let found = self.render(&messages)?;
        if found == plain {
            return Some(true);
        }
        (found == plain.replacen(&content, &spaced, 1)).then_some(false)
    }

    /// That messages one by one have the tokens of the whole.
    fn check(&self, layout: &TemplateLayout, tokenizer: &Tokenizer, roles: &[Role]) -> Option<()> {
        let messages: Vec<Message> =
            roles.iter().enumerate().map(|(index, role)| Self::message(index, *role)).collect();
        let whole = tokenizer.encode_laid_out(&self.render(&messages)?, true, &[]);
        let mut one_by_one = Vec::new();
        let mut before = None;
        for message in &messages {
            one_by_one.extend(layout.encode(tokenizer, before, message));
            before = Some(message);
        }
        (one_by_one == whole).then_some(())
    }
}
