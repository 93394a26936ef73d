//! Conversations as the text that a model was trained on, by the Jinja template it ships with.
//!
//! A template runs as it runs in Hugging Face's transformers, to the byte: with the same filters and
//! functions, `tojson` as Python writes JSON, values printed as Python prints them, and messages
//! prepared alike (fields that are null left out, reasoning under all its names).
//!
//! Templates are programs of strangers. They see what they are given and nothing else, and one that
//! does not end is stopped.
//!
//! What a template writes may become control tokens, what stands in a message never does:
//! [`RenderedChat`] keeps the two apart. So no message can end its turn early or speak in another
//! role, whatever it says.
//!
//! What minijinja leaves out of Jinja2 are `%` on strings, and that text marked `safe` escapes what
//! is added to it; where Python stops with a type error, as at a loop over `None`, a template may go
//! on here.

mod assistant;
mod control;
mod environment;
mod files;
mod marks;
mod python;
mod strftime;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use minijinja::{Environment, ErrorKind};
use serde_json::{Map, Value};

pub use self::control::ControlTokens;
use self::marks::Marks;
pub use self::marks::RenderedChat;
use crate::ChatTemplateError;

/// Name of the template that is used unless another one is asked for.
const DEFAULT: &str = "default";
/// Name of the one that is used where there are tools, if there is one.
const TOOL_USE: &str = "tool_use";
/// Names that a message's reasoning goes by; templates read the first.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// What a template is given.
#[derive(Debug, Clone, Default)]
pub struct ChatInput {
    /// Messages as objects with `role`, `content`, and what else the template knows
    /// (`tool_calls`, `name`, `reasoning_content`); at least one.
    pub messages: Vec<Value>,
    /// Tools the model may call, as JSON schemas (`{"type": "function", "function": {...}}`).
    pub tools: Option<Vec<Value>>,
    /// Documents for models that answer from them, objects with `title` and `text`.
    pub documents: Option<Vec<Value>>,
    /// Whether the text ends where the model's answer begins.
    pub add_generation_prompt: bool,
    /// What else the template reads, such as `enable_thinking`; goes before the tokenizer's own
    /// `bos_token` and the like.
    pub variables: Map<String, Value>,
    /// Which of several templates; absent: `tool_use` where there are tools and it exists, else
    /// `default`.
    pub template: Option<String>,
    /// The time of `strftime_now`, told in UTC; absent: the present.
    pub now: Option<SystemTime>,
}

impl ChatInput {
    /// A conversation at whose end the model answers.
    pub fn new(messages: Vec<Value>) -> Self {
        Self { messages, add_generation_prompt: true, ..Self::default() }
    }

    /// Turns the arguments of tool calls from JSON in a string, as OpenAI's interface has them,
    /// into the objects that templates expect; strings that are no JSON object stay.
    pub fn parse_tool_arguments(&mut self) {
        let calls = self
            .messages
            .iter_mut()
            .filter_map(|message| message.get_mut("tool_calls").and_then(Value::as_array_mut));
        for call in calls.flatten() {
            // Some interfaces leave the layer `function` out.
            let place =
                if call.get("function").is_some() { "/function/arguments" } else { "/arguments" };
            if let Some(arguments) = call.pointer_mut(place)
                && let Some(text) = arguments.as_str()
                && let Ok(parsed @ Value::Object(_)) = serde_json::from_str(text)
            {
                *arguments = parsed;
            }
        }
    }
}

/// The templates of a model.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    sources: BTreeMap<String, Arc<str>>,
    /// `bos_token` and the like.
    tokens: Map<String, Value>,
}

impl ChatTemplate {
    /// A single template.
    ///
    /// # Errors
    ///
    /// When `source` is no template.
    pub fn new(source: &str) -> Result<Self, ChatTemplateError> {
        Self::from_sources([(DEFAULT.to_owned(), source.to_owned())], Map::new())
    }

    /// The templates in a model's folder, or `None` where it has none.
    ///
    /// They are `chat_template.jinja` with `additional_chat_templates/`, or `chat_template` in
    /// `tokenizer_config.json`, or `chat_template.json`, whichever is found first.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or holds no template.
    pub fn load(folder: &Path) -> Result<Option<Self>, ChatTemplateError> {
        let Some(sources) = files::sources(folder)? else { return Ok(None) };
        Self::from_sources(sources, files::tokens(folder)?).map(Some)
    }

    /// Templates by name, and what they know as `bos_token` and the like.
    pub(crate) fn from_sources(
        sources: impl IntoIterator<Item = (String, String)>,
        tokens: Map<String, Value>,
    ) -> Result<Self, ChatTemplateError> {
        let mut environment = environment::environment();
        let mut kept = BTreeMap::new();
        for (name, source) in sources {
            let rewritten = marks::rewrite_generation(&source);
            environment
                .add_template_owned(name.clone(), rewritten)
                .map_err(|error| failure(&name, error))?;
            kept.insert(name, source.into());
        }
        Ok(Self { environment, sources: kept, tokens })
    }

