//! Messages between an environment and a policy.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Media, ToolCall};

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The environment: observations.
    User,
    /// The policy: its turns.
    Assistant,
    /// A tool that the policy has called: what came of the call.
    Tool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What was said.
    Text(String),
    /// What the policy thought before it said something.
    Reasoning(String),
    /// What was shown, such as a picture.
    Media(Media),
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredMessage")]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What it consists of, in the order in which it was said; empty where there are calls alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The tools that are called; only the policy calls any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that this is the result of, where a tool says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// A message as it is read: the trajectories of versions 1 to 3 have `content` in place of parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMessage {
    role: Role,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

impl From<StoredMessage> for Message {
    fn from(stored: StoredMessage) -> Self {
        let StoredMessage { role, content, mut parts, tool_calls, tool_call_id } = stored;
        parts.extend(content.map(Part::Text));
        Self { role, parts, tool_calls, tool_call_id }
    }
}

impl Message {
    /// A message in words.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self::of_parts(role, vec![Part::Text(text.into())])
    }

    /// A message of these parts.
    pub fn of_parts(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, tool_calls: Vec::new(), tool_call_id: None }
    }

    /// What came of the call with this id, in words.
    pub fn tool_result(call: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call.into()), ..Self::new(Role::Tool, text) }
    }

    /// What was said: its parts of text, one behind the other.
    pub fn text(&self) -> Cow<'_, str> {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Reasoning(_) | Part::Media(_) => None,
        });
        joined(texts)
    }

    /// What was thought: its parts of reasoning, one behind the other; empty where there is none.
    pub fn reasoning(&self) -> Cow<'_, str> {
        let thoughts = self.parts.iter().filter_map(|part| match part {
            Part::Reasoning(text) => Some(text.as_str()),
            Part::Text(_) | Part::Media(_) => None,
        });
        joined(thoughts)
    }

    /// What is shown in it.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.parts.iter().filter_map(|part| match part {
            Part::Media(media) => Some(media),
            Part::Text(_) | Part::Reasoning(_) => None,
        })
    }

    /// The message as chat templates take it: `role` and `content`, and where there are any `reasoning_content`,
    /// `tool_calls` with their arguments as objects, and `tool_call_id`. Media are left out.
    pub fn to_template(&self) -> Value {
        self.to_value(|call| Value::Object(call.arguments.clone()))
    }

    /// The message as OpenAI's interface takes it: as [`Message::to_template`], the arguments of calls being JSON in
    /// a string.
    pub fn to_openai(&self) -> Value {
        self.to_value(|call| Value::String(Value::Object(call.arguments.clone()).to_string()))
    }

    fn to_value(&self, arguments: impl Fn(&ToolCall) -> Value) -> Value {
        let mut value = json!({ "role": self.role, "content": self.text() });
        let reasoning = self.reasoning();
        if !reasoning.is_empty() {
            value["reasoning_content"] = reasoning.into();
        }
        if !self.tool_calls.is_empty() {
            let call = |call: &ToolCall| {
                let function = json!({ "name": call.name, "arguments": arguments(call) });
                json!({ "id": call.id, "type": "function", "function": function })
            };
            value["tool_calls"] = self.tool_calls.iter().map(call).collect();
        }
        if let Some(id) = &self.tool_call_id {
            value["tool_call_id"] = id.as_str().into();
        }
        value
    }
}

/// The texts as one; borrowed where there is one at the most.
fn joined<'a>(mut texts: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let first = texts.next().unwrap_or_default();
    match texts.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(texts).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_parts_and_older_ones_are_read() {
        let media = Media::new("image/png", *b"pixels");
        let parts = vec![
            Part::Text("look ".to_owned()),
            Part::Media(media.clone()),
            Part::Text("here".to_owned()),
        ];
        let message = Message::of_parts(Role::User, parts);
        assert_eq!((&*message.text(), &*message.reasoning()), ("look here", ""));
        assert_eq!(message.media().collect::<Vec<_>>(), [&media]);
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        let older = r#"{ "role": "user", "content": "hint" }"#;
        let read: Message = serde_json::from_str(older).unwrap();
        assert_eq!(read, Message::new(Role::User, "hint"));
        assert!(serde_json::from_str::<Message>(r#"{ "role": "user", "contents": "" }"#).is_err());
    }

    #[test]
    fn calls_are_told_as_templates_and_interfaces_take_them() {
        let arguments = json!({ "path": "a", "n": 1 }).as_object().unwrap().clone();
        let call = ToolCall { id: "c1".to_owned(), ..ToolCall::new("read", arguments) };
        let mut message = Message::of_parts(
            Role::Assistant,
            vec![Part::Reasoning("hm".to_owned()), Part::Text("I read.".to_owned())],
        );
        message.tool_calls.push(call);
        let template = message.to_template();
        assert_eq!(template["content"], "I read.");
        assert_eq!(template["reasoning_content"], "hm");
        assert_eq!(template["tool_calls"][0]["function"]["arguments"]["n"], 1);
        let openai = message.to_openai();
        let function = &openai["tool_calls"][0]["function"];
        assert_eq!(function["arguments"], r#"{"path":"a","n":1}"#);
        let result = Message::tool_result("c1", "text").to_template();
        assert_eq!(result, json!({ "role": "tool", "content": "text", "tool_call_id": "c1" }));
    }
}
