//! How an action is read in what a policy wrote.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spar_core::{Choices, ParsedAction};

/// How an action is read in what a policy wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionParser {
    /// The first line that is not empty, without the blanks around it.
    #[default]
    Plain,
    /// What stands in the last well-formed `<action>...</action>`.
    Tags,
}

impl ActionParser {
    /// Reads the action in `text`.
    pub fn parse(self, text: &str) -> ParsedAction {
        let found = match self {
            Self::Plain => plain(text),
            Self::Tags => tags(text),
        };
        match found {
            Ok(action) => ParsedAction::Action { text: action.to_owned() },
            Err(reason) => ParsedAction::Invalid { reason: reason.to_owned() },
        }
    }

    /// The answer that is read as `action`, as a demonstrator writes it.
    pub fn write(self, action: String) -> String {
        match self {
            Self::Plain => action,
            Self::Tags => format!("{OPEN}{action}{CLOSE}"),
        }
    }

    /// The answers that are read as one of `actions`.
    pub fn choices(self, actions: &Choices) -> Choices {
        match self {
            Self::Plain => Arc::clone(actions),
            Self::Tags => {
                actions.iter().map(|action| self.write(action.to_string()).into()).collect()
            }
        }
    }
}

const OPEN: &str = "<action>";
const CLOSE: &str = "</action>";

fn plain(text: &str) -> Result<&str, &'static str> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).ok_or("the answer is empty")
}

fn tags(text: &str) -> Result<&str, &'static str> {
    let missing = "the answer has no <action>...</action>";
    let Some(close) = text.rfind(CLOSE) else {
        return Err(if text.contains(OPEN) { "the <action> is not closed" } else { missing });
    };
    let open = text[..close].rfind(OPEN).ok_or(missing)?;
    // A closing tag may stand between them when the last one is stray.
    let inside = text[open + OPEN.len()..].split(CLOSE).next().unwrap_or_default();
    match inside.trim() {
        "" => Err("the <action> is empty"),
        action => Ok(action),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(parser: ActionParser, text: &str) -> Result<String, String> {
        match parser.parse(text) {
            ParsedAction::Action { text } => Ok(text),
            ParsedAction::Invalid { reason } => Err(reason),
        }
    }

    #[test]
    fn plain_text_is_its_first_line() {
        assert_eq!(read(ActionParser::Plain, "\n  go north \nthen"), Ok("go north".to_owned()));
        assert_eq!(read(ActionParser::Plain, " \n\t"), Err("the answer is empty".to_owned()));
    }

    #[test]
    fn the_last_well_formed_tag_counts() {
        let read = |text| read(ActionParser::Tags, text);
        assert_eq!(read("<action>a</action> no, <action> b\n</action> <action>"), Ok("b".into()));
        assert_eq!(read("<action><action>a</action>"), Ok("a".into()));
        assert_eq!(read("<action>a</action></action>"), Ok("a".into()));
        assert_eq!(read("</action>"), Err("the answer has no <action>...</action>".into()));
        assert_eq!(read("go"), Err("the answer has no <action>...</action>".into()));
        assert_eq!(read("<action>go"), Err("the <action> is not closed".into()));
        assert_eq!(read("<action> </action>"), Err("the <action> is empty".into()));
    }

    #[test]
    fn what_is_written_is_read() {
        let actions: Choices = ["go to bed 1", "look"].map(Arc::from).into();
        for parser in [ActionParser::Plain, ActionParser::Tags] {
            let answers = parser.choices(&actions);
            for (answer, action) in answers.iter().zip(&*actions) {
                assert_eq!(**answer, *parser.write(action.to_string()));
                assert_eq!(read(parser, answer), Ok(action.to_string()));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in "(<action>|</action>|ä|\n| |go){0,12}") {
            for parser in [ActionParser::Plain, ActionParser::Tags] {
                if let Ok(action) = read(parser, &text) {
                    prop_assert!(!action.trim().is_empty() && action.trim() == action);
                }
            }
        }
    }
}
