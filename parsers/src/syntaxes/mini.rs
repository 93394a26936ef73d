//! A command in the marks of mini-swe-agent.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use spar_core::{Action, ToolSpec};

use crate::action_parser::read_back;
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// What its expression finds, where that is exactly one thing; white space around it is left out, as `str.strip` does.
///
/// Unlike [`FencedBash`](super::FencedBash) it knows nothing of Markdown: a mark counts wherever it stands, and the first
/// end behind it is its end. A mark without an end is none.
pub(crate) struct Mini {
    name: &'static str,
    expression: &'static LazyLock<Regex>,
    marks: (&'static str, &'static str),
}

// Python's `\s` has the four separators of ASCII as well.
static BACKTICKS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"```mswea_bash_command[\s\x1c-\x1f]*\n(.*?)\n```"));
static XML: LazyLock<Regex> =
    LazyLock::new(|| compiled("<mswea_bash_command>(.*?)</mswea_bash_command>"));
static V1: LazyLock<Regex> = LazyLock::new(|| compiled(r"```bash[\s\x1c-\x1f]*\n(.*?)\n```"));

fn compiled(expression: &str) -> Regex {
    Regex::new(&format!("(?s){expression}")).expect("it was written here")
}

impl Mini {
    pub(crate) const BACKTICKS: Self = Self {
        name: "mini_backticks",
        expression: &BACKTICKS,
        marks: ("```mswea_bash_command\n", "\n```"),
    };
    pub(crate) const XML: Self = Self {
        name: "mini_xml",
        expression: &XML,
        marks: ("<mswea_bash_command>", "</mswea_bash_command>"),
    };
    pub(crate) const V1: Self =
        Self { name: "mini_v1", expression: &V1, marks: ("```bash\n", "\n```") };

    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
        let stripped = |range: Range<usize>| {
            let inside = &text[range.clone()];
            let start = range.start + (inside.len() - inside.trim_start_matches(is_space).len());
            start..start + inside.trim_matches(is_space).len()
        };
        let found = self.expression.captures_iter(text).filter_map(|found| found.get(1));
        found.map(|found| stripped(found.range())).collect()
    }
}

impl ActionParser for Mini {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parse(&self, text: &str, _: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let found = self.found(text);
        let [span] = &*found else {
            let message = format!("Expected exactly 1 action, found {}", found.len());
            return Err(match found.get(1) {
                None => FormatError::new(FormatErrorKind::Missing, 0..text.len(), message),
                Some(second) => FormatError::new(FormatErrorKind::TooMany, second.clone(), message),
            });
        };
        if span.is_empty() {
            let message = "the command is empty";
            return Err(FormatError::new(FormatErrorKind::Empty, span.clone(), message));
        }
        let action = Action::text(&text[span.clone()]);
        Ok(Parsed { action, spans: vec![span.clone()], reasoning: None })
    }

    fn candidates<'t>(&self, text: &'t str) -> Vec<&'t str> {
        self.found(text).into_iter().map(|range| &text[range]).collect()
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let Action::Text { text } = action else {
            return Err(WriteError::NoCalls { parser: self.name });
        };
        let (before, behind) = self.marks;
        read_back(self, format!("{before}{text}{behind}"), action, tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parser: &Mini, text: &str) -> Result<String, String> {
        let parsed = parser.parse(text, &[]);
        parsed.map(|parsed| parsed.action.said().to_owned()).map_err(|error| error.message)
    }

    #[test]
    fn what_an_expression_finds_is_the_command() {
        let fenced = "THOUGHT: so\n\n```mswea_bash_command\nls -la\n```\n";
        assert_eq!(read(&Mini::BACKTICKS, fenced), Ok("ls -la".to_owned()));
        assert_eq!(read(&Mini::V1, "```bash \n\n  cd a\nls\n \n```"), Ok("cd a\nls".to_owned()));
        let tagged = "so <mswea_bash_command> ls\n</mswea_bash_command>";
        assert_eq!(read(&Mini::XML, tagged), Ok("ls".to_owned()));
        // An end is an end wherever it stands, and a block of another language is none.
        assert_eq!(
            read(&Mini::BACKTICKS, "```mswea_bash_command\ncat <<E\n```x\nE\n```"),
            Ok("cat <<E".to_owned())
        );
        // The original runs it, to no effect.
        let empty = Err("the command is empty".to_owned());
        assert_eq!(read(&Mini::BACKTICKS, "```mswea_bash_command\n\n```"), empty);
        let none = Err("Expected exactly 1 action, found 0".to_owned());
        assert_eq!(read(&Mini::BACKTICKS, "```bash\nls\n```"), none);
        assert_eq!(read(&Mini::V1, "```bash\nls"), none);
        let twice = format!("{fenced}{fenced}");
        let two = Err("Expected exactly 1 action, found 2".to_owned());
        assert_eq!(read(&Mini::BACKTICKS, &twice), two);
        assert_eq!(Mini::BACKTICKS.candidates(&twice), ["ls -la", "ls -la"]);
    }

    #[test]
    fn what_would_end_early_cannot_be_written() {
        let write = |text: &str| Mini::V1.write(&Action::text(text), &[]);
        assert_eq!(write("ls").unwrap(), "```bash\nls\n```");
        assert!(write("cat <<E\n```\nE").is_err());
    }
}
