//! What a command has written, as the original sees it.

use std::time::Duration;

use spar_sandbox::{ExecEnd, ExecResult};
use spar_swe::python_text::{split_line, strip, strip_start};

use crate::toolsets::Submission;

/// What a command has written, as the original sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) text: String,
    pub(super) returncode: i32,
    /// Why it has no end of its own; empty where it has one.
    pub(super) exception: String,
    end: ExecEnd,
    is_whole: bool,
}

impl Output {
    /// What came of `command`, which might take `limit`.
    pub(super) fn of(result: &ExecResult, command: &str, limit: Duration) -> Self {
        let text = universal_newlines(&result.stdout.text());
        let is_whole = result.stdout.elided_bytes() == 0;
        let (returncode, exception) = match result.end {
            ExecEnd::TimedOut => (-1, late(command, limit.as_secs())),
            end => (end.shell_code(), String::new()),
        };
        Self { text, returncode, exception, end: result.end, is_whole }
    }

    /// What came of a command that could not be started.
    pub(super) fn refused(why: &str) -> Self {
        let end = ExecEnd::Exited { code: 126 };
        Self { text: String::new(), returncode: -1, exception: raised(why), end, is_whole: true }
    }

    /// One to try templates on.
    pub(super) fn example() -> Self {
        let end = ExecEnd::Exited { code: 0 };
        let text = "x".repeat(20_000);
        Self { text, returncode: 0, exception: "none".to_owned(), end, is_whole: true }
    }

    /// Whether its time was over.
    pub(super) fn is_late(&self) -> bool {
        self.end == ExecEnd::TimedOut
    }
}

#[cfg(test)]
impl Output {
    pub(super) fn recorded(text: String, returncode: i32, exception: String, end: ExecEnd) -> Self {
        Self { text, returncode, exception, end, is_whole: true }
    }

    pub(super) fn late(command: &str, seconds: u64, text: &str) -> Self {
        Self::recorded(text.to_owned(), -1, late(command, seconds), ExecEnd::TimedOut)
    }
}

/// What Python raises where a command's time is over.
fn late(command: &str, seconds: u64) -> String {
    raised(&format!("Command '{command}' timed out after {seconds} seconds"))
}

fn raised(why: &str) -> String {
    format!("An error occurred while executing the command: {why}")
}

/// Lines as Python reads them from a pipe: whatever ends one, it is a line feed.
fn universal_newlines(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

/// What an output hands in whose first line is one of `sentinels` and whose command has succeeded: what stands behind
/// that line, or where that is blank or not all of it is known, what differs in the repository.
pub(super) fn submission_of(output: &Output, sentinels: &[&str]) -> Option<Submission> {
    let text = strip_start(&output.text);
    let (first, rest) = split_line(text).unwrap_or((text, ""));
    if output.returncode != 0 || output.is_late() || !sentinels.contains(&strip(first)) {
        return None;
    }
    let is_written = output.is_whole && !strip(rest).is_empty();
    Some(Submission { patch: is_written.then(|| rest.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_is_not_blank_submits_what_stands_behind_it() {
        let output = |text: &str, returncode| Output {
            text: text.to_owned(),
            returncode,
            exception: String::new(),
            end: ExecEnd::Exited { code: returncode },
            is_whole: true,
        };
        let patch = |text: &str, code| submission_of(&output(text, code), &["END"]);
        let of = |patch: &str| Some(Submission { patch: Some(patch.to_owned()) });
        assert_eq!(patch("\n  END \ndiff\n", 0), of("diff\n"));
        assert_eq!(patch("END", 0), Some(Submission::default()));
        assert_eq!(patch("END\n \n", 0), Some(Submission::default()));
        assert_eq!(patch("END\ndiff", 1), None);
        assert_eq!(patch("so\nEND\n", 0), None);
        assert_eq!(patch("END x\n", 0), None);
        let cut = Output { is_whole: false, ..output("END\ndiff\n", 0) };
        assert_eq!(submission_of(&cut, &["END"]), Some(Submission::default()));
    }

    #[test]
    fn lines_end_as_python_has_it() {
        assert_eq!(universal_newlines("a\r\nb\rc\n\r"), "a\nb\nc\n\n");
    }
}
