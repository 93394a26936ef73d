//! What the output of a test script says, read while it comes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use spar_swe::TestStatus;
use spar_swe::Verification;
use spar_swe::grade::{
    Edition, EvalLog, Expected, InfraFailure, InfraTier, Outcome, Resolution, TestsReport,
    pro_has_resolved, r2e_has_resolved, rebench_report, terminal_bench_has_resolved,
};
use spar_swe::log::{LogContext, LogError, LogReading, Origin, StatusMap, find_log_parser};

const START: &str = ">>>>> Start Test Output";
const END: &str = ">>>>> End Test Output";

/// What a run comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) reward: f64,
    pub(super) reason: String,
    pub(super) tests: Option<TestsReport>,
    pub(super) infra: Option<InfraFailure>,
    /// Statuses by the names of tests, where the log has some.
    pub(super) statuses: StatusMap,
    /// Rewards by their names, where a file has them.
    pub(super) rewards: BTreeMap<String, f64>,
}

impl Judged {
    pub(super) fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        let reward = if outcome == Outcome::Resolved { 1.0 } else { 0.0 };
        let (reason, statuses, rewards) = (reason.into(), StatusMap::new(), BTreeMap::new());
        Self { outcome, reward, reason, tests: None, infra: None, statuses, rewards }
    }

    fn of(resolved: bool, reason: &str) -> Self {
        match resolved {
            true => Self::new(Outcome::Resolved, ""),
            false => Self::new(Outcome::Failed, reason),
        }
    }
}

/// Whose rules hold for a verification.
pub(super) fn edition(verification: &Verification) -> Edition {
    match verification {
        Verification::TestLog { parser, .. } if parser.origin == Origin::SweBench => Edition::Five,
        Verification::TestLog { .. } => Edition::Four,
        _ => Edition::Five,
    }
}

/// Reads the output of a test script while it comes. Of most runners' logs only the line under way is held.
pub(super) enum Reader {
    /// By SWE-bench's marks. How often a script of its own writes them is counted beside.
    Marked { log: Box<EvalLog>, marks: [u64; 2] },
    /// All of it.
    Whole(Box<Text>),
    /// What it prints does not matter.
    Unread,
}

/// Text that comes in pieces of bytes.
pub(super) struct Text {
    reading: LogReading,
    /// The beginning of a character that the last piece ended in, at most three bytes.
    pending: Vec<u8>,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        for chunk in pending.utf8_chunks() {
            self.reading.push(chunk.valid());
            let invalid = chunk.invalid();
            let ends = invalid.as_ptr_range().end == pending.as_ptr_range().end;
            if invalid.is_empty() {
                continue;
            }
            // What may still become a character waits for the next piece.
            if ends && invalid.len() < 4 && could_begin(invalid) {
                self.pending = invalid.to_vec();
            } else {
                self.reading.push("\u{fffd}");
            }
        }
    }

    fn finish(mut self) -> Result<StatusMap, LogError> {
        if !self.pending.is_empty() {
            self.reading.push("\u{fffd}");
        }
        self.reading.finish()
    }
}

/// Whether bytes are the beginning of a character.
fn could_begin(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl Reader {
    pub(super) fn open(verification: &Verification, instance_id: &str) -> Result<Self, LogError> {
        let context = LogContext { instance_id, ..LogContext::default() };
        let parser = match verification {
            Verification::TestLog { parser, .. }
            | Verification::ExactStatuses { parser, .. }
            | Verification::AllTestsPass { parser, .. } => {
                find_log_parser(parser.origin, &parser.name)?
            }
            _ => return Ok(Self::Unread),
        };
        let script = verification.script();
        // A fork of the harness has no marks, and reads all.
        if matches!(verification, Verification::TestLog { .. }) && script.contains(START) {
            let log = EvalLog::new(parser, &context, edition(verification))?;
            return Ok(Self::Marked {
                log: Box::new(log),
                marks: [START, END].map(|mark| written(script, mark)),
            });
        }
        let reading = parser.open(&context)?;
        Ok(Self::Whole(Box::new(Text { reading, pending: Vec::new() })))
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Marked { log, .. } => log.push(bytes),
            Self::Whole(text) => text.push(bytes),
            Self::Unread => {}
        }
    }

    /// What all of it says. Reports that the script wrote into files are judged elsewhere.
    pub(super) fn finish(self, verification: &Verification) -> Judged {
        match self {
            Self::Marked { log, marks } => marked(*log, marks, verification),
            Self::Whole(text) => match text.finish() {
                Ok(statuses) => by_statuses(statuses, verification),
                Err(error) => Judged::new(Outcome::Invalid, error.to_string()),
            },
            Self::Unread => Judged::new(Outcome::Invalid, "nothing tells what it printed"),
        }
    }
}

