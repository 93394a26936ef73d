use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memchr2;
use regex::Regex;

use super::{Edition, InfraFailure, InfraScan};
use crate::TestStatus::{Error, Failed};
use crate::log::{LogContext, LogError, LogParser, LogReading, MAX_LINE_BYTES, StatusMap};
use crate::python_text::pattern;

const START: &str = ">>>>> Start Test Output";
const END: &str = ">>>>> End Test Output";
const EXIT_CODE: &str = ">>>>> Test Exit Code";
const APPLIED_TESTS: &str = ">>>>> Applied Patch (test)";
const APPLIED: &str = ">>>>> Applied Patch (pred)";

/// Why a log is not graded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ungraded {
    /// The log says that the attempt's patch could not be applied.
    #[error("the patch could not be applied")]
    PatchNotApplied,
    /// The log says that the repository could not be reset.
    #[error("the repository could not be reset")]
    ResetFailed,
    /// The log says that the tests could not be run.
    #[error("the tests could not be run")]
    TestsErrored,
    /// The log says that the tests took too long.
    #[error("the tests took too long")]
    TestsTimedOut,
    /// The marks around the tests' output are not there, or in versions 1 and 2 those that tell of applied patches.
    #[error("the log does not have the marks around the tests' output")]
    NoMarks,
    /// No test is named, and nothing shows that the runner ran.
    #[error("no test is named, and no summary of a runner is there")]
    NothingRan,
    /// The tests' command failed, and no test of the log has: the log is not that of the run.
    #[error("the tests' command exited with {exit_code}, and the log names no test that failed")]
    Spoofed {
        /// Exit status of the command.
        exit_code: i64,
    },
    /// No statuses come of the log.
    #[error(transparent)]
    Parser(#[from] LogError),
}

/// What a log of an evaluation says.
#[derive(Clone, Debug, PartialEq)]
pub struct LogReport {
    /// Statuses by the name of the test, if the log can be graded.
    pub verdict: Result<StatusMap, Ungraded>,
    /// A sign that the machinery was at fault.
    pub infra_failure: Option<InfraFailure>,
    /// How often the log has the mark before the tests' output. An evaluation writes it once; what is more was printed by tests.
    pub num_starts: u64,
    /// How often the log has the mark after the tests' output.
    pub num_ends: u64,
    /// The exit status of the tests' command that the log has, the first of several.
    pub exit_code: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Within,
    After,
}

/// A log of SWE-bench's evaluation script that is being read, in pieces of any size. Of most runners' logs only the line under way
/// is kept.
///
/// Line ends are those of Python's text files. Bytes that are no UTF-8 are replaced, where the reference gives up. Of lines
/// longer than [`MAX_LINE_BYTES`] the rest is left out.
pub struct EvalLog {
    edition: Edition,
    parser: LogParser,
    instance_id: String,
    version: String,
    section: LogReading,
    whole: LogReading,
    place: Place,
    line: Vec<u8>,
    /// The last byte was a carriage return, which a line feed completes.
    is_after_return: bool,
    bad: [bool; 5],
    /// Whether the log tells of a patch to the tests, of the attempt's, and of any.
    applied: [bool; 3],
    num_starts: u64,
    num_ends: u64,
    has_run: bool,
    exit_code: Option<i64>,
    /// What the last line with anything in it ended in, where a pattern may go on in the next one.
    carried: &'static str,
    infra: InfraScan,
}

/// All marks, those of applied patches too, begin so, and one code that tells of a failure does not.
const MARK_WORDS: [&str; 2] = [">>>>>", BAD_CODES[4]];

/// One of these is in every line that a summary of a runner is in, or begins in.
const RUN_WORDS: [&str; 8] =
    ["Executed ", "TOTAL: ", " passing", "Tests:", "Test Suites:", "# tests ", " spec", "': ok"];

/// Whether a line may hold a mark, and whether it may show that a runner ran. Most lines hold neither, and one pass over them is all
/// that they cost.
fn worth(line: &str) -> (bool, bool) {
    static FINDER: LazyLock<AhoCorasick> = LazyLock::new(|| {
        AhoCorasick::new(MARK_WORDS.into_iter().chain(RUN_WORDS)).expect("few short words")
    });
    let (mut has_mark, mut has_run) = (false, false);
    for found in FINDER.find_overlapping_iter(line) {
        match found.pattern().as_usize() < MARK_WORDS.len() {
            true => has_mark = true,
            false => has_run = true,
        }
        if has_mark && has_run {
            break;
        }
    }
    (has_mark, has_run)
}

