//! What stands in `<search>...</search>` or `<answer>...</answer>`.

use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::marks;
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// The first `<search>...</search>` or `<answer>...</answer>` that is opened and closed, as it stands, before the first `</search>`, or else
/// the first `</answer>`, at which the answer is cut; else all that was written, for the environment to say what is wrong with
/// it. Several answers are none.
pub(crate) struct SearchTags;

const SEARCH: (&str, &str) = ("<search>", "</search>");
const ANSWER: (&str, &str) = ("<answer>", "</answer>");

impl ActionParser for SearchTags {
    fn name(&self) -> &'static str {
        "search_tags"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        if let Some(second) = second_answer(text) {
            let message = "the answer has several <answer>...</answer>";
            return Err(FormatError::new(FormatErrorKind::TooMany, second..text.len(), message));
        }
        let cut = [SEARCH.1, ANSWER.1]
            .into_iter()
            .find_map(|close| text.find(close).map(|start| start + close.len()));
        let cut = &text[..cut.unwrap_or(text.len())];
        let whole = [SEARCH, ANSWER].into_iter().filter_map(|(open, close)| {
            let start = cut.find(open)?;
            let inside = start + open.len();
            let end = inside + cut[inside..].find(close)?;
            Some((start, format!("{open}{}{close}", cut[inside..end].trim()), end + close.len()))
        });
        let Some((start, said, end)) = whole.min_by_key(|(start, ..)| *start) else {
            return marks::said(text);
        };
        Ok(Parsed::text(said, start..end))
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let Action::Text { text } = action else {
            return Err(WriteError::NoCalls { parser: self.name() });
        };
        read_back(self, text.clone(), action, tools)
    }
}

/// Where a second whole answer begins.
fn second_answer(text: &str) -> Option<usize> {
    let (open, close) = ANSWER;
    let first = text.find(open)? + open.len();
    let behind = first + text[first..].find(close)? + close.len();
    let second = behind + text[behind..].find(open)?;
    text[second..].contains(close).then_some(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_as_it_stands_and_its_place_is_told() {
        let text = "<think>ä</think> <search> a\n b </search> <answer>c</answer>";
        let parsed = SearchTags.parse(text, &[]).unwrap();
        assert_eq!(parsed.action.said(), "<search>a\n b</search>");
        assert_eq!(&text[parsed.spans[0].clone()], "<search> a\n b </search>");
    }

    #[test]
    fn several_answers_are_none() {
        let error = SearchTags.parse("<answer>a</answer> <answer>b</answer>", &[]).unwrap_err();
        assert_eq!((error.kind, error.span), (FormatErrorKind::TooMany, 19..37));
        assert!(SearchTags.parse("<answer>a</answer> <answer>b", &[]).is_ok());
    }

    #[test]
    fn only_what_is_read_so_is_written() {
        let write = |text: &str| SearchTags.write(&Action::text(text), &[]);
        assert_eq!(write("<answer>Graz</answer>").unwrap(), "<answer>Graz</answer>");
        assert_eq!(write("Graz").unwrap(), "Graz");
        for misread in ["<answer>a</answer><answer>a</answer>", "so: <search>a</search>", " "] {
            assert!(write(misread).is_err(), "{misread}");
        }
    }
}
