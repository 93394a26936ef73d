//! What stands in `[...]`.

use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::last_between;
use crate::{ActionParser, FormatError, Parsed, WriteError};

/// The last well-formed `[...]`, without the white space around what is in it.
///
/// Games of TextArena take the first that one of their moves fits; which text is a move is not known
/// here, and a policy that thinks aloud names moves before it decides for one.
pub(crate) struct Bracketed;

const OPEN: &str = "[";
const CLOSE: &str = "]";

impl ActionParser for Bracketed {
    fn name(&self) -> &'static str {
        "bracketed"
    }

    fn parse(&self, text: &str, _tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let span = last_between(text, OPEN, CLOSE)?;
        Ok(Parsed::text(&text[span.clone()], span))
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let Action::Text { text } = action else {
            return Err(WriteError::NoCalls { parser: self.name() });
        };
        read_back(self, format!("{OPEN}{text}{CLOSE}"), action, tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_brackets_count() {
        let text = "Not [up]: I go [ down 2 ].";
        let parsed = Bracketed.parse(text, &[]).unwrap();
        assert_eq!(parsed.action, Action::text("down 2"));
        assert_eq!(&text[parsed.spans[0].clone()], "down 2");
        let error = Bracketed.parse("down", &[]).unwrap_err();
        assert_eq!(error.to_string(), "the answer has no [...]");
    }
}
