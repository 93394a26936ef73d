//! Thought, action, observation.

use std::ops::Range;

use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::json::to_line;
use crate::marks::trimmed;
use crate::typed_value::arguments_of_input;
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// The syntax of ReAct: lines that begin with `Thought:`, `Action:`, `Action Input:` or
/// `Final Answer:`.
///
/// - `Action:` with `Action Input:` is a call. Its input is a JSON object of arguments, or text for
///   a tool with a single parameter.
/// - `Action:` alone is an action in words where no tools are offered, and an error otherwise.
/// - `Final Answer:` is an action in words, up to the end of the answer.
///
/// The first action counts, for what follows could only guess at the observation. What stands
/// before it is what the policy thought. Labels may have a number, as in `Action 1:`.
pub(crate) struct React;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Thought,
    Action,
    Input,
    Observation,
    Answer,
}

const LABELS: &[(&str, Label)] = &[
    ("Thought", Label::Thought),
    // Before the shorter one.
    ("Action Input", Label::Input),
    ("Action", Label::Action),
    ("Observation", Label::Observation),
    ("Final Answer", Label::Answer),
];

/// A label with the place where its line begins, and the place behind its colon.
#[derive(Clone, Copy)]
struct Section {
    label: Label,
    line: usize,
    start: usize,
}

impl ActionParser for React {
    fn name(&self) -> &'static str {
        "react"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let sections = sections(text);
        let place_of = |label| sections.iter().position(|section| section.label == label);
        let answer = sections.iter().rfind(|section| section.label == Label::Answer);
        let refuse = |kind, span, message: &str| Err(FormatError::new(kind, span, message));
        let Some(place) = place_of(Label::Action) else {
            let Some(answer) = answer else {
                let message =
                    "the answer has no line that begins with `Action:` or `Final Answer:`";
                return refuse(FormatErrorKind::Missing, 0..text.len(), message);
            };
            let span = trimmed(text, answer.start..text.len());
            if span.is_empty() {
                let span = answer.line..text.len();
                return refuse(FormatErrorKind::Empty, span, "`Final Answer:` is empty");
            }
            let reasoning = reasoning(text, &sections, answer.line);
            return Ok(Parsed { reasoning, ..Parsed::text(&text[span.clone()], span) });
        };
        if let Some(answer) = answer {
            let message = "the answer has both `Action:` and `Final Answer:`";
            return refuse(FormatErrorKind::TooMany, answer.line..answer.start, message);
        }
        let action = sections[place];
        let content = |place: usize| {
            let end = sections.get(place + 1).map_or(text.len(), |next| next.line);
            trimmed(text, sections[place].start..end)
        };
        let reasoning = reasoning(text, &sections, action.line);
        let span = content(place);
        let name = &text[span.clone()];
        if name.is_empty() {
            return refuse(FormatErrorKind::Empty, action.line..action.start, "`Action:` is empty");
        }
        let has_input = sections.get(place + 1).is_some_and(|next| next.label == Label::Input);
        if !has_input {
            if !tools.is_empty() {
                let message = "behind `Action:` there is no line that begins with `Action Input:`";
                return refuse(FormatErrorKind::Missing, action.line..span.end, message);
            }
            return Ok(Parsed { reasoning, ..Parsed::text(name, span) });
        }
        let input = content(place + 1);
        let span = action.line..input.end.max(sections[place + 1].start);
        let arguments = arguments_of_input(&text[input], name, tools, &span)?;
        let action = Action::calls(vec![ToolCall::new(name, arguments)]);
        Ok(Parsed { action, spans: vec![span], reasoning })
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let parser = self.name();
        let written = match action {
            Action::Text { text } if tools.is_empty() => format!("Action: {text}"),
            Action::Text { text } => format!("Final Answer: {text}"),
            Action::Calls { text, .. } if !text.trim().is_empty() => {
                return Err(WriteError::NoTextBeside { parser });
            }
            Action::Calls { calls, .. } => {
                let [call] = calls.as_slice() else {
                    return Err(WriteError::OneCall { parser, found: calls.len() });
                };
                format!("Action: {}\nAction Input: {}", call.name, to_line(&call.arguments))
            }
        };
        read_back(self, written, action, tools)
    }
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((label, len)) = label(line) {
            sections.push(Section { label, line: line_start, start: line_start + len });
        }
        line_start += line.len();
    }
    sections
}

/// The label that a line begins with, and the place behind its colon.
fn label(line: &str) -> Option<(Label, usize)> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let start = line.trim_start_matches(is_blank);
    LABELS.iter().find_map(|(name, label)| {
        let rest = start.strip_prefix(name)?.trim_start_matches(is_blank);
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.trim_start_matches(is_blank).strip_prefix(':')?;
        Some((*label, line.len() - rest.len()))
    })
}

/// What stands before the byte `end`, without the label of thoughts.
fn reasoning(text: &str, sections: &[Section], end: usize) -> Option<String> {
    let label = sections.iter().find(|section| section.label == Label::Thought);
    let start = label.filter(|label| label.line < end).map_or(0, |label| label.start);
    let span: Range<usize> = trimmed(text, start..end);
    (!span.is_empty()).then(|| text[span].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_action_counts() {
        let text =
            "Thought: I am here.\nAction 1: go north\nObservation: a door\nAction 2: open it";
        let parsed = React.parse(text, &[]).unwrap();
        assert_eq!(parsed.action, Action::text("go north"));
        assert_eq!(parsed.reasoning.as_deref(), Some("I am here."));
        assert_eq!(&text[parsed.spans[0].clone()], "go north");
    }

    #[test]
    fn an_action_with_input_is_a_call() {
        let schema = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
        let tools = [ToolSpec::new("search", "", schema)];
        for input in ["a \"b\"", "{\"query\": \"a \\\"b\\\"\"}", "\n  a \"b\"\nObservation: c"] {
            let text = format!("hm\nAction: search\nAction Input: {input}");
            let parsed = React.parse(&text, &tools).unwrap();
            let Action::Calls { calls, .. } = &parsed.action else { panic!() };
            assert_eq!(calls[0].arguments["query"], "a \"b\"", "{input}");
            assert_eq!(parsed.reasoning.as_deref(), Some("hm"));
        }
        let error = React.parse("Action: search", &tools).unwrap_err();
        assert_eq!((error.kind, error.span), (FormatErrorKind::Missing, 0..14));
    }
}
