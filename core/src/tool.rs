//! Tools that are offered to a policy, and its calls of them.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Media;

/// A tool as it is offered: its name, what it is for, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// What it is called by: 1 to 64 letters, digits, `_`, `-` or `.`.
    pub name: String,
    /// What it does, for whoever may call it.
    #[serde(default)]
    pub description: String,
    /// A JSON schema of its arguments, which are an object.
    pub parameters: Value,
}

/// What is offered as a tool is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("offer tool `{name}`: {detail}")]
#[non_exhaustive]
pub struct ToolSpecError {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub detail: String,
}

impl ToolSpec {
    /// A tool that takes what `parameters`, a JSON schema of an object, describes.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }

    /// Checks the name, and that the parameters have the form of a schema of an object.
    ///
    /// # Errors
    ///
    /// [`ToolSpecError`] with the first thing that is wrong.
    pub fn validate(&self) -> Result<(), ToolSpecError> {
        let refuse = |detail: String| Err(ToolSpecError { name: self.name.clone(), detail });
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_plain) {
            return refuse("a name is 1 to 64 letters, digits, `_`, `-` or `.`".to_owned());
        }
        let Some(schema) = self.parameters.as_object() else {
            return refuse("its parameters are no JSON schema: it has to be an object".to_owned());
        };
        match schema.get("type") {
            Some(Value::String(of)) if of == "object" => {}
            // A schema that takes anything is one of a tool without parameters.
            None if schema.is_empty() => {}
            found => {
                let found = found.map_or_else(|| "absent".to_owned(), Value::to_string);
                return refuse(format!("`type` of its parameters is {found}, must be \"object\""));
            }
        }
        let properties = match schema.get("properties") {
            None => &Map::new(),
            Some(Value::Object(properties)) => properties,
            Some(_) => return refuse("`properties` must be an object".to_owned()),
        };
        for (property, schema) in properties {
            if !(schema.is_object() || schema.is_boolean()) {
                return refuse(format!("the schema of parameter `{property}` is none"));
            }
        }
        match schema.get("required") {
            None => Ok(()),
            Some(Value::Array(required)) if required.iter().all(Value::is_string) => Ok(()),
            Some(_) => refuse("`required` must be a list of names".to_owned()),
        }
    }

    /// The schema of one parameter, where it has one.
    pub fn parameter(&self, name: &str) -> Option<&Value> {
        self.parameters.get("properties")?.get(name)
    }

    /// The tool as OpenAI's interface and chat templates name it.
    pub fn to_function(&self) -> Value {
        serde_json::json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        })
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Tells the calls of a conversation apart; a result names it. Empty where the policy gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with, by parameter, in the order in which it was written.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// A call without an id.
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { id: String::new(), name: name.into(), arguments }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The call's id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// What the policy reads.
    pub text: String,
    /// What it sees beside that, such as a screenshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the tool could not do what it was called for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ToolResult {
    /// What came of `call`, in words.
    pub fn new(call: &ToolCall, text: impl Into<String>) -> Self {
        Self { call: call.id.clone(), text: text.into(), media: Vec::new(), is_error: false }
    }

    /// Why `call` could not be carried out.
    pub fn error(call: &ToolCall, text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::new(call, text) }
    }
}

/// What a policy does in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// It says something that the environment understands.
    Text {
        /// What.
        text: String,
    },
    /// It calls tools.
    Calls {
        /// What it says beside that.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The calls, in the order in which they stand; at least one.
        calls: Vec<ToolCall>,
    },
}

impl Action {
    /// An action in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Calls with nothing said beside them.
    pub fn calls(calls: Vec<ToolCall>) -> Self {
        Self::Calls { text: String::new(), calls }
    }

    /// What is said: all there is to an action in words, and what stands beside calls.
    pub fn said(&self) -> &str {
        match self {
            Self::Text { text } | Self::Calls { text, .. } => text,
        }
    }