/// How often a script writes a mark: where `set -x` shows commands, those that print it show it twice.
fn written(script: &str, mark: &str) -> u64 {
    let is_traced = script.lines().any(|line| {
        let line = line.trim();
        line.strip_prefix("set -").is_some_and(|options| {
            options.split_whitespace().next().is_some_and(|flags| flags.contains('x'))
        })
    });
    let lines = script.lines().map(str::trim).filter(|line| line.contains(mark));
    lines.map(|line| 1 + u64::from(is_traced && !line.starts_with(':'))).sum()
}

fn marked(log: EvalLog, [starts, ends]: [u64; 2], verification: &Verification) -> Judged {
    let report = log.finish(None);
    let mut judged = match (&report.verdict, verification) {
        (Ok(_), _) if report.num_starts > starts || report.num_ends > ends => Judged::new(
            Outcome::Invalid,
            format!(
                "the log has the marks around the tests' output {} and {} times, and the script writes them {starts} and {ends} times",
                report.num_starts, report.num_ends
            ),
        ),
        (Ok(statuses), Verification::TestLog { expected, eval_type, .. }) => {
            let tests = expected.report(statuses, *eval_type, edition(verification));
            let outcome = Outcome::new(&report, Some(&tests));
            let mut judged = Judged::new(outcome, unmet(&tests));
            (judged.tests, judged.statuses) = (Some(tests), statuses.clone());
            judged
        }
        (Ok(_), _) => Judged::new(Outcome::Invalid, "nothing is expected of its tests"),
        (Err(error), _) => Judged::new(Outcome::new(&report, None), error.to_string()),
    };
    judged.infra = report.infra_failure;
    if let Some(InfraFailure { reason, tier: InfraTier::Environment }) = report.infra_failure
        && judged.outcome == Outcome::Infrastructure
    {
        judged.reason += &format!("; the log shows `{reason}`");
    }
    judged
}

/// What tests did not do that they should, in short.
fn unmet(tests: &TestsReport) -> String {
    if tests.resolution() == Resolution::Full {
        return String::new();
    }
    let (fixed, kept) = (&tests.fail_to_pass, &tests.pass_to_pass);
    let all = |lists: &spar_swe::grade::TestLists| lists.success.len() + lists.failure.len();
    format!(
        "{} of {} tests that failed pass, {} of {} that passed still do",
        fixed.success.len(),
        all(fixed),
        kept.success.len(),
        all(kept)
    )
}

fn by_statuses(statuses: StatusMap, verification: &Verification) -> Judged {
    let mut judged = match verification {
        Verification::TestLog { .. } if statuses.is_empty() => {
            Judged::new(Outcome::Invalid, "the log names no test")
        }
        Verification::TestLog { expected, eval_type, parser, .. } => {
            let tests = match parser.origin {
                Origin::SweRebench => rebench_report(&statuses, expected),
                _ => expected.report(&statuses, *eval_type, edition(verification)),
            };
            let mut judged = match tests.resolution() {
                Resolution::Full => Judged::new(Outcome::Resolved, ""),
                Resolution::Partial => Judged::new(Outcome::Partial, unmet(&tests)),
                Resolution::No => Judged::new(Outcome::Failed, unmet(&tests)),
            };
            judged.tests = Some(tests);
            judged
        }
        Verification::ExactStatuses { expected, .. } => Judged::of(
            r2e_has_resolved(&statuses, expected),
            "tests have other statuses than those that are expected",
        ),
        // A log without tests resolves nothing, though the original finds nothing in it that failed.
        Verification::AllTestsPass { .. } if statuses.is_empty() => {
            Judged::new(Outcome::Failed, "the log names no test")
        }
        Verification::AllTestsPass { .. } => {
            let failed = statuses.values().filter(|status| !status.has_passed()).count();
            let resolved = terminal_bench_has_resolved(&statuses);
            Judged::of(resolved, &format!("{failed} of {} tests did not pass", statuses.len()))
        }
        _ => Judged::new(Outcome::Invalid, "nothing tells what its tests are expected to do"),
    };
    judged.statuses = statuses;
    judged
}

