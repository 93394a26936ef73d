//! What the agent reads.

use std::time::Duration;

use spar_sandbox::{ExecEnd, ShellResult};
use spar_tasks::TerminalTask;

use super::SUBMIT;

/// The first message.
pub(super) fn opening(task: &TerminalTask) -> String {
    let whole = task.agent_secs.map(|seconds| format!(", all of them {seconds} s"));
    format!(
        "{}\n\nYou are in {}. A command may take {} s{}; {SUBMIT} ends the task.",
        task.instruction,
        task.workdir,
        task.command_secs,
        whole.unwrap_or_default()
    )
}

/// What came of a command: its output, what it wrote to standard error apart from it, and how it
/// ended. No times: equal commands have equal observations.
pub(crate) fn outcome(result: &ShellResult, limit: Duration) -> String {
    let mut text = result.stdout.text();
    end_line(&mut text);
    let errors = result.stderr.text();
    if !errors.is_empty() {
        text.push_str("[standard error]\n");
        text.push_str(&errors);
        end_line(&mut text);
    }
    match result.end {
        ExecEnd::Exited { code } => text += &format!("[exit code {code}]"),
        ExecEnd::Signalled { signal } => text += &format!("[ended by signal {signal}]"),
        ExecEnd::TimedOut => text += &format!("[ended at its limit of {} s]", limit.as_secs()),
        ExecEnd::OutOfMemory => text += "[out of memory]",
        ExecEnd::OutOfFuel => text += "[out of fuel]",
        ExecEnd::Trapped => text += "[trapped]",
    }
    if result.restarted {
        text += "\n[the shell was started anew]";
    }
    text
}

/// Whether a command was one at all: a program that exists, in a syntax that was understood.
pub(crate) fn is_executable(result: &ShellResult) -> bool {
    match result.end {
        ExecEnd::Exited { code: 126 | 127 } => false,
        // Shells have no code of their own for what they cannot understand, but complain themselves.
        ExecEnd::Exited { code: 2 } => {
            let errors = result.stderr.text();
            !errors.starts_with("sh: ") && !errors.contains("yntax error")
        }
        _ => true,
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use spar_sandbox::Captured;

    use super::*;

    fn result(end: ExecEnd, stdout: &str, stderr: &str) -> ShellResult {
        let captured = |text: &str| {
            let mut captured = Captured::new(12);
            captured.push(text.as_bytes());
            captured
        };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        ShellResult { end, stdout, stderr, restarted: false, wall: Duration::from_secs(3) }
    }

    #[test]
    fn an_outcome_is_output_errors_and_end() {
        let limit = Duration::from_secs(9);
        let exited = |code| ExecEnd::Exited { code };
        assert_eq!(outcome(&result(exited(0), "", ""), limit), "[exit code 0]");
        assert_eq!(outcome(&result(exited(3), "a", ""), limit), "a\n[exit code 3]");
        let both = outcome(&result(exited(1), "a\n", "b\n"), limit);
        assert_eq!(both, "a\n[standard error]\nb\n[exit code 1]");
        let late = outcome(&result(ExecEnd::TimedOut, "a\n", ""), limit);
        assert_eq!(late, "a\n[ended at its limit of 9 s]");
        let long = outcome(&result(exited(0), "0123456789abcdefghij", ""), limit);
        assert_eq!(long, "012345\n[... 8 bytes left out ...]\nefghij\n[exit code 0]");
        let mut anew = result(exited(0), "", "");
        anew.restarted = true;
        assert_eq!(outcome(&anew, limit), "[exit code 0]\n[the shell was started anew]");
    }

    #[test]
    fn what_is_no_command_is_told_apart() {
        let exited = |code, stderr| is_executable(&result(ExecEnd::Exited { code }, "", stderr));
        assert!(exited(0, "") && exited(1, "") && exited(2, "ls: no such"));
        assert!(!exited(127, "") && !exited(126, "") && !exited(2, "Syntax error"));
        assert!(!exited(2, "sh: a word"));
    }
}
