//! Files of programming problems.

use std::path::Path;

use super::SuiteFormat;
use crate::code_problems::{CodeProblemSuite, Schema};
use crate::{Suite, SuiteError};

/// A `.jsonl` or Parquet file of programming problems in one of the schemas that benchmarks publish, told by its first row.
#[derive(Debug, Clone, Copy)]
pub struct CodeProblems(pub Schema);

impl SuiteFormat for CodeProblems {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn looks_for(&self) -> &'static str {
        match self.0 {
            Schema::Own => "a .jsonl or Parquet file of programs to write",
            Schema::HumanEval => {
                "a .jsonl or Parquet file whose rows have prompt, test and entry_point"
            }
            Schema::Mbpp => "a .jsonl or Parquet file whose rows have code and test_list",
            Schema::Apps => "a .jsonl or Parquet file whose rows have question and input_output",
            Schema::Taco => {
                "a .jsonl or Parquet file whose rows have question, input_output and raw_tags"
            }
            Schema::LiveCodeBench => {
                "a .jsonl or Parquet file whose rows have question_content and public_test_cases"
            }
            Schema::Guru => {
                "a .jsonl or Parquet file whose rows have reward_model and a data_source of codegen"
            }
        }
    }

    fn matches(&self, path: &Path) -> bool {
        CodeProblemSuite::schema_of(path) == Some(self.0)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        Ok(Box::new(CodeProblemSuite::open_file(path)?))
    }
}
