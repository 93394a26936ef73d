//! Calls as DeepSeek's models write them.

use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::call_list::CallList;
use crate::json::{arguments, read_value, to_line};
use crate::marks::{find, find_first, said, skip_space};
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// Calls between special tokens, in the form of V3 and R1 or in that of V3.1:
///
/// ````text
/// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME
/// ```json
/// {...}
/// ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
///
/// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
/// ````
///
/// Each reads both; they differ in what they write. The very last token may be missing, as may the
/// line breaks.
pub(crate) enum DeepSeek {
    /// Functions with their arguments in fences.
    V3,
    /// Names with bare arguments.
    V31,
}

const BEGIN: &str = "<｜tool▁calls▁begin｜>";
const END: &str = "<｜tool▁calls▁end｜>";
const CALL: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const DIVIDER: &str = "<｜tool▁sep｜>";
const OVER: &str = "<｜end▁of▁sentence｜>";
const FENCE: &str = "```";

impl ActionParser for DeepSeek {
    fn name(&self) -> &'static str {
        match self {
            Self::V3 => "deepseek_v3",
            Self::V31 => "deepseek_v31",
        }
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut list = CallList::default();
        let mut at = 0;
        while let Some((mark, found)) = find_first(text, at, '<', &[BEGIN, CALL]) {
            if found == CALL {
                let message = format!("{CALL} stands outside {BEGIN}...{END}");
                let span = mark..mark + CALL.len();
                return Err(FormatError::new(FormatErrorKind::Missing, span, message));
            }
            list.say(&text[at..mark]);
            at = skip_space(text, mark + BEGIN.len());
            let mut is_first = true;
            loop {
                if text[at..].starts_with(CALL) {
                    let (call, end) = read_call(text, at)?;
                    list.push(call, at..end)?;
                    at = skip_space(text, end);
                    is_first = false;
                } else if !is_first && text[at..].starts_with(END) {
                    at += END.len();
                    break;
                } else if !is_first && at == text.len() {
                    break;
                } else {
                    let expected = if is_first { CALL } else { END };
                    return Err(absent(text, at, expected));
                }
            }
        }
        if list.is_empty() {
            return said(text);
        }
        let rest = text[at..].trim();
        list.say(rest.strip_suffix(OVER).unwrap_or(rest));
        Ok(list.into_parsed())
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let written = match action {
            Action::Text { text } => text.clone(),
            Action::Calls { text, calls } => {
                let written = calls.iter().map(|call| {
                    let (name, arguments) = (&call.name, to_line(&call.arguments));
                    match self {
                        Self::V3 => format!(
                            "{CALL}function{DIVIDER}{name}\n{FENCE}json\n{arguments}\n{FENCE}{CALL_END}"
                        ),
                        Self::V31 => format!("{CALL}{name}{DIVIDER}{arguments}{CALL_END}"),
                    }
                });
                let between = match self {
                    Self::V3 => "\n",
                    Self::V31 => "",
                };
                let calls = written.collect::<Vec<_>>().join(between);
                format!("{}{BEGIN}{calls}{END}", text.trim())
            }
        };
        read_back(self, written, action, tools)
    }
}

/// The call whose mark stands at `start`, and where it ends.
fn read_call(text: &str, start: usize) -> Result<(ToolCall, usize), FormatError> {
    let head = start + CALL.len();
    let divider = match find_first(text, head, '<', &[DIVIDER, CALL, CALL_END]) {
        Some((divider, DIVIDER)) => divider,
        _ => return Err(absent(text, head, DIVIDER)),
    };
    let mut at = skip_space(text, divider + DIVIDER.len());
    let mut name = text[head..divider].trim();
    let is_fenced = !text[at..].starts_with('{');
    if is_fenced {
        let Some(fence) = find(text, at, FENCE) else {
            return Err(absent(text, at, "```json"));
        };
        name = text[at..fence].trim();
        at = fence + FENCE.len();
        at += if text[at..].starts_with("json") { "json".len() } else { 0 };
    }
    if name.is_empty() || name.contains(char::is_whitespace) || name.contains('<') {
        let message = format!("the name of a tool has to stand beside {DIVIDER}");
        return Err(FormatError::new(FormatErrorKind::Name, start..at, message));
    }
    let (value, mut end) = read_value(text, at)?;
    if is_fenced {
        end = expect(text, end, FENCE)?;
    }
    end = expect(text, end, CALL_END)?;
    Ok((ToolCall::new(name, arguments(value, &(start..end))?), end))
}

/// The place behind `mark`, which has to stand at `at` behind white space.
fn expect(text: &str, at: usize, mark: &str) -> Result<usize, FormatError> {
    let start = skip_space(text, at);
    if text[start..].starts_with(mark) {
        Ok(start + mark.len())
    } else {
        Err(absent(text, start, mark))
    }
}

/// An error for `mark`, which does not stand where it has to.
fn absent(text: &str, at: usize, mark: &str) -> FormatError {
    let (kind, message) = if text[at..].trim().is_empty() {
        (FormatErrorKind::Unclosed, format!("the answer ends before {mark}"))
    } else {
        (FormatErrorKind::Unexpected, format!("{mark} has to stand where something else does"))
    };
    FormatError::new(kind, at..text.len(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_by_both() {
        let action = Action::calls(vec![
            ToolCall::new("f", serde_json::Map::from_iter([("a".to_owned(), CALL_END.into())])),
            ToolCall::new("g", Default::default()),
        ]);
        for writer in [DeepSeek::V3, DeepSeek::V31] {
            let text = writer.write(&action, &[]).unwrap();
            for reader in [DeepSeek::V3, DeepSeek::V31] {
                assert_eq!(reader.parse(&text, &[]).unwrap().action, action);
            }
        }
    }

    #[test]
    fn a_call_has_to_be_whole() {
        let whole = format!("{BEGIN}{CALL}f{DIVIDER}{{}}{CALL_END}");
        DeepSeek::V31.parse(&whole, &[]).unwrap();
        for (end, _) in whole.char_indices().skip(BEGIN.chars().count() + 1) {
            assert!(DeepSeek::V31.parse(&whole[..end], &[]).is_err(), "{}", &whole[..end]);
        }
    }
}
