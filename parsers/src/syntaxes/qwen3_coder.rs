//! Calls as Qwen3-Coder writes them.

use std::fmt::Write;

use serde_json::{Map, Value};
use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::call_list::CallList;
use crate::json::to_line;
use crate::marks::{find, find_first, said, skip_space};
use crate::typed_value::typed_value;
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// Calls in tags:
///
/// ```text
/// <tool_call>
/// <function=NAME>
/// <parameter=NAME>
/// value
/// </parameter>
/// </function>
/// </tool_call>
/// ```
///
/// Values are text without the line breaks at their two ends; the tool's schema says what they
/// mean. Values of tools and parameters without a schema stay text. As the parser that the model
/// ships with does, this one takes a parameter without its closing tag when another tag follows,
/// `null` for no value whatever the schema, several functions in one call, and a last
/// `</tool_call>` that is missing.
pub(crate) struct Qwen3Coder;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

impl ActionParser for Qwen3Coder {
    fn name(&self) -> &'static str {
        "qwen3_coder"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut reader = Reader { text, tools, at: 0, list: CallList::default() };
        while let Some((at, mark)) = find_first(text, reader.at, '<', &[OPEN, FUNCTION]) {
            if mark == FUNCTION {
                let message = format!("{FUNCTION}...> stands outside {OPEN}...{CLOSE}");
                let span = at..at + FUNCTION.len();
                return Err(FormatError::new(FormatErrorKind::Missing, span, message));
            }
            reader.list.say(&text[reader.at..at]);
            reader.at = at + OPEN.len();
            reader.block(at)?;
        }
        if reader.list.is_empty() {
            return said(text);
        }
        reader.list.say(&text[reader.at..]);
        Ok(reader.list.into_parsed())
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let said = (!text.trim().is_empty()).then(|| text.trim().to_owned());
                let calls = calls.iter().map(written_call);
                said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
            }
        };
        read_back(self, written, action, tools)
    }
}

fn written_call(call: &ToolCall) -> String {
    let mut out = format!("{OPEN}\n{FUNCTION}{}>\n", call.name);
    for (name, value) in &call.arguments {
        let value = match value {
            Value::String(text) => text.clone(),
            value => to_line(value),
        };
        writeln!(out, "{PARAMETER}{name}>\n{value}\n{PARAMETER_END}").expect("memory takes it");
    }
    out + FUNCTION_END + "\n" + CLOSE
}

struct Reader<'a> {
    text: &'a str,
    tools: &'a [ToolSpec],
    at: usize,
    list: CallList,
}

impl<'a> Reader<'a> {
    /// The functions of the `<tool_call>` that begins at `open`.
    fn block(&mut self, open: usize) -> Result<(), FormatError> {
        let mut is_first = true;
        loop {
            let start = skip_space(self.text, self.at);
            if self.take(FUNCTION) {
                let call = self.function(start)?;
                // The marks of the block are the first function's where there are several.
                let start = if is_first { open } else { start };
                let close = skip_space(self.text, self.at);
                let is_closed = self.text[close..].starts_with(CLOSE);
                let end = if is_closed { close + CLOSE.len() } else { self.at };
                self.list.push(call, start..end)?;
                is_first = false;
            } else if !is_first && self.take(CLOSE) {
                return Ok(());
            } else if !is_first && start == self.text.len() {
                self.at = start;
                return Ok(());
            } else {
                let expected = if is_first { FUNCTION } else { CLOSE };
                return self.unexpected(start, expected);
            }
        }
    }

    /// The function whose name begins here and whose tag begins at `start`.
    fn function(&mut self, start: usize) -> Result<ToolCall, FormatError> {
        let name = self.name(start)?;
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let mut arguments = Map::new();
        loop {
            let at = skip_space(self.text, self.at);
            if self.take(PARAMETER) {
                let parameter = self.name(at)?;
                let marks = [PARAMETER_END, PARAMETER, FUNCTION_END, CLOSE];
                let Some((end, mark)) = find_first(self.text, self.at, '<', &marks) else {
                    return self.unclosed(at, PARAMETER_END);
                };
                let value = &self.text[self.at..end];
                let value = value.strip_prefix('\n').unwrap_or(value);
                let value = value.strip_suffix('\n').unwrap_or(value);
                let schema = tool.and_then(|tool| tool.parameter(parameter));
                arguments.insert(parameter.to_owned(), typed_value(value, schema));
                self.at = if mark == PARAMETER_END { end + mark.len() } else { end };
            } else if self.take(FUNCTION_END) || self.text[at..].starts_with(CLOSE) {
                return Ok(ToolCall::new(name, arguments));
            } else if at == self.text.len() {
                return self.unclosed(start, FUNCTION_END);
            } else {
                return self.unexpected(at, &format!("{PARAMETER}...> or {FUNCTION_END}"));
            }
        }
    }

    /// The name up to `>` in the tag that begins at `start`.
    fn name(&mut self, start: usize) -> Result<&'a str, FormatError> {
        let text = self.text;
        let Some(end) = find(text, self.at, ">") else { return self.unclosed(start, ">") };
        let name = text[self.at..end].trim();
        if name.is_empty() || name.contains(['<', '\n']) {
            let message = "the tag of a function or parameter has no name in it";
            return Err(FormatError::new(FormatErrorKind::Name, start..end + 1, message));
        }
        self.at = end + 1;
        Ok(name)
    }

    fn take(&mut self, mark: &str) -> bool {
        let at = skip_space(self.text, self.at);
        let is_there = self.text[at..].starts_with(mark);
        if is_there {
            self.at = at + mark.len();
        }
        is_there
    }

    fn unclosed<T>(&self, start: usize, expected: &str) -> Result<T, FormatError> {
        let message = format!("the answer ends before {expected}");
        Err(FormatError::new(FormatErrorKind::Unclosed, start..self.text.len(), message))
    }

    fn unexpected<T>(&self, start: usize, expected: &str) -> Result<T, FormatError> {
        if start == self.text.len() {
            return self.unclosed(start, expected);
        }
        let message = format!("{expected} has to stand where something else does");
        Err(FormatError::new(FormatErrorKind::Unexpected, start..self.text.len(), message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_say_what_values_mean() {
        let schema = json!({ "type": "object", "properties": {
            "n": { "type": "integer" }, "s": { "type": "string" } } });
        let tools = [ToolSpec::new("f", "", schema)];
        let text = "Now.\n<tool_call>\n<function=f>\n<parameter=n>\n5\n</parameter>\n\
            <parameter=s>\n5\n\n</parameter>\n</function>\n</tool_call>";
        let parsed = Qwen3Coder.parse(text, &tools).unwrap();
        let Action::Calls { text: said, calls } = &parsed.action else { panic!() };
        assert_eq!(said, "Now.");
        assert_eq!(Value::Object(calls[0].arguments.clone()), json!({ "n": 5, "s": "5\n" }));
        assert_eq!(parsed.spans[0], 5..text.len());
        let untyped = Qwen3Coder.parse(text, &[]).unwrap();
        let Action::Calls { calls, .. } = &untyped.action else { panic!() };
        assert_eq!(calls[0].arguments["n"], "5");
    }

    #[test]
    fn what_would_be_read_otherwise_is_not_written() {
        let call = |value| {
            let arguments = Map::from_iter([("a".to_owned(), value)]);
            Action::calls(vec![ToolCall::new("f", arguments)])
        };
        let misread = |value| Qwen3Coder.write(&call(value), &[]).is_err();
        assert!(misread(json!("null")) && misread(json!(1)) && misread(json!("</function>")));
        assert!(!misread(json!("a < b\n")));
    }
}
