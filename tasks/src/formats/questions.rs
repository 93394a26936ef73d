//! Files of questions in published columns.

use std::path::Path;

use super::SuiteFormat;
use crate::{QuestionSuite, Suite, SuiteError, question_rows};

/// A `.json` file with a list of questions in published columns, or a folder of `.json` files with one each, as MATH has them.
/// Their columns are those of a [schema](crate::question_schemas).
#[derive(Debug, Clone, Copy)]
pub struct Questions;

impl SuiteFormat for Questions {
    fn name(&self) -> &'static str {
        "questions"
    }

    fn looks_for(&self) -> &'static str {
        "a .json file or folder of such with questions in published columns"
    }

    fn matches(&self, path: &Path) -> bool {
        question_rows::is_at(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(QuestionSuite::open_file(path)?))
    }
}
