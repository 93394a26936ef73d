//! The first line.

use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::{empty, trimmed};
use crate::{ActionParser, FormatError, Parsed, WriteError};

/// The first line that is not empty, without the white space around it.
pub(crate) struct Plain;

impl ActionParser for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let start = trimmed(text, 0..text.len()).start;
        let line = text[start..].lines().next().unwrap_or_default();
        let span = trimmed(text, start..start + line.len());
        match &text[span.clone()] {
            "" => Err(empty(text)),
            action => Ok(Parsed::text(action, span)),
        }
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let Action::Text { text } = action else {
            return Err(WriteError::NoCalls { parser: self.name() });
        };
        read_back(self, text.clone(), action, tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_its_first_line() {
        let text = "\n  go north \nthen";
        let parsed = Plain.parse(text, &[]).unwrap();
        assert_eq!(parsed.action, Action::text("go north"));
        assert_eq!(&text[parsed.spans[0].clone()], "go north");
        assert_eq!(Plain.parse(" \n\t", &[]).unwrap_err().to_string(), "the answer is empty");
        assert_eq!(Plain.parse("", &[]).unwrap_err().to_string(), "the answer is empty");
    }
}
