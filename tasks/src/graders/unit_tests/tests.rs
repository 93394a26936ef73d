//! What a program has to do to be right.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_sandbox::interpreter::Language;

/// The most tests of a task.
const MAX_TESTS: usize = 10_000;

/// What a program has to do to be right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum UnitTests {
    /// It reads a text and writes another, in a new process each time. Lines are compared word by word, words that are
    /// numbers as numbers; white space at the ends of lines and of the text says nothing.
    Streams {
        /// What it reads, and what it has to write.
        cases: Vec<StreamCase>,
    },
    /// A function of it is called, and returns what is right; Python alone.
    Calls {
        /// The function, or the method of a class `Solution` where there is one.
        function: String,
        /// What is put before the program, such as imports. Default empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prelude: String,
        /// What it is called with, and what it has to return.
        cases: Vec<CallCase>,
    },
    /// Python code with `assert`s, which runs in another sandbox than the program: every name of it that it does not define
    /// itself stands for the program's, and each call of such a one is carried there and its result back.
    Asserts {
        /// What is put before the program, such as the beginning of a function that it goes on from. Default empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prelude: String,
        /// What runs before every test, where the tests run. Default empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        setup: String,
        /// The tests, each by itself.
        tests: Vec<String>,
        /// The name of the program's function that `check`, a function which every test defines, is called with. Default
        /// absent: the tests call what they test.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry_point: Option<String>,
    },
}

/// What a program reads, and what it has to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamCase {
    /// On standard input.
    pub input: String,
    /// On standard output.
    pub output: String,
}

/// What a function is called with, and what it has to return.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCase {
    /// By position.
    pub arguments: Vec<Value>,
    /// Any of these is right. A tuple is a list, and whole numbers are equal to floating-point ones.
    pub results: Vec<Value>,
}

impl UnitTests {
    /// How many there are; asserts within a test are counted as they run.
    pub fn len(&self) -> usize {
        match self {
            Self::Streams { cases } => cases.len(),
            Self::Calls { cases, .. } => cases.len(),
            Self::Asserts { tests, .. } => tests.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that is wrong with them for programs of a language; empty where nothing is.
    pub fn problems(&self, language: Language) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_empty() {
            problems.push("`tests` has none, which every program would pass".to_owned());
        }
        if self.len() > MAX_TESTS {
            problems.push(format!("`tests` has {}, at most {MAX_TESTS} are allowed", self.len()));
        }
        if language != Language::Python && !matches!(self, Self::Streams { .. }) {
            problems.push("`tests` call functions, which is for Python alone".to_owned());
        }
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        match self {
            Self::Streams { .. } => {}
            Self::Calls { function, cases, .. } => {
                if !is_name(function) {
                    problems.push(format!("`function` is {function:?}, which is no name"));
                }
                if cases.iter().any(|case| case.results.is_empty()) {
                    problems.push("a case has no `results`: nothing would be right".to_owned());
                }
            }
            Self::Asserts { tests, entry_point, .. } => {
                if tests.iter().any(|test| test.trim().is_empty()) {
                    problems.push("a test is empty, which every program would pass".to_owned());
                }
                if let Some(name) = entry_point.as_ref().filter(|name| !is_name(name)) {
                    problems.push(format!("`entry_point` is {name:?}, which is no name"));
                }
            }
        }
        problems
    }
}
