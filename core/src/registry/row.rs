//! A row of a table.

use std::fmt;
use std::ops::Deref;

use super::{DescribedRow, OptionSet, Options};

/// What has a name: what it is, where it comes from, what can be set, and what opens it.
///
/// `O` is what the axis needs to open it, mostly a function from [`Given`](super::Given) options. Where an axis has to know
/// more of a row, it is a struct, whose fields can be read from the row.
#[derive(Clone, Copy)]
pub struct Row<O> {
    /// The name: lower-case letters, digits, and `_`, `-` or `.` between them.
    pub name: &'static str,
    /// One line on what it is or does, a sentence.
    pub about: &'static str,
    /// Where it is described: paper and equation; "reconstructed from ..." with what is assumed; or "own".
    pub source: &'static str,
    /// What it computes, as the type's documentation has it; empty where it is no method.
    pub formula: &'static str,
    /// What can be set.
    pub options: OptionSet,
    /// What opens it.
    pub open: O,
}

impl<O> Row<O> {
    /// What it says about itself; details are the table's part.
    pub fn describe(&self) -> DescribedRow {
        DescribedRow {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            source: self.source.to_owned(),
            formula: self.formula.to_owned(),
            details: Vec::new(),
            options: self.options.describe(),
        }
    }

    /// All that it does not say as it should; empty when nothing is wrong.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_word = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if !self.name.split(['_', '-', '.']).all(is_word) {
            problems.push(format!(
                "its name is `{}`, must be lower-case letters, digits, and `_`, `-` or `.` between them",
                self.name
            ));
        }
        if !self.about.ends_with('.') || self.about.contains('\n') {
            problems.push("`about` has to be a sentence on one line".to_owned());
        }
        if self.source.trim().is_empty() {
            problems.push("`source` is empty: name a paper, or say \"own\"".to_owned());
        }
        for option in self.options.describe() {
            if option.doc.is_empty() {
                problems.push(format!("option `{}` has no doc comment", option.name));
            }
        }
        let defaults = self.options.check(&Options::new());
        problems.extend(defaults.into_iter().map(|problem| format!("its defaults: {problem}")));
        let unknown =
            [("no such option".to_owned(), serde_json::Value::Null)].into_iter().collect();
        if self.options.check(&unknown).is_empty() {
            problems.push("options that it does not have are not refused".to_owned());
        }
        problems
    }
}

impl<O> Deref for Row<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.open
    }
}

impl<O> fmt::Debug for Row<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Row")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
