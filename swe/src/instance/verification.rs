use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HiddenFile, HiddenFiles, MAX_ENTRIES, MAX_TEXT_BYTES, check_absolute, check_relative};
use crate::error::shortened;
use crate::grade::{EvalType, Expected};
use crate::log::{Origin, find_log_parser};

/// How a result is judged. Scripts are run by `bash` in the instance's `workdir`, with its hidden files in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Verification {
    /// By the statuses of tests in what a script prints.
    TestLog {
        /// The script.
        script: String,
        /// The parser of what it prints.
        parser: ParserName,
        /// What is expected of the tests.
        expected: Expected,
        /// What the log tells of them.
        eval_type: EvalType,
    },
    /// By the statuses of tests in what a script prints, which no parser here reads: for whoever has one.
    UnreadLog {
        /// The script.
        script: String,
        /// What is expected of the tests.
        expected: Expected,
    },
    /// By the statuses of tests that a script writes into a file of JSON: `{"tests": [{"name": .., "status": ..}]}`.
    TestReport {
        /// The script.
        script: String,
        /// The file, by an absolute path.
        report: String,
        /// What is expected of the tests.
        expected: Expected,
    },
    /// By every test that a script prints having exactly the status that is expected, as many as are expected.
    ExactStatuses {
        /// The script.
        script: String,
        /// The parser of what it prints.
        parser: ParserName,
        /// The statuses, by the names of tests.
        expected: BTreeMap<String, String>,
    },
    /// By the tests in what a script prints: all of those that were found have to pass, and one has to be found. Skipped
    /// ones pass.
    AllTestsPass {
        /// The script.
        script: String,
        /// The parser of what it prints.
        parser: ParserName,
    },
    /// By the part of the tests that pass in a report of `pytest-json-report`.
    PassedFraction {
        /// The script.
        script: String,
        /// The file, by an absolute path.
        report: String,
    },
    /// By a file that a script writes, the first of these that exists: `.json` has numbers by name, everything else one
    /// number.
    RewardFile {
        /// The script.
        script: String,
        /// The files, by absolute paths.
        files: Vec<String>,
    },
}

/// A parser of logs, which [`find_log_parser`] finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParserName {
    /// Whose it is.
    pub origin: Origin,
    /// Its name there.
    pub name: String,
}

impl ParserName {
    /// The parser of this name; where there is none, why a result cannot be judged, for [`crate::Instance::unsupported`].
    pub(crate) fn find(origin: Origin, name: &str) -> Result<Self, String> {
        match find_log_parser(origin, name) {
            Ok(_) => Ok(Self { origin, name: name.to_owned() }),
            Err(_) => Err(format!(
                "the parser of logs `{}` of {origin} is not known here",
                shortened(name)
            )),
        }
    }
}

/// What is known to solve a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Gold {
    /// This diff.
    Patch(String),
    /// This diff, the other way round: it makes the bug.
    ReversePatch(String),
    /// These files of the repository; those without content are removed.
    Files(BTreeMap<String, Option<HiddenFile>>),
    /// A commit of the repository that has it.
    Commit(String),
    /// This command, with these files in place.
    Script {
        /// The command, run in `workdir`.
        command: String,
        /// What it needs.
        files: Vec<HiddenFiles>,
    },
}

impl Verification {
    /// Whether what it brings can be read here.
    pub fn is_readable(&self) -> bool {
        !matches!(self, Self::UnreadLog { .. })
    }

    /// What is run.
    pub fn script(&self) -> &str {
        match self {
            Self::TestLog { script, .. }
            | Self::UnreadLog { script, .. }
            | Self::TestReport { script, .. }
            | Self::ExactStatuses { script, .. }
            | Self::AllTestsPass { script, .. }
            | Self::PassedFraction { script, .. }
            | Self::RewardFile { script, .. } => script,
        }
    }

    /// The tests that have to pass, where they are named.
    pub fn expected(&self) -> Option<&Expected> {
        match self {
            Self::TestLog { expected, .. }
            | Self::UnreadLog { expected, .. }
            | Self::TestReport { expected, .. } => Some(expected),
            _ => None,
        }
    }

    pub(crate) fn expected_mut(&mut self) -> Option<&mut Expected> {
        match self {
            Self::TestLog { expected, .. }
            | Self::UnreadLog { expected, .. }
            | Self::TestReport { expected, .. } => Some(expected),
            _ => None,
        }
    }

    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let script = self.script();
        if script.trim().is_empty() {
            problems.push("the script of the verification is empty".to_owned());
        }
        if script.len() > 2 * MAX_TEXT_BYTES {
            problems.push(format!(
                "the script of the verification has {} bytes, and at most {} are read",
                script.len(),
                2 * MAX_TEXT_BYTES
            ));
        }
        match self {
            Self::TestReport { report, .. } | Self::PassedFraction { report, .. } => {
                check_absolute("report", report, problems);
            }
            Self::RewardFile { files, .. } => {
                files.iter().for_each(|file| check_absolute("reward file", file, problems));
            }
            Self::ExactStatuses { expected, .. } if expected.is_empty() => {
                problems.push("no status of any test is expected".to_owned());
            }
            _ => {}
        }
        if let Some(expected) = self.expected() {
            check_expected(expected, problems);
        }
    }
}

fn check_expected(expected: &Expected, problems: &mut Vec<String>) {
    let tests = || expected.fail_to_pass.iter().chain(&expected.pass_to_pass);
    if tests().next().is_none() {
        problems.push("no test has to pass: any result would do".to_owned());
    }
    if tests().count() > MAX_ENTRIES {
        problems.push(format!("more than {MAX_ENTRIES} tests have to pass"));
    }
    if tests().any(|test| test.trim().is_empty()) {
        problems.push("a test that has to pass has no name".to_owned());
    }
}

impl Gold {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        match self {
            Self::Patch(text) | Self::ReversePatch(text) if text.len() > MAX_TEXT_BYTES => {
                problems.push(format!(
                    "the solution has {} bytes, and at most {MAX_TEXT_BYTES} are read",
                    text.len()
                ));
            }
            Self::Files(files) => {
                files.keys().for_each(|path| check_relative("solution", path, problems))
            }
            Self::Commit(commit) if !super::is_commit(commit) => {
                problems.push(
                    "the commit of the solution is not 7 to 64 hexadecimal digits".to_owned(),
                );
            }
            Self::Script { files, .. } => files.iter().for_each(|files| files.check(problems)),
            _ => {}
        }
    }
}
