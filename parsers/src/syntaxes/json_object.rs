//! An answer that is a JSON object.

use std::ops::Range;

use serde_json::Value;
use spar_core::{Action, GrammarSource, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::call_grammar::CallForm;
use crate::json::{call, call_line, read_value, to_line};
use crate::marks::skip_space;
use crate::typed_value::arguments_of_input;
use crate::{ActionParser, CallRules, FormatError, FormatErrorKind, Parsed, WriteError};

/// One JSON object, which may stand among words and in a fenced block:
///
/// - `{"name": ..., "arguments": {...}}` is a call, as is `{"action": ..., "action_input": ...}`;
/// - `{"action": "..."}` is an action in words.
///
/// A `thought` in it is what the policy thought. Beside `action` and what is named here nothing may stand, since it
/// would be lost. The object reaches from the first `{` of the answer to its last `}`.
pub(crate) struct JsonObject;

/// How a call is written.
const FORM: CallForm = CallForm {
    before: "",
    open: "{\"name\": ",
    between: ", \"arguments\": ",
    close: "}",
    next: None,
    mark: None,
};

impl ActionParser for JsonObject {
    fn name(&self) -> &'static str {
        "json_object"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let Some(start) = text.find('{') else {
            let message = "the answer has no JSON object";
            return Err(FormatError::new(FormatErrorKind::Missing, 0..text.len(), message));
        };
        let Some(last) = text.rfind('}').filter(|last| *last > start) else {
            let message = "the JSON object is not closed";
            return Err(FormatError::new(FormatErrorKind::Unclosed, start..text.len(), message));
        };
        let (value, end) = read_value(text, start)?;
        let span = start..end;
        if end != last + 1 {
            let rest = skip_space(text, end);
            let is_other =
                text[rest..].trim_start_matches([',', ';']).trim_start().starts_with('{');
            let (kind, message) = if is_other {
                (
                    FormatErrorKind::TooMany,
                    "the answer has several JSON objects, it has to have one",
                )
            } else {
                (FormatErrorKind::Unexpected, "behind the JSON object there are further brackets")
            };
            return Err(FormatError::new(kind, rest..text.len(), message));
        }
        let reasoning = value.get("thought").and_then(Value::as_str).map(str::to_owned);
        let said = outside(&text[..start], &text[end..]);
        refuse_strays(&value, &span)?;
        let action = match (value.get("action"), value.get("action_input")) {
            (Some(Value::String(action)), None) if value.get("name").is_none() => {
                let action = action.trim();
                if action.is_empty() {
                    let message = "`action` is empty";
                    return Err(FormatError::new(FormatErrorKind::Empty, span, message));
                }
                Action::text(action)
            }
            (Some(Value::String(name)), Some(input)) if value.get("name").is_none() => {
                if name.trim().is_empty() {
                    let message = "`action` has to be the name of a tool";
                    return Err(FormatError::new(FormatErrorKind::Name, span, message));
                }
                let arguments = match input {
                    Value::Object(arguments) => arguments.clone(),
                    Value::Null => Default::default(),
                    Value::String(input) => arguments_of_input(input, name, tools, &span)?,
                    input => arguments_of_input(&input.to_string(), name, tools, &span)?,
                };
                Action::Calls { text: said, calls: vec![ToolCall::new(name, arguments)] }
            }
            _ => Action::Calls { text: said, calls: vec![call(value, &span)?] },
        };
        Ok(Parsed { action, spans: vec![span], reasoning })
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => format!("{{\"action\": {}}}", to_line(text)),
            Action::Calls { text, calls } => {
                let [call] = calls.as_slice() else {
                    return Err(WriteError::OneCall { parser: self.name(), found: calls.len() });
                };
                let line = call_line(call, "arguments");
                match text.trim() {
                    "" => line,
                    said => format!("{said}\n{line}"),
                }
            }
        };
        read_back(self, written, action, tools)
    }

    fn call_grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        FORM.grammar(tools, rules)
    }
}

/// Refuses what stands beside `action` and would not be read, such as arguments without `action_input` around them.
fn refuse_strays(value: &Value, span: &Range<usize>) -> Result<(), FormatError> {
    let Some(fields) = value.as_object().filter(|fields| !fields.contains_key("name")) else {
        return Ok(());
    };
    let is_stray = |key: &&String| !["action", "action_input", "thought"].contains(&key.as_str());
    match fields.keys().find(is_stray) {
        Some(key) if fields.contains_key("action") => {
            let key = key.escape_debug();
            let message = format!(
                "nothing reads `{key}` beside `action`; arguments stand in `action_input`, as an object"
            );
            Err(FormatError::new(FormatErrorKind::Unexpected, span.clone(), message))
        }
        _ => Ok(()),
    }
}

/// What is said before and behind the object, its fences apart.
fn outside(before: &str, after: &str) -> String {
    let fences = ["```json", "```"];
    let before = before.trim();
    let before =
        fences.iter().find_map(|fence| before.strip_suffix(fence)).unwrap_or(before).trim();
    let after = after.trim();
    let after = after.strip_prefix("```").unwrap_or(after).trim();
    let between = if before.is_empty() || after.is_empty() { "" } else { "\n" };
    format!("{before}{between}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_thoughts_and_calls_are_told_apart() {
        let text = "So:\n```json\n{\"thought\": \"hm\", \"action\": \"go north\"}\n```";
        let parsed = JsonObject.parse(text, &[]).unwrap();
        assert_eq!(parsed.action, Action::text("go north"));
        assert_eq!(parsed.reasoning.as_deref(), Some("hm"));
        let text = "So:\n```json\n{\"action\": \"f\", \"action_input\": \"a\"}\n```\nDone.";
        let parsed = JsonObject.parse(text, &[]).unwrap();
        let Action::Calls { text: said, calls } = &parsed.action else { panic!() };
        assert_eq!(
            (said.as_str(), &calls[0].arguments["input"]),
            ("So:\nDone.", &Value::from("a"))
        );
    }

    #[test]
    fn there_is_one_object() {
        let kind = |text: &str| JsonObject.parse(text, &[]).unwrap_err().kind;
        assert_eq!(kind("go"), FormatErrorKind::Missing);
        assert_eq!(kind("{\"name\": \"f\""), FormatErrorKind::Unclosed);
        assert_eq!(kind("{\"name\": \"f\"} {\"name\": \"g\"}"), FormatErrorKind::TooMany);
        assert_eq!(kind("{\"name\": \"f\"} as {x}"), FormatErrorKind::Unexpected);
        assert_eq!(kind("{\"action\": \" \"}"), FormatErrorKind::Empty);
        assert_eq!(kind("{\"action\": {}}"), FormatErrorKind::Name);
        assert_eq!(kind("{x}"), FormatErrorKind::Json);
    }

    #[test]
    fn arguments_beside_an_action_are_not_lost() {
        let read = |text: &str| JsonObject.parse(text, &[]);
        let error = read("{\"action\": \"go\", \"to\": \"north\"}").unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::Unexpected);
        assert!(error.message.contains("`to`") && error.message.contains("`action_input`"));
        let both = "{\"action\": \"go\", \"action_input\": {\"to\": 1}, \"by\": 2}";
        assert_eq!(read(both).unwrap_err().kind, FormatErrorKind::Unexpected);
        let call = "{\"action\": \"go\", \"action_input\": {\"to\": 1}, \"thought\": \"hm\"}";
        assert!(read(call).is_ok());
        // What else servers write into calls is no argument.
        assert!(read("{\"name\": \"go\", \"arguments\": {}, \"id\": \"call_1\"}").is_ok());
    }
}
