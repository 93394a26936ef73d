//! Calls as Hermes and Qwen 2.5 and 3 write them.

use serde_json::Value;
use spar_core::{Action, GrammarSource, ToolSpec};

use crate::action_parser::read_back;
use crate::call_grammar::CallForm;
use crate::call_list::CallList;
use crate::json::{call, call_line, read_value};
use crate::marks::{find, said, skip_space};
use crate::{ActionParser, CallRules, FormatError, FormatErrorKind, Parsed, WriteError};

/// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number of times.
///
/// A list of calls may stand in one pair of marks. The last closing mark may be missing, as it is
/// where generation stops at it, if the JSON before it is whole. A mark within a string of the JSON
/// is part of that string.
pub(crate) struct Hermes;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// How calls are written.
const FORM: CallForm = CallForm {
    before: "",
    open: "<tool_call>\n{\"name\": ",
    between: ", \"arguments\": ",
    close: "}\n</tool_call>",
    next: Some("\n"),
    mark: Some(OPEN),
};

impl ActionParser for Hermes {
    fn name(&self) -> &'static str {
        "hermes"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut list = CallList::default();
        let mut at = 0;
        while let Some(open) = find(text, at, OPEN) {
            list.say(&text[at..open]);
            let (value, end) = read_value(text, open + OPEN.len())?;
            let close = skip_space(text, end);
            let rest = &text[close..];
            at = match rest.strip_prefix(CLOSE) {
                Some(_) => close + CLOSE.len(),
                None if rest.is_empty() => end,
                None => {
                    let message = format!("behind the JSON of a call {CLOSE} has to stand");
                    let kind = FormatErrorKind::Unclosed;
                    return Err(FormatError::new(kind, open..close, message));
                }
            };
            let span = open..at;
            match value {
                Value::Array(calls) if !calls.is_empty() => {
                    for value in calls {
                        list.push(call(value, &span)?, span.clone())?;
                    }
                }
                value => list.push(call(value, &span)?, span)?,
            }
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
                let calls = calls
                    .iter()
                    .map(|call| format!("{OPEN}\n{}\n{CLOSE}", call_line(call, "arguments")));
                let said = (!text.trim().is_empty()).then(|| text.trim().to_owned());
                said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
            }
        };
        read_back(self, written, action, tools)
    }

    fn call_grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        FORM.grammar(tools, rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_strings_are_text() {
        let text =
            r#"<tool_call>{"name": "say", "arguments": {"text": "</tool_call>"}}</tool_call>!"#;
        let parsed = Hermes.parse(text, &[]).unwrap();
        assert_eq!(parsed.spans[0], 0..text.len() - 1);
        let Action::Calls { text: said, calls } = &parsed.action else { panic!() };
        assert_eq!(said, "!");
        assert_eq!(calls[0].arguments["text"], "</tool_call>");
    }

    #[test]
    fn what_stands_around_calls_is_said() {
        let call = r#"<tool_call>{"name": "f"}</tool_call>"#;
        let parsed = Hermes.parse(&format!(" a\n{call}b{call}\nc "), &[]).unwrap();
        let Action::Calls { text, calls } = parsed.action else { panic!() };
        assert_eq!((text.as_str(), calls.len()), ("a\nb\nc", 2));
    }
}