#[derive(Deserialize)]
struct Report {
    tests: Vec<ReportedTest>,
}

#[derive(Deserialize)]
struct ReportedTest {
    name: String,
    status: String,
}

/// What a file of statuses says, as SWE-bench-Pro's scripts write it.
pub(super) fn by_report(bytes: &[u8], expected: &Expected) -> Judged {
    let report: Report = match serde_json::from_slice(bytes) {
        Ok(report) => report,
        Err(error) => {
            return Judged::new(Outcome::Invalid, format!("the report is not readable: {error}"));
        }
    };
    let is_passed = |test: &&ReportedTest| test.status == "PASSED";
    let passed: BTreeSet<String> =
        report.tests.iter().filter(is_passed).map(|test| test.name.clone()).collect();
    let resolved = pro_has_resolved(&expected.fail_to_pass, &expected.pass_to_pass, &passed);
    let sort = |names: &[String]| {
        let (success, failure) =
            names.iter().cloned().partition(|name: &String| passed.contains(name));
        spar_swe::grade::TestLists { success, failure }
    };
    let tests = TestsReport {
        fail_to_pass: sort(&expected.fail_to_pass),
        pass_to_pass: sort(&expected.pass_to_pass),
        ..TestsReport::default()
    };
    let mut judged = Judged::of(resolved, &unmet(&tests));
    judged.statuses = report
        .tests
        .into_iter()
        .map(|test| (test.name, TestStatus::from_word(&test.status)))
        .collect();
    judged.tests = Some(tests);
    judged
}

#[derive(Deserialize)]
struct PytestReport {
    summary: BTreeMap<String, serde_json::Value>,
}

/// The part of tests that passed in a report of `pytest-json-report`.
pub(super) fn by_fraction(bytes: &[u8]) -> Judged {
    let report: PytestReport = match serde_json::from_slice(bytes) {
        Ok(report) => report,
        Err(error) => {
            return Judged::new(Outcome::Invalid, format!("the report is not readable: {error}"));
        }
    };
    let count = |name: &str| report.summary.get(name).and_then(serde_json::Value::as_u64);
    let (passed, total) = (
        count("passed").unwrap_or(0) + count("xfailed").unwrap_or(0),
        count("total").or_else(|| count("collected")).unwrap_or(0),
    );
    if total == 0 || passed > total {
        return Judged::new(Outcome::Invalid, "the report tells of no tests");
    }
    let mut judged = Judged::new(
        if passed == total {
            Outcome::Resolved
        } else if passed > 0 {
            Outcome::Partial
        } else {
            Outcome::Failed
        },
        format!("{passed} of {total} tests passed"),
    );
    judged.reward = passed as f64 / total as f64;
    judged
}

/// The reward that a file holds: a number, or in a `.json` file numbers by name, of which `reward` counts or else their mean.
pub(super) fn by_reward(path: &str, bytes: &[u8]) -> Judged {
    let text = String::from_utf8_lossy(bytes);
    let named = |reward: f64| BTreeMap::from([("reward".to_owned(), reward)]);
    let rewards: BTreeMap<String, f64> = match path.ends_with(".json") {
        false => text.trim().parse::<f64>().map(named).unwrap_or_default(),
        true => serde_json::from_str(&text).unwrap_or_default(),
    };
    let mean = || rewards.values().sum::<f64>() / rewards.len() as f64;
    let reward = rewards.get("reward").copied().unwrap_or_else(mean);
    // Not a number where there are none.
    if !(0.0..=1.0).contains(&reward) {
        return Judged::new(Outcome::Invalid, format!("`{path}` holds no reward from 0 to 1"));
    }
    let outcome = if reward >= 1.0 {
        Outcome::Resolved
    } else if reward > 0.0 {
        Outcome::Partial
    } else {
        Outcome::Failed
    };
    Judged { reward, rewards, ..Judged::new(outcome, "") }
}

