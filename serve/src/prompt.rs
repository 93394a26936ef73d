//! From messages to tokens.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use spar_policy::chat_template::ChatInput;
use spar_policy::{Tokenizer, tool_words};

use crate::ServedModel;
use crate::answer::ToolFormat;
use crate::api_error::ApiError;
use crate::routes::Service;
use crate::wire::{Message, Role, Tool, ToolCall};

/// A conversation as a model reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) ids: Arc<[u32]>,
    /// Whether the answer begins in the middle of thoughts.
    pub(crate) is_thinking: bool,
}

/// How a model writes tool calls, by what its chat template says of them.
pub(crate) fn tool_format(model: &ServedModel) -> ToolFormat {
    let mentions = |words: &str| {
        let template = model.tokenizer.chat_template();
        template.is_some_and(|template| template.sources().any(|(_, text)| text.contains(words)))
    };
    if !mentions("<tool_call>") && (mentions("<|python_tag|>") || mentions("ipython")) {
        ToolFormat::Llama3
    } else {
        ToolFormat::Hermes
    }
}

/// The prompt of a conversation with the tools that may be called: by the model's chat template,
/// or, where that has no place for tools, message by message.
pub(crate) fn of_messages(
    service: &Service,
    messages: &[Message],
    tools: &[Tool],
    variables: &Map<String, Value>,
) -> Result<Prompt, ApiError> {
    check(messages)?;
    let tokenizer = &service.model.tokenizer;
    let needs_tools = !tools.is_empty()
        || messages.iter().any(|m| m.role == Role::Tool || m.tool_calls.is_some());
    let is_known = |name: &str| {
        let template = tokenizer.chat_template();
        template.is_some_and(|template| template.sources().any(|(_, text)| text.contains(name)))
    };
    if let Some(name) = variables.keys().find(|name| !is_known(name)) {
        let message = format!("this model's chat template has no variable `{name}`");
        return Err(ApiError::invalid("chat_template_kwargs", message));
    }
    if tokenizer.chat_template().is_some() && (is_known("tool") || !needs_tools) {
        return by_template(tokenizer, messages, tools, variables);
    }
    if !tokenizer.has_message_layout() {
        let message = "this model has no chat template that lays out such a conversation";
        return Err(ApiError::invalid("messages", message));
    }
    let mut ids: Vec<u32> = Vec::new();
    let mut before = None;
    let laid_out = lay_out(messages, tools);
    for message in &laid_out {
        ids.extend(tokenizer.encode_message(before, message));
        before = Some(message);
    }
    Ok(Prompt { ids: ids.into(), is_thinking: false })
}

fn by_template(
    tokenizer: &Tokenizer,
    messages: &[Message],
    tools: &[Tool],
    variables: &Map<String, Value>,
) -> Result<Prompt, ApiError> {
    let refuse = |error: &dyn std::error::Error| {
        ApiError::invalid("messages", format!("could not lay out the conversation: {error}"))
    };
    let mut input = ChatInput::new(messages.iter().map(as_value).collect());
    if !tools.is_empty() {
        let tools = tools.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        input.tools = Some(tools.map_err(|error| refuse(&error))?);
    }
    input.variables = variables.clone();
    input.parse_tool_arguments();
    let chat = tokenizer.render_chat(&input).map_err(|error| refuse(&error))?;
    let is_thinking = chat.text().trim_end().ends_with("<think>");
    Ok(Prompt { ids: tokenizer.encode_rendered(&chat).into(), is_thinking })
}

