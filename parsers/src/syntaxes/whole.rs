//! All that was written.

use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::{empty, trimmed};
use crate::{ActionParser, FormatError, Parsed, WriteError};

/// All that was written, without the white space around it: for environments that read answers themselves.
pub(crate) struct Whole;

impl ActionParser for Whole {
    fn name(&self) -> &'static str {
        "whole"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let span = trimmed(text, 0..text.len());
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
    fn all_lines_are_the_action() {
        let text = "\n  {\n \"a\": 1}\n";
        let parsed = Whole.parse(text, &[]).unwrap();
        assert_eq!(parsed.action, Action::text("{\n \"a\": 1}"));
        assert_eq!(Whole.parse(" \n\t", &[]).unwrap_err().to_string(), "the answer is empty");
        assert_eq!(Whole.write(&Action::text("a\nb"), &[]).unwrap(), "a\nb");
    }
}
