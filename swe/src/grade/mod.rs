//! From statuses of tests to what an attempt is worth, by the rules of each benchmark.
//!
//! ```text
//!  log of the evaluation ─▶ EvalLog ─▶ LogVerdict ─▶ TestsReport ─▶ Resolution ─▶ Outcome
//!                            │ section between the marks, exit status, signs that the suite ran
//! ```
//!
//! ```
//! use spar_swe::grade::{Edition, EvalLog, EvalType, Expected, Resolution};
//! use spar_swe::log::{LogContext, Origin, find_log_parser};
//!
//! let parser = find_log_parser(Origin::SweBench, "parse_log_pytest")?;
//! let mut log = EvalLog::new(parser, &LogContext::default(), Edition::Five)?;
//! log.push(b"+ : '>>>>> Start Test Output'\nPASSED a.py::one\n+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 0\n");
//! let tests = log.finish(None).verdict.unwrap();
//! let expected = Expected { fail_to_pass: vec!["a.py::one".to_owned()], pass_to_pass: vec![] };
//! let report = expected.report(&tests, EvalType::PassAndFail, Edition::Five);
//! assert_eq!(report.resolution(), Resolution::Full);
//! # Ok::<(), spar_swe::log::LogError>(())
//! ```

#[cfg(test)]
mod conformance;
mod eval_log;
mod expected;
mod infra_failure;
mod other_rules;
mod outcome;

pub use eval_log::{EvalLog, LogReport, Ungraded};
pub use expected::{Expected, Resolution, TestCount, TestCounts, TestLists, TestsReport};
pub use infra_failure::{InfraFailure, InfraScan, InfraTier};
pub use other_rules::{
    MultiSweStatus, MultiSweTest, multi_swe_has_resolved, pro_has_resolved, r2e_has_resolved,
    rebench_report, terminal_bench_has_resolved,
};
pub use outcome::Outcome;

/// Whose rules of SWE-bench hold; every row tells by its fields which it was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// Version 1: what follows the last `>>>>> Applied Patch (pred)` is read, where the patch to the tests was applied as well. A skipped
    /// test neither counts as passed nor as failed, in all versions before 5.
    One,
    /// Version 2: as before, of any log that says that a patch was applied and shows no problem.
    Two,
    /// Version 3: the section between the marks is read.
    Three,
    /// Version 4: as before, and the whole log is read when the section has no results. SWE-smith grades so as well.
    Four,
    /// Version 5: skipped tests fail where they had to begin to pass, and pass where they had to go on; names that were cut within
    /// brackets are found by their beginnings; logs that show no run, or that do not go together with the exit status, are
    /// not graded.
    #[default]
    Five,
}

/// What a row's log tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalType {
    /// What passes and what fails.
    #[default]
    PassAndFail,
    /// Only what fails: a test that is not named has passed.
    FailOnly,
}

impl EvalType {
    /// The type for `owner/name`, for rows that do not say it.
    pub fn of_repository(repository: &str, edition: Edition) -> Self {
        let only_failures: &[&str] = match edition {
            Edition::Five => &[
                "chartjs/chart.js",
                "processing/p5.js",
                "markedjs/marked",
                "bpmn-io/bpmn-js",
                "openlayers/openlayers",
                "eslint/eslint",
            ],
            _ => &["chartjs/chart.js", "processing/p5.js", "markedjs/marked"],
        };
        match only_failures.contains(&repository.to_ascii_lowercase().as_str()) {
            true => Self::FailOnly,
            false => Self::PassAndFail,
        }
    }
}