/// A message as templates know it.
fn as_value(message: &Message) -> Value {
    let role = match message.role {
        // Templates know the older name.
        Role::Developer => Role::System,
        role => role,
    };
    let calls = message.tool_calls.as_ref().map(|calls| {
        let call = |call: &ToolCall| {
            json!({ "id": call.id, "type": "function", "function": call.function })
        };
        calls.iter().map(call).collect::<Vec<Value>>()
    });
    let mut value = json!({ "role": role });
    let content = message.content.as_ref().map(|content| content.0.clone());
    for (name, field) in [
        // Templates expect text, be it empty.
        ("content", Some(json!(content.unwrap_or_default()))),
        ("reasoning_content", message.reasoning_content.as_ref().map(|text| json!(text))),
        ("tool_calls", calls.map(Value::Array)),
        ("tool_call_id", message.tool_call_id.as_ref().map(|id| json!(id))),
        ("name", message.name.as_ref().map(|name| json!(name))),
    ] {
        if let Some(field) = field {
            value[name] = field;
        }
    }
    value
}

/// Refuses conversations that no answer can follow.
fn check(messages: &[Message]) -> Result<(), ApiError> {
    let invalid = |index: usize, field: &str, detail: &str| {
        let path = format!("messages[{index}]{field}");
        Err(ApiError::invalid(path.clone(), format!("`{path}`: {detail}")))
    };
    let Some(last) = messages.last() else {
        return Err(ApiError::invalid("messages", "`messages` is empty"));
    };
    for (index, message) in messages.iter().enumerate() {
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        if message.content.is_none() && calls.is_empty() {
            return invalid(index, ".content", "a message says something or calls tools");
        }
        if !calls.is_empty() && message.role != Role::Assistant {
            return invalid(index, ".tool_calls", "tools are called by the assistant");
        }
    }
    match last.role {
        Role::User | Role::Tool => Ok(()),
        _ => invalid(
            messages.len() - 1,
            ".role",
            "the last message is the user's or a tool's, since it is answered",
        ),
    }
}

/// The conversation without tools: these stand in the system's message, calls in the assistant's,
/// what tools answered in the user's; the words are those of Qwen 2.5.
fn lay_out(messages: &[Message], tools: &[Tool]) -> Vec<spar_core::Message> {
    let mut system: Vec<String> = Vec::new();
    let mut out: Vec<spar_core::Message> = Vec::new();
    let mut was_tool = false;
    for message in messages {
        let text = message.content.as_ref().map_or("", |content| &*content.0);
        let role = match message.role {
            // Those at the front are one; later ones stand where they were said.
            Role::System | Role::Developer if out.is_empty() => {
                system.push(text.to_owned());
                continue;
            }
            Role::System | Role::Developer => spar_core::Role::System,
            Role::User | Role::Tool => spar_core::Role::User,
            Role::Assistant => spar_core::Role::Assistant,
        };
        let is_tool = message.role == Role::Tool;
        let text = match message.role {
            Role::Tool => tool_words::result(text),
            _ => {
                let calls = message.tool_calls.as_deref().unwrap_or_default();
                let parts: Vec<String> = std::iter::once(text.to_owned())
                    .filter(|text| !text.is_empty())
                    .chain(calls.iter().map(written))
                    .collect();
                parts.join("\n")
            }
        };
        match out.last_mut() {
            Some(last) if is_tool && was_tool => {
                *last = spar_core::Message::new(role, format!("{}\n{text}", last.text()));
            }
            _ => out.push(spar_core::Message::new(role, text)),
        }
        was_tool = is_tool;
    }
    if !tools.is_empty() {
        let signatures = tools.iter().filter_map(|tool| serde_json::to_value(tool).ok());
        system.push(tool_words::offer(signatures));
    }
    if !system.is_empty() {
        let text = system.join("\n\n");
        out.insert(0, spar_core::Message::new(spar_core::Role::System, text));
    }
    out
}

/// A call as Hermes models write it.
fn written(call: &ToolCall) -> String {
    let function = &call.function;
    // Arguments that are no JSON stand as text.
    let arguments: Value = serde_json::from_str(&function.arguments)
        .unwrap_or_else(|_| function.arguments.clone().into());
    tool_words::call(&function.name, &arguments)
}
