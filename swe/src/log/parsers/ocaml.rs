//! Alcotest, QCheck, dune and ocamlbuild.

use std::collections::HashMap;

use indexmap::IndexSet;

use crate::TestStatus::{self, Error, Failed, Passed, Skipped};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, strip_end, without_escapes, words};

/// Of two statuses the worse holds, the later of equals.
fn set_worse(tests: &mut Statuses, name: &str, status: TestStatus) {
    fn rank(status: TestStatus) -> u8 {
        match status {
            Passed => 0,
            Skipped => 1,
            Failed => 2,
            _ => 3,
        }
    }
    if !name.is_empty() && tests.get(name).is_none_or(|known| rank(status) >= rank(known)) {
        tests.set(name, status);
    }
}

/// `[OK]  suite  3  name`.
pub(in crate::log) fn v1() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let entry = pattern!(
            r"^\s*\[(?P<status>[A-Z]+)\]\s+(?P<suite>.*?)\s+(?P<index>\d+)\s+(?P<name>.+)$"
        );
        let Some(groups) = entry.captures(strip_end(line)) else { return };
        let parts = [strip(&groups["suite"]), &groups["index"], strip(&groups["name"])];
        let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        match &groups["status"] {
            "OK" | "PASS" => tests.set_default(name, Passed),
            "FAIL" | "FAILED" => tests.set(name, Failed),
            "SKIP" | "SKIPPED" | "TODO" => tests.set(name, Skipped),
            _ => tests.set(name, Error),
        }
    })
}

/// dune's verbose output: binaries, by what they print.
pub(in crate::log) fn v2() -> Reader {
    Reader::python_lines(Dune::default())
}

#[derive(Default)]
struct Dune {
    names: HashMap<String, String>,
    active: Option<String>,
    seen: IndexSet<String>,
}

impl LineParser for Dune {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        let line = strip(line);
        if line.is_empty() {
            return;
        }
        if let Some(groups) = pattern!(r"^Running\[(\d+)\]:\s+\((.+)\)$").captures(line) {
            let number = number(&groups[1]);
            let name = binary(&groups[2]);
            let name = if name.is_empty() { format!("run_{number}") } else { name.to_owned() };
            if tests.has_room(name.len()) {
                self.names.insert(number.to_owned(), name);
            }
            self.active = None;
        } else if let Some(groups) = pattern!(r"^Output\[(\d+)]:").captures(line) {
            let name = self.names.get(number(&groups[1]));
            self.active = name.filter(|name| tests.has_room(name.len())).cloned();
        } else if let Some(name) = &self.active {
            if !self.seen.contains(name) && tests.has_room(name.len()) {
                self.seen.insert(name.clone());
            }
            let upper = line.to_uppercase();
            let has = |words: &[&str]| words.iter().any(|word| upper.contains(word));
            if has(&["FAIL", "ERROR", "EXCEPTION", "CRASH", "FATAL"]) {
                set_worse(tests, name, Failed);
            } else if has(&["SKIP"]) {
                set_worse(tests, name, Skipped);
            } else if upper == "OK" {
                set_worse(tests, name, Passed);
            }
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        for name in self.seen.drain(..) {
            tests.set_default(name, Passed);
        }
    }
}

/// A number without zeros before it.
fn number(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => "0",
        number => number,
    }
}

/// The program that a command runs.
fn binary(command: &str) -> &str {
    let command = strip(command.rsplit("&&").next().unwrap_or(command));
    let command = command.strip_prefix("exec ").map_or(command, strip);
    let command = command.strip_prefix("./").unwrap_or(command);
    words(command).next().map_or("", |path| path.rsplit('/').next().unwrap_or(path))
}

/// `[OK] name`, with many words for every outcome.
pub(in crate::log) fn v3() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let entry = pattern!(r"^\[(?P<token>[A-Za-z][A-Za-z0-9_-]*)\]\s+(?P<body>.+)$");
        let Some(groups) = entry.captures(strip(line)) else { return };
        let status = match groups["token"].to_uppercase().as_str() {
            "OK" | "PASS" | "PASSED" | "SUCCESS" => Passed,
            "SKIP" | "SKIPPED" | "TODO" | "PENDING" | "DISABLED" => Skipped,
            "FAIL" | "FAILED" | "ERROR" | "EXCEPTION" | "CRASH" | "FATAL" | "KO" | "PANIC" => {
                Failed
            }
            _ => return,
        };
        let name = pattern!(r"\s+").replace_all(&groups["body"], " ");
        set_worse(tests, strip(&name), status);
    })
}

/// ocamlbuild: the word, then the name up to two blanks.
pub(in crate::log) fn v4() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = pattern!(r"\x1B\[[0-9;]*m").replace_all(line, " ");
        let line = without_escapes(&line);
        let Some(groups) =
            pattern!(r"^(PASSED|FAILED|SKIPPED|ERROR)\s+(.*)$").captures(strip(&line))
        else {
            return;
        };
        let rest = strip(&groups[2]);
        let end = pattern!(r"\s{2,}").find(rest).map_or(rest.len(), |blanks| blanks.start());
        set_worse(tests, strip(&rest[..end]), TestStatus::from_word(&groups[1]));
    })
}
