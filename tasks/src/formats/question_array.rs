//! JSON arrays of questions.

use std::path::Path;

use spar_search::questions::QuestionFile;

use super::SuiteFormat;
use crate::{SearchSuite, Suite, SuiteError};

/// A `.json` file with an array of questions over a corpus, as HotpotQA and 2WikiMultihopQA publish them.
#[derive(Debug, Clone, Copy)]
pub struct QuestionArray;

impl SuiteFormat for QuestionArray {
    fn name(&self) -> &'static str {
        "question-array"
    }

    fn looks_for(&self) -> &'static str {
        "a .json file with an array of questions over a corpus"
    }

    fn matches(&self, path: &Path) -> bool {
        path.extension().is_some_and(|end| end == "json")
            && path.is_file()
            && QuestionFile::detect(path).is_ok_and(|format| format.is_some())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(SearchSuite::open_file(path)?))
    }
}
