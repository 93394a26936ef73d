//! Parsers that hold each line against a list of patterns, of which the first that fits tells the status.

use regex::{Captures, Regex};

use crate::TestStatus;
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{strip, strip_end};

/// What of the line the patterns see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::log) enum Trim {
    /// All of it.
    Nothing,
    /// Without blanks at its end.
    End,
    /// Without blanks at both ends.
    Both,
}

/// What happens to a status that was known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::log) enum Keep {
    /// The last one holds.
    Last,
    /// The first one holds.
    First,
}

/// Group 1 of the pattern is the name.
pub(in crate::log) struct Rule {
    pub(in crate::log) pattern: &'static Regex,
    pub(in crate::log) status: TestStatus,
    pub(in crate::log) keep: Keep,
}

pub(in crate::log) const fn last(pattern: &'static Regex, status: TestStatus) -> Rule {
    Rule { pattern, status, keep: Keep::Last }
}

pub(in crate::log) const fn first(pattern: &'static Regex, status: TestStatus) -> Rule {
    Rule { pattern, status, keep: Keep::First }
}

/// Reads lines by `rules`; `clean` makes names of what they captured, and names that come out empty are left out where
/// `needs_name`.
pub(in crate::log) struct Rules {
    pub(in crate::log) trim: Trim,
    pub(in crate::log) rules: Vec<Rule>,
    pub(in crate::log) clean: fn(&str) -> String,
    pub(in crate::log) needs_name: bool,
}

impl Rules {
    pub(in crate::log) fn new(trim: Trim, rules: Vec<Rule>) -> Self {
        Self { trim, rules, clean: str::to_owned, needs_name: false }
    }

    /// Lines end at `\n`.
    pub(in crate::log) fn lines(self) -> Reader {
        Reader::lines(self)
    }

    /// Lines end where Python ends them.
    pub(in crate::log) fn python_lines(self) -> Reader {
        Reader::python_lines(self)
    }
}

impl LineParser for Rules {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        let line = match self.trim {
            Trim::Nothing => line,
            Trim::End => strip_end(line),
            Trim::Both => strip(line),
        };
        let fit = self.rules.iter().find_map(|rule| Some((rule, rule.pattern.captures(line)?)));
        let Some((rule, groups)) = fit else { return };
        let name = (self.clean)(&groups[1]);
        if self.needs_name && name.is_empty() {
            return;
        }
        match rule.keep {
            Keep::Last => tests.set(name, rule.status),
            Keep::First => tests.set_default(name, rule.status),
        }
    }
}

/// Reads lines without the blanks at their ends by one pattern, whose groups `read` makes a name and a status of.
pub(in crate::log) fn pattern_lines(
    pattern: &'static Regex,
    read: impl Fn(&Captures<'_>) -> Option<(String, TestStatus)> + Send + 'static,
) -> impl LineParser + Send + 'static {
    move |line: &str, tests: &mut Statuses| {
        if let Some((name, status)) = pattern.captures(strip(line)).and_then(|groups| read(&groups))
        {
            tests.set(name, status);
        }
    }
}

/// [`pattern_lines`] of lines that end at `\n`.
pub(in crate::log) fn by_pattern(
    pattern: &'static Regex,
    read: impl Fn(&Captures<'_>) -> Option<(String, TestStatus)> + Send + 'static,
) -> Reader {
    Reader::lines(pattern_lines(pattern, read))
}

/// [`by_pattern`] for patterns whose group `word` is looked up in `statuses` and whose group `name` is the name.
pub(in crate::log) fn by_word(
    pattern: &'static Regex,
    word: usize,
    name: usize,
    statuses: &'static [(&'static str, TestStatus)],
) -> Reader {
    by_pattern(pattern, move |groups| {
        let (_, status) = statuses.iter().find(|(known, _)| *known == &groups[word])?;
        Some((groups[name].to_owned(), *status))
    })
}
