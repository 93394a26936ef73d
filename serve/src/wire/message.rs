//! Messages and tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Content, NameOr};

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    System,
    /// What OpenAI calls the system since 2024.
    Developer,
    User,
    Assistant,
    Tool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) content: Option<Content>,
    /// What a model thought before; of the assistant.
    #[serde(default)]
    pub(crate) reasoning_content: Option<String>,
    #[serde(default)]
    pub(crate) tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    pub(crate) tool_call_id: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Clients send back what they got.
    #[serde(default, rename = "refusal")]
    pub(crate) _refusal: Option<Value>,
    #[serde(default, rename = "annotations")]
    pub(crate) _annotations: Option<Value>,
    #[serde(default, rename = "audio")]
    pub(crate) _audio: Option<()>,
    #[serde(default, rename = "function_call")]
    pub(crate) _function_call: Option<()>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct ToolCall {
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) function: CalledFunction,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    /// JSON as text.
    pub(crate) arguments: String,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) r#type: FunctionType,
    pub(crate) function: Function,
}

/// The one type of tools there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FunctionType {
    Function,
}

/// A function as tools have it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Function {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
}

/// Whether, and which, tools are called.
pub(crate) type ToolChoice = NameOr<NamedTool>;

/// The tool that has to be called.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedTool {
    #[serde(rename = "type")]
    pub(crate) _type: FunctionType,
    pub(crate) function: NamedFunction,
}

/// Its name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedFunction {
    pub(crate) name: String,
}
