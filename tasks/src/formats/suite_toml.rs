//! Folders with a `suite.toml`.

use std::path::Path;

use super::SuiteFormat;
use crate::{
    CodeProblemSuite, Mixture, QuestionSuite, SearchSuite, Suite, SuiteError, TemplateSuite,
    TerminalSuite, ToolSuite, suite_file,
};

/// A folder with a `suite.toml`: splits are parameters and seeds, or files and folders of tasks; or other suites are mixed.
#[derive(Debug, Clone, Copy)]
pub struct SuiteToml;

impl SuiteFormat for SuiteToml {
    fn name(&self) -> &'static str {
        "suite.toml"
    }

    fn looks_for(&self) -> &'static str {
        "a folder with a suite.toml"
    }

    fn matches(&self, path: &Path) -> bool {
        path.join("suite.toml").is_file()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError> {
        let file = path.join("suite.toml");
        let text = std::fs::read_to_string(&file)
            .map_err(|source| SuiteError::Io { path: file.clone(), source })?;
        if Mixture::is_at(path) {
            return Ok(Box::new(Mixture::open(path)?));
        }
        Ok(match suite_file::tasks_of(&text).as_deref() {
            None => Box::new(TemplateSuite::parse(&text, &file)?),
            Some(environment) if ToolSuite::ENVIRONMENTS.contains(&environment) => {
                Box::new(ToolSuite::open(path)?)
            }
            Some(QuestionSuite::ENVIRONMENT) => Box::new(QuestionSuite::open(path)?),
            Some(SearchSuite::ENVIRONMENT) => Box::new(SearchSuite::open(path)?),
            Some(CodeProblemSuite::ENVIRONMENT) => Box::new(CodeProblemSuite::open(path)?),
            Some(_) => Box::new(TerminalSuite::open(path)?),
        })
    }
}
