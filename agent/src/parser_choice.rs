//! Which parser reads the actions of an episode.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spar_core::registry::RowError;
use spar_core::{Action, Choices, GrammarSource, ParsedAction, ToolSpec};
use spar_parsers::{ActionParser, CallRules, Parsed, WriteError, open_parser, parser_registry};

/// The parser whose answers are the actions themselves.
const PLAIN: &str = "plain";

/// The parser that takes all of an answer for the action.
const WHOLE: &str = "whole";

/// What reads answers in environments that find what counts there by themselves.
static WHOLE_ANSWERS: LazyLock<ParserChoice> =
    LazyLock::new(|| ParserChoice::named(WHOLE).expect("it is in the table"));

/// Which parser reads the actions in what a policy wrote; in recipes its name, such as `"tags"`.
#[derive(Clone)]
pub struct ParserChoice(Arc<dyn ActionParser>);

impl ParserChoice {
    /// The parser of this name.
    ///
    /// # Errors
    ///
    /// [`RowError`] lists the names that there are.
    pub fn named(name: &str) -> Result<Self, RowError> {
        open_parser(name).map(Self)
    }

    /// The parser that takes all of an answer for the action, `whole`.
    pub(crate) fn whole() -> &'static Self {
        &WHOLE_ANSWERS
    }

    /// Whether answers are the actions themselves, of which the first line counts.
    pub(crate) fn is_plain(&self) -> bool {
        self.name() == PLAIN
    }

    /// The parser's name.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Whether it reads calls of tools.
    pub fn has_calls(&self) -> bool {
        parser_registry().iter().any(|entry| entry.name == self.name() && entry.open.has_calls)
    }

    /// Reads the action in `text`, where these tools are offered; without any, a call is no action.
    pub fn parse(&self, text: &str, tools: &[ToolSpec]) -> ParsedAction {
        match self.0.parse(text, tools) {
            Ok(parsed) if tools.is_empty() && !parsed.action.tool_calls().is_empty() => {
                ParsedAction::Invalid { reason: "a tool was called, and there are none".to_owned() }
            }
            Ok(Parsed { action, spans, reasoning }) => {
                ParsedAction::Action { action, spans, reasoning }
            }
            Err(error) => ParsedAction::Invalid { reason: error.message },
        }
    }

    /// All that could be the action in `text`, where the syntax wants exactly one.
    pub fn candidates<'t>(&self, text: &'t str) -> Vec<&'t str> {
        self.0.candidates(text)
    }

    /// The answer that is read as `action` where these tools are offered, as a demonstrator writes it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] when the syntax cannot say it.
    pub fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        self.0.write(action, tools)
    }

    /// The texts of calls of these tools with arguments of their schemas; none where the syntax has no such form, as
    /// [`ActionParser::call_grammar`] says.
    pub fn call_grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        self.0.call_grammar(tools, rules)
    }

    /// The answers that are read as one of `actions`; those that the syntax cannot say are left out.
    pub fn choices(&self, actions: &Choices) -> Choices {
        if [PLAIN, WHOLE].contains(&self.name()) {
            return Arc::clone(actions);
        }
        let mut answers: Vec<Arc<str>> = actions
            .iter()
            .filter_map(|action| self.write(&(**action).into(), &[]).ok())
            .map(Arc::from)
            .collect();
        answers.sort_unstable();
        answers.dedup();
        answers.into()
    }
}

impl Default for ParserChoice {
    /// `plain`.
    fn default() -> Self {
        Self::named(PLAIN).expect("it is in the table")
    }
}

impl PartialEq for ParserChoice {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for ParserChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ParserChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ParserChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parser: &str, text: &str) -> Result<String, String> {
        match ParserChoice::named(parser).unwrap().parse(text, &[]) {
            ParsedAction::Action { action, .. } => Ok(action.said().to_owned()),
            ParsedAction::Invalid { reason } => Err(reason),
        }
    }

    #[test]
    fn a_call_of_a_tool_is_no_action() {
        let call = r#"<tool_call>{"name": "go", "arguments": {}}</tool_call>"#;
        assert_eq!(read("hermes", call), Err("a tool was called, and there are none".into()));
    }

    #[test]
    fn what_is_written_with_tools_is_read_with_them() {
        let schema =
            serde_json::json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let tools = [ToolSpec::new("add", "Adds.", schema)];
        let arguments = serde_json::json!({ "n": 3 }).as_object().unwrap().clone();
        let action = Action::calls(vec![spar_core::ToolCall::new("add", arguments)]);
        for entry in parser_registry().iter().filter(|entry| entry.open.has_calls) {
            let parser = ParserChoice::named(entry.name).unwrap();
            assert!(parser.has_calls());
            // A shell's syntax calls nothing but the shell, and an interpreter's nothing but that.
            let Ok(written) = parser.write(&action, &tools) else {
                assert!(["fenced_bash", "code_tags"].contains(&entry.name), "{}", entry.name);
                continue;
            };
            let read = parser.parse(&written, &tools);
            assert_eq!(read.action().unwrap().key(), action.key(), "{}", entry.name);
            assert!(parser.parse(&written, &[]).is_invalid(), "{}", entry.name);
        }
        assert!(!ParserChoice::default().has_calls());
    }

    #[test]
    fn what_is_written_is_read_in_every_syntax() {
        let actions: Choices = ["go to bed 1", "look"].map(Arc::from).into();
        for entry in parser_registry().iter().filter(|entry| entry.open.has_text) {
            let parser = ParserChoice::named(entry.name).unwrap();
            let answers = parser.choices(&actions);
            assert_eq!(answers.len(), 2, "{}", entry.name);
            let said = |answer: &Arc<str>| read(entry.name, answer).unwrap();
            let mut read: Vec<_> = answers.iter().map(said).collect();
            read.sort();
            assert_eq!(read, ["go to bed 1", "look"], "{}", entry.name);
        }
    }

    #[test]
    fn a_name_that_is_not_known_is_refused_with_those_that_are() {
        let parser: ParserChoice = serde_json::from_str(r#""tags""#).unwrap();
        assert_eq!(serde_json::to_string(&parser).unwrap(), r#""tags""#);
        let error = serde_json::from_str::<ParserChoice>(r#""xml""#).unwrap_err().to_string();
        assert!(error.contains("`xml`") && error.contains("`hermes`"), "{error}");
    }
}
