//! Calls as Llama 3 writes them.

use spar_core::{Action, GrammarSource, ToolSpec};

use crate::action_parser::read_back;
use crate::call_grammar::CallForm;
use crate::call_list::CallList;
use crate::json::{call, call_line, read_value};
use crate::marks::{find, said, skip_space};
use crate::{ActionParser, CallRules, FormatError, Parsed, WriteError};

/// An answer that is `{"name": ..., "parameters": {...}}`, several divided by `;`.
///
/// `<|python_tag|>` may stand before the first; words may stand before the tag and behind the
/// calls. Without the tag, an answer is words if it does not begin like an object, or has no `name`
/// in it.
pub(crate) struct Llama3Json;

const TAG: &str = "<|python_tag|>";

/// How calls are written.
const FORM: CallForm = CallForm {
    before: "",
    open: "{\"name\": ",
    between: ", \"parameters\": ",
    close: "}",
    next: Some("; "),
    // A control token in the models that write it.
    mark: None,
};

impl ActionParser for Llama3Json {
    fn name(&self) -> &'static str {
        "llama3_json"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut list = CallList::default();
        let tag = find(text, 0, TAG);
        let mut at = match tag {
            Some(tag) => {
                list.say(&text[..tag]);
                skip_space(text, tag + TAG.len())
            }
            None => skip_space(text, 0),
        };
        if tag.is_none() && !text[at..].starts_with('{') {
            return said(text);
        }
        loop {
            let may_be_words = tag.is_none() && list.is_empty();
            let (value, end) = match read_value(text, at) {
                Ok(read) => read,
                Err(_) if may_be_words && !names_a_tool(text) => return said(text),
                Err(error) => return Err(error),
            };
            if may_be_words && value.get("name").is_none() {
                return said(text);
            }
            list.push(call(value, &(at..end))?, at..end)?;
            at = skip_space(text, end);
            let rest = &text[at..];
            if rest.starts_with(';') {
                at = skip_space(text, at + 1);
            } else if !rest.starts_with('{') {
                break;
            }
            if at == text.len() {
                break;
            }
        }
        list.say(&text[at..]);
        Ok(list.into_parsed())
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let calls = calls.iter().map(|call| call_line(call, "parameters"));
                let calls = calls.collect::<Vec<_>>().join("; ");
                match text.trim() {
                    "" => calls,
                    said => format!("{said}{TAG}{calls}"),
                }
            }
        };
        read_back(self, written, action, tools)
    }

    fn call_grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        FORM.grammar(tools, rules)
    }
}

/// Whether what is no JSON was meant as a call.
fn names_a_tool(text: &str) -> bool {
    text.contains("\"name\"") || text.contains("'name'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FormatErrorKind;

    #[test]
    fn an_object_is_a_call_only_if_it_has_a_name() {
        for text in [r#"{"answer": 5}"#, "{x} is a set", "5"] {
            assert_eq!(Llama3Json.parse(text, &[]).unwrap().action, Action::text(text));
        }
        let kind = |text: &str| Llama3Json.parse(text, &[]).unwrap_err().kind;
        assert_eq!(kind(r#"{"name": "f""#), FormatErrorKind::Json);
        assert_eq!(kind(r#"<|python_tag|>{"answer": 5}"#), FormatErrorKind::Name);
        assert_eq!(kind("<|python_tag|>print(5)"), FormatErrorKind::Json);
        assert_eq!(kind(r#"{"name": "f"}; {"answer": 5}"#), FormatErrorKind::Name);
    }
}