fn summaries() -> &'static Regex {
    pattern!(
        r"(?m)Executed [1-9]\d* of \d+|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|[1-9]\d* passing|Tests:\s+[1-9]\d*|Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total|^# tests [1-9]\d*|[1-9]\d* specs?, \d+ failures?|': ok$"
    )
}

const BAD_CODES: [&str; 5] = [
    ">>>>> Patch Apply Failed",
    ">>>>> Reset Failed",
    ">>>>> Tests Errored",
    ">>>>> Tests Timed Out",
    // Of version 2 alone.
    "Failed to reset task environment",
];

impl EvalLog {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// [`LogError::Malformed`] where the original parser knows no instance of that name or version.
    pub fn new(
        parser: &LogParser,
        context: &LogContext<'_>,
        edition: Edition,
    ) -> Result<Self, LogError> {
        Ok(Self {
            edition,
            parser: *parser,
            instance_id: context.instance_id.to_owned(),
            version: context.version.to_owned(),
            section: parser.open(context)?,
            whole: parser.open(context)?,
            place: if edition < Edition::Three { Place::Within } else { Place::Before },
            line: Vec::new(),
            is_after_return: false,
            bad: [false; 5],
            applied: [false; 3],
            num_starts: 0,
            num_ends: 0,
            has_run: false,
            exit_code: None,
            carried: "",
            infra: InfraScan::default(),
        })
    }

