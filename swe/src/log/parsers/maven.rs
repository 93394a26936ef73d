//! Maven and its Surefire.

use std::collections::VecDeque;

use crate::TestStatus::{self, Failed, Passed};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

fn asked(line: &str) -> Option<&str> {
    Some(pattern!(r"^.*-Dtest=(\S+).*$").captures(line)?.get(1)?.as_str())
}

fn built(line: &str) -> Option<TestStatus> {
    let groups = pattern!(r"^.*BUILD (SUCCESS|FAILURE)$").captures(line)?;
    Some(if &groups[1] == "SUCCESS" { Passed } else { Failed })
}

/// A build per test, with `set -x`: commands and builds in turn, in whatever order the streams came.
pub(in crate::log) fn swe_bench() -> Reader {
    Reader::lines(Builds::default())
}

#[derive(Default)]
struct Builds {
    asked: VecDeque<String>,
    unclaimed: VecDeque<TestStatus>,
}

impl LineParser for Builds {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        let line = strip(line);
        if let Some(name) = asked(line)
            && tests.has_room(name.len())
        {
            self.asked.push_back(name.to_owned());
        }
        if let Some(status) = built(line) {
            match self.asked.pop_front() {
                Some(name) => tests.set(name, status),
                None => self.unclaimed.push_back(status),
            }
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        for (name, status) in self.asked.drain(..).zip(self.unclaimed.drain(..)) {
            tests.set(name, status);
        }
    }
}

/// Up to version 4 a build is that of the last command.
pub(in crate::log) fn swe_bench_4() -> Reader {
    let mut current = "---NO TEST NAME FOUND YET---".to_owned();
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if let Some(name) = asked(line) {
            name.clone_into(&mut current);
        }
        if let Some(status) = built(line) {
            tests.set(current.as_str(), status);
        }
    })
}

/// Surefire with the seconds of every method.
pub(in crate::log) fn surefire() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let prefixed = pattern!(r"^\[(INFO|ERROR)\]\s+(.*?)\s+--\s+Time elapsed:\s+([\d.]+)\s");
        if line.starts_with('[') {
            let has_failed = line.ends_with("<<< FAILURE!") && line.starts_with("[ERROR]");
            if (has_failed || line.contains("Time elapsed:"))
                && let Some(groups) = prefixed.captures(line)
            {
                tests.set(&groups[2], if has_failed { Failed } else { Passed });
            }
        } else if line.contains("Time elapsed:") && line.contains('(') {
            let plain =
                pattern!(r"^([a-zA-Z0-9_]+)\(([a-zA-Z0-9_.]+)\)\s+Time elapsed:\s+([\d.]+)\s+sec");
            if let Some(groups) = plain.captures(line) {
                tests.set(format!("{}.{}", &groups[2], &groups[1]), Passed);
            }
        }
    })
}
