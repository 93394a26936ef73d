//! Calls in the syntax of Python.

use std::ops::Range;

use serde_json::Map;
use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::call_list::CallList;
use crate::marks::said;
use crate::python_literal::{PythonLiterals, name_at, write_python};
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// A list of calls, `[f(a=1, b="x"), g()]`, as Llama 3.2 and 4 write it.
///
/// Arguments have names, and literals for values. Names of tools may have dots in them. Words may
/// stand before and behind the list; it begins at the first `[` with a call behind it that has no
/// arguments, a named one, or the name of a tool that is offered. `<|python_start|>` and
/// `<|python_end|>` are left out.
pub(crate) struct PythonCalls;

const START: &str = "<|python_start|>";
const END: &str = "<|python_end|>";

impl ActionParser for PythonCalls {
    fn name(&self) -> &'static str {
        "python_calls"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let begins = |at: &usize| begins_calls(text, *at + 1, tools);
        let Some(start) = text.match_indices('[').map(|(at, _)| at).find(begins) else {
            return said(text);
        };
        let mut list = CallList::default();
        let unmarked = |piece: &str| piece.replace(START, "").replace(END, "");
        list.say(&unmarked(&text[..start]));
        let mut literals = PythonLiterals::new(text, start + 1);
        loop {
            let (call, span) = read_call(text, &mut literals)?;
            list.push(call, span)?;
            let has_comma = literals.take(",");
            if literals.take("]") {
                break;
            }
            if !has_comma {
                return literals.refuse("behind a call `,` or `]` has to stand");
            }
        }
        list.say(&unmarked(&text[literals.at()..]));
        Ok(list.into_parsed())
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let calls = calls.iter().map(written_call).collect::<Vec<_>>().join(", ");
                match text.trim() {
                    "" => format!("[{calls}]"),
                    said => format!("{said}\n[{calls}]"),
                }
            }
        };
        read_back(self, written, action, tools)
    }
}

fn written_call(call: &ToolCall) -> String {
    let mut out = format!("{}(", call.name);
    for (index, (name, value)) in call.arguments.iter().enumerate() {
        out += if index == 0 { "" } else { ", " };
        out += name;
        out.push('=');
        write_python(value, &mut out);
    }
    out + ")"
}

/// Whether a call begins at `at`.
fn begins_calls(text: &str, at: usize, tools: &[ToolSpec]) -> bool {
    let mut literals = PythonLiterals::new(text, at);
    let Some(name) = take_dotted_name(text, &mut literals) else { return false };
    if !literals.take("(") {
        return false;
    }
    let is_offered = || tools.iter().any(|tool| tool.name == text[name.clone()]);
    literals.take(")") || (literals.take_name().is_some() && literals.take("=")) || is_offered()
}

fn take_dotted_name<'a>(text: &'a str, literals: &mut PythonLiterals<'a>) -> Option<Range<usize>> {
    literals.skip_space();
    let start = literals.at();
    let mut end = start + literals.take_name()?.len();
    while text[end..].starts_with('.') {
        end += 1 + name_at(text, end + 1)?.len();
    }
    *literals = PythonLiterals::new(text, end);
    Some(start..end)
}

fn read_call<'a>(
    text: &'a str,
    literals: &mut PythonLiterals<'a>,
) -> Result<(ToolCall, Range<usize>), FormatError> {
    let Some(name) = take_dotted_name(text, literals) else {
        return literals.refuse("the name of a tool has to stand here");
    };
    if !literals.take("(") {
        return literals.refuse("behind the name of a tool `(` has to stand");
    }
    let mut arguments = Map::new();
    let mut has_comma = true;
    while !literals.take(")") {
        if !has_comma {
            return literals.refuse("behind an argument `,` or `)` has to stand");
        }
        let start = literals.at();
        let parameter = literals.take_name().filter(|_| literals.take("="));
        let Some(parameter) = parameter else {
            let name = &text[name];
            let message = format!("arguments have to have names, as in `{name}(name=value)`");
            let span = start..text.len();
            return Err(FormatError::new(FormatErrorKind::Arguments, span, message));
        };
        arguments.insert(parameter.to_owned(), literals.value()?);
        has_comma = literals.take(",");
    }
    Ok((ToolCall::new(&text[name.clone()], arguments), name.start..literals.at()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn calls_are_read_among_words() {
        let text = "See [1]: [ a.f(x=-1, y={'z': None},), g() ]<|python_end|> ok";
        let parsed = PythonCalls.parse(text, &[]).unwrap();
        let Action::Calls { text: said, calls } = &parsed.action else { panic!() };
        assert_eq!(said, "See [1]:\nok");
        assert_eq!((calls[0].name.as_str(), calls[1].name.as_str()), ("a.f", "g"));
        let arguments = Value::Object(calls[0].arguments.clone());
        assert_eq!(arguments, json!({ "x": -1, "y": { "z": null } }));
        assert_eq!(&text[parsed.spans[1].clone()], "g()");
    }

    #[test]
    fn a_list_of_other_things_is_words() {
        for text in ["[1, 2]", "[a, b]", "see [f(x)]", "f(a=1)"] {
            assert_eq!(PythonCalls.parse(text, &[]).unwrap().action, Action::text(text));
        }
        let tools = [ToolSpec::new("f", "", json!({}))];
        let kind = |text: &str| PythonCalls.parse(text, &tools).unwrap_err().kind;
        assert_eq!(kind("see [f(x)]"), FormatErrorKind::Arguments);
        assert_eq!(kind("[f('x')]"), FormatErrorKind::Arguments);
        assert_eq!(kind("[f(a=1)"), FormatErrorKind::Literal);
        assert_eq!(kind("[f(a=g(1))]"), FormatErrorKind::Literal);
        assert_eq!(kind("[f(a=1) g()]"), FormatErrorKind::Literal);
        assert_eq!(kind("[f(a=1, 2)]"), FormatErrorKind::Arguments);
    }
}
