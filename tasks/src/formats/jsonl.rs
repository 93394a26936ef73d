//! Files with a task on every line.

use std::path::Path;

use super::SuiteFormat;
use crate::{QuestionSuite, Suite, SuiteError, TerminalSuite, lines, recognise};

/// A `.jsonl` file with a task on every line: a `prompt` with its `answer`, a question in published columns, or a task at a
/// shell. The first line tells which.
#[derive(Debug, Clone, Copy)]
pub struct Jsonl;

impl SuiteFormat for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn looks_for(&self) -> &'static str {
        "a .jsonl file"
    }

    fn matches(&self, path: &Path) -> bool {
        path.extension().is_some_and(|end| end == "jsonl") && path.is_file()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        let first = lines::first(path)?;
        Ok(if first.is_some_and(|line| line.contains_key("prompt") || recognise(&line).is_some()) {
            Box::new(QuestionSuite::open_file(path)?)
        } else {
            Box::new(TerminalSuite::open_file(path)?)
        })
    }
}