    /// What templates of the model in `folder` know as `bos_token` and the like.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn token_names(folder: &Path) -> Result<Map<String, Value>, ChatTemplateError> {
        files::tokens(folder)
    }

    /// Names of the templates with what they are, ascending.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.iter().map(|(name, source)| (&**name, &**source))
    }

    /// The texts that the templates know as `bos_token`, `eos_token` and the like.
    pub fn tokens(&self) -> &Map<String, Value> {
        &self.tokens
    }

    /// Sets what the templates know as `bos_token` or the like.
    pub fn set_token(&mut self, name: &str, text: &str) {
        self.tokens.insert(name.to_owned(), text.into());
    }

    /// Whether the template tells by `{% generation %}` what the model wrote.
    pub fn marks_generation(&self, input: &ChatInput) -> Result<bool, ChatTemplateError> {
        let name = self.choose(input)?;
        Ok(self.sources.get(name).is_some_and(|source| marks::has_generation(source)))
    }

    /// The conversation as text.
    ///
    /// # Errors
    ///
    /// When the conversation is empty or not made of objects, the template asked for is not there,
    /// or the template fails: it may refuse the conversation, or use what this crate does not know.
    pub fn render(
        &self,
        input: &ChatInput,
        control: &ControlTokens,
    ) -> Result<RenderedChat, ChatTemplateError> {
        let name = self.choose(input)?;
        let template = self.environment.get_template(name).map_err(|error| failure(name, error))?;

        // 1. What the template sees, with marks in what looks like control tokens.
        let messages = prepared(&input.messages)?;
        let mut seen = input.variables.clone();
        seen.insert("messages".to_owned(), Value::Array(messages));
        let list = |values: &Option<Vec<Value>>| values.clone().map_or(Value::Null, Value::Array);
        seen.insert("tools".to_owned(), list(&input.tools));
        seen.insert("documents".to_owned(), list(&input.documents));
        let mut seen = Value::Object(seen);
        let source = self.sources.get(name).map_or("", |source| source);
        let marks = Marks::unused(&seen, source).ok_or(ChatTemplateError::NoMarks)?;
        marks.protect(&mut seen, control);

        // 2. What nobody but the tokenizer decides.
        if let Value::Object(seen) = &mut seen {
            for (token, text) in &self.tokens {
                seen.entry(token.clone()).or_insert_with(|| text.clone());
            }
            seen.insert("add_generation_prompt".to_owned(), input.add_generation_prompt.into());
            seen.insert(environment::MARKS.to_owned(), marks.as_string().into());
            let now = input.now.unwrap_or_else(SystemTime::now);
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            seen.insert(environment::NOW.to_owned(), since.as_secs().into());
        }

        let text =
            template.render(python::from_json(&seen)).map_err(|error| failure(name, error))?;
        Ok(marks.read(&text))
    }

    /// Name of the template for a conversation.
    fn choose<'a>(&'a self, input: &'a ChatInput) -> Result<&'a str, ChatTemplateError> {
        let known = |name: &str| self.sources.contains_key(name);
        let name = match &input.template {
            Some(name) => name,
            None if input.tools.is_some() && known(TOOL_USE) => TOOL_USE,
            None => DEFAULT,
        };
        if known(name) {
            return Ok(name);
        }
        Err(ChatTemplateError::UnknownTemplate {
            name: name.to_owned(),
            known: self.sources.keys().cloned().collect(),
        })
    }
}

/// Messages without fields that are null, and with reasoning under the names templates read.
fn prepared(messages: &[Value]) -> Result<Vec<Value>, ChatTemplateError> {
    if messages.is_empty() {
        return Err(ChatTemplateError::Messages { detail: "there is none".to_owned() });
    }
    let objects = messages.iter().enumerate().map(|(index, message)| {
        let Value::Object(message) = message else {
            let detail = format!("message {index} is no object");
            return Err(ChatTemplateError::Messages { detail });
        };
        let mut message = message.clone();
        message.retain(|_, value| !value.is_null());
        let reasoning = REASONING.iter().find_map(|name| message.get(*name).cloned());
        if let Some(reasoning) = reasoning {
            message.entry("thinking").or_insert_with(|| reasoning.clone());
            message.insert("reasoning_content".to_owned(), reasoning);
        }
        Ok(Value::Object(message))
    });
    objects.collect()
}

/// What went wrong in a template, in our terms.
fn failure(template: &str, error: minijinja::Error) -> ChatTemplateError {
    let (template, line) = (template.to_owned(), error.line());
    // The innermost error has the reason; those around it have where it was.
    if let Some(message) = environment::raised(&error) {
        return ChatTemplateError::Raised { message };
    }
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.kind() {
        ErrorKind::SyntaxError | ErrorKind::BadEscape | ErrorKind::InvalidDelimiter => {
            ChatTemplateError::Syntax { template, line, detail }
        }
        ErrorKind::UnknownFilter
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownMethod
        | ErrorKind::UnknownTest => ChatTemplateError::Unknown { template, line, detail },
        _ => ChatTemplateError::Failed { template, line, detail, source: Box::new(error) },
    }
}

#[cfg(test)]
mod tests;
