//! What stands in `<action>...</action>`.

use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::last_between;
use crate::{ActionParser, FormatError, Parsed, WriteError};

/// The last well-formed `<action>...</action>`, without the white space around what is in it.
pub(crate) struct Tags;

const OPEN: &str = "<action>";
const CLOSE: &str = "</action>";

impl ActionParser for Tags {
    fn name(&self) -> &'static str {
        "tags"
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
    use crate::FormatErrorKind;

    fn read(text: &str) -> Result<String, String> {
        match Tags.parse(text, &[]) {
            Ok(parsed) => Ok(text[parsed.spans[0].clone()].to_owned()),
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn the_last_well_formed_tag_counts() {
        assert_eq!(read("<action>a</action> no, <action> b\n</action> <action>"), Ok("b".into()));
        assert_eq!(read("<action><action>a</action>"), Ok("a".into()));
        assert_eq!(read("<action>a</action></action>"), Ok("a".into()));
        assert_eq!(read("</action>"), Err("the answer has no <action>...</action>".into()));
        assert_eq!(read("go"), Err("the answer has no <action>...</action>".into()));
        assert_eq!(read("<action>go"), Err("the <action> is not closed".into()));
        assert_eq!(read("<action> </action>"), Err("the <action> is empty".into()));
    }

    #[test]
    fn an_error_says_where() {
        let error = Tags.parse("ä <action>go", &[]).unwrap_err();
        assert_eq!((error.kind, error.span), (FormatErrorKind::Unclosed, 3..13));
        let error = Tags.parse("ä <action> </action>", &[]).unwrap_err();
        assert_eq!((error.kind, error.span), (FormatErrorKind::Empty, 3..21));
    }
}
