//! Code between tags, for an interpreter.

use std::ops::Range;

use serde_json::{Map, Value};
use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::{find, said, skip_space, trimmed};
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// Code in `<code>...</code>` at the end of an answer, with a fence around it or not, as a call of the interpreter that is
/// offered; an answer without such a block is words.
///
/// The interpreter is the first tool that is called `python` or `javascript` and has a parameter `code`, or `python` where
/// none is. What stands before the block is said beside the call. Nothing may stand behind it: there comes what the
/// interpreter tells, and who writes that itself is told so.
pub(crate) struct CodeTags;

const OPEN: &str = "<code>";
const CLOSE: &str = "</code>";
const FENCE: &str = "```";
const PARAMETER: &str = "code";
const TOOLS: [&str; 2] = ["python", "javascript"];
/// What a fence may be called.
const LANGUAGES: [&str; 6] = ["python", "py", "python3", "javascript", "js", ""];

impl ActionParser for CodeTags {
    fn name(&self) -> &'static str {
        "code_tags"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let Some(open) = find(text, 0, OPEN) else { return said(text) };
        let start = open + OPEN.len();
        let Some(end) = find(text, start, CLOSE) else {
            let message = format!("the {OPEN} is not closed");
            return Err(FormatError::new(FormatErrorKind::Unclosed, open..text.len(), message));
        };
        let behind = skip_space(text, end + CLOSE.len());
        if behind < text.len() {
            let message = format!("an answer has to end behind {CLOSE}: the output comes next");
            return Err(FormatError::new(FormatErrorKind::Unexpected, behind..text.len(), message));
        }
        let code = unfenced(text, start..end);
        if code.is_empty() {
            let message = format!("the {OPEN} is empty");
            let span = open..end + CLOSE.len();
            return Err(FormatError::new(FormatErrorKind::Empty, span, message));
        }
        let arguments = Map::from_iter([(PARAMETER.to_owned(), text[code].into())]);
        let call = ToolCall::new(tool(tools), arguments);
        let action = Action::Calls { text: text[..open].trim().to_owned(), calls: vec![call] };
        let span = open..end + CLOSE.len();
        Ok(Parsed { action, spans: vec![span], reasoning: None })
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let parser = self.name();
        let text = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let [call] = calls.as_slice() else {
                    return Err(WriteError::OneCall { parser, found: calls.len() });
                };
                let code = match call.arguments.get(PARAMETER) {
                    Some(Value::String(code)) if call.name == tool(tools) => code,
                    _ => return Err(WriteError::NoCalls { parser }),
                };
                let before =
                    if text.trim().is_empty() { String::new() } else { format!("{text}\n") };
                let language = &call.name;
                format!("{before}{OPEN}\n{FENCE}{language}\n{code}\n{FENCE}\n{CLOSE}")
            }
        };
        read_back(self, text, action, tools)
    }
}

/// The interpreter among the tools.
fn tool(tools: &[ToolSpec]) -> &str {
    let is_interpreter =
        |tool: &&ToolSpec| TOOLS.contains(&&*tool.name) && tool.parameter(PARAMETER).is_some();
    tools.iter().find(is_interpreter).map_or(TOOLS[0], |tool| &tool.name)
}

/// What stands between the tags, without a fence around it and white space at its ends.
fn unfenced(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = trimmed(text, range);
    let Some(rest) = text[inside.clone()].strip_prefix(FENCE) else { return inside };
    let Some(rest) = rest.strip_suffix(FENCE) else { return inside };
    let Some((language, _)) = rest.split_once('\n') else { return inside };
    if !LANGUAGES.contains(&language.trim()) {
        return inside;
    }
    let start = inside.start + FENCE.len() + language.len() + 1;
    trimmed(text, start..inside.end - FENCE.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String), String> {
        match CodeTags.parse(text, &[]) {
            Ok(parsed) => match parsed.action.tool_calls() {
                [] => Ok((parsed.action.said().to_owned(), String::new())),
                [call] => {
                    let code = call.arguments["code"].as_str().unwrap().to_owned();
                    Ok((parsed.action.said().to_owned(), code))
                }
                _ => panic!(),
            },
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn a_block_at_the_end_is_a_call_with_or_without_a_fence() {
        let is = |said: &str, code: &str| Ok((said.to_owned(), code.to_owned()));
        assert_eq!(read("So:\n<code>\n```python\nprint(1)\n```\n</code>"), is("So:", "print(1)"));
        assert_eq!(read("<code>print('```')</code> \n"), is("", "print('```')"));
        assert_eq!(read("<code>```\na\n  b\n```</code>"), is("", "a\n  b"));
        assert_eq!(read("<code>```text\na\n```</code>"), is("", "```text\na\n```"));
        assert_eq!(read(r" It is \boxed{3}. "), is(r"It is \boxed{3}.", ""));
    }

    #[test]
    fn what_is_no_block_is_told() {
        let told = |text: &str| read(text).unwrap_err();
        assert!(told("<code>print(1)").contains("not closed"));
        assert!(told("<code>```python\n```</code>").contains("empty"));
        assert!(told("<code>1</code><interpreter>9</interpreter>").contains("comes next"));
        assert!(told("<code>1</code> <code>2</code>").contains("comes next"));
    }

    #[test]
    fn the_tool_is_the_interpreter_that_is_offered() {
        let schema =
            serde_json::json!({ "type": "object", "properties": { "code": { "type": "string" } } });
        let tools = [ToolSpec::new("javascript", "", schema)];
        let parsed = CodeTags.parse("<code>1</code>", &tools).unwrap();
        assert_eq!(parsed.action.tool_calls()[0].name, "javascript");
        let written = CodeTags.write(&parsed.action, &tools).unwrap();
        assert_eq!(written, "<code>\n```javascript\n1\n```\n</code>");
        assert!(CodeTags.write(&parsed.action, &[]).is_err());
    }
}
