//! Calls as Mistral's models write them.

use serde_json::Value;
use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::call_list::CallList;
use crate::json::{arguments, call, call_line, read_value, to_line};
use crate::marks::{find, find_first, said, skip_space};
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// `[TOOL_CALLS] [{"name": ..., "arguments": {...}, "id": ...}, ...]`, and what newer models write:
/// `[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{...}`, once per call.
///
/// `[CALL_ID]ID`, `[ARGS]` and an `id` may be missing; a single object may stand in place of the
/// list. Written are lists.
pub(crate) struct Mistral;

const MARK: &str = "[TOOL_CALLS]";
const CALL_ID: &str = "[CALL_ID]";
const ARGUMENTS: &str = "[ARGS]";

impl ActionParser for Mistral {
    fn name(&self) -> &'static str {
        "mistral"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut list = CallList::default();
        let mut at = 0;
        while let Some(mark) = find(text, at, MARK) {
            list.say(&text[at..mark]);
            let start = skip_space(text, mark + MARK.len());
            if !text[start..].starts_with(['[', '{']) {
                let (call, end) = named_call(text, mark, start)?;
                list.push(call, mark..end)?;
                at = end;
                continue;
            }
            let (value, end) = read_value(text, start)?;
            let span = mark..end;
            match value {
                Value::Array(calls) if !calls.is_empty() => {
                    for value in calls {
                        list.push(call_with_id(value, &span)?, span.clone())?;
                    }
                }
                value => list.push(call_with_id(value, &span)?, span)?,
            }
            at = end;
        }
        if list.is_empty() {
            return said(text);
        }
        list.say(&text[at..]);
        Ok(list.into_parsed())
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let calls: Vec<_> = calls.iter().map(written_call).collect();
                format!("{}{MARK} [{}]", text.trim(), calls.join(", "))
            }
        };
        read_back(self, written, action, tools)
    }
}

fn written_call(call: &ToolCall) -> String {
    let line = call_line(call, "arguments");
    match call.id.as_str() {
        "" => line,
        id => format!("{}, \"id\": {}}}", &line[..line.len() - 1], to_line(&id)),
    }
}

fn call_with_id(value: Value, span: &std::ops::Range<usize>) -> Result<ToolCall, FormatError> {
    let id = value.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(ToolCall { id, ..call(value, span)? })
}

/// The call whose name begins at `start`, behind the mark at `mark`, and where it ends.
fn named_call(text: &str, mark: usize, start: usize) -> Result<(ToolCall, usize), FormatError> {
    let refuse = |kind, end, message: &str| Err(FormatError::new(kind, mark..end, message));
    let (name_end, found) =
        match (find_first(text, start, '[', &[MARK, CALL_ID, ARGUMENTS]), find(text, start, "{")) {
            (Some((at, found)), brace) if brace.is_none_or(|brace| at < brace) => (at, found),
            (_, Some(brace)) => (brace, "{"),
            _ => return refuse(FormatErrorKind::Unclosed, text.len(), "the call has no arguments"),
        };
    let name = text[start..name_end].trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        let message = format!("behind {MARK} the name of a tool has to stand, or a list of calls");
        return refuse(FormatErrorKind::Name, name_end, &message);
    }
    let mut id = "";
    let mut at = name_end;
    if found == CALL_ID {
        let id_start = at + CALL_ID.len();
        let Some((id_end, ARGUMENTS)) = find_first(text, id_start, '[', &[MARK, ARGUMENTS]) else {
            let message = format!("behind the id of a call {ARGUMENTS} has to stand");
            return refuse(FormatErrorKind::Unclosed, text.len(), &message);
        };
        id = text[id_start..id_end].trim();
        at = id_end;
    }
    if text[at..].starts_with(ARGUMENTS) {
        at += ARGUMENTS.len();
    }
    let (value, end) = read_value(text, at)?;
    let call = ToolCall::new(name, arguments(value, &(mark..end))?);
    Ok((ToolCall { id: id.to_owned(), ..call }, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<ToolCall> {
        match Mistral.parse(text, &[]).unwrap().action {
            Action::Calls { calls, .. } => calls,
            Action::Text { text } => panic!("{text}"),
        }
    }

    #[test]
    fn all_forms_are_read() {
        let list = calls(r#"[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "abc"}]"#);
        assert_eq!((list[0].name.as_str(), list[0].id.as_str()), ("f", "abc"));
        for text in [
            r#"[TOOL_CALLS]f[CALL_ID]abc[ARGS]{"a": 1}"#,
            r#"[TOOL_CALLS] f [CALL_ID] abc [ARGS] {"a": 1}"#,
            r#"[TOOL_CALLS]{"name": "f", "arguments": {"a": 1}, "id": "abc"}"#,
        ] {
            assert_eq!(calls(text), list, "{text}");
        }
        let two = calls(r#"[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[ARGS]{}"#);
        assert_eq!((two[0].name.as_str(), two[1].name.as_str()), ("f", "g"));
    }

    #[test]
    fn ids_are_written_where_there_are_any() {
        let call = ToolCall { id: "abc".to_owned(), ..ToolCall::new("f", Default::default()) };
        let action = Action::calls(vec![call, ToolCall::new("g", Default::default())]);
        let text = Mistral.write(&action, &[]).unwrap();
        assert_eq!(Mistral.parse(&text, &[]).unwrap().action, action);
        assert_eq!(
            text,
            "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}, \"id\": \"abc\"}, \
             {\"name\": \"g\", \"arguments\": {}}]"
        );
    }
}
