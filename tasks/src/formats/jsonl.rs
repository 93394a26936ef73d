//! Files with a task on every line.

use std::path::Path;

use spar_search::questions::QuestionFormat;

use super::SuiteFormat;
use crate::{
    CodeProblemSuite, QuestionSuite, SearchSuite, Suite, SuiteError, SweSuite, TerminalSuite,
    lines, recognise,
};

/// A `.jsonl` file with a task on every line, or a Parquet file with one in every row: a `prompt` with its `answer`, a question in published columns, a question over
/// a corpus in a published form, or a task at a shell. The first tells which.
#[derive(Debug, Clone, Copy)]
pub struct Jsonl;

impl SuiteFormat for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn looks_for(&self) -> &'static str {
        "a .jsonl or Parquet file of questions or of tasks at a shell"
    }

    fn matches(&self, path: &Path) -> bool {
        lines::is_at(path) && CodeProblemSuite::schema_of(path).is_none() && !SweSuite::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        let first = lines::first(path)?;
        let is_published = first.as_ref().is_some_and(|line| recognise(line).is_some());
        Ok(if !is_published && first.as_ref().and_then(QuestionFormat::detect).is_some() {
            Box::new(SearchSuite::open_file(path)?)
        } else if is_published || first.is_some_and(|line| line.contains_key("prompt")) {
            Box::new(QuestionSuite::open_file(path)?)
        } else {
            Box::new(TerminalSuite::open_file(path)?)
        })
    }
}