    /// The calls; empty where there is none.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Text { .. } => &[],
            Self::Calls { calls, .. } => calls,
        }
    }

    /// The action in one text, which equal actions share: what is said, or the calls as JSON without their ids. What
    /// is said beside calls is no part of it.
    pub fn key(&self) -> Cow<'_, str> {
        match self {
            Self::Text { text } => Cow::Borrowed(text),
            Self::Calls { calls, .. } => {
                let written = |call: &ToolCall| {
                    format!("{} {}", call.name, Value::Object(call.arguments.clone()))
                };
                Cow::Owned(calls.iter().map(written).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// Written as its [key](Action::key).
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}

/// An action in words.
impl From<&str> for Action {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// An action in words.
impl From<String> for Action {
    fn from(text: String) -> Self {
        Self::Text { text }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(name: &str, parameters: Value) -> String {
        let error = ToolSpec::new(name, "", parameters).validate().unwrap_err();
        error.to_string()
    }

    #[test]
    fn only_a_schema_of_an_object_is_taken() {
        let good = [
            json!({}),
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": true } }),
            json!({ "type": "object", "properties": {}, "required": [] }),
        ];
        for parameters in good {
            ToolSpec::new("read.file-2", "", parameters).validate().unwrap();
        }
        for name in ["", "two words", "ä", &"n".repeat(65)] {
            assert!(refusal(name, json!({})).contains("a name is 1 to 64"), "{name}");
        }
        let refusal = |parameters| refusal("t", parameters);
        assert_eq!(
            refusal(json!("string")),
            "offer tool `t`: its parameters are no JSON schema: it has to be an object"
        );
        assert!(refusal(json!({ "type": "array" })).contains("is \"array\", must be \"object\""));
        assert!(refusal(json!({ "properties": {} })).contains("is absent"));
        let object = |rest: Value| {
            let mut schema = json!({ "type": "object" });
            schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            refusal(schema)
        };
        assert!(object(json!({ "properties": [] })).contains("`properties` must be an object"));
        assert!(object(json!({ "properties": { "a": 1 } })).contains("parameter `a` is none"));
        assert!(object(json!({ "required": "a" })).contains("`required` must be a list"));
    }

    #[test]
    fn actions_are_written_and_read() {
        let arguments = json!({ "z": 1, "a": [true, null] });
        let call = ToolCall::new("f", arguments.as_object().unwrap().clone());
        for action in [Action::text("go north"), Action::calls(vec![call])] {
            let json = serde_json::to_string(&action).unwrap();
            assert_eq!(serde_json::from_str::<Action>(&json).unwrap(), action);
        }
        assert!(serde_json::from_str::<Action>(r#"{ "kind": "calls", "calls": [1] }"#).is_err());
    }

    #[test]
    fn equal_actions_have_equal_keys() {
        let call = |id: &str, n: u32| {
            let arguments = json!({ "n": n }).as_object().unwrap().clone();
            ToolCall { id: id.to_owned(), ..ToolCall::new("f", arguments) }
        };
        let one = Action::calls(vec![call("a", 1), call("b", 2)]);
        let said = Action::Calls { text: "so".to_owned(), calls: vec![call("", 1), call("", 2)] };
        assert_eq!(one.key(), "f {\"n\":1}\nf {\"n\":2}");
        assert_eq!(one.key(), said.key());
        assert_eq!((one.said(), said.said(), said.tool_calls().len()), ("", "so", 2));
        let text = Action::from("go");
        assert_eq!((&*text.key(), text.tool_calls()), ("go", &[][..]));
    }

    #[test]
    fn a_tool_has_the_form_that_templates_read() {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = ToolSpec::new("read", "Reads a file.", schema);
        assert_eq!(tool.parameter("path"), Some(&json!({ "type": "string" })));
        assert_eq!(tool.parameter("mode"), None);
        assert_eq!(tool.to_function()["function"]["name"], "read");
    }
}
