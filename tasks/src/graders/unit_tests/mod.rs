//! Unit tests of a program, which see the program and which it does not see.
//!
//! ```text
//!  final answer ──program_in──▶ program ──▶ fresh sandbox ◀──calls, texts── tests (another sandbox, or this process)
//!                                               └──values, texts──▶ compared here ──▶ Verdict
//! ```
//!
//! What is right never enters the sandbox of the program: texts and values are compared in this process, and asserts run in
//! a second sandbox, to which values alone are carried. So exit codes, marks in the output, other people's functions that a
//! program replaces, and objects that are equal to everything decide nothing.

mod outputs;
mod peer;
mod run;
mod solution_text;
mod tests;
mod values;

pub use solution_text::{has_program, program_in};
pub use tests::{CallCase, StreamCase, UnitTests};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};

use self::run::{Found, run};
use super::registry::AXIS;
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{CodeInterpreter, CodeTask, GraderError};

/// Options of the grader `unit_tests`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UnitTestsOptions {
    /// Seconds that one test, or one call of it, may take; at least 1. Default 10.
    pub test_secs: u64,
    /// Seconds that all tests may take; at least 1. Default 120.
    pub total_secs: u64,
    /// What the fraction of passed tests is worth in the reward, as its part `fraction`; at least 0. Default 0: the part
    /// `passed`, 1 where all are passed, is all of it.
    pub fraction: f64,
    /// Whether the tests behind the first that fails are left out and count as failed. Default false.
    pub stop_at_first: bool,
}

impl Default for UnitTestsOptions {
    fn default() -> Self {
        Self { test_secs: 10, total_secs: 120, fraction: 0.0, stop_at_first: false }
    }
}

impl NamedOptions for UnitTestsOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("test_secs", self.test_secs), ("total_secs", self.total_secs)] {
            if !(1..=86_400).contains(&value) {
                problems.push(format!("{name} is {value}, must be 1 to 86400"));
            }
        }
        if !(self.fraction.is_finite() && self.fraction >= 0.0) {
            problems.push(format!("fraction is {}, must be 0 or more", self.fraction));
        }
        problems
    }
}

/// Runs the program of the final answer against the unit tests of the task.
///
/// Solved where all are passed.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramTests {
    options: UnitTestsOptions,
}

impl ProgramTests {
    /// One with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when an option is outside its range.
    pub fn new(options: UnitTestsOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "unit_tests", options.problems())?;
        Ok(Self { options })
    }

    /// Judges an answer.
    ///
    /// # Errors
    ///
    /// [`GraderError`] where the tests themselves cannot be run, or a sandbox could not do its part by no doing of the program.
    pub async fn judge(
        &self,
        answer: &str,
        tests: &UnitTests,
        interpreter: &CodeInterpreter,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let found = match program_in(answer) {
            Some(program) => run(tests, &program, interpreter, &self.options, place).await?,
            None => Found {
                total: tests.len(),
                reason: Some("there is no program".to_owned()),
                results: vec![false; tests.len()],
                ..Found::default()
            },
        };
        let Found { passed, total, reason, results } = found;
        let success = reason.is_none() && passed == total && total > 0;
        let fraction = passed as f64 / total.max(1) as f64;
        let parts = [
            ("passed", f64::from(u8::from(success))),
            ("fraction", self.options.fraction * fraction),
        ];
        let parts = parts.into_iter().filter(|(_, value)| *value > 0.0);
        let part = |(name, value): (&str, f64)| RewardPart { name: name.to_owned(), value };
        let reason = reason.map(|reason| format!("; {reason}")).unwrap_or_default();
        let artifacts = [
            ("passed", json!(passed)),
            ("total", json!(total)),
            ("fraction", json!(fraction)),
            ("results", json!(results)),
        ];
        Ok(Verdict {
            parts: parts.map(part).collect(),
            success,
            details: format!("{passed} of {total} tests passed{reason}"),
            artifacts: artifacts.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Verdict::default()
        })
    }
}

#[async_trait]
impl Grader for ProgramTests {
    fn name(&self) -> &'static str {
        "unit_tests"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { fresh_sandbox: true, ..GraderNeeds::default() }
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let problem = |problem: String| {
            let problems = vec![format!("`unit_tests` of task `{}`: {problem}", episode.task.id)];
            GraderError::Problems { problems }
        };
        let task = CodeTask::deserialize(&episode.task.parameters)
            .map_err(|error| problem(error.to_string()))?;
        let tests = task.tests.ok_or_else(|| problem("it has no `tests`".to_owned()))?;
        self.judge(&episode.final_answer(), &tests, &task.interpreter, place).await
    }
}