#[cfg(test)]
mod tests {
    use spar_swe::ParserName;
    use spar_swe::grade::EvalType;

    use super::*;

    fn verification(script: &str) -> Verification {
        Verification::TestLog {
            script: script.to_owned(),
            parser: ParserName { origin: Origin::SweBench, name: "parse_log_pytest".to_owned() },
            expected: Expected {
                fail_to_pass: vec!["a::é".to_owned()],
                pass_to_pass: vec!["b".to_owned()],
            },
            eval_type: EvalType::PassAndFail,
        }
    }

    fn read(verification: &Verification, log: &str, piece: usize) -> Judged {
        let mut reader = Reader::open(verification, "i").unwrap();
        log.as_bytes().chunks(piece).for_each(|bytes| reader.push(bytes));
        reader.finish(verification)
    }

    #[test]
    fn marks_that_the_script_did_not_write_make_a_log_invalid() {
        let script = "set -uxo pipefail\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\necho '>>>>> Test Exit Code: 0'\n";
        let task = verification(script);
        let (start, end) = ("+ : '>>>>> Start Test Output'\n", "+ : '>>>>> End Test Output'\n");
        let passed = "PASSED a::é\nPASSED b\n";
        let honest = format!("{start}{passed}{end}");
        assert_eq!(read(&task, &honest, 1000).outcome, Outcome::Resolved);
        let forged = format!("{start}{passed}{end}{start}FAILED a::é\n{end}");
        assert_eq!(read(&task, &forged, 7).outcome, Outcome::Invalid);
        let partly = format!("{start}PASSED a::é\nFAILED b\n{end}");
        let judged = read(&task, &partly, 3);
        assert_eq!(judged.outcome, Outcome::Failed);
        assert_eq!(judged.reason, "1 of 1 tests that failed pass, 0 of 1 that passed still do");
    }

    #[test]
    fn marks_are_counted_as_often_as_a_trace_shows_them() {
        let count = |script: &str| written(script, START);
        assert_eq!(count(": '>>>>> Start Test Output'"), 1);
        assert_eq!(count("set -x\necho '>>>>> Start Test Output'"), 2);
        assert_eq!(count("set -e\necho '>>>>> Start Test Output'"), 1);
        assert_eq!(count("set -uxo pipefail\n: '>>>>> Start Test Output'"), 1);
    }

    #[test]
    fn logs_without_marks_come_in_pieces_of_any_size() {
        let task = verification("pytest\n");
        for piece in [1, 2, 3, 1000] {
            assert_eq!(read(&task, "PASSED a::é\nPASSED b\n", piece).outcome, Outcome::Resolved);
        }
        assert_eq!(read(&task, "nothing", 3).outcome, Outcome::Invalid);
    }

    #[test]
    fn files_of_rewards_reports_and_fractions_are_read_strictly() {
        assert_eq!(by_reward("/r.txt", b"0.5\n").reward, 0.5);
        assert_eq!(by_reward("/r.json", br#"{"a": 1, "b": 0}"#).reward, 0.5);
        assert_eq!(by_reward("/r.json", br#"{"a": 0, "reward": 1}"#).outcome, Outcome::Resolved);
        for bad in ["NaN", "2", "-1", "", "{}"] {
            assert_eq!(by_reward("/r.txt", bad.as_bytes()).outcome, Outcome::Invalid, "{bad}");
        }
        assert_eq!(by_reward("/r.json", b"{}").outcome, Outcome::Invalid);
        let expected =
            Expected { fail_to_pass: vec!["a".to_owned()], pass_to_pass: vec!["b".to_owned()] };
        let report =
            br#"{"tests": [{"name": "a", "status": "PASSED"}, {"name": "b", "status": "FAILED"}]}"#;
        assert_eq!(by_report(report, &expected).outcome, Outcome::Failed);
        assert_eq!(by_report(b"{", &expected).outcome, Outcome::Invalid);
        let judged = by_fraction(br#"{"summary": {"passed": 3, "failed": 1, "total": 4}}"#);
        assert_eq!((judged.outcome, judged.reward), (Outcome::Partial, 0.75));
        assert_eq!(by_fraction(br#"{"summary": {}}"#).outcome, Outcome::Invalid);
    }
}
