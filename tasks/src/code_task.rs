//! A question that code helps with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_sandbox::interpreter::Language;

use crate::{ReferenceAnswer, TaskFile, UnitTests};

/// The most that one cell may take, in seconds.
const MAX_CELL_SECS: u64 = 3600;

/// A question that is answered with an interpreter at hand: the parameters of the environment `code`.
///
/// What is right is an `answer`, or a program that passes `tests`; a task has at most one of them, and without either a
/// grader has to tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeTask {
    /// What is asked.
    pub prompt: String,
    /// What is right, where the answer is a number or a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ReferenceAnswer>,
    /// What is right, where the answer is a program; never shown to the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<UnitTests>,
    /// A program that prints the answer, or that passes the tests, for the oracle. Default absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solution: Option<String>,
    /// The interpreter at hand.
    #[serde(default)]
    pub interpreter: CodeInterpreter,
    /// What else is known of the question; never shown to the policy. Default empty.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The interpreter of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CodeInterpreter {
    /// `python` or `javascript`. Default `python`.
    #[schemars(with = "String")]
    pub language: Language,
    /// The sandbox backend that it needs, such as `docker` for packages. Default absent: any.
    pub backend: Option<String>,
    /// The image of its sandbox. Default absent: the backend's own for the language.
    pub image: Option<String>,
    /// Packages of PyPI or npm that set-up installs, with the network open to these registries alone; not with backend
    /// `wasm`. Default none.
    pub packages: Vec<String>,
    /// Files in its working directory, by relative path. Default none.
    pub files: BTreeMap<String, TaskFile>,
    /// Seconds of a cell; 1 to 3,600. Default 10.
    pub cell_secs: u64,
    /// Bytes of a cell's output, beyond which its middle is left out; at least 64. Default 4,096.
    pub output_limit_bytes: usize,
    /// Bytes of memory, at least 64 MiB. Default 512 MiB.
    pub memory_bytes: u64,
    /// Bytes of files, where the backend keeps such a limit; at least 64 KiB. Default absent: the backend's own.
    pub disk_bytes: Option<u64>,
}

impl Default for CodeInterpreter {
    fn default() -> Self {
        Self {
            language: Language::Python,
            backend: None,
            image: None,
            packages: Vec::new(),
            files: BTreeMap::new(),
            cell_secs: 10,
            output_limit_bytes: 4096,
            memory_bytes: 512 << 20,
            disk_bytes: None,
        }
    }
}

impl CodeTask {
    /// A question with its answer.
    pub fn new(prompt: impl Into<String>, answer: Option<ReferenceAnswer>) -> Self {
        Self {
            prompt: prompt.into(),
            answer,
            tests: None,
            solution: None,
            interpreter: CodeInterpreter::default(),
            metadata: Map::new(),
        }
    }

    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.interpreter.problems();
        if self.prompt.trim().is_empty() {
            problems.push("`prompt` is empty".to_owned());
        }
        if self.answer.is_some() && self.tests.is_some() {
            problems.push(
                "`answer` is given beside `tests`: one of them says what is right".to_owned(),
            );
        }
        let is_empty = |answer: &ReferenceAnswer| {
            let texts = answer.texts();
            texts.is_empty() || texts.iter().any(|text| text.trim().is_empty())
        };
        if self.answer.as_ref().is_some_and(is_empty) {
            problems.push("`answer` is empty; leave it out where a grader tells".to_owned());
        }
        if let Some(tests) = &self.tests {
            problems.extend(tests.problems(self.interpreter.language));
        }
        problems
    }
}

impl CodeInterpreter {
    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |is_right: bool, problem: String| {
            if !is_right {
                problems.push(problem);
            }
        };
        let Self { cell_secs, output_limit_bytes, memory_bytes, .. } = self;
        check(
            (1..=MAX_CELL_SECS).contains(cell_secs),
            format!("`cell_secs` is {cell_secs}, must be 1 to {MAX_CELL_SECS}"),
        );
        check(
            *output_limit_bytes >= 64,
            format!("`output_limit_bytes` is {output_limit_bytes}, must be at least 64"),
        );
        check(
            *memory_bytes >= 64 << 20,
            format!("`memory_bytes` is {memory_bytes}, must be at least 64 MiB"),
        );
        check(
            self.disk_bytes.is_none_or(|bytes| bytes >= 64 << 10),
            "`disk_bytes` must be at least 64 KiB or absent".to_owned(),
        );
        let is_wasm = self.backend.as_deref() == Some("wasm");
        check(
            self.packages.is_empty() || !is_wasm,
            "`packages` cannot be installed with backend `wasm`: use docker".to_owned(),
        );
        for package in &self.packages {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.[]=<>~!@/,".contains(c);
            let is_package = !package.is_empty() && package.chars().all(is_name);
            check(
                is_package && !package.starts_with('-'),
                format!("`packages` names {package:?}, which is no package"),
            );
        }
        for (path, file) in &self.files {
            let is_path = !path.is_empty()
                && !path.starts_with('/')
                && !path.ends_with('/')
                && !path.contains('\0')
                && path.split('/').all(|part| part != "..");
            check(is_path, format!("`files` names `{path}`, which is no relative path of a file"));
            check(
                file.text().is_some() && file.host().is_none(),
                format!("file `{path}` needs a text"),
            );
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_task_has_the_defaults_and_all_problems_are_told_at_once() {
        let task: CodeTask = serde_json::from_str(r#"{"prompt": "1 + 1?", "answer": 2}"#).unwrap();
        assert_eq!(task.problems(), [""; 0]);
        assert_eq!(task.interpreter, CodeInterpreter::default());
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<CodeTask>(&text).unwrap(), task);
        let text = r#"{"prompt": " ", "answer": "", "interpreter": {"cell_secs": 0, "memory_bytes": 1,
            "backend": "wasm", "packages": ["a b"], "files": {"../a": "x"}, "output_limit_bytes": 1}}"#;
        let problems = serde_json::from_str::<CodeTask>(text).unwrap().problems();
        let all = problems.join("; ");
        for part in
            ["prompt", "answer", "cell_secs", "memory_bytes", "wasm", "\"a b\"", "../a", "output"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(serde_json::from_str::<CodeTask>(r#"{"prompt": "a", "anwser": 1}"#).is_err());
    }
}