    /// Reads on.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.is_after_return {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.is_after_return = rest.is_empty() && bytes.is_empty();
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            self.extend(&rest[..end]);
            self.end_line(true);
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                self.is_after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend(rest);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, has_end: bool) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let (has_mark, may_have_run) = worth(&line);
        if has_mark {
            for (seen, code) in self.bad.iter_mut().zip(BAD_CODES) {
                *seen |= line.contains(code);
            }
        }
        self.infra.line(&line);
        if has_mark || may_have_run || !self.carried.is_empty() {
            self.look_for_run(&line);
        }
        self.whole.push(&line);
        self.read_section(&line, has_mark);
        if has_end {
            self.whole.push("\n");
            if self.place == Place::Within {
                self.section.push("\n");
            }
        }
        // The allocation serves the next line.
        self.line = match line {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(_) => Vec::new(),
        };
        self.line.clear();
    }

    /// What stands behind the first start and before the first end or the second start.
    fn read_section(&mut self, line: &str, has_mark: bool) {
        if self.edition < Edition::Three && !self.applied[2] {
            self.applied[2] = line.to_lowercase().contains("applied patch");
        }
        if !has_mark {
            if self.place == Place::Within {
                self.section.push(line);
            }
            return;
        }
        self.num_starts += line.matches(START).count() as u64;
        self.num_ends += line.matches(END).count() as u64;
        let mut rest = line;
        if self.edition < Edition::Three {
            self.applied[0] |= line.contains(APPLIED_TESTS);
            // What follows the last mark counts: each begins the section anew.
            while let Some((_, after)) = rest.split_once(APPLIED) {
                let context = LogContext { instance_id: &self.instance_id, version: &self.version };
                if let Ok(section) = self.parser.open(&context) {
                    self.section = section;
                }
                self.applied[1] = true;
                rest = after;
            }
            return self.section.push(rest);
        }
        if self.place == Place::Before {
            let Some((_, after)) = rest.split_once(START) else { return };
            rest = after;
            self.place = Place::Within;
        }
        if self.place == Place::Within {
            let ends = [rest.find(START), rest.find(END)];
            let end = ends.into_iter().flatten().min();
            self.section.push(&rest[..end.unwrap_or(rest.len())]);
            if end.is_some() {
                self.place = Place::After;
            }
        }
    }

    /// Looks for a runner's summary and for the exit status, which may begin on one line and end on a later one.
    fn look_for_run(&mut self, line: &str) {
        const BEGINNINGS: [&str; 3] = ["Tests:", "Test Suites:", ">>>>> Test Exit Code:"];
        if line.trim().is_empty() {
            return;
        }
        let text = match self.carried {
            "" => Cow::Borrowed(line),
            carried => Cow::Owned(format!("{carried}\n{line}")),
        };
        self.has_run = self.has_run || summaries().is_match(&text);
        if self.exit_code.is_none() && text.contains(EXIT_CODE) {
            let code = pattern!(r">>>>> Test Exit Code:\s*(-?\d+)").captures(&text);
            // A number that is too large is as good as any that is not zero.
            self.exit_code = code.map(|groups| groups[1].parse().unwrap_or(i64::MAX));
        }
        let ended = line.trim_end();
        let carried = BEGINNINGS.into_iter().find(|beginning| ended.ends_with(beginning));
        self.carried = carried.unwrap_or("");
    }

    /// The log has ended. Where the exit status of the tests' command is known from elsewhere, it holds against what the log has,
    /// which tests can forge.
    pub fn finish(mut self, exit_code: Option<i64>) -> LogReport {
        if !self.line.is_empty() {
            self.end_line(false);
        }
        let (infra_failure, logged) = (self.infra.found(), self.exit_code);
        let (num_starts, num_ends) = (self.num_starts, self.num_ends);
        let verdict = self.verdict(exit_code.or(logged));
        LogReport { verdict, infra_failure, num_starts, num_ends, exit_code: logged }
    }

    fn verdict(self, exit_code: Option<i64>) -> Result<StatusMap, Ungraded> {
        let codes = [
            Ungraded::PatchNotApplied,
            Ungraded::ResetFailed,
            Ungraded::TestsErrored,
            Ungraded::TestsTimedOut,
            Ungraded::ResetFailed,
        ];
        let num_codes = match self.edition {
            Edition::One => 0,
            Edition::Two => 5,
            _ => 4,
        };
        let mut seen = self.bad.into_iter().zip(codes).take(num_codes);
        if let Some((_, code)) = seen.find(|(seen, _)| *seen) {
            return Err(code);
        }
        let has_marks = match self.edition {
            Edition::One => self.applied[0] && self.applied[1],
            Edition::Two => self.applied[2],
            _ => self.num_starts > 0 && self.num_ends > 0,
        };
        if !has_marks {
            return Err(Ungraded::NoMarks);
        }
        let mut tests = self.section.finish()?;
        if tests.is_empty() && self.edition >= Edition::Four {
            tests = self.whole.finish()?;
        }
        if self.edition == Edition::Five {
            if tests.is_empty() && !self.has_run {
                return Err(Ungraded::NothingRan);
            }
            let has_failure = tests.values().any(|status| matches!(status, Failed | Error));
            if let Some(exit_code) = exit_code.filter(|code| *code != 0)
                && !tests.is_empty()
                && !has_failure
            {
                return Err(Ungraded::Spoofed { exit_code });
            }
        }
        Ok(tests)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TestStatus::Passed;
    use crate::log::{Origin, find_log_parser};

    fn read(log: &str, edition: Edition) -> LogReport {
        let parser = find_log_parser(Origin::SweBench, "parse_log_pytest").unwrap();
        let mut whole = EvalLog::new(parser, &LogContext::default(), edition).unwrap();
        whole.push(log.as_bytes());
        let whole = whole.finish(None);
        let mut pieces = EvalLog::new(parser, &LogContext::default(), edition).unwrap();
        log.as_bytes().iter().for_each(|byte| pieces.push(&[*byte]));
        assert_eq!(pieces.finish(None), whole);
        whole
    }

    fn names(report: &LogReport) -> Vec<&str> {
        report.verdict.as_ref().unwrap().keys().map(String::as_str).collect()
    }

    /// Words of the patterns and marks, whole and cut, and what stands beside them.
    fn piece() -> impl Strategy<Value = String> {
        let marks = [START, END, EXIT_CODE, APPLIED_TESTS, APPLIED];
        let others = [
            "1",
            "20",
            " of 3",
            "SUCCESS",
            "FAILED",
            " total",
            "s, 0 failures",
            " ",
            "\u{1c}",
            "é",
            "1 passed, ",
        ];
        let words = marks.into_iter().chain(BAD_CODES).chain(RUN_WORDS).chain(others);
        let words: Vec<&str> = words.collect();
        (0..words.len(), any::<bool>()).prop_map(move |(word, is_whole)| {
            let mut word = words[word].to_owned();
            if !is_whole {
                word.pop();
            }
            word
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn lines_that_are_left_out_fit_nothing(pieces in proptest::collection::vec(piece(), 0..6)) {
            let line = pieces.concat();
            let (has_mark, may_have_run) = worth(&line);
            let marks = [START, END, EXIT_CODE, APPLIED_TESTS, APPLIED];
            if marks.into_iter().chain(BAD_CODES).any(|mark| line.contains(mark)) {
                prop_assert!(has_mark, "{line:?}");
            }
            // What a later line may complete, as well.
            let begins = ["Tests:", "Test Suites:"].iter().any(|word| line.contains(word));
            if summaries().is_match(&line) || begins {
                prop_assert!(may_have_run, "{line:?}");
            }
        }
    }

    #[test]
    fn only_the_section_is_read() {
        let log = "PASSED a\n+ : '>>>>> Start Test Output'\r\nPASSED b\rPASSED c\nx>>>>> End Test OutputPASSED d\nPASSED e";
        for edition in [Edition::Three, Edition::Four, Edition::Five] {
            let report = read(log, edition);
            assert_eq!(names(&report), ["b", "c"]);
            assert_eq!((report.num_starts, report.num_ends), (1, 1));
        }
    }

    #[test]
    fn a_section_without_results_sends_to_the_whole_log() {
        let log = ">>>>> Start Test Output\n>>>>> End Test Output\nPASSED a\n";
        assert_eq!(names(&read(log, Edition::Five)), ["a"]);
        assert!(names(&read(log, Edition::Three)).is_empty());
    }

    #[test]
    fn a_second_start_ends_the_section() {
        let log = ">>>>> End Test Output\n>>>>> Start Test Output\nPASSED a\n>>>>> Start Test Output\nPASSED b";
        let report = read(log, Edition::Five);
        assert_eq!(names(&report), ["a"]);
        assert_eq!((report.num_starts, report.num_ends), (2, 1));
    }

    #[test]
    fn before_version_3_what_follows_the_last_patch_is_read() {
        let log = "PASSED a\n>>>>> Applied Patch (pred)\nPASSED b\n>>>>> Applied Patch (test)\nx>>>>> Applied Patch (pred)\nPASSED c";
        for edition in [Edition::One, Edition::Two] {
            assert_eq!(names(&read(log, edition)), ["c"]);
        }
        let log = "Applied patch x\nPASSED a";
        assert_eq!(names(&read(log, Edition::Two)), ["a"]);
        assert_eq!(read(log, Edition::One).verdict, Err(Ungraded::NoMarks));
        let log = "Applied patch x\nFailed to reset task environment\n";
        assert_eq!(read(log, Edition::Two).verdict, Err(Ungraded::ResetFailed));
    }

    #[test]
    fn logs_that_show_no_run_are_not_graded() {
        let log = |body: &str| format!(">>>>> Start Test Output\n{body}\n>>>>> End Test Output\n");
        assert_eq!(read(&log(""), Edition::Five).verdict, Err(Ungraded::NothingRan));
        assert_eq!(read(&log("Tests:  0 total"), Edition::Five).verdict, Err(Ungraded::NothingRan));
        for ran in ["Tests:  3 total", "Tests:\n\n  3 total", "case x': ok", "12 passing (3s)"] {
            assert_eq!(read(&log(ran), Edition::Five).verdict, Ok(StatusMap::new()), "{ran}");
        }
        assert_eq!(read("PASSED a\n", Edition::Five).verdict, Err(Ungraded::NoMarks));
        let broken = log("PASSED a") + ">>>>> Patch Apply Failed";
        assert_eq!(read(&broken, Edition::Four).verdict, Err(Ungraded::PatchNotApplied));
    }

    #[test]
    fn an_exit_status_goes_together_with_failures() {
        let log = |status: &str, exit: &str| {
            format!(
                ">>>>> Start Test Output\n{status} a\n>>>>> End Test Output\n>>>>> Test Exit Code:{exit}\n"
            )
        };
        let spoofed = Err(Ungraded::Spoofed { exit_code: 1 });
        assert_eq!(read(&log("PASSED", " 1"), Edition::Five).verdict, spoofed);
        assert_eq!(read(&log("PASSED", "\n1"), Edition::Five).verdict, spoofed);
        assert!(read(&log("FAILED", " 1"), Edition::Five).verdict.is_ok());
        assert!(read(&log("PASSED", " 0"), Edition::Five).verdict.is_ok());
        assert!(read(&log("PASSED", " 1"), Edition::Four).verdict.is_ok());
        let parser = find_log_parser(Origin::SweBench, "parse_log_pytest").unwrap();
        let mut forged = EvalLog::new(parser, &LogContext::default(), Edition::Five).unwrap();
        forged.push(log("PASSED", " 0").as_bytes());
        assert_eq!(forged.finish(Some(1)).verdict, spoofed);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let parser = find_log_parser(Origin::SweBench, "parse_log_pytest").unwrap();
        let mut log = EvalLog::new(parser, &LogContext::default(), Edition::Five).unwrap();
        log.push(b">>>>> Start Test Output\nPASSED a\xff\n>>>>> End Test Output");
        let tests = log.finish(None).verdict.unwrap();
        assert_eq!(tests, StatusMap::from([("a\u{fffd}".to_owned(), Passed)]));
    }
}
